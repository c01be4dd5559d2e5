//! A server that answers each request with what a function makes of it, and keeps a record of all of them.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    reply::{End, Reply},
    request::{Request, Tally},
    server::{Accepted, Server, lock},
    wire::Wire,
};

/// A request that a test waits for comes sooner than this, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request, and the status that it was answered with.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The request.
    pub request: Request,
    /// The status.
    pub status: u16,
}

/// An answer, and what is dropped when it is on the wire.
pub(crate) struct Handled {
    pub(crate) reply: Reply,
    pub(crate) guard: Option<Box<dyn Any>>,
}

impl From<Reply> for Handled {
    fn from(reply: Reply) -> Self {
        Self { reply, guard: None }
    }
}

/// The server. Dropping it ends its connections and joins its threads.
pub(crate) struct Recorder {
    server: Server,
    log: Arc<Log>,
}

#[derive(Debug, Default)]
struct Log {
    seen: Mutex<Vec<Seen>>,
    grown: Condvar,
    tally: Arc<Tally>,
}

impl Recorder {
    /// Listens on a free port of 127.0.0.1.
    pub(crate) fn start(handle: impl Fn(&Request) -> Handled + Send + Sync + 'static) -> Self {
        let log = Arc::<Log>::default();
        let for_connections = Arc::clone(&log);
        let server = Server::start(move |accepted| serve(accepted, &for_connections, &handle));
        Self { server, log }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// Everything so far, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.log.seen).clone()
    }

    /// Waits until there have been `n` requests for `path`, and gives them.
    pub(crate) fn wait_for(&self, path: &str, n: usize) -> Vec<Seen> {
        let until = Instant::now() + PATIENCE;
        let mut seen = lock(&self.log.seen);
        loop {
            let found: Vec<_> = seen.iter().filter(|one| one.request.path() == path).cloned().collect();
            if found.len() >= n {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{} of {n} requests for {path} came within {PATIENCE:?}",
                found.len()
            );
            seen = self
                .log
                .grown
                .wait_timeout(seen, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

fn serve(accepted: Accepted, log: &Log, handle: &impl Fn(&Request) -> Handled) {
    let Accepted { stream, number, stop } = accepted;
    let mut wire = Wire::plain(stream);
    while let Some(request) = Request::read(&mut wire, number, &log.tally) {
        let Handled { mut reply, guard } = handle(&request);
        if request.wants_close() && reply.end == End::KeepAlive {
            reply.end = End::Close;
        }
        lock(&log.seen).push(Seen {
            request: request.clone(),
            status: reply.status,
        });
        log.grown.notify_all();
        let Ok(end) = wire.send(&request, &reply, &stop, &|| ()) else {
            return;
        };
        drop(guard);
        if end != End::KeepAlive {
            wire.finish(end);
            return;
        }
    }
    wire.finish(End::Close);
}
