//! One request, one answer. The real network connects only to addresses that it has checked itself.

use std::{
    error::Error,
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use plugin_host::Reach;
use reqwest::{
    Client, ClientBuilder, Proxy,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use transfer::{ByteCount, SafeUrl};
use url::Url;

use super::pace::Pace;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Proxies for which a client is kept: tasks may have their own besides the one of the settings.
const MAX_PROXIES: usize = 4;

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
    /// The name leads only to addresses that are not public.
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
}

/// The real network.
#[derive(Debug, Clone)]
pub struct Internet {
    /// Connects to public addresses only.
    guarded: Client,
    /// Connects anywhere: for the host that the user named.
    open: Client,
    /// Clients for the proxies that were used last, the latest at the end. Users change their proxy now and then.
    proxied: Arc<Mutex<Vec<(SafeUrl, Client)>>>,
    settings: ClientSettings,
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
        let settings = ClientSettings {
            user_agent: config.user_agent.clone(),
            tls: tls_config(&config.extra_roots).map_err(|error| InternetError(error.into()))?,
        };
        let build = |builder: ClientBuilder| builder.build().map_err(|error| InternetError(error.into()));
        Ok(Self {
            guarded: build(settings.client().dns_resolver(PublicAddresses))?,
            open: build(settings.client())?,
            proxied: Arc::default(),
            settings,
            pace: Arc::default(),
        })
    }

    /// The client for a request, connections of which lead where the request may go.
    fn client(&self, exchange: &Exchange) -> Result<Client, NetworkError> {
        let Some(proxy) = &exchange.proxy else {
            return Ok(match exchange.reach {
                Reach::Public => self.guarded.clone(),
                Reach::Anywhere => self.open.clone(),
            });
        };
        if exchange.reach == Reach::Public && is_this_machine(&exchange.url) {
            return Err(NetworkError::BlockedAddress);
        }
        let mut proxied = self.proxied.lock().expect("nobody panics while holding the clients");
        let known = proxied.iter().position(|(known, _)| known == proxy);
        let client = match known {
            Some(at) => proxied.remove(at).1,
            None => through(&self.settings, proxy)?,
        };
        if proxied.len() == MAX_PROXIES {
            proxied.remove(0);
        }
        proxied.push((proxy.clone(), client.clone()));
        Ok(client)
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

/// What all clients have in common.
#[derive(Debug, Clone)]
struct ClientSettings {
    user_agent: String,
    tls: ClientConfig,
}

impl ClientSettings {
    fn client(&self) -> ClientBuilder {
        Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .user_agent(self.user_agent.as_str())
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .tls_backend_preconfigured(self.tls.clone())
    }
}

/// A client for requests through `proxy`, which is told names as they are: looking them up here would tell our own name
/// server.
fn through(settings: &ClientSettings, proxy: &SafeUrl) -> Result<Client, NetworkError> {
    let mut address = proxy.expose().to_owned();
    match proxy.scheme() {
        "socks5" => address.replace_range(.."socks5".len(), "socks5h"),
        "http" | "https" | "socks5h" => {}
        scheme => {
            let reason = format!("a proxy of scheme {scheme} is not supported; http, https and socks5 are");
            return Err(NetworkError::Failed(reason));
        }
    }
    let client = Proxy::all(address).and_then(|proxy| settings.client().proxy(proxy).build());
    client.map_err(|_| NetworkError::Failed(format!("the proxy {proxy} cannot be used")))
}

/// Whether a name means the machine that looks it up, which is the proxy's then.
fn is_this_machine(url: &Url) -> bool {
    let name = url.domain().map(|name| name.trim_end_matches('.'));
    name.is_some_and(|name| name == "localhost" || name.ends_with(".localhost"))
}

fn tls_config(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    for root in extra_roots {
        roots.add(CertificateDer::from(root.as_slice()).into_owned())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

impl Network for Internet {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            let client = self.client(&exchange)?;
            let _connection = self.wait_for_turn(&exchange.url).await;
            run(&client, exchange).await
        })
    }
}

async fn run(client: &Client, exchange: Exchange) -> Result<Answer, NetworkError> {
    let method = exchange
        .method
        .parse()
        .map_err(|_| NetworkError::Failed("invalid method".to_owned()))?;
    let mut request = client.request(method, exchange.url).body(exchange.body);
    for (name, value) in &exchange.headers {
        request = request.header(name, value);
    }
    let mut response = request.send().await.map_err(network_error)?;
    let too_large = NetworkError::TooLarge(exchange.max_bytes);
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let headers = headers.collect();
    let status = response.status().as_u16();
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(network_error)? {
        if (body.len() + piece.len()) as u64 > exchange.max_bytes {
            return Err(too_large);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status,
        headers,
        body: body.freeze(),
    })
}

fn network_error(error: reqwest::Error) -> NetworkError {
    let is_timeout = error.is_timeout();
    // URLs can hold secrets, and causes end up in logs.
    let error = error.without_url();
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(source) = cause.source() {
        cause = source;
        if cause.is::<NoPublicAddress>() {
            return NetworkError::BlockedAddress;
        }
        if let Some(refused) = tls_error(cause) {
            return NetworkError::Tls(refused.to_string());
        }
    }
    if is_timeout {
        return NetworkError::Timeout;
    }
    // The innermost cause is the one that tells something.
    NetworkError::Failed(cause.to_string())
}

/// The TLS error that `cause` is, or that I/O errors are wrapped around, which do not name it as their source.
fn tls_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let wrapped = || cause.downcast_ref::<std::io::Error>()?.get_ref();
    cause.downcast_ref().or_else(|| tls_error(wrapped()?))
}

/// A name has no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("no public address")]
struct NoPublicAddress;

/// Looks names up and hands out public addresses only. The connection is made to what it hands out, so that a name
/// cannot lead elsewhere a moment later.
#[derive(Debug)]
struct PublicAddresses;

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found
                .filter(|address| transfer::address::is_global(address.ip()))
                .collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}
