// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler as the library shows it: what builds one, what holds one, and what talks to it
//! from other threads of its process. `run.rs` loads it and keeps it loaded.

#[cfg(feature = "rustland")]
use crate::daemon::control::Reader;
use crate::daemon::control::{self, Control, Origin, Pending};
use crate::daemon::reload::Reloads;
use crate::daemon::run::{Ended, Observer, Runner};
use crate::daemon::uevents::Uevents;
use crate::doctor;
use crate::machine::host::Host;
use crate::policy::config::Config;
use crate::policy::settings::Settings;
#[cfg(feature = "rustland")]
use crate::rustland;
use crate::util::privileges::{self, Access, Wanted};
use crate::util::refusal::BadConfig;
use crate::util::stop::{Bell, Stop, Stopper, stopper};
use crate::util::wall_clock;
use crate::wire::protocol::Op;
use crate::wire::socket::Bound;
use crate::wire::stats::source::CounterSource;
use crate::wire::stats::{monitor, server};
use anyhow::{Context, Result, bail};
use log::warn;
use rustix::thread::CapabilitySet;
use serde_json::Value;
use std::fmt;
use std::path::Path;
#[cfg(feature = "rustland")]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, scope, sleep};
use std::time::{Duration, Instant};

/// How often [`Scheduler::run_until`] reads its flag.
const FLAG_PERIOD: Duration = Duration::from_millis(50);

/// What failed. `Display` prints it; the sources have the causes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was loaded: this machine or this configuration cannot run the scheduler, a socket is
    /// in use, or this process has a [`Scheduler`] already.
    NotStarted(anyhow::Error),
    /// The scheduler did not load, or it ended with an error. The kernel's own scheduler runs.
    Ended(anyhow::Error),
    /// A request was refused, and nothing was changed.
    Refused(anyhow::Error),
    /// A change is kept, but could not be brought into force yet. That is tried again.
    Pending(anyhow::Error),
}

impl Error {
    fn inner(&self) -> &anyhow::Error {
        match self {
            Error::NotStarted(e) | Error::Ended(e) | Error::Refused(e) | Error::Pending(e) => e,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner().fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner().source()
    }
}

/// Builds a [`Scheduler`]. Without a change it is what `scx_roost` without options runs.
#[derive(Default)]
pub struct Builder {
    config: Config,
    without_sockets: bool,
    observer: Observer,
    origin: Origin,
    reload: Bell,
}

impl Builder {
    /// All that the command line can set, the settings too. [`Config`] is made by
    /// `Config::default()` and changed field by field.
    #[must_use]
    pub fn config(self, config: Config) -> Builder {
        Builder { config, ..self }
    }

    /// Features and tunables of the arm `default`, on which all tasks start.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Builder {
        self.config.settings = settings;
        self
    }

    /// Neither statistics nor control are served at a socket. A [`Handle`] has both.
    #[must_use]
    pub fn without_sockets(mut self) -> Builder {
        self.without_sockets = true;
        self
    }

    /// The configuration came from there, and is read again when the bell rings.
    pub(crate) fn origin(self, origin: Origin, reload: Bell) -> Builder {
        Builder {
            origin,
            reload,
            ..self
        }
    }

    /// Called each time that the scheduler has been attached, with the number of restarts. The
    /// thread of the run waits for it.
    #[must_use]
    pub fn on_attached(mut self, call: impl FnMut(u64) + Send + 'static) -> Builder {
        self.observer.attached = Some(Box::new(call));
        self
    }

    /// Called each time that a scheduler that was attached is no longer loaded. The thread of the
    /// run waits for it. Build the next scheduler after the run has returned: this one still
    /// counts.
    #[must_use]
    pub fn on_ended(mut self, call: impl FnMut(&Ended) + Send + 'static) -> Builder {
        self.observer.ended = Some(Box::new(call));
        self
    }

    /// Checks that this machine can run the scheduler, and binds the sockets. Loads nothing and
    /// starts no thread.
    ///
    /// # Errors
    ///
    /// [`Error::NotStarted`]. `scx_roost doctor` says what is missing.
    pub fn build(self) -> Result<Scheduler, Error> {
        Scheduler::new(self).map_err(Error::NotStarted)
    }
}

