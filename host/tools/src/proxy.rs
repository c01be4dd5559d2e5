//! An HTTP proxy for one run of a tool, by which the rules of `egress` apply to a program that knows nothing of them. It
//! serves only who has the run's password, only what the source of the run's URL may reach, and ends with the run.

use std::{
    fmt::Write as _,
    future::pending,
    io,
    net::TcpListener,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use data_encoding::HEXLOWER;
use egress::{
    DialError, Forbidden, Names, Pins,
    dial::{check_proxied, dial, is_socks, through_socks},
    reach::{self, Reach},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    task::JoinSet,
    time::timeout,
};
use transfer::{Credentials, GivenBy, SafeUrl, Secret};
use url::{Host, Url};

use crate::order::PROXY_USER;

/// The most connections at once; more wait. Tools make a handful.
const MAX_CONNECTIONS: usize = 16;

/// The longest head of a request. Cookies make up most of it.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request.
const MAX_FIELDS: usize = 100;

/// Limit for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Limit for a lookup and for connecting, each.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// The most bytes of a run in both directions together: pages and playlists, not media.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Pause after a connection could not be accepted, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Fields that belong to the connection to this proxy, or that it writes itself.
const OWN_FIELDS: [&str; 6] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
];

/// What a run may reach: everything that its URL may lead to, by who gave that.
#[derive(Debug, Clone)]
pub(crate) struct Outbound {
    pub(crate) url: SafeUrl,
    pub(crate) given_by: GivenBy,
    /// The proxy of the user's network; see [`is_usable`].
    pub(crate) upstream: Option<SafeUrl>,
}

/// Whether requests of a tool can go through a proxy of the user: one that is asked with HTTP or SOCKS. A proxy that is
/// itself reached by TLS is not supported.
pub(crate) fn is_usable(upstream: &SafeUrl) -> bool {
    upstream.scheme() == "http" || is_socks(upstream)
}

/// The proxy of one run.
#[derive(Debug)]
pub(crate) struct Gate {
    outbound: Outbound,
    names: Names,
    password: Secret,
    pins: Pins,
    /// The first target that was refused.
    refused: Mutex<Option<Forbidden>>,
    spent_bytes: AtomicU64,
}

/// A request, decoded.
#[derive(Debug)]
struct Head {
    target: Url,
    /// What is sent to the target before anything else; nothing for a tunnel.
    forwarded: Vec<u8>,
    is_tunnel: bool,
    is_authorised: bool,
}

/// Why a request is not served.
#[derive(Debug)]
enum Denied {
    /// Not HTTP, or none that a proxy is asked with.
    Malformed,
    /// Without the password.
    Unauthorised,
    Forbidden(Forbidden),
    /// The target does not answer.
    Unreachable,
}

impl Denied {
    fn status_line(&self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Unauthorised => "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"svc\"",
            Self::Forbidden(_) => "403 Forbidden",
            Self::Unreachable => "502 Bad Gateway",
        }
    }
}

impl From<DialError> for Denied {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Forbidden(forbidden) => Self::Forbidden(forbidden),
            _ => Self::Unreachable,
        }
    }
}

