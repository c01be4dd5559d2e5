//! A high-level HTTP client that connects only to allowed addresses. It follows no redirects, keeps no cookies and
//! reads no proxy from the environment.

use std::{
    collections::HashMap,
    error::Error,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Client, ClientBuilder, Proxy,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use transfer::{SafeUrl, proxy};
use url::Url;

use crate::{
    dial::{self, Names},
    reach::{Forbidden, Pins, Reach},
};

/// Cached clients with a proxy: tasks may have their own besides the settings' one.
const MAX_PROXIES: usize = 4;

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The `User-Agent` of requests without one of their own.
    pub user_agent: String,
    /// TLS trust.
    pub tls: rustls::ClientConfig,
    /// Limit for establishing a connection.
    pub connect_timeout: Duration,
    /// Idle connections kept for each host.
    pub idle_connections: usize,
    /// The name resolver.
    pub names: Names,
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// Upper-case.
    pub method: &'a str,
    /// The URL.
    pub url: Url,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: Bytes,
    /// The addresses that it may connect to.
    pub reach: Reach,
    /// What earlier requests of the same task learned about names.
    pub pins: &'a Pins,
    /// The proxy.
    pub proxy: Option<&'a SafeUrl>,
}

/// A response whose body has not been read.
#[derive(Debug)]
pub struct Response(reqwest::Response);

/// Why a response is missing or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The URL's host may not be reached.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// It took too long.
    #[error("timed out")]
    Timeout,
    /// The connection is not safe.
    #[error("{0}")]
    Tls(String),
    /// What answers does not speak HTTP.
    #[error("what answers does not speak HTTP: {0}")]
    NotHttp(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The client cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ClientError(reqwest::Error);

/// The client. Clones share connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    config: Arc<ClientConfig>,
    /// For [`Reach::Anywhere`].
    open: Client,
    /// Clients limited to a reach.
    guarded: Arc<Mutex<HashMap<Reach, Client>>>,
    /// Clients for recently used proxies, the latest at the end.
    proxied: Arc<Mutex<Vec<(SafeUrl, Client)>>>,
}

impl HttpClient {
    /// Creates a client.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let open = builder(&config)
            .dns_resolver(Allowed(config.names.clone(), Reach::Anywhere))
            .build()
            .map_err(ClientError)?;
        Ok(Self {
            config: Arc::new(config),
            open,
            guarded: Arc::default(),
            proxied: Arc::default(),
        })
    }

    /// Checks that the target is allowed and sends the request. Dropping the future cancels it.
    pub async fn send(&self, request: Request<'_>) -> Result<Response, SendError> {
        let Request {
            method,
            url,
            headers,
            body,
            reach,
            pins,
            proxy,
        } = request;
        let reach = pins.narrow(&url, reach);
        // The resolver is not asked for IP addresses in URLs, so they are checked here.
        reach.check(&url)?;
        let client = match proxy {
            None => self.guarded(reach)?,
            Some(proxy) => {
                let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
                dial::check_proxied(&self.config.names, host, reach, proxy).await?;
                self.through(proxy)?
            }
        };
        let method = method
            .parse()
            .map_err(|_| SendError::Failed("invalid method".to_owned()))?;
        let mut building = client.request(method, url.clone()).body(body);
        for (name, value) in headers {
            building = building.header(name, value);
        }
        let response = building.send().await.map_err(failed)?;
        if let (None, Some(peer)) = (proxy, response.remote_addr()) {
            if !reach.allows(peer.ip()) {
                return Err(Forbidden::new(url.host_str().unwrap_or("")).into());
            }
            pins.note(&url, peer.ip());
        }
        Ok(Response(response))
    }

    fn guarded(&self, reach: Reach) -> Result<Client, SendError> {
        if reach == Reach::Anywhere {
            return Ok(self.open.clone());
        }
        let mut guarded = self.guarded.lock().expect("no code panics while it holds the clients");
        if let Some(known) = guarded.get(&reach) {
            return Ok(known.clone());
        }
        let resolver = Allowed(self.config.names.clone(), reach);
        let client = builder(&self.config).dns_resolver(resolver).build().map_err(failed)?;
        guarded.insert(reach, client.clone());
        Ok(client)
    }

    fn through(&self, proxy: &SafeUrl) -> Result<Client, SendError> {
        let mut proxied = self.proxied.lock().expect("no code panics while it holds the clients");
        let known = proxied.iter().position(|(known, _)| known == proxy);
        let client = match known {
            Some(at) => proxied.remove(at).1,
            None => through(&self.config, proxy)?,
        };
        if proxied.len() == MAX_PROXIES {
            proxied.remove(0);
        }
        proxied.push((proxy.clone(), client.clone()));
        Ok(client)
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// Lower-case names and values.
    pub fn headers(&self) -> impl Iterator<Item = (&str, String)> {
        let headers = self.0.headers().iter();
        headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    }

    /// The first value of this name that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// The announced length of the body.
    pub fn content_length(&self) -> Option<u64> {
        self.0.content_length()
    }

    /// The next piece of the body, decompressed; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        self.0.chunk().await.map_err(failed)
    }
}

fn builder(config: &ClientConfig) -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .user_agent(config.user_agent.as_str())
        .http1_only()
        .connect_timeout(config.connect_timeout)
        .pool_max_idle_per_host(config.idle_connections)
        .tls_backend_preconfigured(config.tls.clone())
}

