//! A listener on loopback with one thread per connection, all of which end when it is dropped.

use std::{
    collections::HashMap,
    fmt,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::net::RecvFlags;

/// The lock's value even if a thread panicked with it: the panic itself is reported by [`Server`].
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells threads that their server ends, and lets them pause until then.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    pub(crate) fn is_stopped(&self) -> bool {
        *lock(&self.stopped)
    }

    /// Waits for `pause` or the end, whichever comes first. True if it is the end.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut stopped = lock(&self.stopped);
        while !*stopped {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            stopped = self
                .told
                .wait_timeout(stopped, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *stopped
    }

    fn stop(&self) {
        *lock(&self.stopped) = true;
        self.told.notify_all();
    }
}

/// What a connection's thread gets.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    /// Counted from 0 in the order of acceptance.
    pub(crate) number: usize,
    pub(crate) stop: Arc<Stop>,
}

/// The listener. Dropping it ends every connection and joins every thread.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: Arc<Stop>,
    open: Mutex<HashMap<usize, TcpStream>>,
    most_open: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and gives each connection to `serve` on its own thread.
    pub(crate) fn start(serve: impl Fn(Accepted) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let thread = std::thread::spawn(move || accept(&listener, &accepting, &Arc::new(serve)));
        Self {
            address,
            shared,
            listener: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The most connections that were open at one time.
    pub(crate) fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.stop();
        let _wakes_the_listener = TcpStream::connect(self.address);
        let mut panicked = self.listener.take().is_some_and(|thread| thread.join().is_err());
        for stream in lock(&self.shared.open).values() {
            let _already_gone = stream.shutdown(Shutdown::Both);
        }
        let threads = std::mem::take(&mut *lock(&self.shared.threads));
        for thread in threads {
            panicked |= thread.join().is_err();
        }
        assert!(!panicked || std::thread::panicking(), "a connection's thread panicked");
    }
}

fn accept<F: Fn(Accepted) + Send + Sync + 'static>(listener: &TcpListener, shared: &Arc<Shared>, serve: &Arc<F>) {
    for (number, stream) in listener.incoming().enumerate() {
        if shared.stop.is_stopped() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(for_shutdown) = stream.try_clone() else { continue };
        let _only_slower = stream.set_nodelay(true);
        let open = {
            let mut open = lock(&shared.open);
            open.insert(number, for_shutdown);
            open.values().filter(|stream| !has_left(stream)).count()
        };
        shared.most_open.fetch_max(open, Ordering::SeqCst);
        let (serving, serve) = (Arc::clone(shared), Arc::clone(serve));
        let thread = std::thread::spawn(move || {
            // Dropped last: closing the registry's copy is what closes, or resets, the connection.
            let _leaves = Leaving {
                number,
                shared: Arc::clone(&serving),
            };
            serve(Accepted {
                stream,
                number,
                stop: Arc::clone(&serving.stop),
            });
        });
        lock(&shared.threads).push(thread);
    }
}

/// Whether the peer has closed the connection, although its thread may not have noticed yet.
fn has_left(stream: &TcpStream) -> bool {
    let mut byte = [0];
    match rustix::net::recv(stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, received)) => received == 0,
        Err(error) => error != rustix::io::Errno::WOULDBLOCK,
    }
}

/// Takes a connection out of the registry even if its thread panics.
struct Leaving {
    number: usize,
    shared: Arc<Shared>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.shared.open).remove(&self.number);
    }
}
