//! Making connections: name lookup, addresses tried in a staggered race, proxies, TLS.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use data_encoding::BASE64;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tokio_socks::tcp::Socks5Stream;
use transfer::{Credentials, Failure, SafeUrl, address::is_global, failure::FailureKind};

use crate::Shared;

/// Wait before the next address is tried while one is still connecting (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Addresses of one host that are tried at most.
const MAX_ADDRESSES: usize = 16;

/// The longest answer of a proxy to `CONNECT`.
const MAX_PROXY_HEAD_BYTES: usize = 16 * 1024;

/// Which addresses a connection may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Any: the user named the host.
    Anywhere,
    /// The public Internet and this machine: a host on this machine named the next one.
    GlobalOrLoopback,
    /// The public Internet only: a server named the host, which must not open the user's network to it.
    Global,
}

impl Reach {
    fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::GlobalOrLoopback => address.is_loopback() || is_global(address),
            Self::Global => is_global(address),
        }
    }
}

/// Where a connection leads, and how: connections with equal keys are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) ignore_tls_errors: bool,
    pub(crate) reach: Reach,
}

impl Key {
    pub(crate) fn of(url: &SafeUrl, proxy: Option<&SafeUrl>, ignore_tls_errors: bool) -> Self {
        let parsed = url.as_url();
        Self {
            is_tls: parsed.scheme() == "https",
            // An IPv6 literal has brackets in a URL and none where it is connected to.
            host: parsed
                .host_str()
                .unwrap_or("")
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: parsed.port_or_known_default().unwrap_or(80),
            proxy: proxy.cloned(),
            ignore_tls_errors,
            reach: Reach::Anywhere,
        }
    }

    /// The HTTP proxy that wants requests in absolute form, because nothing is tunnelled through it.
    pub(crate) fn forward_proxy(&self) -> Option<&SafeUrl> {
        self.proxy
            .as_ref()
            .filter(|proxy| !self.is_tls && matches!(proxy.scheme(), "http" | "https"))
    }
}

/// Something that bytes go through both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A connection's bytes. Plain TCP is kept apart because the kernel can move its bytes by itself.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Layered(Pin<Box<dyn Duplex>>),
}

/// Connects to where `key` leads.
pub(crate) async fn connect(shared: &Shared, key: &Key) -> Result<Stream, Failure> {
    let limit = shared.config.connect_timeout;
    let stream = match &key.proxy {
        None => Stream::Tcp(dial(key, limit).await?),
        Some(proxy) => within(limit, "the proxy", through_proxy(shared, key, proxy)).await?,
    };
    if !key.is_tls {
        return Ok(stream);
    }
    within(limit, &key.host, async {
        match stream {
            Stream::Tcp(tcp) => secure(shared, key, tcp, &key.host).await,
            Stream::Layered(layers) => secure(shared, key, layers, &key.host).await,
        }
    })
    .await
}

async fn within<T>(limit: Duration, who: &str, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Failure::new(
            FailureKind::Timeout,
            format!("{who} did not complete the connection within {limit:?}"),
        ))
    })
}

async fn secure<S>(shared: &Shared, key: &Key, stream: S, host: &str) -> Result<Stream, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        Failure::new(
            FailureKind::Tls,
            format!("{host} is no name that a certificate can have"),
        )
    })?;
    let connector = TlsConnector::from(Arc::clone(&shared.tls.config(key.ignore_tls_errors)));
    let secured = connector
        .connect(name, stream)
        .await
        .map_err(|error| tls_failure(host, &error))?;
    Ok(Stream::Layered(Box::pin(secured)))
}

fn tls_failure(host: &str, error: &io::Error) -> Failure {
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if matches!(refused, Some(rustls::Error::InvalidCertificate(_))) {
        return Failure::new(
            FailureKind::Tls,
            format!("the certificate of {host} is not trusted: {error}; --insecure accepts it all the same"),
        );
    }
    // A handshake that the network cut short is the network's fault, and worth another try.
    let kind = if refused.is_some() {
        FailureKind::Tls
    } else {
        FailureKind::Network
    };
    Failure::new(kind, format!("the TLS handshake with {host} failed: {error}"))
}

