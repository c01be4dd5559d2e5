//! The store: a database whose writes return only once they are on disk.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Transaction};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{
    migration::{MigrationError, MigrationSet, OWN, migrate},
    writer::{Order, Work, execute, serve},
};

/// Connections for reading. Reads are rare (start-up, history pages); with two, a short one does not wait for a long
/// one.
const READERS: usize = 2;

/// Queued writes; further callers wait to enqueue theirs.
const WRITE_BACKLOG: usize = 1024;

/// How long a connection waits for another process's lock, such as a backup's.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Marks our databases ("Svc1"), so that another program's file is refused.
const APPLICATION_ID: i32 = 0x5376_6331;

/// Prepared statements kept per connection; more than all crates with tables use together.
const STATEMENT_CACHE: usize = 128;

/// A database. Clones share it; it stays open until [`Store::close`] or until the last clone is gone.
#[derive(Debug, Clone)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `None` once closed.
    orders: Mutex<Option<Orders>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Connections not in use, behind [`Shared::reader_turns`]. `None` in memory, where one connection does everything.
    readers: Option<Arc<Mutex<Vec<Connection>>>>,
    reader_turns: Arc<Semaphore>,
}

/// How orders are executed.
#[derive(Debug)]
enum Orders {
    /// On the writer's thread, because a commit waits for the disk.
    Thread(mpsc::Sender<Order>),
    /// By the caller: in memory there is nothing to wait for, and a thread would only cost wake-ups.
    InPlace(Connection),
}

/// Why a database does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It was written by a newer version of this program.
    #[error("the database {} is newer than this program ({detail}); use the newer program", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Which namespaces, found and known version.
        detail: String,
    },
    /// It is a database of another program.
    #[error("{} is a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened or is damaged.
    #[error("cannot open the database {}", path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: rusqlite::Error,
    },
    /// The file cannot be created or opened.
    #[error("cannot open the database {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The writer's thread does not start.
    #[error("cannot start the database's thread")]
    Thread(#[source] std::io::Error),
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The closure failed; only its own changes were undone.
    #[error("the database refused a change")]
    Refused(#[source] rusqlite::Error),
    /// The closure panicked.
    #[error("a change to the database panicked")]
    Panicked,
    /// The commit failed, for instance because the disk is full; nothing of it is saved.
    #[error("the database could not be saved: {0}")]
    Commit(String),
    /// The store is closed.
    #[error("the database is closed")]
    Closed,
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The closure failed.
    #[error("the database could not be read")]
    Sql(#[source] rusqlite::Error),
    /// The closure panicked.
    #[error("a read of the database panicked")]
    Panicked,
    /// The store is closed.
    #[error("the database is closed")]
    Closed,
}

/// An enqueued write. Await it for the commit; dropping it does not undo the write.
#[derive(Debug)]
pub struct Committed<T>(oneshot::Receiver<Result<T, WriteError>>);

impl<T> Committed<T> {
    /// Resolves once the transaction that holds the write is on disk.
    pub async fn durable(self) -> Result<T, WriteError> {
        self.0.await.unwrap_or(Err(WriteError::Closed))
    }
}

impl Store {
    /// Opens the database at `path`, creates it if missing, and migrates it. Blocks; call it at start-up.
    pub fn open(path: impl Into<PathBuf>, migrations: &[MigrationSet]) -> Result<Self, OpenError> {
        let path = path.into();
        private_files::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| OpenError::Io {
                path: path.clone(),
                source,
            })?;
        let sql = |source| OpenError::Sql {
            path: path.clone(),
            source,
        };
        let connection = connect(&path).map_err(sql)?;
        let connection = prepare(connection, &path, migrations)?;
        let readers = (0..READERS)
            .map(|_| connect_reader(&path))
            .collect::<Result<Vec<_>, _>>()
            .map_err(sql)?;
        Self::start(connection, readers)
    }

    /// A database that lives as long as the store, for tests and for commands that save nothing.
    pub fn in_memory(migrations: &[MigrationSet]) -> Result<Self, OpenError> {
        let path = Path::new(":memory:");
        let connection = Connection::open_in_memory().map_err(|source| OpenError::Sql {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::new(
            Orders::InPlace(prepare(connection, path, migrations)?),
            None,
            None,
        ))
    }

    fn start(connection: Connection, readers: Vec<Connection>) -> Result<Self, OpenError> {
        let (sender, receiver) = mpsc::channel(WRITE_BACKLOG);
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || serve(connection, receiver))
            .map_err(OpenError::Thread)?;
        Ok(Self::new(Orders::Thread(sender), Some(writer), Some(readers)))
    }

    fn new(orders: Orders, writer: Option<JoinHandle<()>>, readers: Option<Vec<Connection>>) -> Self {
        Self(Arc::new(Shared {
            orders: Mutex::new(Some(orders)),
            writer: Mutex::new(writer),
            readers: readers.map(|readers| Arc::new(Mutex::new(readers))),
            reader_turns: Arc::new(Semaphore::new(READERS)),
        }))
    }

    /// Runs `change` in a transaction and resolves once it is on disk. Writes run in the order of the calls; queued
    /// ones share a commit. A failed change is rolled back alone.
    pub async fn write<T, F>(&self, change: F) -> Result<T, WriteError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.enqueue(change).await?.durable().await
    }

    /// As [`Store::write`], in two steps: resolves once the order of the write is fixed.
    pub async fn enqueue<T, F>(&self, change: F) -> Result<Committed<T>, WriteError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, receiver) = oneshot::channel();
        let work = Box::new(Change {
            run: Some(change),
            result: None,
            reply,
        });
        self.send(Order::Write(work)).await.map_err(|Gone| WriteError::Closed)?;
        Ok(Committed(receiver))
    }

    /// Runs `query` on a reader, off the async threads. It sees every write that has returned before.
    pub async fn read<T, F>(&self, query: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, receiver) = oneshot::channel();
        let answer = move |connection: &Connection| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| query(connection)));
            let _nobody_waits =
                reply.send(result.map_or(Err(ReadError::Panicked), |result| result.map_err(ReadError::Sql)));
        };
        let Some(readers) = self.0.readers.clone() else {
            self.send(Order::Read(Box::new(answer)))
                .await
                .map_err(|Gone| ReadError::Closed)?;
            return receiver.await.unwrap_or(Err(ReadError::Closed));
        };
        let turn = Arc::clone(&self.0.reader_turns)
            .acquire_owned()
            .await
            .map_err(|_| ReadError::Closed)?;
        let reading = tokio::task::spawn_blocking(move || {
            let connection = lock(&readers).pop();
            if let Some(connection) = connection {
                answer(&connection);
                lock(&readers).push(connection);
            }
            drop(turn);
        });
        reading.await.map_err(|_| ReadError::Panicked)?;
        receiver.await.unwrap_or(Err(ReadError::Closed))
    }

    /// Runs `work` on the writer's connection between two transactions of other writes: what was enqueued before is on the
    /// disk, and nothing else is written meanwhile. `work` commits what it changes itself, and is not interrupted if
    /// nobody waits for it.
    pub(crate) async fn exclusively<T, F>(&self, work: F) -> Result<T, WriteError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> T + Send + 'static,
    {
        let (reply, receiver) = oneshot::channel();
        let order = move |connection: &mut Connection| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(connection)));
            let _nobody_waits = reply.send(result.map_err(|_| WriteError::Panicked));
        };
        let sent = self.send(Order::Alone(Box::new(order))).await;
        sent.map_err(|Gone| WriteError::Closed)?;
        receiver.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Resolves once all reads that have begun are finished.
    pub(crate) async fn current_reads(&self) {
        let all = u32::try_from(READERS).unwrap_or(u32::MAX);
        // A closed store has none.
        drop(self.0.reader_turns.acquire_many(all).await);
    }

    /// Waits for all enqueued writes, then closes the database. Later calls return `Closed`.
    pub async fn close(&self) {
        let orders = lock(&self.0.orders).take();
        let turns = u32::try_from(READERS).unwrap_or(u32::MAX);
        let idle = self.0.reader_turns.acquire_many(turns).await;
        self.0.reader_turns.close();
        // Close the readers first: the last connection checkpoints and deletes the log, which only the writer may do.
        if let Some(readers) = &self.0.readers {
            lock(readers).clear();
        }
        drop((idle, orders));
        let writer = lock(&self.0.writer).take();
        if let Some(writer) = writer {
            let _panicked = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }

    async fn send(&self, order: Order) -> Result<(), Gone> {
        let sender = match &mut *lock(&self.0.orders) {
            None => return Err(Gone),
            Some(Orders::Thread(sender)) => sender.clone(),
            Some(Orders::InPlace(connection)) => {
                execute(connection, order);
                return Ok(());
            }
        };
        sender.send(order).await.map_err(|_| Gone)
    }
}

