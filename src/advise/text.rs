// SPDX-License-Identifier: GPL-2.0-only
//! The answer as half a page.

use super::{Advice, Choice, Effect, OURS, Simulated};
use crate::util::text::paragraph;
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
            ("What to start", self.choice.text()),
            ("How sure", self.sure()),
            ("Here", self.here()),
        ] {
            text += &paragraph(&format!("{head:<15}"), &said, WIDTH);
        }
        match self.obstacle {
            None => text + &self.check(),
            Some(_) => text,
        }
    }

    fn expected(&self) -> String {
        let preset = self.tried();
        let of = |load: &Simulated| load.effects.iter().find(|e| e.preset == preset).cloned();
        let (mut better, mut worse, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for load in &self.loads {
            let Some(effect) = of(load) else { continue };
            match effect.decided() {
                true if effect.gain_percent > 0.0 => {
                    better.push(format!("{} ({:+.0} %)", load.load, effect.gain_percent));
                }
                true => worse.push(format!("{} ({:+.0} %)", load.load, effect.gain_percent)),
                false => same.push(load.load.clone()),
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

    /// The record decides, not the errors of the runs: these say only what the model repeats.
    fn sure(&self) -> String {
        let (right, of) = self.record.signs();
        let percent = 100 * right / of.max(1);
        let word = match percent {
            80.. => "fairly",
            50.. => "not very",
            _ => "not at all",
        };
        format!(
            "{word}. It is a model, and of published effects it had the sign right in {right} of \
             {of} ({percent} %). Take it as a hint what to measure."
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
        format!(
            "\nMeasure it:\n  \
             sudo scx_roost ab --variant eevdf --variant {preset} -- YOUR COMMAND\n  \
             sudo scx_roost ab --variant eevdf --variant {preset} --suite placement\n\
             Try it, and go back:\n  \
             sudo scx_roost --preset {preset}\n  \
             sudo scx_roost stop\n"
        )
    }
}

impl Choice {
    fn text(&self) -> String {
        match self.preset {
            Some(preset) => format!(
                "preset {preset}. Over these loads it is best ({:+.1} % on average, +- {:.1}), and \
                 on none of them clearly worse.",
                self.gain_percent, self.error
            ),
            None => "nothing. Stay with the kernel's own scheduler: no preset is clearly better \
                     over these loads without being clearly worse on one."
                .to_string(),
        }
    }
}

impl Simulated {
    fn line(&self) -> String {
        let best = self
            .effects
            .iter()
            .max_by(|a, b| a.gain_percent.total_cmp(&b.gain_percent));
        let ours = self.effects.iter().find(|e| e.preset == OURS);
        let shown = |effect: Option<&Effect>| effect.map_or("-".to_string(), Effect::text);
        let best = match best {
            Some(effect) => format!("{} {}", effect.preset, effect.text()),
            None => "-".to_string(),
        };
        format!(
            "  {:<12} {:>16}  {best:<26} {}\n",
            self.load,
            shown(ours),
            self.unit
        )
    }
}

impl Effect {
    fn text(&self) -> String {
        format!("{:+.1} % +- {:.1}", self.gain_percent, self.error)
    }
}
