// SPDX-License-Identifier: GPL-2.0-only
//! The listener for scrapers. Each client gets a thread and a few seconds. tiny_http is not used:
//! it gives each connection a thread for an unlimited time.
//!
//! When there are too many clients, the oldest one that has not sent its request yet is dropped. If
//! there is none, the oldest one that does not read its response is. A scrape takes milliseconds,
//! so such a client stalls. A client that waits for our response is never dropped.

use super::Pages;
use super::http::{self, HEAD_MAX};
use crate::wire::socket::spawn;
use anyhow::{Context, Result, anyhow};
use log::{debug, warn};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS_MAX: usize = 32;
/// Time in which a request must arrive whole, and in which a response must be read.
const EACH_TIME: Duration = Duration::from_secs(5);
/// Limits of what is read from a client after the head of its request. Closing a socket with unread
/// data resets the connection, and the client could lose the response.
const REST_TIME: Duration = Duration::from_millis(200);
const REST_MAX: usize = 1 << 16;

/// Serves until it is dropped.
pub struct Listener {
    shared: Arc<Shared>,
    at: SocketAddr,
}

struct Shared {
    pages: Pages,
    exit: AtomicBool,
    clients: Mutex<BTreeMap<u64, Client>>,
}

struct Client {
    stream: TcpStream,
    /// What we wait for. None: the client waits for us.
    awaited: Option<Awaited>,
}

/// What a client is expected to do. Clients are dropped in this order when there are too many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    /// Send its request.
    Request,
    /// Read its response.
    End,
}

impl Listener {
    /// Listens on `address`. Also returns the bound address, with the port the kernel chose for
    /// port 0.
    pub fn new(address: SocketAddr, pages: Pages) -> Result<(Listener, SocketAddr)> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            let at = listener.local_addr()?;
            Ok((listener, at))
        });
        let (socket, at) =
            bound.map_err(|e| anyhow!("cannot listen at {address}: {e}: give another --listen"))?;
        let shared = Arc::new(Shared {
            pages,
            exit: AtomicBool::new(false),
            clients: Mutex::default(),
        });
        let listener = Listener {
            shared: shared.clone(),
            at,
        };
        spawn("export", move || listen(&socket, &shared))?;
        Ok((listener, at))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.exit.store(true, Ordering::Relaxed);
        // Makes accept() return.
        drop(TcpStream::connect(self.at));
        for client in self.shared.clients().values() {
            let _ = client.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, id: u64, stream: &TcpStream) -> Result<()> {
        let client = Client {
            stream: stream.try_clone()?,
            awaited: Some(Awaited::Request),
        };
        let mut clients = self.clients();
        if clients.len() >= CLIENTS_MAX {
            let stalls = clients.iter().filter_map(|(id, c)| Some((c.awaited?, *id)));
            let (_, first) = stalls
                .min()
                .context("too many clients wait for an answer")?;
            if let Some(first) = clients.remove(&first) {
                let _ = first.stream.shutdown(Shutdown::Both);
            }
        }
        clients.insert(id, client);
        Ok(())
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for id in 0.. {
        let stream = listener.accept().map(|(stream, _)| stream);
        if shared.exit.load(Ordering::Relaxed) {
            return;
        }
        let accepted = stream
            .map_err(Into::into)
            .and_then(|s| welcome(id, s, shared));
        if let Err(e) = accepted {
            warn!("cannot serve a scraper: {e:#}");
            // Out of file descriptors, for example: do not spin.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn welcome(id: u64, mut stream: TcpStream, shared: &Arc<Shared>) -> Result<()> {
    let _ = stream.set_nodelay(true);
    if let Err(e) = shared.admit(id, &stream) {
        // The kernel buffers a response this short at once.
        stream.set_write_timeout(Some(REST_TIME))?;
        let refusal = http::answer(http::UNAVAILABLE, |format| shared.pages.page(format));
        let _ = stream.write_all(&refusal);
        return Err(e);
    }
    let place = ClientEntry {
        id,
        shared: shared.clone(),
    };
    spawn("export-client", move || {
        if let Err(e) = serve(&mut stream, &place) {
            debug!("a scraper disconnected: {e}");
        }
    })
}

/// Removes the client however its thread ends, also if the thread could not be started.
struct ClientEntry {
    id: u64,
    shared: Arc<Shared>,
}

impl ClientEntry {
    fn awaits(&self, awaited: Option<Awaited>) {
        if let Some(client) = self.shared.clients().get_mut(&self.id) {
            client.awaited = awaited;
        }
    }
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        self.shared.clients().remove(&self.id);
    }
}

fn serve(stream: &mut TcpStream, place: &ClientEntry) -> std::io::Result<()> {
    let end = Instant::now() + EACH_TIME;
    let mut head = Vec::new();
    let asked = loop {
        if let Some(asked) = http::understand(&head) {
            break asked;
        }
        let mut chunk = [0; 1024];
        let room = (HEAD_MAX - head.len()).min(chunk.len());
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(&mut chunk[..room])? {
            0 => return Ok(()),
            n => head.extend_from_slice(&chunk[..n]),
        }
    };
    place.awaits(None);
    let answer = http::answer(asked, |format| place.shared.pages.page(format));
    place.awaits(Some(Awaited::End));
    send(stream, &answer)?;
    stream.shutdown(Shutdown::Write)?;
    read_rest(stream)
}

fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Error::from(ErrorKind::TimedOut));
    }
    Ok(left)
}

fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    let end = Instant::now() + EACH_TIME;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        let sent = stream.write(bytes)?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

fn read_rest(stream: &mut TcpStream) -> std::io::Result<()> {
    let end = Instant::now() + REST_TIME;
    let mut chunk = [0; 4096];
    let mut rest = 0;
    while rest < REST_MAX {
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(&mut chunk)? {
            0 => break,
            n => rest += n,
        }
    }
    Ok(())
}
