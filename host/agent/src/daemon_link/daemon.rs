//! The agent's handle on its daemon: keeps a session alive and forwards the calls of handlers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use protocol::{Method, client::CallError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connect::Connect,
    error::SessionError,
    handshake::open,
    session::{self, PendingCall, Session},
};
use crate::{projection::hub::Hub, shutdown::Shutdown};

/// The first pause before reconnecting. A killed daemon is restarted within a second.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Pauses double up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A session that lasted this long resets the back-off.
const GOOD_SESSION: Duration = Duration::from_secs(1);

/// How long after the start of the agent a call waits for the first session. Within it the daemon starts, or is refused.
const START_WAIT: Duration = Duration::from_secs(5);

/// How long the daemon may take to begin an HTTP response.
const HTTP_TIME: Duration = Duration::from_secs(30);

/// The session, or why there is none (for the user).
pub(super) type SessionState = Result<Session, Arc<str>>;

/// Usable whether or not there is a session. Clones share it.
#[derive(Clone)]
pub(crate) struct Daemon {
    connect: Arc<dyn Connect>,
    pub(crate) hub: Arc<Hub>,
    session: watch::Receiver<SessionState>,
    tracker: TaskTracker,
    began: Instant,
    /// Cancelled at the first session, and at the end.
    started: CancellationToken,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").finish_non_exhaustive()
    }
}

impl Daemon {
    /// Connects, and reconnects until `release_daemon`.
    pub(crate) fn start(connect: Arc<dyn Connect>, hub: Arc<Hub>, version: String, shutdown: &Shutdown) -> Self {
        let (session_tx, session) = watch::channel(Err("the daemon is still being looked for".into()));
        let daemon = Self {
            connect,
            hub,
            session,
            tracker: shutdown.tracker.clone(),
            began: Instant::now(),
            started: CancellationToken::new(),
        };
        let held = daemon.clone();
        let release = shutdown.release_daemon.clone();
        shutdown.tracker.spawn(async move {
            release.run_until_cancelled(held.supervise(&version, &session_tx)).await;
            drop(session_tx.send_replace(Err("app shutting down".into())));
            held.started.cancel();
            held.hub.disconnected();
        });
        daemon
    }

    /// Its end is published before the projection counts as stale.
    fn session(&self) -> Result<Session, CallError> {
        self.session.borrow().clone().map_err(CallError::NoDaemon)
    }

    /// Its sessions as they begin and end.
    pub(super) fn sessions(&self) -> watch::Receiver<SessionState> {
        self.session.clone()
    }

    /// The projection, if it is current. Right after the start, waits until it is.
    pub(crate) async fn known(&self) -> Result<&Hub, CallError> {
        self.wait_for_start().await;
        self.current()
    }

    /// The projection, if it is current by now.
    pub(crate) fn current(&self) -> Result<&Hub, CallError> {
        match &*self.session.borrow() {
            Ok(_) => Ok(&self.hub),
            Err(why) => Err(CallError::NoDaemon(Arc::clone(why))),
        }
    }

    /// Resolves once there is a session.
    pub(crate) async fn connected(&self) {
        let mut session = self.session.clone();
        if session.wait_for(Result::is_ok).await.is_err() {
            // Reconnecting has stopped, so there will be no session.
            std::future::pending::<()>().await;
        }
    }

    /// Resolves once there was a session, or [`START_WAIT`] after the start.
    pub(crate) async fn wait_for_start(&self) {
        let _late = timeout_at(self.began + START_WAIT, self.started.cancelled()).await;
    }

    /// Sends a call; calls reach the daemon in the order of these. Right after the start, waits for the daemon.
    pub(crate) async fn begin<P: Serialize + Sync>(
        &self,
        method: Method,
        params: Option<&P>,
    ) -> Result<PendingCall, CallError> {
        self.wait_for_start().await;
        self.session()?.begin(method, params).await
    }

    /// Calls, waits, and then for the projection: a read afterwards sees the effect.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CallError> {
        let result = self.call_raw(method, params).await?;
        serde_json::from_str(result.get()).map_err(|_| CallError::Unreadable)
    }

    /// Like [`Self::call`]; the result stays text.
    pub(crate) async fn call_raw(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<Box<RawValue>, CallError> {
        let begun = self.begin(method, Some(params)).await?;
        begun.finish(&self.hub).await
    }

    /// Sends an HTTP request on its own connection, with the bearer token of the current session.
    pub(crate) async fn fetch(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Incoming>, CallError> {
        self.wait_for_start().await;
        let session = self.session()?;
        let bearer = HeaderValue::try_from(format!("Bearer {}", session.bearer)).map_err(|_| CallError::Unreadable)?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1"));
        headers.insert(header::AUTHORIZATION, bearer);
        let request = request.map(Full::new);
        let answer = async {
            let stream = self
                .connect
                .dial(&session.found)
                .await
                .map_err(|_| CallError::Unavailable)?;
            let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, connection) = shaken.map_err(|_| CallError::Unavailable)?;
            self.tracker.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a transfer from the daemon broke off");
                }
            });
            sender.send_request(request).await.map_err(|_| CallError::Unavailable)
        };
        let answer = tokio::time::timeout(HTTP_TIME, answer).await;
        answer.map_err(|_| CallError::TimedOut)?
    }

    /// Asks the daemon to shut down, if it is running.
    pub(crate) async fn ask_to_stop(&self, version: &str) {
        if self.session().is_err() {
            return;
        }
        let asked = match open(&*self.connect, version).await {
            Ok(opened) => opened.ask_to_stop().await,
            Err(error) => Err(error),
        };
        if let Err(error) = asked {
            tracing::debug!(%error, "the daemon could not be asked to stop");
        }
    }

    async fn supervise(&self, version: &str, session_tx: &watch::Sender<SessionState>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let error = match open(&*self.connect, version).await {
                Ok(opened) => {
                    let ready = |session| {
                        tracing::info!("the daemon is there");
                        drop(session_tx.send_replace(Ok(session)));
                        self.started.cancel();
                    };
                    session::run(opened, &self.hub, ready).await
                }
                Err(error) => error,
            };
            drop(session_tx.send_replace(Err(format!("no daemon: {error}").into())));
            self.hub.disconnected();
            report(&error);
            if began.elapsed() >= GOOD_SESSION {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn report(error: &SessionError) {
    let cause = std::error::Error::source(error)
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::warn!(%error, cause, "no daemon; looking for it again");
}
