// SPDX-License-Identifier: GPL-2.0-only
//! A trace as JSON trace events, for Perfetto and chrome://tracing. Each variant is a process with
//! a track for each CPU. Arrows go from wakeups to where the woken task ran; counters show speed
//! and waiting tasks.

use super::{Span, Trace, Wakeup};
use crate::Measured;
use crate::speed::FULL;
use anyhow::Result;
use scx_roost::machine::Machine;
use serde_json::{Value, json};
use std::io::Write;

/// The format's times are in us.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

pub fn write(out: &mut dyn Write, machine: &Machine, seen: &[(Trace, Measured)]) -> Result<()> {
    let mut events = Events { out, first: true };
    events
        .out
        .write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    for (i, (trace, _)) in seen.iter().enumerate() {
        variant(&mut events, machine, i + 1, trace)?;
    }
    events.out.write_all(b"\n]}\n")?;
    Ok(())
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    fn add(&mut self, event: &Value) -> Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }
}

fn variant(events: &mut Events, machine: &Machine, pid: usize, trace: &Trace) -> Result<()> {
    names(events, machine, pid, trace)?;
    for span in &trace.spans {
        events.add(&run(pid, trace, span))?;
    }
    for (i, wakeup) in trace.wakeups.iter().enumerate() {
        flow(events, pid, i, trace, wakeup)?;
    }
    for speed in &trace.speeds {
        let percent = (speed.rate * 1000).div_ceil(FULL) as f64 / 10.0;
        events.add(&json!({
            "ph": "C", "pid": pid, "ts": us(speed.at - trace.since),
            "name": format!("speed of CPU {:03}", speed.cpu), "args": {"percent": percent},
        }))?;
    }
    for (at, waiting) in &trace.waiting {
        events.add(&json!({
            "ph": "C", "pid": pid, "ts": us(at - trace.since), "name": "tasks that wait", "args": {"tasks": waiting},
        }))?;
    }
    Ok(())
}

/// Names the CPUs, in the order of nodes, caches and cores.
fn names(events: &mut Events, machine: &Machine, pid: usize, trace: &Trace) -> Result<()> {
    events.add(
        &json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": trace.variant}}),
    )?;
    let mut cpus: Vec<_> = machine.cpus.iter().collect();
    cpus.sort_by_key(|c| (c.node, c.llc, c.core, c.id));
    for (i, cpu) in cpus.iter().enumerate() {
        let name = format!(
            "CPU {} (core {}, LLC {}, node {})",
            cpu.id, cpu.core, cpu.llc, cpu.node
        );
        let args = json!({"name": name});
        events.add(
            &json!({"ph": "M", "pid": pid, "tid": cpu.id, "name": "thread_name", "args": args}),
        )?;
        let args = json!({"sort_index": i});
        events.add(&json!({"ph": "M", "pid": pid, "tid": cpu.id, "name": "thread_sort_index", "args": args}))?;
    }
    Ok(())
}

fn run(pid: usize, trace: &Trace, span: &Span) -> Value {
    json!({
        "ph": "X", "pid": pid, "tid": span.cpu, "cat": "run", "name": trace.tasks[span.task],
        "ts": us(span.from - trace.since), "dur": us(span.to - span.from), "args": {"then": span.why},
    })
}

/// An arrow from the waker to the woken task; none for a timer. It begins 1 ns before the wakeup:
/// the waker may sleep at that instant, and an arrow must begin within a span.
fn flow(events: &mut Events, pid: usize, id: usize, trace: &Trace, wakeup: &Wakeup) -> Result<()> {
    let at = us((wakeup.at - trace.since).saturating_sub(1));
    let waker = wakeup.waker.map(|w| trace.tasks[w].as_str());
    let args =
        json!({"task": trace.tasks[wakeup.task], "by": waker.unwrap_or("timer"), "to": wakeup.to});
    events.add(&json!({
        "ph": "i", "s": "t", "pid": pid, "tid": wakeup.here, "cat": "wakeup", "name": wakeup.kind, "ts": at, "args": args,
    }))?;
    let (Some(_), Some((cpu, ran))) = (waker, wakeup.ran) else {
        return Ok(());
    };
    let id = format!("{pid}.{id}");
    events.add(&json!({
        "ph": "s", "pid": pid, "tid": wakeup.here, "cat": "wakeup", "name": wakeup.kind, "id": id, "ts": at,
    }))?;
    events.add(&json!({
        "ph": "f", "bp": "e", "pid": pid, "tid": cpu, "cat": "wakeup", "name": wakeup.kind, "id": id, "ts": us(ran - trace.since),
    }))
}
