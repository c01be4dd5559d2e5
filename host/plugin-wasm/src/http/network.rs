//! The network of plugins: one request, one response. The real one uses `egress`'s client, which checks every address
//! that it connects to.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use egress::{ClientConfig, HttpClient, Names, Pins, Reach, Request, SendError, tls};
use plugin_host::runtime::CallClock;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use transfer::{ByteCount, SafeUrl};
use url::Url;

use super::pace::{CONNECTIONS, PER_SECOND, Pace};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections kept for each host.
const IDLE_CONNECTIONS: usize = 4;

/// A request that has been checked.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Upper-case.
    pub method: String,
    pub url: Url,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// The addresses that it may connect to.
    pub reach: Reach,
    /// What earlier requests of the call learned about names.
    pub pins: Arc<Pins>,
    /// The proxy, which then resolves names.
    pub proxy: Option<SafeUrl>,
    /// The longest accepted body, decompressed.
    pub max_bytes: u64,
    /// Stands still while it waits for its turn.
    pub clock: CallClock,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed.
    pub body: Bytes,
}

/// Why an exchange failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// All addresses of the host are forbidden.
    #[error("the host has no public address")]
    BlockedAddress,
    #[error("timed out")]
    Timeout,
    /// The call may not wait longer for its turn at the site.
    #[error("no turn at {0}: a plugin sends a site {PER_SECOND} requests a second, {CONNECTIONS} at once")]
    NoTurn(String),
    #[error("the body is longer than {}", ByteCount(*.0))]
    TooLarge(u64),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Failed(String),
}

/// The future of an exchange.
pub type Exchanged<'a> = Pin<Box<dyn Future<Output = Result<Answer, NetworkError>> + Send + 'a>>;

/// Answers requests: the Internet, or a recording. It follows no redirects and keeps no cookies.
pub trait Network: Send + Sync + fmt::Debug {
    /// Sends one request. Dropping the future cancels it.
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_>;
}

/// Configuration of the real network.
#[derive(Debug, Clone, Default)]
pub struct InternetConfig {
    /// The `User-Agent`, unless the plugin sets one.
    pub user_agent: String,
    /// Authorities to trust (DER), besides the usual ones.
    pub extra_roots: Vec<Vec<u8>>,
    pub names: Names,
}

/// The real network.
#[derive(Debug, Clone)]
pub struct Internet {
    client: HttpClient,
    pace: Arc<Mutex<Pace>>,
}

/// Why the network could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP for plugins")]
pub struct InternetError(#[source] Box<dyn Error + Send + Sync>);

impl Internet {
    /// Creates the network.
    pub fn new(config: &InternetConfig) -> Result<Self, InternetError> {
        let client = HttpClient::new(ClientConfig {
            user_agent: config.user_agent.clone(),
            tls: tls::trusting_mozilla(&config.extra_roots).map_err(|error| InternetError(error.into()))?,
            connect_timeout: CONNECT_TIMEOUT,
            idle_connections: IDLE_CONNECTIONS,
            names: config.names.clone(),
        });
        Ok(Self {
            client: client.map_err(|error| InternetError(error.into()))?,
            pace: Arc::default(),
        })
    }

    /// The same network for another plugin: connections are shared, rate limits are its own.
    #[must_use]
    pub fn for_plugin(&self) -> Self {
        Self {
            pace: Arc::default(),
            ..self.clone()
        }
    }

    /// Waits for the rate limit of the site. The returned permit occupies one of the site's connections.
    async fn wait_for_turn(&self, url: &Url, clock: &CallClock) -> Result<OwnedSemaphorePermit, NetworkError> {
        let site = url.origin().ascii_serialization();
        let pace = || self.pace.lock().expect("nobody panics while holding the pace");
        let connections = pace().connections(&site, Instant::now().into_std());
        let turn = async {
            let connection = connections.acquire_owned().await.expect("it is never closed");
            let now = Instant::now();
            let wait = pace().take(&site, now.into_std());
            tokio::time::sleep_until(now + wait).await;
            connection
        };
        let longest = clock.wait_left();
        let _waiting = clock.wait();
        tokio::time::timeout(longest, turn)
            .await
            .map_err(|_| NetworkError::NoTurn(site))
    }
}

impl Network for Internet {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            let _connection = self.wait_for_turn(&exchange.url, &exchange.clock).await?;
            run(&self.client, exchange).await
        })
    }
}

async fn run(client: &HttpClient, exchange: Exchange) -> Result<Answer, NetworkError> {
    let request = Request {
        method: &exchange.method,
        url: exchange.url,
        headers: &exchange.headers,
        body: exchange.body,
        reach: exchange.reach,
        pins: &exchange.pins,
        proxy: exchange.proxy.as_ref(),
    };
    let mut response = client.send(request).await?;
    let headers = response.headers().map(|(name, value)| (name.to_owned(), value));
    let headers = headers.collect();
    let status = response.status();
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await? {
        if (body.len() + piece.len()) as u64 > exchange.max_bytes {
            return Err(NetworkError::TooLarge(exchange.max_bytes));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status,
        headers,
        body: body.freeze(),
    })
}

impl From<SendError> for NetworkError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Forbidden(_) => Self::BlockedAddress,
            SendError::Timeout => Self::Timeout,
            SendError::Tls(reason) => Self::Tls(reason),
            SendError::NotHttp(reason) | SendError::Failed(reason) => Self::Failed(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use plugin_host::runtime::MAX_WAIT;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_crowd_at_one_site_waits_its_turn_and_not_for_ever() {
        let internet = Internet::new(&InternetConfig::default()).unwrap();
        let url: Url = "https://site.test/a".parse().unwrap();
        let calls: Vec<_> = (0..400).map(|_| CallClock::default()).collect();
        let turns = calls.iter().map(|clock| internet.wait_for_turn(&url, clock));
        let started = Instant::now();
        let turns = join_all(turns.map(|turn| async { turn.await.map(drop) })).await;
        assert!(started.elapsed() <= MAX_WAIT + Duration::from_secs(1));
        let served = turns.iter().filter(|turn| turn.is_ok()).count();
        assert!((300..=321).contains(&served), "{served}");
        let refused = turns.into_iter().rev().find_map(Result::err);
        assert_eq!(refused, Some(NetworkError::NoTurn("https://site.test".to_owned())));
        // A call that has waited for as long as it may is refused at once.
        let spent = calls.last().unwrap();
        let held = join_all((0..CONNECTIONS).map(|_| internet.wait_for_turn(&url, &calls[0]))).await;
        let started = Instant::now();
        assert!(internet.wait_for_turn(&url, spent).await.is_err());
        assert!(started.elapsed() < Duration::from_millis(10) && held.iter().all(Result::is_ok));
    }
}