/// The writer has ended.
struct Gone;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Readers are not blocked by the writer.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The write-ahead log is synced with every commit: an acknowledged write survives a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    Ok(connection)
}

fn prepare(mut connection: Connection, path: &Path, migrations: &[MigrationSet]) -> Result<Connection, OpenError> {
    let sql = |source| OpenError::Sql {
        path: path.to_owned(),
        source,
    };
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.pragma_update(None, "foreign_keys", true).map_err(sql)?;
    let id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(sql)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sql)?;
    match id {
        APPLICATION_ID => {}
        0 if tables == 0 => connection
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(sql)?,
        _ => return Err(OpenError::Foreign { path: path.to_owned() }),
    }
    migrate(&mut connection, &[&[OWN], migrations].concat()).map_err(|error| match error {
        MigrationError::Newer(detail) => OpenError::Newer {
            path: path.to_owned(),
            detail,
        },
        MigrationError::Sql(source) => sql(source),
    })?;
    Ok(connection)
}

/// A queued write.
struct Change<T, F> {
    run: Option<F>,
    result: Option<Result<T, rusqlite::Error>>,
    reply: oneshot::Sender<Result<T, WriteError>>,
}

impl<T, F> Work for Change<T, F>
where
    T: Send,
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, transaction: &Transaction<'_>) -> Result<(), ()> {
        let change = self.run.take().ok_or(())?;
        let result = change(transaction);
        let kept = if result.is_ok() { Ok(()) } else { Err(()) };
        self.result = Some(result);
        kept
    }

    fn answer(self: Box<Self>, commit: Result<(), &str>) {
        let answer = match (self.result, commit) {
            (Some(Err(error)), _) => Err(WriteError::Refused(error)),
            (_, Err(error)) => Err(WriteError::Commit(error.to_owned())),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(WriteError::Panicked),
        };
        let _nobody_waits = self.reply.send(answer);
    }
}

#[cfg(test)]
mod tests;
