// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket, in scx_stats' wire format: one JSON line each way. Requests: `stats` with target `top`
//! (growth since this client last asked) or `totals` (since the scheduler started), and `stats_meta`.
//!
//! The listener is our own: that of scx_stats makes every client wait for the scheduler's loop, reads lines of any
//! length, takes over the socket of a running scheduler and leaves its own behind. Nothing can be changed here.

use super::Metrics;
use super::source::{CounterSource, Deltas};
use anyhow::{Context, Result, anyhow, bail};
use log::{debug, warn};
use scx_stats::{Meta, StatsErrno, StatsRequest, StatsResponse};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const CLIENTS_MAX: usize = 32;
const LINE_MAX: usize = 4096;
/// A request must arrive whole within this time, and an answer must be taken.
const LINE_TIME: Duration = Duration::from_secs(5);
/// A client that asks for nothing for longer is dropped.
const IDLE_TIME: Duration = Duration::from_secs(2 * 3600);

/// Serves until it is dropped; then the socket is gone.
pub struct StatsServer {
    path: PathBuf,
    /// Device and inode of our socket: another one under the same name is not ours to remove.
    identity: Option<(u64, u64)>,
    shared: Arc<Shared>,
}

struct Shared {
    source: CounterSource,
    exit: AtomicBool,
    clients: Mutex<BTreeMap<u64, UnixStream>>,
}

impl StatsServer {
    pub fn launch(path: &Path, source: CounterSource) -> Result<StatsServer> {
        make_room(path)?;
        let listener = UnixListener::bind(path).map_err(|e| refused("create the", path, &e))?;
        let shared = Arc::new(Shared {
            source,
            exit: AtomicBool::new(false),
            clients: Mutex::default(),
        });
        let server = StatsServer {
            path: path.to_path_buf(),
            identity: identity(path),
            shared: shared.clone(),
        };
        spawn("stats", move || listen(&listener, &shared))?;
        Ok(server)
    }
}

impl Drop for StatsServer {
    fn drop(&mut self) {
        self.shared.exit.store(true, Ordering::Relaxed);
        // Wakes the listener out of accept().
        let _ = UnixStream::connect(&self.path);
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
        for client in self.shared.clients().values() {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when there are too many clients.
    fn admit(&self, id: u64, stream: &UnixStream) -> bool {
        let mut clients = self.clients();
        if clients.len() >= CLIENTS_MAX {
            return false;
        }
        stream
            .try_clone()
            .is_ok_and(|copy| clients.insert(id, copy).is_none())
    }
}

/// Makes the folder, and removes a socket on which nobody listens. One that is served is left alone.
fn make_room(path: &Path) -> Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|e| refused("create the folder of the", path, &e))?;
    }
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !meta.file_type().is_socket() {
        bail!(
            "{} exists and is no socket: remove it or give another --stats-path",
            path.display()
        );
    }
    match UnixStream::connect(path) {
        Ok(_) => bail!(
            "another scheduler serves its statistics at {}: stop it or give another --stats-path",
            path.display()
        ),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| refused("replace the dead", path, &e))
        }
        Err(e) => Err(refused("tell who serves the", path, &e)),
    }
}

fn refused(what: &str, path: &Path, e: &std::io::Error) -> anyhow::Error {
    anyhow!(
        "cannot {what} statistics socket {}: {e}: give --stats-path a path that you may write to",
        path.display()
    )
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name(name.to_string())
        .spawn(body)
        .with_context(|| format!("cannot start the thread '{name}'"))?;
    Ok(())
}

fn listen(listener: &UnixListener, shared: &Arc<Shared>) {
    for (id, stream) in listener.incoming().enumerate() {
        if shared.exit.load(Ordering::Relaxed) {
            return;
        }
        let accepted = stream
            .map_err(Into::into)
            .and_then(|s| welcome(id as u64, s, shared));
        if let Err(e) = accepted {
            warn!("statistics: a client was not served: {e:#}");
            // Out of file descriptors, say: do not spin.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn welcome(id: u64, mut stream: UnixStream, shared: &Arc<Shared>) -> Result<()> {
    stream.set_write_timeout(Some(LINE_TIME))?;
    if !shared.admit(id, &stream) {
        let text = format!("{CLIENTS_MAX} clients are served already");
        return send(&mut stream, &response(libc::EBUSY, Value::from(text)));
    }
    let shared = shared.clone();
    spawn("stats-client", move || {
        if let Err(e) = serve(stream, &shared) {
            debug!("statistics: a client left: {e:#}");
        }
        shared.clients().remove(&id);
    })
}

fn serve(mut stream: UnixStream, shared: &Shared) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut client = Client {
        source: shared.source.clone(),
        deltas: None,
    };
    while let Some(line) = read_line(&mut reader)? {
        send(&mut stream, &client.answer(&line))?;
    }
    Ok(())
}

/// None at the end of the stream.
fn read_line(reader: &mut BufReader<UnixStream>) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.get_ref().set_read_timeout(Some(IDLE_TIME))?;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|b| *b == b'\n');
        let taken = end.map_or(chunk.len(), |e| e + 1);
        line.extend_from_slice(&chunk[..taken]);
        reader.consume(taken);
        if line.len() > LINE_MAX {
            bail!("a request of more than {LINE_MAX} bytes");
        }
        if end.is_some() {
            return Ok(Some(line));
        }
        reader.get_ref().set_read_timeout(Some(LINE_TIME))?;
    }
}

struct Client {
    source: CounterSource,
    /// From the first request for `top` on.
    deltas: Option<Deltas>,
}

impl Client {
    fn answer(&mut self, line: &[u8]) -> StatsResponse {
        match self.request(line) {
            Ok(value) => response(0, value),
            Err(e) => {
                let errno = e.downcast_ref::<StatsErrno>().map_or(libc::EINVAL, |e| e.0);
                response(errno, Value::from(format!("{e:#}")))
            }
        }
    }

    fn request(&mut self, line: &[u8]) -> Result<Value> {
        let request: StatsRequest =
            serde_json::from_slice(line).context("a request is a line of JSON")?;
        match request.req.as_str() {
            "stats" => self.stats(request.args.get("target").map_or("top", String::as_str)),
            "stats_meta" => {
                let meta = Metrics::meta();
                Ok(serde_json::to_value(BTreeMap::from([(
                    meta.name.clone(),
                    meta,
                )]))?)
            }
            other => bail!("unknown request '{other}': expected is stats or stats_meta"),
        }
    }

    fn stats(&mut self, target: &str) -> Result<Value> {
        let metrics = match target {
            "top" => self.top(),
            "totals" => self.source.totals(),
            other => bail!("unknown target '{other}': expected is top or totals"),
        };
        Ok(serde_json::to_value(metrics)?)
    }

    fn top(&mut self) -> Metrics {
        let begin = || Deltas::new(self.source.clone());
        self.deltas.get_or_insert_with(begin).take()
    }
}

fn response(errno: i32, resp: Value) -> StatsResponse {
    StatsResponse {
        errno,
        args: BTreeMap::from([("resp".to_string(), resp)]),
    }
}

fn send(stream: &mut UnixStream, response: &StatsResponse) -> Result<()> {
    let line = serde_json::to_string(response)? + "\n";
    Ok(stream.write_all(line.as_bytes())?)
}