/// A client for requests through `proxy`, which resolves names itself: a lookup here would reveal them to our name
/// server.
fn through(config: &ClientConfig, proxy: &SafeUrl) -> Result<Client, SendError> {
    proxy::check(proxy).map_err(|unusable| SendError::Failed(unusable.to_string()))?;
    let mut address = proxy.expose().to_owned();
    match proxy.scheme() {
        "socks4" => address.replace_range(.."socks4".len(), "socks4a"),
        "socks5" => address.replace_range(.."socks5".len(), "socks5h"),
        _ => {}
    }
    // The resolver is only asked for the proxy's name, which the user chose.
    let own = Allowed(config.names.clone(), Reach::Anywhere);
    let client = Proxy::all(address).and_then(|proxy| builder(config).dns_resolver(own).proxy(proxy).build());
    client.map_err(|_| SendError::Failed(format!("the proxy {proxy} cannot be used")))
}

fn failed(error: reqwest::Error) -> SendError {
    let is_timeout = error.is_timeout();
    // URLs may hold secrets, and causes are logged.
    let error = error.without_url();
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(source) = cause.source() {
        cause = source;
        if let Some(forbidden) = cause.downcast_ref::<Forbidden>() {
            return SendError::Forbidden(forbidden.clone());
        }
        if let Some(unread) = cause.downcast_ref::<hyper::Error>().filter(|error| error.is_parse()) {
            return SendError::NotHttp(unread.to_string());
        }
        if let Some(refused) = tls_error(cause) {
            return SendError::Tls(refused.to_string());
        }
    }
    if is_timeout {
        return SendError::Timeout;
    }
    // The innermost cause is the one that explains it.
    SendError::Failed(cause.to_string())
}

/// Finds a TLS error in `cause`, also inside I/O errors, which do not report it as their source.
fn tls_error<'e>(cause: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let wrapped = || cause.downcast_ref::<std::io::Error>()?.get_ref();
    cause.downcast_ref().or_else(|| tls_error(wrapped()?))
}

/// A resolver that returns only allowed addresses. The connection goes to these very addresses, so that a name cannot
/// change in between.
#[derive(Debug)]
struct Allowed(Names, Reach);

impl Resolve for Allowed {
    fn resolve(&self, name: Name) -> Resolving {
        let Self(names, reach) = self;
        let (names, reach) = (names.clone(), *reach);
        Box::pin(async move {
            let found = names.lookup(name.as_str(), 0).await?;
            let allowed: Vec<SocketAddr> = dial::allowed(reach, &found);
            if allowed.is_empty() && !found.is_empty() {
                return Err(Forbidden::new(name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::IpAddr,
        sync::atomic::{AtomicBool, Ordering},
    };

    use futures_util::future::BoxFuture;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Resolves every name to this machine; after the switch, to a documentation address.
    struct Switched(Arc<AtomicBool>);

    impl crate::Lookup for Switched {
        fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let text = if self.0.load(Ordering::Relaxed) {
                "192.0.2.1"
            } else {
                "127.0.0.1"
            };
            Box::pin(async move { Ok(vec![text.parse().expect("an address")]) })
        }
    }

    fn client(names: Names) -> HttpClient {
        let config = ClientConfig {
            user_agent: "Svc/test".to_owned(),
            tls: crate::tls::trusting_mozilla(&[]).unwrap(),
            connect_timeout: Duration::from_secs(5),
            idle_connections: 0,
            names,
        };
        HttpClient::new(config).unwrap()
    }

    async fn get(client: &HttpClient, url: &str, reach: Reach, pins: &Pins) -> Result<u16, SendError> {
        let request = Request {
            method: "GET",
            url: Url::parse(url).unwrap(),
            headers: &[],
            body: Bytes::new(),
            reach,
            pins,
            proxy: None,
        };
        client.send(request).await.map(|response| response.status())
    }

    /// Answers `count` requests and counts the connections.
    async fn serve(listener: TcpListener, count: usize) {
        for _ in 0..count {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _head = stream.read(&mut [0; 4096]).await.unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    }

    #[tokio::test]
    async fn only_allowed_addresses_are_connected_to_whatever_a_name_or_url_says() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = client(Names::by(Switched(Arc::default())));
        let asking = async {
            for host in [
                "evil.example",
                "127.0.0.1",
                "2130706433",
                "[::ffff:127.0.0.1]",
                "localhost",
                "nas",
            ] {
                let refused = get(
                    &client,
                    &format!("http://{host}:{port}/"),
                    Reach::Global,
                    &Pins::default(),
                )
                .await;
                assert!(matches!(refused, Err(SendError::Forbidden(_))), "{host}: {refused:?}");
            }
            let url = format!("http://nas.example:{port}/");
            assert_eq!(get(&client, &url, Reach::Anywhere, &Pins::default()).await, Ok(204));
        };
        // The server ends after the one allowed connection; a forbidden one before it would have been answered instead.
        tokio::join!(serve(listener, 1), asking);
    }

    #[tokio::test]
    async fn a_public_name_that_turns_to_this_machine_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://evil.example:{}/", listener.local_addr().unwrap().port());
        let client = client(Names::by(Switched(Arc::default())));
        let pins = Pins::default();
        pins.note(&Url::parse(&url).unwrap(), "93.184.216.34".parse().unwrap());
        let refused = get(&client, &url, Reach::Anywhere, &pins).await;
        assert!(matches!(refused, Err(SendError::Forbidden(_))), "{refused:?}");
        let connected = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(connected.is_err());
    }
}