impl Gate {
    pub(crate) fn new(outbound: Outbound, names: Names) -> io::Result<Self> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        Ok(Self {
            outbound,
            names,
            password: Secret::new(HEXLOWER.encode(&random)),
            pins: Pins::default(),
            refused: Mutex::default(),
            spent_bytes: AtomicU64::new(0),
        })
    }

    pub(crate) fn password(&self) -> &str {
        self.password.expose()
    }

    /// The first target that was refused.
    pub(crate) fn refused(&self) -> Option<Forbidden> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves connections until it is dropped.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let opened = listener.set_nonblocking(true);
        let listener = match opened.and_then(|()| tokio::net::TcpListener::from_std(listener)) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, "the proxy of a tool cannot listen");
                return;
            }
        };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let gate = Arc::clone(&self);
                        connections.spawn(async move { gate.connection(stream).await });
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    }

    /// Serves one request and the bytes after it. What it ends with is known to the tool, and to nobody else of use.
    async fn connection(&self, mut client: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let (head, rest) = timeout(HEAD_TIME, read_head(&mut client)).await??;
        let denied = match self.target(&head).await {
            Ok((request, stream)) => return self.join(client, stream, &request, &rest).await,
            Err(denied) => denied,
        };
        let answer = format!(
            "HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            denied.status_line()
        );
        if let Denied::Forbidden(forbidden) = denied {
            tracing::info!(%forbidden, "a tool was refused a connection");
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.get_or_insert(forbidden);
        }
        client.write_all(answer.as_bytes()).await
    }

    async fn target(&self, head: &[u8]) -> Result<(Head, impl AsyncRead + AsyncWrite + Unpin + use<>), Denied> {
        let head = Head::decode(head, &self.password).ok_or(Denied::Malformed)?;
        if !head.is_authorised {
            return Err(Denied::Unauthorised);
        }
        let (host, port) = (plain_host(&head.target), head.target.port_or_known_default());
        let (host, port) = host.zip(port).ok_or(Denied::Malformed)?;
        let reach = reach::of(&self.outbound.given_by, self.outbound.url.as_url(), &head.target);
        let reach = self.pins.narrow(&head.target, reach);
        reach.check(&head.target).map_err(Denied::Forbidden)?;
        let Some(upstream) = &self.outbound.upstream else {
            let stream = dial(&self.names, (&host, port), reach, CONNECT_TIME).await?;
            if let Ok(peer) = stream.peer_addr() {
                self.pins.note(&head.target, peer.ip());
            }
            return Ok((head, stream));
        };
        let checked = check_proxied(&self.names, &host, reach, upstream).await;
        checked.map_err(Denied::Forbidden)?;
        let (proxy, proxy_port) = plain_host(upstream.as_url())
            .zip(upstream.as_url().port_or_known_default())
            .ok_or(Denied::Unreachable)?;
        // The user chose the proxy, so any address is allowed.
        let stream = dial(&self.names, (&proxy, proxy_port), Reach::Anywhere, CONNECT_TIME).await?;
        let asked = timeout(CONNECT_TIME, async {
            if is_socks(upstream) {
                return through_socks(stream, (&host, port), upstream).await;
            }
            tunnel(stream, &head.target, port, upstream).await
        });
        match asked.await {
            Ok(Ok(stream)) => Ok((head, stream)),
            _ => Err(Denied::Unreachable),
        }
    }

    /// Passes bytes in both directions until the server ends or one side fails.
    async fn join(
        &self,
        client: impl AsyncRead + AsyncWrite + Unpin,
        server: impl AsyncRead + AsyncWrite + Unpin,
        request: &Head,
        rest: &[u8],
    ) -> io::Result<()> {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_server, mut to_server) = tokio::io::split(server);
        if request.is_tunnel {
            to_client
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
        }
        to_server.write_all(&request.forwarded).await?;
        to_server.write_all(rest).await?;
        // A client may end its half early; the answer still comes.
        let upload = async {
            self.pump(&mut from_client, &mut to_server).await?;
            pending().await
        };
        tokio::select! {
            ended = upload => ended,
            ended = self.pump(&mut from_server, &mut to_client) => ended,
        }
    }

    async fn pump(&self, from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let length = from.read(&mut buffer).await?;
            if length == 0 {
                return to.shutdown().await;
            }
            let spent = self.spent_bytes.fetch_add(length as u64, Ordering::Relaxed);
            if spent.saturating_add(length as u64) > MAX_BYTES {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            to.write_all(&buffer[..length]).await?;
        }
    }
}

impl Head {
    /// None if it is no request to a proxy.
    fn decode(bytes: &[u8], password: &Secret) -> Option<Self> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(bytes).ok().filter(httparse::Status::is_complete)?;
        let (method, target) = (request.method?, request.path?);
        let is_tunnel = method == "CONNECT";
        let target = if is_tunnel {
            Url::parse(&format!("https://{target}/")).ok()?
        } else {
            Url::parse(target).ok().filter(|url| url.scheme() == "http")?
        };
        let is_authority = target.username().is_empty() && target.password().is_none() && target.has_host();
        let named = |name: &str| {
            let mut fields = request.headers.iter();
            fields.find(|field| field.name.eq_ignore_ascii_case(name))
        };
        let login = Credentials {
            user: PROXY_USER.to_owned(),
            password: password.clone(),
        };
        let is_authorised =
            named("proxy-authorization").is_some_and(|field| is_same(field.value, login.basic().as_bytes()));
        let mut forwarded = Vec::new();
        if !is_tunnel {
            let path = &target[url::Position::BeforePath..url::Position::AfterQuery];
            let host = &target[url::Position::BeforeHost..url::Position::AfterPort];
            forwarded.extend(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n").bytes());
            for field in request.headers.iter() {
                if OWN_FIELDS.iter().any(|own| field.name.eq_ignore_ascii_case(own)) {
                    continue;
                }
                forwarded.extend([field.name.as_bytes(), b": ", field.value, b"\r\n"].concat());
            }
            forwarded.extend(b"\r\n");
        }
        is_authority.then_some(Self {
            target,
            forwarded,
            is_tunnel,
            is_authorised,
        })
    }
}

/// Compares in a time that does not depend on where the difference is.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// The host of a URL; an address of IPv6 without brackets.
fn plain_host(url: &Url) -> Option<String> {
    Some(match url.host()? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    })
}

/// The head of a message, and the bytes that were read after it.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut head, mut buffer) = (Vec::new(), vec![0; 4096]);
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 || head.len() + length > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let searched = head.len().saturating_sub(3);
        head.extend_from_slice(&buffer[..length]);
        let end = head[searched..].windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = head.split_off(searched + end + 4);
            return Ok((head, rest));
        }
    }
}

/// Asks a proxy for a tunnel to the target (RFC 9110, section 9.3.6).
async fn tunnel<S>(mut stream: S, target: &Url, port: u16, proxy: &SafeUrl) -> io::Result<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let authority = format!("{}:{port}", target.host_str().unwrap_or_default());
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(login) = proxy.credentials() {
        let _is_infallible = write!(request, "Proxy-Authorization: {}\r\n", login.basic());
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    // A server behind it says nothing before it is asked, so nothing can follow the head.
    let (head, _) = read_head(&mut stream).await?;
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let is_open = response.parse(&head).is_ok() && matches!(response.code, Some(200..=299));
    is_open
        .then_some(stream)
        .ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}

#[cfg(test)]
mod tests;
