// SPDX-License-Identifier: GPL-2.0-only
//! Compares the policy's bookkeeping with the facts: its sums, its sets, its claims.

use super::Ext;
use crate::sched::{Belief, Bounds};
use crate::task::{Task, TaskState};
use scx_roost::native::TaskId;
use scx_roost::native::sys::{self, SET_IDLE};

const CLAIM_LOST: u64 = sys::CLAIM_LOST_NS as u64;
const PLAIN_CLAIM: u64 = sys::PLAIN_CLAIM as u64;
/// The engine's tick period (cost.rs) at most, ns.
const TICK: u64 = 4_000_000;
/// An IPI, the exit from the deepest idle state, and the way to a queue, ns.
const WAY: u64 = 100_000;

impl Ext {
    /// A tick calls one idle CPU for a queue that waits (slice_timer.h: call_help), so each task
    /// that waits there takes one tick more. A task that ran a moment ago, or that waits for its
    /// delayed move, stays. A task that is fetched again and again before it has cooled down is
    /// never helped. So there is no bound with a migration cost as long as a slice.
    pub(super) fn keeps_to(&self) -> Bounds {
        let world = self.kernel.world();
        let arm = &world.policy().arm[0];
        let slice = arm.task.slice_ns.max(arm.task.min_slice_ns);
        let least = arm.task.min_slice_ns.min(arm.task.slice_ns);
        let hot = arm.migration_cost_ns;
        let delay = u64::from(arm.task.delay_ns);
        Bounds {
            idle: match hot < least {
                true => 2 * TICK + 2 * hot + delay + WAY,
                false => u64::MAX,
            },
            idle_each: TICK + WAY,
            turn: 2 * (slice + TICK),
            late: 4 * (slice + TICK) + delay,
            weight: None,
            unequal: world.tunables().wait_bound_ns,
            longest: world.tunables().wait_bound_ns,
            unfair: 4 * (slice + TICK),
            yields: true,
        }
    }

    fn claim_stands(&self, stamp: u64, now: u64) -> bool {
        let arm = &self.kernel.world().policy().arm[0];
        let limit = match stamp & PLAIN_CLAIM {
            0 => arm.task.claim_ttl_ns,
            _ => CLAIM_LOST,
        };
        stamp != 0 && now.saturating_sub(stamp) <= limit
    }

    /// Every valid claim belongs to a task that has been placed and has not run yet. The task
    /// goes to that CPU or, with core_claim, to its core.
    fn claims(&self, now: u64, tasks: &[Task]) -> Result<(), String> {
        let world = self.kernel.world();
        let core = |cpu: usize| world.facts().cpus[cpu].core;
        let owner = |stamp: u64, fits: &dyn Fn(usize) -> bool| {
            (0..tasks.len()).any(|task| {
                let state = self.kernel.state(task);
                // A running task may be on its way there (smt_spread).
                let there = !matches!(tasks[task].state, TaskState::Free | TaskState::Asleep);
                let goes = |to: i32, made: u64| {
                    to != 0 && made | PLAIN_CLAIM == stamp | PLAIN_CLAIM && fits(to as usize - 1)
                };
                there && goes(state.idle_cpu, state.idle_at)
            })
        };
        for cpu in 0..world.nr_cpus() {
            let state = world.cpu(cpu);
            if self.claim_stands(state.claim, now) && !owner(state.claim, &|at| at == cpu) {
                return Err(format!("the claim of CPU {cpu} belongs to no task"));
            }
            if self.claim_stands(state.core_claim, now)
                && !owner(state.core_claim, &|at| core(at) == core(cpu))
            {
                return Err(format!("the claim of CPU {cpu}'s core belongs to no task"));
            }
        }
        Ok(())
    }

    /// The sums of each CPU equal those of the tasks that it counts, also of sleepers whose
    /// dequeue is delayed.
    fn sums(&self, tasks: &[Task]) -> Result<(), String> {
        let world = self.kernel.world();
        let mut sums = vec![(0, 0); world.nr_cpus()];
        for (task, at) in tasks.iter().enumerate() {
            let state = self.kernel.state(task);
            if at.state == TaskState::Free || state.on_rq == 0 {
                continue;
            }
            let cpu = state.on_rq as usize - 1;
            if state.delayed_in != 0 {
                let slot = &world.cpu(cpu).delayed[state.delayed_in as usize - 1];
                let counts = slot.key == state.delayed_key;
                sums[cpu].0 += u64::from(counts) * slot.weight;
                continue;
            }
            if !self.kernel.runnable(task) {
                return Err(format!("CPU {cpu} counts task {task}, which sleeps"));
            }
            sums[cpu].0 += u64::from(state.on_rq_weight);
            sums[cpu].1 += u64::from(state.on_rq_util);
        }
        for (cpu, sum) in sums.into_iter().enumerate() {
            let state = world.cpu(cpu);
            let kept = (state.weight, state.util_est);
            if kept != sum {
                return Err(format!(
                    "weight and estimated utilisation of CPU {cpu} are {kept:?}, those of its tasks {sum:?}"
                ));
            }
        }
        Ok(())
    }
}

impl Belief for Ext {
    fn waiting(&self, cpu: usize, to: &mut Vec<TaskId>) {
        to.extend(self.kernel.waiting(cpu));
    }

    fn nr_running(&self, cpu: usize) -> usize {
        self.kernel.world().view(cpu).nr_running as usize
    }

    fn idle(&self, cpu: usize) -> bool {
        self.kernel.world().view(cpu).idle != 0
    }

    fn listed(&self, cpu: usize) -> bool {
        let world = self.kernel.world();
        let facts = &world.facts().cpus[cpu];
        let pos = usize::from(facts.pos);
        world.llc(facts.llc.into()).set[SET_IDLE as usize][pos / 64] >> (pos % 64) & 1 != 0
    }

    fn vruntime(&self, task: TaskId) -> (u64, bool) {
        let state = self.kernel.state(task);
        (state.vruntime, state.on_rq_weight == sys::NICE0_WEIGHT)
    }

    fn progress(&self, cpu: usize) -> u64 {
        self.kernel.world().cpu(cpu).progress
    }

    fn audit(&self, now: u64, tasks: &[Task]) -> Result<(), String> {
        self.sums(tasks)?;
        self.claims(now, tasks)
    }
}
