//! The shared state of all handlers.

use std::{ops::Deref, sync::Arc};

use admission::budget::Budget;
use aria2::Dialect;
use axum::extract::FromRef;
use link::Link;
use tokio::sync::mpsc;

use crate::{
    access::key::SetupCode,
    capture::pending::Pending,
    daemon_link::{daemon::Daemon, questions::Subscribers},
    gate::Gate,
    opener::Opener,
    settings::{config::RestartRequest, switches::Listening},
    shutdown::Shutdown,
};

/// A reference, because every request holds a clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<State>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) gate: Arc<Gate>,
    pub(crate) daemon: Daemon,
    /// Of questions of tasks.
    pub(crate) subscribers: Subscribers,
    pub(crate) pending: Arc<Pending>,
    /// None for a drop-in.
    pub(crate) link: Option<Link>,
    pub(crate) budget: Budget,
    pub(crate) aria2: Arc<Dialect>,
    pub(crate) setup_code: Option<SetupCode>,
    pub(crate) listening: Listening,
    pub(crate) version: Arc<str>,
    pub(crate) language: Option<Arc<str>>,
    pub(crate) shutdown: Shutdown,
    pub(crate) opener: Opener,
    pub(crate) restarts: Option<mpsc::Sender<RestartRequest>>,
}

impl From<State> for App {
    fn from(state: State) -> Self {
        Self(Arc::new(state))
    }
}

impl Deref for App {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// For extractors of bodies.
impl FromRef<App> for Budget {
    fn from_ref(app: &App) -> Self {
        app.budget.clone()
    }
}
