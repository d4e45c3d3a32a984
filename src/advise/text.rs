// SPDX-License-Identifier: GPL-2.0-only
//! The answer as half a page.

use super::{Advice, BASE, Effect, OURS, Simulated, measurement};
use crate::util::text::paragraph;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: usize = 100;

impl Advice {
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.machine);
        let _ = writeln!(
            text,
            "Simulated, {} runs each. Better than the kernel's own scheduler by:\n",
            self.seeds
        );
        let _ = writeln!(
            text,
            "  {:<12} {:>16}  {:<26} measured by",
            "load", OURS, "best preset"
        );
        for load in &self.loads {
            text += &load.line();
        }
        text.push('\n');
        for (head, said) in [
            ("What to expect", self.expected()),
            ("What to start", self.start()),
            ("Profile", self.profiles()),
            ("How sure", self.sure()),
            ("Here", self.here()),
        ] {
            text += &paragraph(&format!("{head:<15}"), &said, WIDTH);
        }
        text + &self.check()
    }

    fn expected(&self) -> String {
        let preset = self.tried();
        let of = |load: &Simulated| load.effects.iter().find(|e| e.preset == preset).cloned();
        let (mut better, mut worse, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for load in &self.loads {
            match of(load).and_then(|effect| effect.decided()) {
                Some(gain) if gain > 0.0 => better.push(format!("{} ({gain:+.0} %)", load.load)),
                Some(gain) => worse.push(format!("{} ({gain:+.0} %)", load.load)),
                None => same.push(load.load.clone()),
            }
        }
        let parts = [
            ("better", better),
            ("worse", worse),
            ("no difference that shows", same),
        ];
        let said: Vec<String> = parts
            .iter()
            .filter(|(_, loads)| !loads.is_empty())
            .map(|(what, loads)| format!("{what}: {}", loads.join(", ")))
            .collect();
        format!("with preset {preset} {}.", said.join("; "))
    }

    fn start(&self) -> String {
        let Some(effect) = &self.choice else {
            return "nothing: stay with the kernel's own scheduler. No preset is clearly better over \
                    these loads without being clearly worse on one."
                .to_string();
        };
        format!(
            "preset {} ({} over these loads). It is clearly worse on none, and no other preset of \
             which that is true is clearly better.",
            effect.preset,
            effect.text()
        )
    }

    fn profiles(&self) -> String {
        let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for load in &self.loads {
            let profile = load.profile.unwrap_or("none");
            of.entry(profile).or_default().push(&load.load);
        }
        let each = of
            .iter()
            .map(|(profile, loads)| format!("{profile} for {}", loads.join(", ")));
        format!(
            "{}. A profile is a preset with slices for one purpose; these were not simulated \
             (scx_roost profiles).",
            each.collect::<Vec<_>>().join("; ")
        )
    }

    /// The record decides, not the margins: these say only what the model repeats.
    fn sure(&self) -> String {
        let (right, of) = self.record.signs();
        let word = match 100 * right / of.max(1) {
            80.. => "fairly",
            _ => "not",
        };
        format!(
            "{word} sure. It is a model. Of {of} published effects it showed {right} with their sign; \
             of the others it showed none, or the other sign. Take this as a hint what to measure."
        )
    }

    fn here(&self) -> String {
        match &self.obstacle {
            None => "scx_roost can run on this kernel.".to_string(),
            Some(why) => format!("scx_roost cannot run: {why}; scx_roost doctor says what to do."),
        }
    }

    fn check(&self) -> String {
        let preset = self.tried();
        let mut text = "\n".to_string();
        if let Some(load) = self.loads.first() {
            let look = format!("{} --variant {BASE} --variant {preset}", load.command);
            let _ = writeln!(text, "Look closer:\n  {look}");
        }
        let head = match self.choice {
            Some(_) => "Measure it",
            None => "If you measure anyway",
        };
        let _ = writeln!(
            text,
            "{head}:\n  \
             sudo scx_roost ab --variant eevdf --variant {preset} -- YOUR COMMAND\n  \
             sudo scx_roost {}",
            measurement(preset)[1..].join(" ")
        );
        if self.choice.is_some() && self.obstacle.is_none() {
            let _ = writeln!(
                text,
                "Try it, and go back:\n  sudo scx_roost --preset {preset}\n  sudo scx_roost stop"
            );
        }
        text
    }
}

impl Simulated {
    fn line(&self) -> String {
        let best = self.effects.iter().filter(|e| e.gain_percent.is_some());
        let best = best
            .filter(|e| e.decided().is_some_and(|gain| gain > 0.0))
            .max_by(|a, b| {
                a.gain_percent
                    .unwrap_or(0.0)
                    .total_cmp(&b.gain_percent.unwrap_or(0.0))
            });
        let ours = self.effects.iter().find(|e| e.preset == OURS);
        let best = best.map_or("none that shows".to_string(), |effect| {
            format!("{} {}", effect.preset, effect.text())
        });
        format!(
            "  {:<12} {:>16}  {best:<26} {}\n",
            self.load,
            ours.map_or("-".to_string(), Effect::text),
            self.unit
        )
    }
}

impl Effect {
    fn text(&self) -> String {
        // + 0.0: no "-0.0".
        let tenths = |gain: f64| (gain * 10.0).round() / 10.0 + 0.0;
        match self.gain_percent {
            Some(gain) => format!("{:+.1} % +- {:.1}", tenths(gain), self.margin),
            None => "-".to_string(),
        }
    }
}
