// SPDX-License-Identifier: GPL-2.0-only
//! Each check is seen to fail, with a scheduler that does one thing wrong.

use super::*;
use crate::ext::Ext;
use crate::fair::{Ends, Fair};
use crate::sched::Order;
use crate::task::Wake;
use crate::{Model, Policy, Scenario, model};
use scx_roost::native::Attr;
use scx_roost::native::Kernel;
use scx_roost::native::sys::timer_kind;

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Right,
    /// An arriving task is put in no queue.
    Loses,
    /// Tasks are placed on a CPU that they may not use.
    Strays,
    /// An idle CPU is not called for new tasks.
    Deaf,
    /// A CPU that searched is idle to wakers, but not to the search.
    Unlists,
    /// The running task goes on while others wait.
    Sticks,
    Favours,
    /// Nice levels have no effect.
    Levels,
    /// Nicer tasks get more.
    Inverts,
    /// A sleeping task is picked.
    Raises,
    Miscounts,
    Overcharges,
    GoesBack,
    Claims,
    CountsWeight,
    SeesBusy,
    Doubles,
}

struct Broken {
    base: Box<dyn Scheduler>,
    how: How,
    now: u64,
    current: Vec<Option<TaskId>>,
}

/// The fault begins in the middle of the run, ns.
const FROM: u64 = 30_000_000;

impl Broken {
    fn is(&self, how: How) -> bool {
        self.how == how && self.now >= FROM
    }

    fn believed(&self) -> &dyn Belief {
        self.base.belief().expect("it says what it believes")
    }
}

impl Scheduler for Broken {
    fn set_now(&mut self, now: u64) {
        self.now = now;
        self.base.set_now(now);
        let kernel = self.base.kernel().expect("it is over the policy's memory");
        let state = kernel.world_mut().cpu_mut(0);
        match self.how {
            How::GoesBack if now >= FROM => state.progress = state.progress.wrapping_sub(1 << 40),
            How::Claims if now >= FROM => state.claim = FROM,
            How::CountsWeight if now >= FROM => state.weight += 1,
            _ => {}
        }
    }

    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize) {
        self.base.begin(task, mask, cpu);
    }

    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool {
        self.base.set_affinity(task, mask, orders)
    }

    fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        let nice = match self.how {
            How::Levels => 0,
            How::Inverts => (-attr.nice).clamp(-20, 19),
            _ => attr.nice,
        };
        self.base.set_attr(task, &Attr { nice, ..*attr });
    }

    fn yields(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.base.yields(cpu, task, orders);
    }

    fn place(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) -> usize {
        let cpu = self.base.place(wake, task, orders);
        match self.is(How::Strays) {
            true => 3,
            false => cpu,
        }
    }

    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) {
        if self.is(How::Loses) {
            return;
        }
        self.base.arrive(wake, task, orders);
        if self.is(How::Deaf) {
            orders.clear();
        }
    }

    fn ran(&mut self, task: TaskId, ns: u64) {
        self.base.ran(task, ns);
    }

    fn sleeps(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.current[cpu] = None;
        self.base.sleeps(cpu, task, orders);
    }

    fn ends(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.current[cpu] = None;
        self.base.ends(cpu, task, orders);
    }

    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId> {
        let stuck = self.is(How::Sticks) || self.is(How::Favours);
        if stuck && self.current[cpu].is_some() {
            return self.current[cpu];
        }
        let next = self.base.pick(cpu, orders);
        if self.is(How::Raises) && next.is_none() {
            return Some(SLEEPER);
        }
        self.current[cpu] = next;
        next
    }

    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.base.tick(cpu, task, orders);
    }

    fn timer(&mut self, cpu: usize, which: timer_kind, orders: &mut Vec<Order>) {
        self.base.timer(cpu, which, orders);
    }

    fn belief(&self) -> Option<&dyn Belief> {
        Some(self)
    }

    fn bounds(&self) -> Bounds {
        let bounds = self.base.bounds();
        match self.how {
            How::Favours => Bounds {
                turn: u64::MAX,
                ..bounds
            },
            _ => bounds,
        }
    }
}

