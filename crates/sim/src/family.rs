// SPDX-License-Identifier: GPL-2.0-only
//! Parents and children: how tasks fork, exec, end, and wait for each other's end.

use super::load::Expr;
use super::task::{Memory, Task, Then};
use super::wait::{Came, Wait};
use scx_roost::native::TaskId;

impl Wait {
    pub(super) fn fork(group: usize, count: &Expr, task: &mut Task) {
        let count = count.value(&task.known).max(0) as usize;
        task.todo
            .extend(std::iter::repeat_n(Then::Fork(group), count));
    }

    /// The step runs three times: it forks, sleeps, and is done.
    pub(super) fn vfork(group: usize, task: &mut Task) -> Option<Came> {
        task.pc -= 1;
        match task.lends {
            Memory::Own => {
                task.lends = Memory::Lent;
                task.todo.push_back(Then::Vfork(group));
                None
            }
            Memory::Returned => {
                task.lends = Memory::Own;
                task.pc += 1;
                None
            }
            Memory::Lent | Memory::Missed => {
                task.lends = Memory::Missed;
                Some(Came::Sleeps(None))
            }
        }
    }

    /// Waits until a child has ended. Each ended child is waited for once.
    pub(super) fn wait(task: &mut Task) -> Option<Came> {
        if task.ended == 0 {
            task.waits = true;
            return Some(Wait::sleep_and_repeat(task));
        }
        task.ended -= 1;
        None
    }

    pub(super) fn exec(tasks: &mut [Task], id: TaskId) -> Came {
        if let Some(parent) = Wait::return_memory(tasks, id) {
            tasks[id].todo.push_back(Then::Wake(parent, false));
        }
        Came::Execs
    }

    /// Ends the task. Before that, while it still runs, it wakes its parent if that waits (kernel:
    /// do_exit() calls exit_notify() before do_task_dead()). The wakeup counts as not sync:
    /// select_task_rq_fair() ignores WF_SYNC from an exiting task.
    pub(super) fn exit(tasks: &mut [Task], task: TaskId) -> Option<Came> {
        let Some(parent) = Wait::notify(tasks, task) else {
            return Some(Came::Ends);
        };
        tasks[task].todo.push_back(Then::Wake(parent, false));
        tasks[task].pc -= 1;
        None
    }

    /// Tells the parent, once, that the task ends. Returns the parent if it waits for that.
    fn notify(tasks: &mut [Task], task: TaskId) -> Option<TaskId> {
        let missed = Wait::return_memory(tasks, task);
        let parent = tasks[task].parent.take()?;
        tasks[parent].ended += 1;
        let waits = std::mem::take(&mut tasks[parent].waits);
        missed.or(waits.then_some(parent))
    }

    /// The task stops using its parent's memory. Returns the parent if it sleeps until then
    /// (kernel: complete_vfork_done()).
    fn return_memory(tasks: &mut [Task], task: TaskId) -> Option<TaskId> {
        let parent = tasks[task].parent?;
        if !std::mem::take(&mut tasks[task].borrows) {
            return None;
        }
        let before = std::mem::replace(&mut tasks[parent].lends, Memory::Returned);
        (before == Memory::Missed).then_some(parent)
    }
}