/// Connects to the first address of `host` that answers; a further one is tried whenever one fails or is slow.
async fn dial(key: &Key, limit: Duration) -> Result<TcpStream, Failure> {
    let Key { host, port, reach, .. } = key;
    let (host, port) = (host.as_str(), *port);
    let resolving = timeout(limit, tokio::net::lookup_host((host, port)));
    let addresses: Vec<SocketAddr> = match resolving.await {
        Ok(Ok(addresses)) => interleave(addresses.take(MAX_ADDRESSES).collect()),
        Ok(Err(error)) => {
            return Err(Failure::new(
                FailureKind::Resolve,
                format!("the host {host} cannot be found: {error}"),
            ));
        }
        Err(_) => {
            return Err(Failure::new(
                FailureKind::Timeout,
                format!("finding the host {host} took over {limit:?}"),
            ));
        }
    };
    let allowed: Vec<_> = addresses
        .iter()
        .copied()
        .filter(|address| reach.allows(address.ip()))
        .collect();
    if allowed.is_empty() && !addresses.is_empty() {
        return Err(not_reachable(host));
    }
    let racing = race(&allowed);
    match timeout(limit, racing).await {
        Ok(Ok(stream)) => {
            // Requests are written whole; waiting to merge small writes only delays them.
            let _unsupported = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(Failure::new(
            FailureKind::Connect,
            format!("cannot connect to {host} port {port}: {error}"),
        )),
        Err(_) => Err(Failure::new(
            FailureKind::Timeout,
            format!("{host} port {port} did not answer within {limit:?}"),
        )),
    }
}

/// A target behind a proxy is looked up by the proxy; only an address that stands in the URL can be judged here.
fn check_literal(key: &Key) -> Result<(), Failure> {
    match key.host.parse::<IpAddr>() {
        Ok(address) if !key.reach.allows(address) => Err(not_reachable(&key.host)),
        _ => Ok(()),
    }
}

fn not_reachable(host: &str) -> Failure {
    Failure::new(
        FailureKind::ForbiddenRedirect,
        format!("a redirect leads to {host}, which is not a public address; ask for that URL itself if you trust it"),
    )
}

async fn race(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut waiting = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    attempts.extend(waiting.next().map(|address| TcpStream::connect(*address)));
    while !attempts.is_empty() {
        match timeout(NEXT_ADDRESS_AFTER, attempts.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => last_error = error,
            Ok(None) => break,
            Err(_) if waiting.len() == 0 => match attempts.next().await {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => last_error = error,
                None => break,
            },
            Err(_) => {}
        }
        attempts.extend(waiting.next().map(|address| TcpStream::connect(*address)));
    }
    Err(last_error)
}

/// Alternates between IPv6 and IPv4, in the resolver's order otherwise (RFC 8305, section 4).
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_first_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut other): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == is_first_v6);
    one.reverse();
    other.reverse();
    let mut ordered = Vec::with_capacity(one.len() + other.len());
    while !one.is_empty() || !other.is_empty() {
        ordered.extend(one.pop());
        ordered.extend(other.pop());
    }
    ordered
}

/// A connection to the proxy, led on to the target unless the proxy forwards single requests.
async fn through_proxy(shared: &Shared, key: &Key, proxy: &SafeUrl) -> Result<Stream, Failure> {
    let refused =
        |error: &dyn std::fmt::Display| Failure::new(FailureKind::Proxy, format!("the proxy {proxy} failed: {error}"));
    let address = Key::of(proxy, None, key.ignore_tls_errors);
    let address = Key {
        port: proxy.as_url().port_or_known_default().unwrap_or(1080),
        ..address
    };
    check_literal(key)?;
    let tcp = dial(&address, shared.config.connect_timeout)
        .await
        .map_err(|error| refused(&error))?;
    let login = proxy.credentials();
    if proxy.scheme().starts_with("socks5") {
        // The name goes to the proxy as it is: looking it up here would tell our own name server.
        let target = (key.host.as_str(), key.port);
        let led = match &login {
            None => Socks5Stream::connect_with_socket(tcp, target).await,
            Some(login) => {
                let (user, password) = (login.user.as_str(), login.password.expose());
                Socks5Stream::connect_with_password_and_socket(tcp, target, user, password).await
            }
        };
        return Ok(Stream::Tcp(led.map_err(|error| refused(&error))?.into_inner()));
    }
    let mut stream = match proxy.scheme() {
        "https" => secure(shared, &address, tcp, &address.host)
            .await
            .map_err(|error| refused(&error))?,
        _ => Stream::Tcp(tcp),
    };
    if key.is_tls {
        match &mut stream {
            Stream::Tcp(tcp) => tunnel(key, login.as_ref(), tcp).await,
            Stream::Layered(layers) => tunnel(key, login.as_ref(), layers).await,
        }
        .map_err(|failure| Failure::new(failure.kind, format!("the proxy {proxy}: {failure}")))?;
    }
    Ok(stream)
}

/// Asks an HTTP proxy to connect through to the target (RFC 9110, section 9.3.6).
async fn tunnel(
    key: &Key,
    login: Option<&Credentials>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(FailureKind::Proxy, why);
    let authority = if key.host.contains(':') {
        format!("[{}]:{}", key.host, key.port)
    } else {
        format!("{}:{}", key.host, key.port)
    };
    let authorization = login.map_or_else(String::new, |login| {
        format!("Proxy-Authorization: {}\r\n", basic(login))
    });
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|error| failed(error.to_string()))?;
    // Byte by byte, so that nothing of the tunnel itself is taken; a head is short and this happens once a connection.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_PROXY_HEAD_BYTES {
            return Err(failed(format!(
                "its answer is longer than {MAX_PROXY_HEAD_BYTES} bytes"
            )));
        }
        head.push(stream.read_u8().await.map_err(|error| failed(error.to_string()))?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(&head);
    match (parsed, response.code) {
        (Ok(_), Some(200..=299)) => Ok(()),
        (Ok(_), Some(407)) => Err(Failure::new(
            FailureKind::Unauthorized,
            "it wants a user name and password (407); give them as http://user:password@host:port",
        )),
        (Ok(_), Some(code)) => Err(failed(format!(
            "it refused to connect to {authority} with status {code}"
        ))),
        _ => Err(failed("its answer is not HTTP".to_owned())),
    }
}

/// A Basic `Authorization` value (RFC 7617).
pub(crate) fn basic(login: &Credentials) -> String {
    let pair = format!("{}:{}", login.user, login.password.expose());
    format!("Basic {}", BASE64.encode(pair.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_alternate() {
        let parse = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<SocketAddr>>()
        };
        let mixed = parse(&["[::1]:1", "[::2]:1", "1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"]);
        let expected = parse(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "3.3.3.3:1"]);
        assert_eq!(interleave(mixed), expected);
    }

    #[tokio::test]
    async fn a_dead_first_address_does_not_hold_up_the_second() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let dead_address = dead.local_addr().unwrap();
        drop(dead);
        assert!(race(&[dead_address, listener.local_addr().unwrap()]).await.is_ok());
        assert!(race(&[dead_address]).await.is_err());
    }
}
