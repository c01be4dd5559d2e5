//! [`Dialect`]: the state that lives as long as the process: the board, the defaults for new downloads, and a cache of
//! list answers.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::{
    board::Board,
    option::Options,
    service::{Service, Subscription},
    status::Keys,
};

/// Bytes of a session id.
const SESSION_BYTES: usize = 20;

/// Cached answers: front ends repeat the same query, and several may poll at once.
const MAX_ANSWERS: usize = 16;

/// The longest list that is built as one text: ten thousand downloads with all keys. A longer one is streamed.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of all cached answers together.
const MAX_KEPT_BYTES: usize = 2 * MAX_TEXT_BYTES;

/// How a client requested the shutdown of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Connections finish their current request.
    InOrder,
    /// Connections are closed at once.
    AtOnce,
}

/// Writes aria2's session file. The embedding program decides where it is and what it contains.
pub trait SessionFile: fmt::Debug + Send + Sync {
    /// Replaces the file; the error is aria2's text.
    fn save(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Changes which file is written from now on; an empty path ends the saving. A path at which something other than a
    /// session file is must be refused: clients that give it may not replace files.
    fn change_path(&self, path: String) -> BoxFuture<'_, Result<(), String>>;
}

/// The effect of `saveSession`.
#[derive(Debug, Clone)]
pub enum Saving {
    /// Nothing: tasks are durable before a call is answered.
    Needless,
    /// Writes a file.
    File(Arc<dyn SessionFile>),
}

/// How the dialect is served.
#[derive(Debug)]
pub struct Setup {
    /// Options that the program was started with, without secrets; reported by `getGlobalOption`.
    pub started_with: Options,
    /// The effect of `saveSession`.
    pub saving: Saving,
    /// Whether clients may shut the service down.
    pub allows_shutdown: bool,
}

/// The cache key of a list query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) is_waiting: bool,
    pub(crate) offset: i64,
    pub(crate) count: i64,
    pub(crate) keys: Keys,
}

/// Cached list answers, each with the revision of the board. The mutex is held for a look-up only.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<Question, (u64, Bytes)>>);

impl Answers {
    pub(crate) fn get(&self, question: Question, revision: u64) -> Option<Bytes> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, answer) = answers.get(&question)?;
        (*of == revision).then(|| answer.clone())
    }

    pub(crate) fn put(&self, question: Question, revision: u64, answer: &Bytes) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (of, _)| *of == revision);
        let kept: usize = answers.values().map(|(_, answer)| answer.len()).sum();
        if answers.len() < MAX_ANSWERS && kept + answer.len() <= MAX_KEPT_BYTES {
            answers.insert(question, (revision, answer.clone()));
        }
    }
}

/// aria2's interface of one service.
#[derive(Debug)]
pub struct Dialect {
    pub(crate) service: Arc<dyn Service>,
    subscription: Box<dyn Subscription>,
    pub(crate) setup: Setup,
    /// Identifies this start of the service, in hexadecimal.
    pub(crate) session: String,
    /// Defaults for new downloads that do not correspond to a service setting.
    template: watch::Sender<Arc<Options>>,
    /// Written by [`Dialect::catch_up`] and [`Dialect::change_board`] only.
    board: RwLock<Board>,
    noticed: watch::Sender<u64>,
    pub(crate) answers: Answers,
    ending: watch::Sender<Option<Ending>>,
}

impl Dialect {
    /// `epoch` identifies this start of the service. The subscription must begin before the service has tasks.
    pub fn new(epoch: &str, setup: Setup, service: Arc<dyn Service>, subscription: Box<dyn Subscription>) -> Self {
        let digest = Sha256::digest(epoch.as_bytes());
        Self {
            service,
            subscription,
            setup,
            session: HEXLOWER.encode(&digest[..SESSION_BYTES]),
            template: watch::Sender::default(),
            board: RwLock::default(),
            noticed: watch::Sender::new(0),
            answers: Answers::default(),
            ending: watch::Sender::default(),
        }
    }

    /// Applies changes as they arrive; never returns. Readers do so themselves before they read; this publishes
    /// notifications and bounds the queue.
    pub async fn follow(&self) {
        loop {
            self.subscription.changed().await;
            self.catch_up();
        }
    }

    fn catch_up(&self) {
        if !self.subscription.is_behind() {
            return;
        }
        let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
        // Taken under the lock, so that concurrent readers apply changes in order.
        for change in self.subscription.take() {
            board.apply(change);
        }
        let newest = board.newest_notice();
        drop(board);
        self.noticed.send_if_modified(|noticed| {
            // A thread with earlier changes may arrive here later.
            let is_newer = newest > *noticed;
            *noticed = newest.max(*noticed);
            is_newer
        });
    }

    /// The lists, including every change before this call.
    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.catch_up();
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes state of the board beyond the tasks.
    pub(crate) fn change_board<T>(&self, change: impl FnOnce(&mut Board) -> T) -> T {
        self.catch_up();
        change(&mut self.board.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Watches the number of the newest notice.
    pub(crate) fn follow_notices(&self) -> watch::Receiver<u64> {
        self.catch_up();
        self.noticed.subscribe()
    }

    pub(crate) fn template(&self) -> Arc<Options> {
        Arc::clone(&self.template.borrow())
    }

    /// Changes the defaults, unless they would have more than `most` bytes; whether it did.
    pub(crate) fn change_template(&self, options: &Options, most: usize) -> bool {
        self.template.send_if_modified(|template| {
            let changed = options.clone().over(template);
            let fits = changed.bytes() <= most;
            if fits {
                *template = Arc::new(changed);
            }
            fits
        })
    }

    pub(crate) fn request_shutdown(&self, is_forced: bool) {
        let ending = if is_forced { Ending::AtOnce } else { Ending::InOrder };
        self.ending.send_replace(Some(ending));
    }

    /// Resolves once a client requested a shutdown.
    pub async fn shutdown_requested(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let asked = ending.wait_for(Option::is_some).await.map(|ending| *ending);
        match asked {
            Ok(Some(ending)) => ending,
            // Unreachable: `self` owns the sender.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
