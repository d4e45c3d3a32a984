// SPDX-License-Identifier: GPL-2.0-only
//! Lets the policy's C decide on recorded states, and compares its answers with the kernel's. Left
//! out are picks of a sleeper whose dequeue was delayed and of a buddy, and wakeups that the kernel
//! did not test because a switch was due anyway.

use crate::intf::{MAX_QUEUED, entity, event, kind_KIND_PICK as KIND_PICK};
use anyhow::{Context, Result, bail};
use scx_roost::bpf::intf::{cpu_facts, llc_facts, machine_facts, node_facts, tunables};
use scx_roost::machine::Facts;
use scx_roost::native::{Kernel, To, World, sys};
use scx_roost::policy::fair;
use scx_roost::policy::settings::Settings;
use std::collections::BTreeMap;
use std::path::Path;

/// Kernel: NICE_0_LOAD, of load.weight.
const KERNEL_NICE0: u64 = 1 << 20;
/// Kernel: uapi SCHED_BATCH, SCHED_IDLE
const BATCH: u8 = 3;
const IDLE: u8 = 5;
/// Kernel: WF_FORK
const WF_FORK: u32 = 4;
const NOW: u64 = 1 << 40;
const SECOND: u64 = 1_000_000_000;
/// The index of the running task, and of the one that wakes. The others follow.
const CURR: usize = 0;
const WAKEE: usize = 1;
const QUEUED: usize = 2;

/// One kind of decision: how often both answered the same, and how often not, by what they
/// answered.
#[derive(Default)]
struct Tally {
    asked: u64,
    differ: BTreeMap<String, u64>,
}

/// Fails if the file cannot be read or is none of this program, and if the variant is unknown.
pub fn play(file: &Path, variant: &str, show: usize) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let size = size_of::<event>();
    if bytes.len() % size != 0 {
        bail!(
            "{}: {} bytes, expected a multiple of {size}: record it again with this program",
            file.display(),
            bytes.len()
        );
    }
    if bytes.is_empty() {
        bail!("{}: it is empty: nothing was recorded", file.display());
    }
    let settings = Settings::of_variant(variant)?;
    let mut player = Player::new(&settings);
    let mut picks = Tally::default();
    let mut wakeups = Tally::default();
    let mut left = show;
    for bytes in bytes.chunks_exact(size) {
        // SAFETY: the recorder wrote a whole event, of which all bytes are values.
        let event: event = unsafe { bytes.as_ptr().cast::<event>().read_unaligned() };
        if event.nr_queued > MAX_QUEUED || members(&event).any(|e| e.weight == 0) {
            bail!("{}: no record of this program", file.display());
        }
        let (tally, said) = if event.kind == KIND_PICK {
            (&mut picks, player.pick(&event))
        } else {
            (&mut wakeups, player.wakeup(&event))
        };
        let Some((kernel, policy)) = said else {
            continue;
        };
        tally.asked += 1;
        if kernel == policy {
            continue;
        }
        *tally
            .differ
            .entry(format!("kernel: {kernel}; policy: {policy}"))
            .or_default() += 1;
        if left > 0 {
            left -= 1;
            println!("{kernel} / {policy}: {}", shown(&event));
        }
    }
    print("pick", &picks);
    print("wakeup", &wakeups);
    Ok(())
}

fn print(name: &str, tally: &Tally) {
    let differ: u64 = tally.differ.values().sum();
    let same = 100.0 * (tally.asked - differ) as f64 / tally.asked.max(1) as f64;
    println!("{name:<8} {:>8} {same:>7.2} % equal", tally.asked);
    for (what, count) in &tally.differ {
        println!("{:<8} {count:>8} {what}", "");
    }
}

/// Virtual times relative to the mean, in us.
fn shown(event: &event) -> String {
    let mean = mean(event);
    let one = |e: &entity| {
        let at = |v: u64| v.wrapping_sub(mean) as i64 as f64 / 1000.0;
        format!(
            "[{} w {} v {:.1} deadline {:.1} vprot {:.1} slice {} delayed {}]",
            e.pid,
            e.weight >> 10,
            at(e.vruntime),
            at(e.deadline),
            at(e.vprot),
            e.slice / 1000,
            e.delayed
        )
    };
    let queued: Vec<String> = queued(event).iter().map(one).collect();
    format!(
        "answer {} wakee {} flags {:#x} protect {} curr {} queued {}",
        event.answer,
        event.wakee,
        event.flags,
        event.protect,
        one(&event.curr),
        queued.join(" ")
    )
}

fn queued(event: &event) -> &[entity] {
    &event.queued[..event.nr_queued as usize]
}

/// All that count in the queue.
fn members(event: &event) -> impl Iterator<Item = &entity> {
    let curr = (event.curr.pid != 0 && event.curr.on_rq != 0).then_some(&event.curr);
    queued(event).iter().chain(curr)
}

