//! One request, one answer. The real network is `egress`'s client, which connects only to addresses that it has checked
//! itself.

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
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use transfer::{ByteCount, SafeUrl};
use url::Url;

use super::pace::Pace;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections kept for each host.
const IDLE_CONNECTIONS: usize = 4;

/// A request that has been checked.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Upper-case.
    pub method: String,
    /// Where it goes.
    pub url: Url,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Bytes,
    /// To which addresses it may connect.
    pub reach: Reach,
    /// What the call has seen of the names that the user gave.
    pub pins: Arc<Pins>,
    /// What it goes through; names are then looked up there.
    pub proxy: Option<SafeUrl>,
    /// The longest body, inflated, that is taken.
    pub max_bytes: u64,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// The body, inflated.
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The host leads to addresses that it may not lead to.
    #[error("the host has no public address")]
    BlockedAddress,
    /// It took too long.
    #[error("timed out")]
    Timeout,
    /// The body is longer than this.
    #[error("the body is longer than {}", ByteCount(*.0))]
    TooLarge(u64),
    /// The connection is not safe.
    #[error("{0}")]
    Tls(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The answer to an exchange, to come.
pub type Exchanged<'a> = Pin<Box<dyn Future<Output = Result<Answer, NetworkError>> + Send + 'a>>;

/// Whatever answers requests: the Internet, or a recording of it. It follows no redirect and keeps no cookie.
pub trait Network: Send + Sync + fmt::Debug {
    /// Answers one request. Dropping the future gives the request up.
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_>;
}

/// How the real network is to be used.
#[derive(Debug, Clone, Default)]
pub struct InternetConfig {
    /// What requests say they come from, unless the plugin says something else.
    pub user_agent: String,
    /// Authorities to trust (DER), besides the usual ones.
    pub extra_roots: Vec<Vec<u8>>,
    /// What looks names up.
    pub names: Names,
}

/// The real network.
#[derive(Debug, Clone)]
pub struct Internet {
    client: HttpClient,
    /// A lock, since requests run side by side; it is held for a moment only.
    pace: Arc<Mutex<Pace>>,
}

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP for plugins")]
pub struct InternetError(#[source] Box<dyn Error + Send + Sync>);

impl Internet {
    /// A network that is used so.
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

    /// The same network for one more plugin: connections are shared, the pace at which it may ask sites is its own.
    #[must_use]
    pub fn for_plugin(&self) -> Self {
        Self {
            pace: Arc::default(),
            ..self.clone()
        }
    }

    /// Waits until the site may be asked once more. Others may be while what is returned lives.
    async fn wait_for_turn(&self, url: &Url) -> OwnedSemaphorePermit {
        let site = url.origin().ascii_serialization();
        let pace = || self.pace.lock().expect("nobody panics while holding the pace");
        let connections = pace().connections(&site, Instant::now().into_std());
        let connection = connections.acquire_owned().await.expect("it is never closed");
        let now = Instant::now();
        let wait = pace().take(&site, now.into_std());
        tokio::time::sleep_until(now + wait).await;
        connection
    }
}

impl Network for Internet {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            let _connection = self.wait_for_turn(&exchange.url).await;
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
            SendError::Failed(reason) => Self::Failed(reason),
        }
    }
}
