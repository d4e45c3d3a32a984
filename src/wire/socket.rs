// SPDX-License-Identifier: GPL-2.0-only
//! A Unix socket that answers lines of JSON with lines of JSON, in scx_stats' wire format. The
//! caller supplies the answers.
//!
//! The listener replaces that of scx_stats. There every client waits for the scheduler's loop, and
//! lines may have any length. The one of scx_stats also takes over the socket of a running
//! scheduler, and does not remove its own at the end.

mod access;
mod peer;

pub use access::kept_out;
use peer::check_server;
pub use peer::peer_pidfd;

use crate::util::refusal::{Refused, refuse};
use anyhow::{Context, Result, anyhow, bail};
use log::{debug, warn};
use rustix::fs::{Mode, fchmod};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Error, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS_MAX: usize = 32;
/// Of these, the places that only root and the user of this process may take.
const CLIENTS_OURS: usize = 4;
const LINE_MAX: usize = 4096;
/// A request must arrive whole within this time, and the client must accept an answer within it.
const LINE_TIME: Duration = Duration::from_secs(5);
/// A client without a request for this long is dropped.
const IDLE_TIME: Duration = Duration::from_secs(2 * 3600);
const REQUEST: LineLimits = LineLimits {
    bytes: LINE_MAX,
    begin: IDLE_TIME,
    whole: LINE_TIME,
};

/// Longest answer that a client accepts, bytes. All CPUs of the largest machine are about 4 MB.
pub const ANSWER_MAX: usize = 8 << 20;

/// Limits for reading one line from an untrusted peer.
pub struct LineLimits {
    pub bytes: usize,
    /// Time until its first byte.
    pub begin: Duration,
    /// Time from then until its end.
    pub whole: Duration,
}

/// At most this many requests that arrived together are answered together.
const TOGETHER_MAX: usize = 64;
const TOGETHER_BYTES: usize = 1 << 16;

/// The handler of one connected client's requests.
pub trait Client: Send {
    /// Answers requests that arrived together, one by one. Errors: the client did not accept an
    /// answer.
    fn requests(&mut self, lines: &[Vec<u8>], answers: &mut Answers) -> Result<()>;
}

/// Sends one answer, which is JSON, before the next is made: all together could exceed the memory.
/// An error is answered with its text, and with the errno of a `Refused` in it, else EINVAL.
pub type Answers<'a> = dyn FnMut(Result<String>) -> Result<()> + 'a;

/// The permissions of a socket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// As the process's umask permits.
    Umask,
    /// The owner, and the group of this number if given.
    Owner { group: Option<u32> },
}

/// What a socket is for, as messages name it.
#[derive(Clone, Copy)]
pub struct Purpose {
    /// "statistics"
    pub name: &'static str,
    /// "another scheduler serves its statistics"
    pub served: &'static str,
    /// "--stats-path"
    pub option: &'static str,
    /// "stats": the prefix of the threads' names.
    pub thread: &'static str,
    pub access: Access,
}

/// Serves until it is dropped, which removes the socket.
pub struct Server {
    file: SocketFile,
    shared: Arc<Shared>,
}