/// The weighted mean of the virtual run times, rounded down (kernel: avg_vruntime()).
fn mean(event: &event) -> u64 {
    let Some(first) = members(event).next() else {
        return 0;
    };
    let base = first.vruntime;
    let apart = |e: &entity| i128::from(e.vruntime.wrapping_sub(base) as i64);
    let sum: i128 = members(event)
        .map(|e| apart(e) * i128::from(e.weight))
        .sum();
    let weight: i128 = members(event).map(|e| i128::from(e.weight)).sum();
    base.wrapping_add_signed(sum.div_euclid(weight) as i64)
}

fn our_weight(e: &entity) -> u32 {
    (e.weight * u64::from(sys::NICE0_WEIGHT) / KERNEL_NICE0).max(1) as u32
}

/// A machine of one CPU, whose state is set anew for each decision.
struct Player {
    kernel: Kernel,
}

impl Player {
    fn new(settings: &Settings) -> Player {
        let tunables = tunables {
            cpuperf: 0,
            timers: 1,
            wait_bound_ns: 2_500_000_000,
            imbalance_pct: 117,
            frozen: 0,
            features: 0,
            limits: 0,
            kernel_rules: fair::of_release(Some([7, 2, 0])).bits,
        };
        let world = World::new(one_cpu(), settings.arm(1), tunables, 1);
        let tasks = QUEUED + MAX_QUEUED as usize;
        Player {
            kernel: Kernel::new(world, tasks),
        }
    }

    /// Makes the state of the CPU that of the event. The tasks' indexes by pid.
    fn set(&mut self, event: &event) -> BTreeMap<u32, usize> {
        let kernel = &mut self.kernel;
        (0..QUEUED + MAX_QUEUED as usize).for_each(|task| kernel.unqueue(task));
        kernel.local(0).clear();
        kernel.acts(&mut Vec::new());
        kernel.set_now(NOW);
        let mut ids = BTreeMap::new();
        if event.curr.pid != 0 {
            ids.insert(event.curr.pid, CURR);
            self.task(CURR, &event.curr);
        }
        for (at, e) in queued(event).iter().enumerate() {
            let wakes = e.pid == event.wakee;
            let task = if wakes { WAKEE } else { QUEUED + at };
            ids.insert(e.pid, task);
            self.task(task, e);
            if !wakes && e.delayed == 0 {
                self.kernel
                    .set_slice(task, e.deadline.wrapping_sub(e.vruntime));
                self.kernel.queue(task, 0, e.deadline);
            }
        }
        self.cpu(event);
        ids
    }

    fn cpu(&mut self, event: &event) {
        let least = members(event).map(|e| e.slice).min().unwrap_or(0);
        let rules = self.kernel.state(CURR).pol.rules;
        let cs = self.kernel.world_mut().cpu_mut(0);
        *cs = sys::cpu_state {
            avg_vruntime: mean(event),
            weight: members(event).map(|e| u64::from(our_weight(e))).sum(),
            short_requests: 1,
            least_request: least,
            charged_at: NOW,
            dispatched_at: NOW,
            turn_at: NOW + SECOND,
            slice_cap: SECOND,
            core_mask: cs.core_mask,
            ..Default::default()
        };
        let curr = &event.curr;
        if curr.pid == 0 || curr.on_rq == 0 {
            return;
        }
        cs.curr_pid = CURR as u32 + 1;
        cs.curr_weight = our_weight(curr);
        cs.curr_deadline = curr.deadline;
        let ran = event.ran * u64::from(sys::NICE0_WEIGHT) / u64::from(cs.curr_weight);
        cs.curr_vruntime = curr.vruntime.wrapping_sub(ran);
        cs.curr_start = NOW - event.ran;
        cs.curr_slice = SECOND;
        cs.curr_sched_idle = (curr.policy == IDLE).into();
        cs.curr_vprot = curr.vprot;
        cs.curr_request = curr.slice;
        cs.curr_rules = rules;
    }

    fn task(&mut self, task: usize, e: &entity) {
        self.kernel.begin(task, 0, 0);
        self.kernel.set_runnable(task, true, false);
        let slice = u64::from(e.custom_slice != 0) * e.slice;
        let running = task == CURR;
        let ts = self.kernel.state_mut(task);
        ts.vruntime = e.vruntime;
        ts.deadline = e.deadline;
        ts.weight = our_weight(e);
        ts.nice_weight = ts.weight;
        ts.on_rq = i32::from(e.on_rq != 0);
        ts.on_rq_weight = ts.weight;
        ts.custom_slice = slice;
        ts.pol.slice_ns = if slice == 0 {
            e.slice
        } else {
            ts.pol.slice_ns.max(slice)
        };
        ts.batch = (e.policy == BATCH).into();
        ts.idle_policy = (e.policy == IDLE).into();
        ts.sched_idle = ts.idle_policy;
        ts.load_cpu = 1;
        ts.started = if running { NOW } else { 0 };
        ts.runnable_since = NOW;
        ts.folded_at = NOW;
    }

