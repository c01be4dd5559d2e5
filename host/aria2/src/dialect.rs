//! The state of the dialect, for as long as the process lives: the board, the options for downloads to come, and a cache of
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

/// Bytes of a session's name.
const SESSION_BYTES: usize = 20;

/// Answers that are kept: front ends ask the same question again and again, some of them at once.
const MAX_ANSWERS: usize = 16;

/// The longest list that is held as text: ten thousand downloads with all keys. A longer one is written while it is sent.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// What all answers that are kept have together.
const MAX_KEPT_BYTES: usize = 2 * MAX_TEXT_BYTES;

/// How a client wants the service to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Connections finish what they are at.
    InOrder,
    /// At once.
    AtOnce,
}

/// Writes aria2's session file. Where that is and what is in it, is the program's business.
pub trait SessionFile: fmt::Debug + Send + Sync {
    /// Writes it anew; fails with aria2's words.
    fn save(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// What `saveSession` does.
#[derive(Debug, Clone)]
pub enum Saving {
    /// Nothing: everything is on the disk when it is answered.
    Needless,
    /// Writes a file.
    File(Arc<dyn SessionFile>),
    /// It is refused: the program was started without a file for it.
    Refused,
}

/// How the dialect is served.
#[derive(Debug)]
pub struct Setup {
    /// Options that the program was started with, reported by `getGlobalOption`. Without secrets.
    pub started_with: Options,
    /// What `saveSession` does.
    pub saving: Saving,
    /// Whether clients may end the service.
    pub allows_shutdown: bool,
}

/// A list that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) is_waiting: bool,
    pub(crate) offset: i64,
    pub(crate) count: i64,
    pub(crate) keys: Keys,
}

/// The answers to lists, each with the revision of the board that it is of. Locked for a look-up only.
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

/// The dialect of one service.
#[derive(Debug)]
pub struct Dialect {
    pub(crate) service: Arc<dyn Service>,
    subscription: Box<dyn Subscription>,
    pub(crate) setup: Setup,
    /// Names this start of the service, in hexadecimal.
    pub(crate) session: String,
    /// Options for downloads to come that no setting stands for.
    template: watch::Sender<Arc<Options>>,
    /// Written only by [`Dialect::catch_up`], and by who has removed downloads forgotten.
    board: RwLock<Board>,
    /// The number of the newest notice.
    noticed: watch::Sender<u64>,
    pub(crate) answers: Answers,
    ending: watch::Sender<Option<Ending>>,
}

impl Dialect {
    /// Begins a session; `epoch` names this start of the service. The subscription begins before the service has tasks.
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

    /// Takes in changes as they come, for ever. Readers do so themselves before they look; this is for notices, and so
    /// that not too many changes wait.
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
        // Taken under the lock, so that no two readers bring changes in out of order.
        for change in self.subscription.take() {
            board.apply(change);
        }
        let newest = board.newest_notice();
        drop(board);
        self.noticed.send_if_modified(|noticed| {
            // Who took earlier changes may come here later.
            let is_newer = newest > *noticed;
            *noticed = newest.max(*noticed);
            is_newer
        });
    }

    /// The orders, with everything in them that was done before this was called.
    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.catch_up();
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is remembered beyond the tasks.
    pub(crate) fn change_board<T>(&self, change: impl FnOnce(&mut Board) -> T) -> T {
        self.catch_up();
        change(&mut self.board.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the number of the newest notice.
    pub(crate) fn follow_notices(&self) -> watch::Receiver<u64> {
        self.catch_up();
        self.noticed.subscribe()
    }

    pub(crate) fn template(&self) -> Arc<Options> {
        Arc::clone(&self.template.borrow())
    }

    pub(crate) fn change_template(&self, options: Options) {
        self.template
            .send_modify(|template| *template = Arc::new(options.over(template)));
    }

    pub(crate) fn ask_to_end(&self, is_forced: bool) {
        let ending = if is_forced { Ending::AtOnce } else { Ending::InOrder };
        self.ending.send_replace(Some(ending));
    }

    /// Resolves once a client asked that the service ends.
    pub async fn asked_to_end(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let asked = ending.wait_for(Option::is_some).await.map(|ending| *ending);
        match asked {
            Ok(Some(ending)) => ending,
            // The sender is this very value.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
