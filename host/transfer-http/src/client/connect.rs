//! Opens the connection for a request: dialled by `egress`, which checks where it may lead, or through an HTTP or SOCKS
//! proxy, then TLS for `https`. Errors become `Failure`s with the kind that decides on retries.

use std::{io, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use egress::{DialError, Forbidden, Reach, dial};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use transfer::{Credentials, Failure, SafeUrl, failure::FailureKind};

use crate::client::shared::Shared;

/// The longest answer of a proxy to `CONNECT`.
const MAX_PROXY_HEAD_BYTES: usize = 16 * 1024;

/// The key of the connection pool: connections with equal keys are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) ignore_tls_errors: bool,
}

/// A target, and which addresses it may resolve to.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) key: Key,
    pub(crate) reach: Reach,
}

impl Key {
    pub(crate) fn of(url: &SafeUrl, proxy: Option<&SafeUrl>, ignore_tls_errors: bool) -> Self {
        let parsed = url.as_url();
        Self {
            is_tls: parsed.scheme() == "https",
            // An IPv6 literal has brackets in a URL, but not when connecting.
            host: parsed
                .host_str()
                .unwrap_or("")
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: parsed.port_or_known_default().unwrap_or(80),
            proxy: proxy.cloned(),
            ignore_tls_errors,
        }
    }

    /// The HTTP proxy that wants requests in absolute form, because requests to it are not tunnelled.
    pub(crate) fn forward_proxy(&self) -> Option<&SafeUrl> {
        self.proxy
            .as_ref()
            .filter(|proxy| !self.is_tls && matches!(proxy.scheme(), "http" | "https"))
    }
}

/// A bidirectional byte stream.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A connection's bytes. Plain TCP is separate because the kernel can move its bytes.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Layered(Pin<Box<dyn Duplex>>),
}

/// Connects to the target of `route`. Returns the address of the target, which is not known behind a proxy.
pub(crate) async fn connect(shared: &Shared, route: &Route) -> Result<(Stream, Option<IpAddr>), Failure> {
    let limit = shared.config.connect_timeout;
    let Route { key, reach } = route;
    let (stream, address) = match &key.proxy {
        None => {
            let target = (key.host.as_str(), key.port);
            let tcp = dial(&shared.config.names, target, *reach, limit)
                .await
                .map_err(|error| failure(&error))?;
            let address = tcp.peer_addr().ok().map(|address| address.ip());
            (Stream::Tcp(tcp), address)
        }
        Some(proxy) => {
            let names = &shared.config.names;
            let checked = dial::check_proxied(names, &key.host, *reach, proxy).await;
            checked.map_err(|forbidden| not_reachable(&forbidden))?;
            (
                within(limit, "the proxy", through_proxy(shared, key, proxy)).await?,
                None,
            )
        }
    };
    if !key.is_tls {
        return Ok((stream, address));
    }
    let secured = within(limit, &key.host, async {
        match stream {
            Stream::Tcp(tcp) => secure(shared, key, tcp, &key.host).await,
            Stream::Layered(layers) => secure(shared, key, layers, &key.host).await,
        }
    });
    Ok((secured.await?, address))
}

fn failure(error: &DialError) -> Failure {
    let kind = match error {
        DialError::Forbidden(forbidden) => return not_reachable(forbidden),
        DialError::Unknown { .. } => FailureKind::Resolve,
        DialError::Refused { .. } => FailureKind::Connect,
        DialError::SlowLookup { .. } | DialError::SlowAnswer { .. } => FailureKind::Timeout,
    };
    Failure::new(kind, error.to_string())
}

pub(crate) fn not_reachable(forbidden: &Forbidden) -> Failure {
    Failure::new(
        FailureKind::ForbiddenRedirect,
        format!("{forbidden}; ask for that URL itself if you trust it"),
    )
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
    // A handshake that broke off is a network failure, which is retried.
    let kind = if refused.is_some() {
        FailureKind::Tls
    } else {
        FailureKind::Network
    };
    Failure::new(kind, format!("the TLS handshake with {host} failed: {error}"))
}

/// Connects to the proxy and tunnels to the target, unless the proxy forwards single requests.
async fn through_proxy(shared: &Shared, key: &Key, proxy: &SafeUrl) -> Result<Stream, Failure> {
    let refused =
        |error: &dyn std::fmt::Display| Failure::new(FailureKind::Proxy, format!("the proxy {proxy} failed: {error}"));
    let address = Key::of(proxy, None, key.ignore_tls_errors);
    let address = Key {
        port: proxy.as_url().port_or_known_default().unwrap_or(1080),
        ..address
    };
    // The user chose the proxy, so any address is allowed.
    let target = (address.host.as_str(), address.port);
    let limit = shared.config.connect_timeout;
    let tcp = dial(&shared.config.names, target, Reach::Anywhere, limit)
        .await
        .map_err(|error| refused(&error))?;
    if dial::is_socks(proxy) {
        let target = (key.host.as_str(), key.port);
        let led = dial::through_socks(tcp, target, proxy).await;
        return Ok(Stream::Tcp(led.map_err(|error| refused(&error))?));
    }
    let mut stream = match proxy.scheme() {
        "https" => secure(shared, &address, tcp, &address.host)
            .await
            .map_err(|error| refused(&error))?,
        _ => Stream::Tcp(tcp),
    };
    if key.is_tls {
        let login = proxy.credentials();
        match &mut stream {
            Stream::Tcp(tcp) => tunnel(key, login.as_ref(), tcp).await,
            Stream::Layered(layers) => tunnel(key, login.as_ref(), layers).await,
        }
        .map_err(|failure| Failure::new(failure.kind, format!("the proxy {proxy}: {failure}")))?;
    }
    Ok(stream)
}

/// Asks an HTTP proxy for a tunnel to the target (RFC 9110, section 9.3.6).
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
        format!("Proxy-Authorization: {}\r\n", login.basic())
    });
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|error| failed(error.to_string()))?;
    // Byte by byte, so that no byte of the tunnel itself is read; a head is short and this happens once per connection.
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