    /// What the kernel and the policy answer, in words. None: the kernel's pick only takes a
    /// sleeper out of the queue.
    fn pick(&mut self, event: &event) -> Option<(String, String)> {
        let chosen = queued(event).iter().find(|e| e.pid == event.answer);
        // The buddy of a short request is no pick here: it runs at once (short_buddy()).
        let buddy = event.buddy == event.answer;
        // With one candidate there is nothing to decide.
        let choice = members(event).filter(|e| e.delayed == 0).count() > 1;
        if event.answer == 0 || !choice || buddy || chosen.is_some_and(|e| e.delayed != 0) {
            return None;
        }
        let ids = self.set(event);
        let running = event.curr.pid != 0 && event.curr.on_rq != 0;
        self.kernel.dispatch(0, running.then_some(CURR));
        let next = self.kernel.local(0).pop_front();
        let next = next.or(running.then_some(CURR));
        let pid = next.and_then(|id| ids.iter().find(|(_, at)| **at == id));
        let pid = pid.map_or(0, |(pid, _)| *pid);
        let (ours, theirs) = (role(event, pid), role(event, event.answer));
        Some(if pid == event.answer {
            (ours.clone(), ours)
        } else if ours == theirs {
            (theirs, format!("another such one ({ours})"))
        } else {
            (theirs, ours)
        })
    }

    fn wakeup(&mut self, event: &event) -> Option<(String, String)> {
        if event.curr.on_rq == 0 || event.curr.pid == event.wakee {
            return None;
        }
        let queued = queued(event);
        let wakee = queued.iter().find(|e| e.pid == event.wakee)?;
        let idle = |e: &entity| e.policy == IDLE;
        let other = idle(&event.curr) && !idle(wakee);
        let kernel = other || [event.answer, event.buddy_after].contains(&event.wakee);
        let fork = event.flags & WF_FORK != 0;
        // Nothing was tested, as the running task is about to be switched away anyway.
        if !kernel && event.answer == 0 && !fork && wakee.policy == 0 && !idle(&event.curr) {
            return None;
        }
        self.set(event);
        let flags = if fork { 0 } else { u64::from(sys::ENQ_WAKEUP) } | sys::ENQ_PLACED;
        self.kernel.enqueue(0, Some(CURR), WAKEE, flags);
        let insert = self.kernel.inserted()?;
        let policy = insert.to == To::Local && insert.flags & sys::ENQ_PREEMPT != 0;
        let word = |preempts| if preempts { "preempts" } else { "waits" };
        let because = match (kernel, event.answer) {
            (false, 0) => " without a pick",
            (false, pid) if pid == event.curr.pid => " for the running one",
            (false, _) => " for another",
            _ => "",
        };
        let kernel_says = format!("{}{because}", word(kernel));
        Some(if kernel == policy {
            (kernel_says.clone(), kernel_says)
        } else {
            (kernel_says, word(policy).to_string())
        })
    }
}

/// What a task is for the decision, in words.
fn role(event: &event, pid: u32) -> String {
    let mean = mean(event);
    let queued = queued(event);
    let ahead = |e: &entity| (mean.wrapping_sub(e.vruntime) as i64) < 0;
    let first = queued
        .iter()
        .filter(|e| e.delayed == 0)
        .min_by_key(|e| e.deadline.wrapping_sub(mean) as i64);
    let it = match pid {
        0 => return "nobody".into(),
        pid if pid == event.curr.pid => &event.curr,
        pid => match queued.iter().find(|e| e.pid == pid) {
            Some(e) => e,
            None => return "unknown".into(),
        },
    };
    let what = if pid == event.curr.pid {
        "the running one"
    } else if first.is_some_and(|f| f.pid == pid) {
        "the first"
    } else {
        "a later one"
    };
    let protected = pid == event.curr.pid && (it.vruntime.wrapping_sub(it.vprot) as i64) < 0;
    let buddy = pid == event.buddy;
    format!(
        "{what}{}{}{}",
        if ahead(it) { ", ahead" } else { "" },
        if protected { ", protected" } else { "" },
        if buddy { ", buddy" } else { "" }
    )
}

/// One CPU.
fn one_cpu() -> Facts {
    Facts {
        machine: machine_facts {
            nr_cpu_ids: 1,
            nr_online: 1,
            nr_llcs: 1,
            nr_nodes: 1,
            smt: 0,
            asym: 0,
            nohz: 0,
        },
        cpus: vec![cpu_facts {
            llc: 0,
            pos: 0,
            node: 0,
            core: 0,
            capacity: 1024,
            online: 1,
            nr_sib: 0,
            sib: [0; sys::MAX_SMT as usize],
            nohz: 0,
        }],
        llcs: vec![llc_facts {
            first: 0,
            nr_cpus: 1,
            nr_words: 1,
            node: 0,
            capacity: 1024,
        }],
        nodes: vec![node_facts {
            first_llc: 0,
            nr_llcs: 1,
        }],
        llc_cpus: vec![0],
    }
}
