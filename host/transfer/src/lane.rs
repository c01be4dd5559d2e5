//! Lanes: threads on which sockets are read and files are written.
//!
//! A lane has its own reactor and may block on the disk. That is how a slow disk slows the sockets that feed it (no
//! buffers pile up in between), without ever blocking the threads that serve clients. Each file system has its own
//! lanes, so that one that hangs blocks only its own transfers.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking},
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{mpsc, oneshot},
    task::{spawn_blocking, spawn_local},
};

use tokio_util::task::AbortOnDropHandle;

use crate::os;

/// The most file systems that get lanes of their own; any further one shares those of "unknown".
const MAX_DEVICES: usize = 32;

/// Threads per file system. More than this many transfers share them; a transfer itself runs on one.
const MAX_LANES: usize = 4;

/// How long the file system of a directory is cached. A transfer on the lanes of another file system is no error; it is
/// merely blocked when that one is.
const DEVICE_AGE: Duration = Duration::from_secs(5);

/// Where transfers run. Clones share their lanes.
#[derive(Debug, Clone)]
pub struct Lanes(Place);

#[derive(Debug, Clone)]
enum Place {
    Here,
    Threads(Arc<Pools>),
}

/// The lanes of all file systems, created on first use.
struct Pools {
    per_device: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_device: HashMap<Option<u64>, Vec<Lane>>,
    /// Cache of the last directory's file system: consecutive files often go to one directory.
    last: Option<(PathBuf, Option<u64>, Instant)>,
}

/// Spawns a transfer on the thread that calls it.
type Begin = Box<dyn FnOnce() + Send>;

/// One thread; it ends when this is dropped.
#[derive(Clone)]
struct Lane {
    begin: mpsc::UnboundedSender<Begin>,
    /// Cloned by each of its transfers, so that it counts them.
    transfers: Arc<()>,
}

/// Why a lane returned no result.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The work panicked; the panic itself has been reported where it happened.
    #[error("the transfer stopped through a defect")]
    Panicked,
    /// There is no lane, and none can be started.
    #[error("cannot start a thread for transfers: {0}")]
    NoThread(#[from] io::Error),
}

impl Lane {
    /// Starts the thread, and waits until its reactor runs.
    fn start() -> io::Result<Self> {
        let (begin, mut begun) = mpsc::unbounded_channel::<Begin>();
        let (ready, started) = blocking::channel();
        let serve = move || {
            let runtime = match Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default())
            {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _is_awaited = ready.send(Ok(()));
            runtime.block_on(async {
                while let Some(begin) = begun.recv().await {
                    begin();
                }
            });
        };
        thread::Builder::new().name("lane".to_owned()).spawn(serve)?;
        started.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        Ok(Self {
            begin,
            transfers: Arc::default(),
        })
    }

    fn load(&self) -> usize {
        Arc::strong_count(&self.transfers)
    }
}

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pools")
            .field("per_device", &self.per_device)
            .finish_non_exhaustive()
    }
}

impl Default for Lanes {
    /// As many lanes per file system as the machine has processors, up to [`MAX_LANES`].
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::threads(processors.min(MAX_LANES))
    }
}

impl Lanes {
    /// No threads: transfers run on the one that asks for them, which must run a [`tokio::runtime::LocalRuntime`] and
    /// serve no clients. That saves the wakeups between threads, most of the cost of a small file.
    pub fn here() -> Self {
        Self(Place::Here)
    }

    fn threads(per_device: usize) -> Self {
        Self(Place::Threads(Arc::new(Pools {
            per_device,
            known: Mutex::default(),
        })))
    }

    /// Runs `work` on the least busy lane of the file system of `directory`, which need not exist yet. Dropping the
    /// returned future drops the work at its next await.
    pub async fn run<F, Fut>(&self, directory: &Path, work: F) -> Result<Fut::Output, LaneError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let pools = match &self.0 {
            Place::Here => {
                let working = AbortOnDropHandle::new(spawn_local(work()));
                return working.await.map_err(|_| LaneError::Panicked);
            }
            Place::Threads(pools) => pools,
        };
        let device = pools.device(directory).await;
        let Lane { begin, transfers } = pools.lane(device)?;
        let (mut sender, output) = oneshot::channel();
        let spawn = move || {
            spawn_local(async move {
                let ended = tokio::select! {
                    biased;
                    () = sender.closed() => None,
                    output = work() => Some(output),
                };
                drop(transfers);
                ended.map(|output| sender.send(output));
            });
        };
        // If the thread has ended, `send` drops the sender that `output` waits for.
        drop(begin.send(Box::new(spawn)));
        output.await.map_err(|_| LaneError::Panicked)
    }
}

