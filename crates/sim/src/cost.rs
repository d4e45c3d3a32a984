// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel's own work costs, ns at full speed; and how far apart CPUs are.

use super::params::Params;
use scx_roost::bpf::intf::cpu_facts;
use scx_roost::machine::Facts;

#[derive(Clone, Debug)]
pub struct Costs {
    /// For the waker, for each wakeup: the placement.
    pub select: u64,
    /// From then until the task is on its CPU's run queue: for the waker, or for that CPU.
    pub enqueue: u64,
    pub fork: u64,
    /// The first touch of a page.
    pub page_fault: u64,
    /// A switch from a task that sleeps, and from one that could have gone on.
    pub switch: u64,
    pub preempt: u64,
    pub tick: u64,
    pub timer: u64,
    /// For the task that runs where a timer is armed.
    pub timer_arm: u64,
    /// How late a timer fires at least.
    pub timer_late: u64,
    /// Until another CPU receives an interrupt.
    pub ipi: u64,
    /// Period of the tick.
    pub tick_period: u64,
    places: Vec<CpuLocation>,
}

/// Where a CPU is.
#[derive(Clone, Copy, Debug)]
struct CpuLocation {
    core: u16,
    llc: u16,
    node: u16,
}

impl Costs {
    pub fn new(params: &Params, facts: &Facts) -> Costs {
        let ns = |name: &str| params.ns(name);
        Costs {
            select: ns("sched_select"),
            enqueue: ns("sched_enqueue"),
            fork: ns("fork"),
            page_fault: ns("page_fault"),
            switch: ns("switch_voluntary"),
            preempt: ns("switch_involuntary"),
            tick: ns("tick"),
            timer: ns("hrtimer_fire"),
            timer_arm: ns("hrtimer_arm"),
            timer_late: ns("timer_late"),
            ipi: ns("ipi_send") + ns("ipi_receive"),
            tick_period: ns("tick_period"),
            places: facts.cpus.iter().map(place).collect(),
        }
    }
}

fn place(cpu: &cpu_facts) -> CpuLocation {
    CpuLocation {
        core: cpu.core,
        llc: cpu.llc,
        node: cpu.node,
    }
}

/// How far a task moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    SameCore,
    SameLlc,
    OtherLlc,
    OtherNode,
}

impl Costs {
    pub fn how_far(&self, from: usize, to: usize) -> Move {
        let (a, b) = (self.places[from], self.places[to]);
        if a.core == b.core {
            Move::SameCore
        } else if a.llc == b.llc {
            Move::SameLlc
        } else if a.node == b.node {
            Move::OtherLlc
        } else {
            Move::OtherNode
        }
    }

    fn share_cache(&self, a: usize, b: usize) -> bool {
        matches!(self.how_far(a, b), Move::SameCore | Move::SameLlc)
    }

    /// True if a waker leaves the rest of a wakeup to CPU `to` (kernel: ttwu_queue_cond()). `idle`:
    /// that is idle, and the kernel asks. Not modelled: that it does so, from 5.8 to 6.0, if the
    /// wakee is just about to sleep there.
    pub fn queues_wakeup(&self, by: usize, to: usize, idle: bool) -> bool {
        by != to && (idle || !self.share_cache(by, to))
    }
}