/// A scheduler that can run: its checks have passed and its sockets exist. A process has one at a
/// time.
///
/// No limit, signal handler, privilege or logger of the process is changed. Messages go to the
/// crate `log`. During a load libbpf's go there too, at debug level, and afterwards where they went
/// before; and the calling thread has nice level -20, if RLIMIT_NICE permits it. Why the kernel
/// ended the scheduler is printed to stderr. If the process's group has a memory limit, all threads
/// are in the root group during a load.
pub struct Scheduler {
    config: Config,
    host: Host,
    handle: Handle,
    sockets: Option<Sockets>,
    observer: Observer,
    reload: Bell,
    _alone: Alone,
}

/// Bound, and not served yet.
struct Sockets {
    stats: Bound,
    ctl: Bound,
}

impl Scheduler {
    /// Begins to build one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn new(builder: Builder) -> Result<Scheduler> {
        let alone = Alone::take()?;
        #[cfg(feature = "rustland")]
        let builder = decided_in_rust(builder)?;
        let config = builder.config;
        let host = Host::new(&config.sysfs);
        let source = CounterSource::default();
        doctor::check_start(&host, &source, config.ignore_cpu_max)?;
        let sockets = (!builder.without_sockets).then(|| Sockets::bind(&config));
        let control = Control::new(config.settings.clone(), config.freeze, source.clone());
        control
            .begin(config.plan(), builder.origin)
            .map_err(BadConfig)?;
        Ok(Scheduler {
            sockets: sockets.transpose()?,
            handle: Handle { control, source },
            config,
            host,
            observer: builder.observer,
            reload: builder.reload,
            _alone: alone,
        })
    }

    /// Statistics and control, for other threads. Requests that need the loaded scheduler are
    /// refused before it is attached and after the run.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The calling thread keeps `needed` and what this run still needs, and gives up the rest for
    /// good. The same thread must call `run`.
    pub(crate) fn shed_privileges(&self, needed: CapabilitySet) -> Result<CapabilitySet> {
        let config = &self.config;
        let sockets = self.sockets.iter();
        let sockets = sockets.flat_map(|_| [&config.stats_path, &config.ctl_path]);
        let removed = sockets.map(|path| Wanted {
            path: folder_of(path),
            access: Access::Remove,
        });
        let read = [Some(&config.sysfs), config.freq_source.folder()];
        let read = read.into_iter().flatten().map(|path| Wanted {
            path,
            access: Access::Read,
        });
        let wanted: Vec<Wanted> = removed.chain(read).collect();
        privileges::shed(needed, &wanted)
    }

    /// Loads the scheduler, and runs it until `stop` or until the kernel ends it. It is loaded
    /// again when a CPU comes online. Needs root, and a kernel with sched_ext.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`]. SysRq-S is an error too, as in scx_utils: somebody had to rescue the
    /// machine from the scheduler.
    pub fn run(self, stop: Stop) -> Result<(), Error> {
        self.serve_and_run(stop).map_err(Error::Ended)
    }

    /// As [`run`](Scheduler::run), until `flag` is true; it is read every 50 ms.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_until(self, flag: &AtomicBool) -> Result<(), Error> {
        let (over, ended) = stopper();
        let (stopper, stop) = stopper();
        scope(|scope| {
            let watch = move || {
                while !flag.load(Ordering::Acquire) && ended.sleep(FLAG_PERIOD) {}
                drop(stopper);
            };
            let thread = thread::Builder::new().name("flag".to_string());
            let started = thread.spawn_scoped(scope, watch);
            started
                .context("cannot start the thread that reads the flag")
                .map_err(Error::Ended)?;
            let _over = over;
            self.run(stop)
        })
    }

    fn serve_and_run(self, stop: Stop) -> Result<()> {
        let Handle { control, source } = self.handle;
        source.begin(wall_clock::now_s());
        let _servers = match self.sockets {
            Some(Sockets { stats, ctl }) => {
                Some((server::serve(stats, source.clone())?, control.serve(ctl)?))
            }
            None => None,
        };
        let _reloads = Reloads::start(&control, &self.reload)?;
        let _printer = Printer::start(&self.config, &source)?;
        #[cfg(feature = "rustland")]
        if self.config.rust {
            let ended = rustland::run(&self.config, &self.host, &source, &stop);
            control.close();
            return ended;
        }
        let _uevents = Uevents::listen(control.bell())
            .inspect_err(|e| warn!("{e:#}: the next look notices its end, within a second"));
        let over = control.clone();
        let ended = Runner::new(self.config, self.host, source, control, self.observer, stop).run();
        over.close();
        ended
    }
}