impl Pools {
    /// The file system of a directory, or of its nearest parent that exists. A disk that hangs does not answer even this,
    /// so it is asked neither under the lock nor on a thread that serves clients.
    async fn device(&self, directory: &Path) -> Option<u64> {
        if let Some((last, device, at)) = &self.lock().last
            && last == directory
            && at.elapsed() < DEVICE_AGE
        {
            return *device;
        }
        let directory = directory.to_owned();
        let looking = spawn_blocking(move || (directory.ancestors().find_map(os::device), directory));
        let (device, directory) = looking.await.ok()?;
        self.lock().last = Some((directory, device, Instant::now()));
        device
    }

    fn lane(&self, device: Option<u64>) -> io::Result<Lane> {
        let mut pools = self.lock();
        let key = if pools.by_device.contains_key(&device) || pools.by_device.len() < MAX_DEVICES {
            device
        } else {
            None
        };
        let lanes = pools.by_device.entry(key).or_default();
        let least = lanes.iter().min_by_key(|lane| lane.load());
        match least {
            Some(lane) if lane.load() == 1 || lanes.len() == self.per_device => Ok(lane.clone()),
            least => match (Lane::start(), least) {
                (Ok(new), _) => {
                    lanes.push(new.clone());
                    Ok(new)
                }
                // Fewer lanes are slower, not wrong.
                (Err(_), Some(lane)) => Ok(lane.clone()),
                (Err(error), None) => Err(error),
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, rc::Rc};

    use super::*;

    #[tokio::test]
    async fn work_need_not_be_send_and_its_result_comes_back() {
        let lanes = Lanes::default();
        let answer = lanes.run(Path::new("/nowhere/yet"), || async {
            let local = Rc::new(41);
            tokio::task::yield_now().await;
            *local + 1
        });
        assert_eq!(answer.await.unwrap(), 42);
    }

    #[tokio::test]
    async fn a_panic_is_told_and_the_lane_goes_on() {
        let lanes = Lanes::threads(1);
        let panicking = lanes.run(Path::new("/"), || async { panic!("as planned") });
        assert!(matches!(panicking.await, Err::<(), _>(LaneError::Panicked)));
        assert_eq!(lanes.run(Path::new("/"), || async { 1 }).await.unwrap(), 1);
    }

    #[test]
    fn work_here_runs_on_the_calling_thread_and_a_panic_is_told() {
        let runtime = Builder::new_current_thread()
            .build_local(LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let lanes = Lanes::here();
            let here = lanes.run(Path::new("/"), || async { thread::current().id() });
            assert_eq!(here.await.unwrap(), thread::current().id());
            let panicking = lanes.run(Path::new("/"), || async { panic!("as planned") });
            assert!(matches!(panicking.await, Err::<(), _>(LaneError::Panicked)));
        });
    }

    #[tokio::test]
    async fn dropping_the_future_drops_the_work_on_its_lane() {
        struct ReportDrop(Option<oneshot::Sender<thread::ThreadId>>);
        impl Drop for ReportDrop {
            fn drop(&mut self) {
                let _ = self.0.take().unwrap().send(thread::current().id());
            }
        }
        let lanes = Lanes::threads(1);
        let (begun, has_begun) = oneshot::channel();
        let (sender, dropped) = oneshot::channel();
        let running = lanes.run(Path::new("/"), move || async move {
            let _report = ReportDrop(Some(sender));
            begun.send(()).unwrap();
            pending::<()>().await;
        });
        tokio::select! {
            _ = running => unreachable!("it never ends"),
            begun = has_begun => begun.unwrap(),
        }
        assert_ne!(dropped.await.unwrap(), thread::current().id());
    }

    #[tokio::test]
    async fn a_lane_is_started_when_all_others_are_busy_and_there_are_fewer_than_allowed() {
        let lanes = Lanes::threads(2);
        let thread = || lanes.run(Path::new("/"), || async { thread::current().id() });
        let first = thread().await.unwrap();
        assert_eq!(thread().await.unwrap(), first, "an idle lane is used again");
        let busy = || lanes.run(Path::new("/"), pending::<()>);
        let others = async {
            let second = thread().await.unwrap();
            assert_ne!(second, first);
            let beside_both = async { [first, second].contains(&thread().await.unwrap()) };
            tokio::select! {
                biased;
                _ = busy() => unreachable!("it never ends"),
                is_one_of_them = beside_both => assert!(is_one_of_them),
            }
        };
        tokio::select! {
            biased;
            _ = busy() => unreachable!("it never ends"),
            () = others => {}
        }
    }
}
