//! The logins in progress, and the subscribers to successful ones. `call::login` drives them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use accounts::{Account, Draft, Effect, Input, Login, Refusal, View};
use market::Identity;
use plugin_package::manifest::{LoginMode, LoginSlot};
use tokio::{
    sync::{Mutex as AsyncMutex, broadcast},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::CallError,
    policy::grant::CallTarget,
    runtime::{Guest, LoginSession},
};

/// Logins that can go on at once: each keeps an instance of its plugin.
const MAX_SESSIONS: usize = 8;

/// Those of one plugin: one in a page that was closed, and one in the page that is open. Another one ends the oldest.
const MAX_OF_PLUGIN: usize = 2;

/// How long the end of a login can still be read.
const KEPT: Duration = Duration::from_mins(5);

/// The most ended logins that are kept.
const MAX_ENDED: usize = 32;

/// The most accounts whose last calls are remembered: more than plugins have slots. Without them a call that has failed
/// before a renewal renews once more.
const MAX_ASKED: usize = 256;

/// How many accounts a slow subscriber may be behind; after that it is told that it missed some.
const MAX_TOLD: usize = 64;

/// A login that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    pub plugin: Identity,
    pub slot: String,
}

/// All logins. Ended ones are kept for a while, so that clients learn how they ended.
pub(crate) struct Logins {
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    told: broadcast::Sender<LoggedIn>,
    asked: Mutex<BTreeMap<(Identity, String), Asked>>,
}

/// What the site of an account was asked last about its session. The lock serialises that: a site that gives out a new
/// refresh token each time takes a second use of the old one for theft.
pub(crate) type Asked = Arc<AsyncMutex<LastAsked>>;

/// The result that waiting callers share instead of asking once more.
#[derive(Debug, Default)]
pub(crate) struct LastAsked {
    pub(crate) renewal: Option<Renewal>,
    pub(crate) check: Option<Check>,
}

/// A renewal that has ended.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) ended: Instant,
    /// The account as it was before.
    pub(crate) account: Account,
    /// Whether calls are worth repeating, or why the site could not be asked.
    pub(crate) outcome: Result<bool, CallError>,
}

/// A check that has ended.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) ended: Instant,
    pub(crate) is_accepted: bool,
}

impl LastAsked {
    fn ended(&self) -> Option<Instant> {
        let check = self.check.as_ref().map(|check| check.ended);
        check.max(self.renewal.as_ref().map(|renewal| renewal.ended))
    }
}

/// One login.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) plugin: Identity,
    pub(crate) slot: LoginSlot,
    pub(crate) mode: LoginMode,
    pub(crate) draft: Draft,
    pub(crate) target: CallTarget,
    /// The code that drives it: another version does not go on with it.
    pub(crate) code: Arc<dyn Guest>,
    /// Its instance, until it ends.
    pub(crate) guest: AsyncMutex<Option<Box<dyn LoginSession>>>,
    /// Cancelled at its end.
    pub(crate) ended: CancellationToken,
    machine: Mutex<Login>,
    begun: Instant,
}

/// No other login can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Default for Logins {
    fn default() -> Self {
        Self {
            sessions: Mutex::default(),
            told: broadcast::Sender::new(MAX_TOLD),
            asked: Mutex::default(),
        }
    }
}