/// With `rust`, the settings that act there; they cannot be changed.
#[cfg(feature = "rustland")]
fn decided_in_rust(mut builder: Builder) -> Result<Builder> {
    if !builder.config.rust {
        return Ok(builder);
    }
    rustland::refuse_ignored(&builder.config)?;
    let plan = rustland::refuse_unknown(builder.config.plan())?;
    builder.config.settings = plan.everybody;
    builder.config.freeze = true;
    builder.origin.read = builder.origin.read.map(|read| -> Arc<Reader> {
        Arc::new(move |saved| {
            let mut reading = read(saved)?;
            reading.plan = rustland::refuse_unknown(reading.plan)?;
            Ok(reading)
        })
    });
    Ok(builder)
}

/// The folder of a file, which may be named without one.
fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

impl Sockets {
    fn bind(config: &Config) -> Result<Sockets> {
        Ok(Sockets {
            stats: server::bind(&config.stats_path, config.stats_group)?,
            ctl: control::bind(&config.ctl_path, config.ctl_group)?,
        })
    }
}

/// Statistics and control of a [`Scheduler`], without its sockets. Clones are of the same one.
#[derive(Clone)]
pub struct Handle {
    control: Control,
    source: CounterSource,
}

impl Handle {
    /// The statistics since the first load, as the socket's target `totals` has them: counters by
    /// name, those of each arm, events, conditions. `scx_roost --help-stats` describes them.
    pub fn stats(&self) -> Value {
        // Numbers, texts, and maps of them by text: none that JSON lacks.
        serde_json::to_value(self.source.totals()).unwrap_or_default()
    }

    /// Whether the scheduler was ever attached.
    pub(crate) fn was_loaded(&self) -> bool {
        self.source.totals().was_loaded()
    }

    /// What the control socket does with such a request. A change of an attached scheduler is in
    /// force when this returns; a load begins with what was changed before it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], also after the run; [`Error::Pending`].
    pub fn request(&self, op: Op) -> Result<Value, Error> {
        let kind = |error: anyhow::Error| match error.is::<Pending>() {
            true => Error::Pending(error),
            false => Error::Refused(error),
        };
        self.control.request(op).map_err(kind)
    }
}

/// Held while a scheduler runs in this process. scx_utils keeps the address of the kernel's dump in
/// one global: with two schedulers, one would read the other's memory after that is freed.
struct Alone;

static RUNNING: AtomicBool = AtomicBool::new(false);

impl Alone {
    fn take() -> Result<Alone> {
        if RUNNING.swap(true, Ordering::AcqRel) {
            bail!("this process already runs a scheduler: it can run one at a time");
        }
        Ok(Alone)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Release);
    }
}

/// Prints statistics beside the scheduler, until dropped.
/// How long it may print what it has begun. The reader of stdout may have stopped for good.
const PRINTER_TIME: Duration = Duration::from_secs(1);

struct Printer {
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Printer {
    fn start(config: &Config, source: &CounterSource) -> Result<Printer> {
        let (stopper, stop) = stopper();
        let start = |interval| monitor::start(source.clone(), interval, config.stats_json, stop);
        let thread = config.stats_interval.map(start).transpose()?;
        Ok(Printer {
            stopper: Some(stopper),
            thread,
        })
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let end = Instant::now() + PRINTER_TIME;
        while self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            if Instant::now() >= end {
                return;
            }
            sleep(PRINTER_TIME / 100);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_in_a_process_is_refused_until_the_first_is_over() {
        let config = Config {
            sysfs: "/nowhere".into(),
            ..Config::default()
        };
        let refusal = || {
            let built = Scheduler::builder().config(config.clone()).build();
            built.err().unwrap().to_string()
        };
        let first = Alone::take().unwrap();
        for _ in 0..2 {
            let refused = "this process already runs a scheduler: it can run one at a time";
            assert_eq!(refusal(), refused);
        }
        drop(first);
        for _ in 0..2 {
            assert!(refusal().contains("/nowhere"), "{}", refusal());
        }
    }
}