impl Belief for Broken {
    fn waiting(&self, cpu: usize, to: &mut Vec<TaskId>) {
        let before = to.len();
        self.believed().waiting(cpu, to);
        if self.is(How::Doubles) && to.len() > before {
            to.push(to[before]);
        }
    }

    fn nr_running(&self, cpu: usize) -> usize {
        let more = match self.how {
            How::Doubles => {
                let mut waiting = Vec::new();
                self.waiting(cpu, &mut waiting);
                let doubled = waiting.len();
                waiting.dedup();
                doubled - waiting.len()
            }
            _ => usize::from(self.is(How::Miscounts)),
        };
        self.believed().nr_running(cpu) + more
    }

    fn idle(&self, cpu: usize) -> bool {
        self.believed().idle(cpu) && !self.is(How::SeesBusy)
    }

    fn listed(&self, cpu: usize) -> bool {
        self.believed().listed(cpu) && !self.is(How::Unlists)
    }

    fn vruntime(&self, task: TaskId) -> (u64, bool) {
        let (vruntime, in_ns) = self.believed().vruntime(task);
        let more = if self.is(How::Overcharges) {
            self.now
        } else {
            0
        };
        (vruntime + more, in_ns)
    }

    fn progress(&self, cpu: usize) -> u64 {
        self.believed().progress(cpu)
    }

    fn audit(&self, now: u64, tasks: &[Task]) -> Result<(), String> {
        self.believed().audit(now, tasks)
    }
}

/// This task sleeps most of the time.
const SLEEPER: TaskId = 0;
/// Four CPUs, one of which no task may use. Two hogs share CPU 0.
const LOAD: &str = "duration 500ms
task sleeper, cpus 0-2:
    forever
        run 100us
        sleep 1s
task hog x 2, cpus 0:
    forever
        run 3ms
task beats x 2, cpus 0-2:
    forever
        run 300us
        sleep 1ms
";

/// Two tasks on one CPU, as unequal as can be: one is due nearly all of it.
const UNEQUAL: &str = "duration 500ms
task heavy, cpus 0, nice -20:
    forever
        run 3ms
task light, cpus 0, nice 19:
    forever
        run 3ms
";

/// The heaviest task has ended before the fault begins.
const PAST: &str = "duration 500ms
task heavy, cpus 0, nice -20:
    run 5ms
task hog x 2, cpus 0:
    forever
        run 3ms
";

type Base = dyn Fn(&Model, Kernel, usize) -> Box<dyn Scheduler>;

fn ext(_: &Model, kernel: Kernel, tasks: usize) -> Box<dyn Scheduler> {
    Box::new(Ext::new(kernel, tasks))
}

fn fair(model: &Model, kernel: Kernel, tasks: usize) -> Box<dyn Scheduler> {
    Box::new(Fair::new(kernel, tasks, Ends::Wakeup, &model.params))
}

fn outcome(how: How, base: &Base, load: &str) -> Result<()> {
    let load = Load::parse(load, &Default::default())?;
    let policy = Policy::parse("roost")?;
    let Policy::Ext(settings) = &policy else {
        unreachable!("a preset is one of ours")
    };
    let model = model("ryzen-3400g").expect("it is known");
    let cpus = model.machine.nr_cpu_ids.into();
    let scenario = Scenario {
        model: &model,
        policy: &policy,
        seed: 1,
        load,
    };
    let check = Check::new(cpus, &scenario.load);
    let broken = |kernel, tasks| Broken {
        base: base(&model, kernel, tasks),
        how,
        now: 0,
        current: vec![None; cpus],
    };
    scenario.under(settings, check, broken).map(|_| ())
}

/// The faults that were not found, or were found with another message.
fn missed(base: &Base, load: &str, broken: &[(How, &str)]) -> Vec<(How, Result<()>)> {
    let outcomes = broken
        .iter()
        .map(|&(how, told)| (how, told, outcome(how, base, load)));
    let found = |told: &str, outcome: &Result<()>| matches!(outcome, Err(error) if format!("{error:#}").contains(told));
    let missed = outcomes.filter(|(_, told, outcome)| !found(told, outcome));
    missed.map(|(how, _, outcome)| (how, outcome)).collect()
}