/// The file of a socket. Dropping this removes it.
struct SocketFile {
    path: PathBuf,
    /// Device and inode of the socket. A file that replaced it under the same name is not removed.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Makes accept() return in the listener.
    fn wake(&self) {
        let _ = connect(&self.path, LINE_TIME);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

type Welcome = dyn Fn(&UnixStream) -> Result<Box<dyn Client>> + Send + Sync;

struct Shared {
    purpose: Purpose,
    welcome: Box<Welcome>,
    exit: AtomicBool,
    clients: Mutex<BTreeMap<u64, UnixStream>>,
}

/// A socket that exists and has its owner, group and mode. Clients can connect already; they wait
/// until it serves.
pub struct Bound {
    purpose: Purpose,
    listener: UnixListener,
    file: SocketFile,
}

impl Bound {
    /// `welcome` makes the handler for one client.
    pub fn serve(
        self,
        welcome: impl Fn(&UnixStream) -> Result<Box<dyn Client>> + Send + Sync + 'static,
    ) -> Result<Server> {
        let shared = Arc::new(Shared {
            purpose: self.purpose,
            welcome: Box::new(welcome),
            exit: AtomicBool::new(false),
            clients: Mutex::default(),
        });
        let server = Server {
            file: self.file,
            shared: shared.clone(),
        };
        spawn(self.purpose.thread, move || listen(&self.listener, &shared))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.exit.store(true, Ordering::Relaxed);
        self.file.wake();
        for client in self.shared.clients().values() {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: there are too many clients, or the stream cannot be duplicated.
    fn admit(&self, id: u64, stream: &UnixStream) -> bool {
        let most = match peer::is_ours(stream) {
            true => CLIENTS_MAX,
            false => CLIENTS_MAX - CLIENTS_OURS,
        };
        let mut clients = self.clients();
        if clients.len() >= most {
            return false;
        }
        stream
            .try_clone()
            .is_ok_and(|copy| clients.insert(id, copy).is_none())
    }
}

impl Purpose {
    /// Lets the owner and this group connect; without a group nothing changes.
    pub fn for_group(self, group: Option<u32>) -> Purpose {
        let access = group.map(|_| Access::Owner { group });
        Purpose {
            access: access.unwrap_or(self.access),
            ..self
        }
    }

    pub fn bind(self, path: &Path) -> Result<Bound> {
        self.make_room(path)?;
        let listener = bind(path, self.access).map_err(|e| match e {
            NotBound::File(e) => self.refused("create the", path, &e),
            NotBound::Group(text) => {
                anyhow!("the {} socket {}: {text}", self.name, path.display())
            }
        })?;
        let file = SocketFile {
            path: path.to_path_buf(),
            identity: identity(path),
        };
        if let Access::Owner { group: Some(group) } = self.access
            && let Some(text) = kept_out(path, group)
        {
            warn!("the {} socket {}: {text}", self.name, path.display());
        }
        Ok(Bound {
            purpose: self,
            listener,
            file,
        })
    }

    /// Creates the folder, and removes a socket without a listener. A socket that is served stays.
    fn make_room(&self, path: &Path) -> Result<()> {
        let option = self.option;
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)
                .map_err(|e| self.refused("create the folder of the", path, &e))?;
        }
        let Ok(meta) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        if !meta.file_type().is_socket() {
            bail!(
                "{} exists and is not a socket: remove it or give another {option}",
                path.display()
            );
        }
        match connect(path, LINE_TIME) {
            Ok(_) => bail!(
                "{} at {}: stop it or give another {option}",
                self.served,
                path.display()
            ),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(|e| self.refused("replace the stale", path, &e))
            }
            Err(e) => Err(self.refused("find out which process serves the", path, &e)),
        }
    }

    fn refused(&self, what: &str, path: &Path, e: &std::io::Error) -> anyhow::Error {
        anyhow!(
            "cannot {what} {} socket {}: {e}: give {} a path that you may write to",
            self.name,
            path.display(),
            self.option
        )
    }
}

enum NotBound {
    File(Error),
    Group(String),
}

impl From<Error> for NotBound {
    fn from(e: Error) -> NotBound {
        NotBound::File(e)
    }
}

fn bind(path: &Path, access: Access) -> Result<UnixListener, NotBound> {
    match access {
        Access::Umask => Ok(UnixListener::bind(path)?),
        Access::Owner { group } => bind_private(path, group),
    }
}

/// The file has its mode from the start, because a socket's mode before bind() becomes that of its
/// file. Clients cannot connect before listen().
fn bind_private(path: &Path, group: Option<u32>) -> Result<UnixListener, NotBound> {
    let listener = UnixListener::from(stream_socket()?);
    fchmod(&listener, Mode::RUSR | Mode::WUSR).map_err(Error::from)?;
    net::bind(&listener, &address(path)?).map_err(Error::from)?;
    if let Some(group) = group {
        access::give_to_group(path, group).map_err(|text| {
            let _ = fs::remove_file(path);
            NotBound::Group(text)
        })?;
    }
    net::listen(&listener, 128).map_err(Error::from)?;
    Ok(listener)
}

/// A connection to a server of root or of the current user. Waits at most `patience` for it, which
/// takes long while too many others connect, and for each write.
pub fn connect(path: &Path, patience: Duration) -> std::io::Result<UnixStream> {
    let stream = UnixStream::from(stream_socket()?);
    stream.set_write_timeout(Some(patience))?;
    net::connect(&stream, &address(path)?)?;
    check_server(&stream)?;
    Ok(stream)
}

fn stream_socket() -> std::io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// uapi: the size of sockaddr_un.sun_path.
const SUN_PATH: usize = 108;

/// With a zero at its end, which other clients expect.
fn address(path: &Path) -> std::io::Result<SocketAddrUnix> {
    match path.as_os_str().len() < SUN_PATH {
        true => Ok(SocketAddrUnix::new(path)?),
        false => Err(ErrorKind::InvalidFilename.into()),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
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
            warn!("{}: cannot serve a client: {e:#}", shared.purpose.name);
            // For example without file descriptors left: do not spin.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn welcome(id: u64, mut stream: UnixStream, shared: &Arc<Shared>) -> Result<()> {
    stream.set_write_timeout(Some(LINE_TIME))?;
    if !shared.admit(id, &stream) {
        let text = "all connections are in use";
        // A client that has gone already must not delay the next one.
        let _ = send(&mut stream, Err(refuse(libc::EBUSY, text)));
        return Ok(());
    }
    let shared = shared.clone();
    let name = format!("{}-client", shared.purpose.thread);
    let place = ClientEntry { id, shared };
    spawn(&name, move || {
        if let Err(e) = serve(stream, &place.shared) {
            debug!(
                "{}: a client disconnected: {e:#}",
                place.shared.purpose.name
            );
        }
    })
}

/// A client's entry in `clients`, removed when its thread ends in any way or cannot be started.
struct ClientEntry {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        self.shared.clients().remove(&self.id);
    }
}

fn serve(mut stream: UnixStream, shared: &Shared) -> Result<()> {
    let mut reader = BufReader::with_capacity(TOGETHER_BYTES, stream.try_clone()?);
    let mut client = (shared.welcome)(&stream)?;
    while let Some(line) = read_line(&mut reader, &REQUEST)? {
        let mut lines = vec![line];
        while lines.len() < TOGETHER_MAX && reader.buffer().contains(&b'\n') {
            lines.extend(read_line(&mut reader, &REQUEST)?);
        }
        client.requests(&lines, &mut |answer| send(&mut stream, answer))?;
    }
    Ok(())
}

/// Reads a line with its newline. None: the stream has ended; a last line without newline is
/// dropped. Errors: the line is too long, or takes too long.
pub fn read_line(
    reader: &mut BufReader<UnixStream>,
    limits: &LineLimits,
) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut end_by = None;
    reader.get_ref().set_read_timeout(Some(limits.begin))?;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|b| *b == b'\n');
        let taken = end.map_or(chunk.len(), |e| e + 1);
        line.extend_from_slice(&chunk[..taken]);
        reader.consume(taken);
        if line.len() > limits.bytes {
            bail!("a line of more than {} bytes", limits.bytes);
        }
        if end.is_some() {
            return Ok(Some(line));
        }
        let end_by = *end_by.get_or_insert_with(|| Instant::now() + limits.whole);
        let left = end_by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!("a line that does not end");
        }
        reader.get_ref().set_read_timeout(Some(left))?;
    }
}

/// Writes what scx_stats writes for a StatsResponse.
fn send(stream: &mut UnixStream, answer: Result<String>) -> Result<()> {
    let (errno, resp) = match answer {
        Ok(json) => (0, json),
        Err(e) => {
            let errno = e.downcast_ref::<Refused>().map_or(libc::EINVAL, |e| e.0);
            (errno, Value::from(format!("{e:#}")).to_string())
        }
    };
    let line = format!("{{\"errno\":{errno},\"args\":{{\"resp\":{resp}}}}}\n");
    Ok(stream.write_all(line.as_bytes())?)
}