impl Logins {
    /// Adds a login. If its plugin has as many as it may, its oldest is cancelled.
    pub(crate) fn add(&self, session: Session) -> Result<Arc<Session>, TooMany> {
        let session = Arc::new(session);
        let mut sessions = self.sessions();
        let is_open = |other: &&Arc<Session>| !other.ended.is_cancelled();
        let mut own: Vec<_> = sessions
            .values()
            .filter(is_open)
            .filter(|other| other.plugin == session.plugin)
            .cloned()
            .collect();
        own.sort_by_key(|other| other.begun);
        let surplus = (own.len() + 1).saturating_sub(MAX_OF_PLUGIN);
        own.iter().take(surplus).for_each(|oldest| oldest.cancel());
        if sessions.values().filter(is_open).count() >= MAX_SESSIONS {
            return Err(TooMany);
        }
        let mut over: Vec<_> = sessions.values().filter(|other| !is_open(other)).cloned().collect();
        over.sort_by_key(|other| std::cmp::Reverse(other.begun));
        for other in over.iter().skip(MAX_ENDED) {
            sessions.remove(&other.id);
        }
        sessions.insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    pub(crate) fn get(&self, plugin: &Identity, id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions();
        sessions.get(id).filter(|session| session.plugin == *plugin).cloned()
    }

    /// Cancels the logins of a plugin that is not installed any more.
    pub(crate) fn forget(&self, plugin: &Identity) {
        let sessions = self.sessions();
        let own = sessions.values().filter(|session| session.plugin == *plugin);
        own.for_each(|session| session.cancel());
    }

    /// Waits until a login is over, ends it if it takes too long, and forgets it some time later.
    pub(crate) async fn watch(&self, session: &Session) {
        loop {
            let Some(expires_at) = session.machine().expires_at() else {
                session.ended.cancelled().await;
                break;
            };
            let expires = session.begun + Duration::from_millis(expires_at);
            tokio::select! {
                () = tokio::time::sleep_until(expires) => drop(session.apply(Input::Tick)),
                () = session.ended.cancelled() => break,
            }
        }
        session.guest.lock().await.take();
        tokio::time::sleep(KEPT).await;
        self.sessions().remove(&session.id);
    }

    /// What the site of an account was asked.
    pub(crate) fn asked(&self, plugin: &Identity, slot: &str) -> Asked {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (plugin.clone(), slot.to_owned());
        if asked.len() >= MAX_ASKED && !asked.contains_key(&key) {
            // What is in use has another owner. Of the others the one goes that was asked longest ago, or never.
            let idle = asked.iter().filter(|(_, known)| Arc::strong_count(known) == 1);
            let oldest = idle.min_by_key(|(_, known)| known.try_lock().map_or(None, |last| last.ended()));
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| asked.remove(&key));
        }
        Arc::clone(asked.entry(key).or_default())
    }

    /// Subscribes to logins that succeed.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<LoggedIn> {
        self.told.subscribe()
    }

    /// Tells subscribers that an account can be used.
    pub(crate) fn tell(&self, plugin: &Identity, slot: &str) {
        let logged_in = LoggedIn {
            plugin: plugin.clone(),
            slot: slot.to_owned(),
        };
        let _nobody_listens = self.told.send(logged_in);
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a login is for.
pub(crate) struct Beginning {
    pub(crate) plugin: Identity,
    pub(crate) slot: LoginSlot,
    pub(crate) mode: LoginMode,
    pub(crate) target: CallTarget,
    pub(crate) code: Arc<dyn Guest>,
}

impl Session {
    /// A login that begins now, and its first effects.
    pub(crate) fn begin(beginning: Beginning, draft: Draft, guest: Box<dyn LoginSession>) -> (Self, Vec<Effect>) {
        let Beginning {
            plugin,
            slot,
            mode,
            target,
            code,
        } = beginning;
        let (machine, effects) = Login::begin(mode, 0);
        let session = Self {
            // Not to be guessed: who has it sees the login.
            id: uuid::Uuid::new_v4().simple().to_string(),
            plugin,
            slot,
            mode,
            draft,
            target,
            code,
            guest: AsyncMutex::new(Some(guest)),
            ended: CancellationToken::new(),
            machine: Mutex::new(machine),
            begun: Instant::now(),
        };
        (session, effects)
    }

    /// Applies an input; the caller performs the effects.
    pub(crate) fn apply(&self, input: Input) -> Result<Vec<Effect>, Refusal> {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut machine = self.machine();
        let effects = machine.apply(input, now)?;
        if machine.ended().is_some() {
            // Here and not with the effects, which are not performed for a login that expires or is cancelled by another one.
            self.draft.close();
            self.ended.cancel();
        }
        Ok(effects)
    }

    /// Ends it. Its instance goes when its step is over, which this interrupts.
    pub(crate) fn cancel(&self) {
        let _effects = self.apply(Input::Cancel);
    }

    pub(crate) fn view(&self) -> View {
        self.machine().view()
    }

    fn machine(&self) -> MutexGuard<'_, Login> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