#[test]
fn what_is_wrong_is_seen() {
    outcome(How::Right, &ext, LOAD).expect("a scheduler that is right");
    let missed = missed(
        &ext,
        LOAD,
        &[
            (How::Loses, "waits, and is in no queue"),
            (How::Strays, "is placed on CPU 3, which it may not use"),
            (How::Deaf, "beside CPU"),
            (How::Unlists, "is idle, and no wakeup will find it"),
            (How::Sticks, "has waited for"),
            (How::Favours, "of tasks that shared CPU 0"),
            (How::Raises, "runs, and it was Asleep"),
            (How::Miscounts, "that run or wait, and the scheduler counts"),
            (How::Overcharges, "and was charged"),
            (How::GoesBack, "the virtual time of CPU 0 goes back"),
            (How::Claims, "the claim of CPU 0 belongs to no task"),
            (
                How::CountsWeight,
                "weight and estimated utilisation of CPU 0",
            ),
            (How::SeesBusy, "is seen as busy, and is not"),
            (How::Doubles, "a task is in two places"),
        ],
    );
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The bounds of the fair class hold for unequal weights too.
#[test]
fn what_is_wrong_in_the_fair_class_is_seen() {
    let (waited, unshared) = ("has waited for", "of tasks that shared CPU 0");
    for (load, broken) in [
        (LOAD, [(How::Sticks, waited), (How::Favours, unshared)]),
        (UNEQUAL, [(How::Levels, unshared), (How::Inverts, waited)]),
    ] {
        outcome(How::Right, &fair, load).expect("a class that is right");
        let missed = missed(&fair, load, &broken);
        assert!(missed.is_empty(), "{missed:#?}");
    }
}

/// The wait of a task is bounded by its competitors meanwhile, not by earlier ones.
#[test]
fn earlier_competitors_excuse_no_wait() {
    for base in [&ext as &Base, &fair] {
        outcome(How::Right, base, PAST).expect("a scheduler that is right");
        let missed = missed(base, PAST, &[(How::Sticks, "has waited for")]);
        assert!(missed.is_empty(), "{missed:#?}");
    }
}

/// Errors that no scheduler can cause, only the engine.
#[test]
fn times_are_those_of_the_events() {
    let load = Load::parse(LOAD, &Default::default()).expect("it is a load");
    let seen = |what: &[(u64, What)]| {
        let mut check = Check::new(4, &load);
        what.iter()
            .for_each(|&(now, what)| check.happens(now, what));
        check.wrong.expect("something is wrong")
    };
    let begins = |mask| What::Begins {
        task: 0,
        group: 0,
        mask,
    };
    let ran = |ns| What::Ran {
        task: 0,
        cpu: 0,
        ns,
    };
    let runs = What::Runs {
        task: 0,
        cpu: 0,
        from: None,
    };
    assert!(seen(&[(0, begins(0)), (0, begins(0))]).contains("task 0 begins, and it was Asleep"));
    assert!(seen(&[(5, begins(0)), (4, What::Idle { cpu: 0 })]).contains("time goes back"));
    assert!(seen(&[(0, begins(0)), (0, runs)]).contains("task 0 runs, and it was Asleep"));
    let told = seen(&[
        (0, begins(0)),
        (0, What::Busy { cpu: 0 }),
        (9, ran(9)),
        (10, What::Idle { cpu: 0 }),
    ]);
    assert!(told.contains("ran, and it was Asleep"));
    let mut check = Check::new(4, &load);
    check.happens(0, What::Busy { cpu: 1 });
    check.happens(10, What::Idle { cpu: 1 });
    let told = check.wrong.expect("nothing ran there");
    assert_eq!(told, "CPU 1 was busy for 10 ns, and its tasks ran for 0");
}
