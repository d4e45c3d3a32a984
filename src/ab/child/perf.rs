// SPDX-License-Identifier: GPL-2.0-only
//! Counts events of a command and its descendants by perf_event_open: how often it migrates to
//! another CPU, and what the hardware counts, where the kernel and the machine offer that.

use crate::ab::metric::Measured;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
/// Type and number of each event (include/uapi/linux/perf_event.h).
const EVENTS: [(Measured, u32, u64); 4] = [
    (Measured::Migrations, TYPE_SOFTWARE, 4),
    (Measured::Cycles, TYPE_HARDWARE, 0),
    (Measured::Instructions, TYPE_HARDWARE, 1),
    (Measured::CacheMisses, TYPE_HARDWARE, 3),
];
/// Where cores differ, an event is of one kind of core, and says nothing about a task that is moved
/// to another.
const OTHER_CORES: &str = "/sys/bus/event_source/devices/cpu_atom";
/// disabled, inherit, enable_on_exec.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 12;
/// Also read how long the event was enabled, and how long it had a counter.
const WITH_TIMES: u64 = 1 | 1 << 1;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// struct perf_event_attr in its first version, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Counts the events of all processes that this thread starts from now on, each from its exec.
pub struct Counted(Vec<(Measured, File)>);

/// Counts by event. Events that cannot be counted are missing.
pub type Counts = BTreeMap<Measured, f64>;

impl Counted {
    /// Migrations, and the `asked` events: each costs something at each switch and fork.
    pub fn of_children(asked: &[Measured]) -> Counted {
        let wanted = |(event, ..): &(Measured, u32, u64)| {
            *event == Measured::Migrations || asked.contains(event)
        };
        let open = |(measured, kind, config)| Some((measured, open(kind, config)?));
        Counted(EVENTS.into_iter().filter(wanted).filter_map(open).collect())
    }

    pub fn counts(&mut self) -> Counts {
        let count = |(measured, file): &mut (Measured, File)| Some((*measured, count(file)?));
        self.0.iter_mut().filter_map(count).collect()
    }
}

/// Whether such an event can be counted here. True for what is no event.
pub fn can_count(measured: Measured) -> bool {
    let event = EVENTS.into_iter().find(|(event, ..)| *event == measured);
    event.is_none_or(|(_, kind, config)| open(kind, config).is_some())
}

/// None if the kernel does not permit it, or the machine has no such counter.
fn open(kind: u32, config: u64) -> Option<File> {
    let attr = Attr {
        kind,
        size: size_of::<Attr>() as u32,
        config,
        read_format: WITH_TIMES,
        flags: FLAGS,
        ..Attr::default()
    };
    if kind == TYPE_HARDWARE && Path::new(OTHER_CORES).exists() {
        return None;
    }
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the attributes are alive and hold their size; nothing else owns the returned
    // descriptor.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &attr,
            this_thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        );
        (fd >= 0).then(|| File::from_raw_fd(fd as i32))
    }
}

/// Events that share too few counters take turns. The count is then what it would have been with a
/// counter all the time. None: it never had one.
fn count(file: &mut File) -> Option<f64> {
    let mut bytes = [0; 24];
    file.read_exact(&mut bytes).ok()?;
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let [count, enabled, counted] = [word(0)?, word(8)?, word(16)?].map(|n| n as f64);
    match enabled == counted {
        true => Some(count),
        false => (counted > 0.0).then(|| (count * enabled / counted).round()),
    }
}
