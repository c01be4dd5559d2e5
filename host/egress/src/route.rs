//! The way to a target: dialled directly, or through an HTTP or SOCKS proxy, and TLS on it. Errors are `Failure`s with the
//! kind that decides on retries.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use transfer::{Credentials, Failure, SafeUrl, failure::FailureKind};

use crate::{
    dial::{self, DialError, Names, dial},
    digest::{Challenge, Session},
    reach::{Forbidden, Reach},
    tls::Tls,
};

/// The longest answer of a proxy to `CONNECT`.
const MAX_PROXY_HEAD_BYTES: usize = 16 * 1024;

/// A bidirectional byte stream.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Sync {}
impl<T: AsyncRead + AsyncWrite + Send + Sync> Duplex for T {}

/// A connection's bytes. Plain TCP is separate because the kernel can move its bytes.
pub enum Stream {
    /// A socket.
    Tcp(TcpStream),
    /// TLS, to the target or to the proxy.
    Layered(Pin<Box<dyn Duplex>>),
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "Stream(tcp)",
            Self::Layered(_) => "Stream(layered)",
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Self::Layered(layers) => layers.as_mut().poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Layered(layers) => layers.as_mut().poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Layered(layers) => layers.as_mut().poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Layered(layers) => layers.as_mut().poll_shutdown(cx),
        }
    }
}

/// One connection to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Leg<'a> {
    /// The name resolver.
    pub names: &'a Names,
    /// Which certificates an `https` proxy may have.
    pub tls: &'a Tls,
    /// Accept any certificate of it.
    pub ignore_tls_errors: bool,
    /// Host, a name or an address without brackets, and port.
    pub target: (&'a str, u16),
    /// The proxy, if one is used.
    pub proxy: Option<&'a SafeUrl>,
    /// Which addresses the target may have.
    pub reach: Reach,
    /// For name resolution, connecting and the proxy's answer, each.
    pub limit: Duration,
}

impl Leg<'_> {
    /// Connects to the target, through a tunnel if there is a proxy. Returns the address of the target, which is not known
    /// behind a proxy.
    pub async fn to_target(&self) -> Result<(Stream, Option<IpAddr>), Failure> {
        let Some(proxy) = self.proxy else {
            let tcp = dial(self.names, self.target, self.reach, self.limit)
                .await
                .map_err(|error| failure(&error))?;
            let address = tcp.peer_addr().ok().map(|address| address.ip());
            return Ok((Stream::Tcp(tcp), address));
        };
        self.check_proxied(proxy).await?;
        let stream = within(self.limit, "the proxy", self.through_proxy(proxy, true)).await?;
        Ok((stream, None))
    }

    /// Connects to the proxy, which forwards single requests. A SOCKS proxy always tunnels. Panics without a proxy.
    pub async fn to_proxy(&self) -> Result<Stream, Failure> {
        let proxy = self.proxy.expect("only requests through a proxy are forwarded by it");
        self.check_proxied(proxy).await?;
        within(self.limit, "the proxy", self.through_proxy(proxy, false)).await
    }

    async fn check_proxied(&self, proxy: &SafeUrl) -> Result<(), Failure> {
        let checked = dial::check_proxied(self.names, self.target.0, self.reach, proxy).await;
        checked.map_err(|forbidden| not_reachable(&forbidden))
    }

    /// Connects to the proxy and, if `is_tunnelled`, has it connect to the target.
    async fn through_proxy(&self, proxy: &SafeUrl, is_tunnelled: bool) -> Result<Stream, Failure> {
        let refused = |error: &dyn std::fmt::Display| {
            Failure::new(FailureKind::Proxy, format!("the proxy {proxy} failed: {error}"))
        };
        let host = proxy.as_url().host_str().unwrap_or("");
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = proxy.as_url().port_or_known_default().unwrap_or(1080);
        let login = proxy.credentials();
        let mut authorization = login.as_ref().map(Credentials::basic);
        let mut is_answered = false;
        loop {
            // The user chose the proxy, so any address is allowed.
            let tcp = dial(self.names, (host, port), Reach::Anywhere, self.limit)
                .await
                .map_err(|error| refused(&error))?;
            if dial::is_socks(proxy) {
                let led = dial::through_socks(tcp, self.target, proxy).await;
                return Ok(Stream::Tcp(led.map_err(|error| refused(&error))?));
            }
            let mut stream = Stream::Tcp(tcp);
            if proxy.scheme() == "https" {
                let config = self.tls.config(self.ignore_tls_errors);
                stream = secure(&config, host, stream).await.map_err(|error| refused(&error))?;
            }
            if !is_tunnelled {
                return Ok(stream);
            }
            let failed = |failure: Failure| Failure::new(failure.kind, format!("the proxy {proxy}: {failure}"));
            let authority = self.authority();
            let asked = tunnel(&authority, authorization.as_deref(), &mut stream).await;
            let challenge = match asked.map_err(failed)? {
                Tunnel::Open => return Ok(stream),
                Tunnel::Challenged(challenge) => challenge,
            };
            // It may have closed the connection, so the answer goes over another one.
            let answer = challenge.zip(login.as_ref()).filter(|_| !is_answered);
            let Some((challenge, login)) = answer else {
                return Err(failed(Failure::new(
                    FailureKind::Unauthorized,
                    "it wants a user name and password (407); give them as http://user:password@host:port",
                )));
            };
            is_answered = true;
            authorization = Some(Session::new(challenge).authorization(login, "CONNECT", &authority));
        }
    }

    fn authority(&self) -> String {
        let (host, port) = self.target;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

/// A proxy's answer to `CONNECT`.
enum Tunnel {
    Open,
    /// It wants another authorization (407); the challenge is one that can be answered, if there is one.
    Challenged(Option<Challenge>),
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

/// The failure for a host that the supplier of its URL may not reach.
pub fn not_reachable(forbidden: &Forbidden) -> Failure {
    Failure::new(
        FailureKind::ForbiddenRedirect,
        format!("{forbidden}; ask for that URL itself if you trust it"),
    )
}

/// Fails if `work`, a step of connecting to `who`, takes longer than `limit`.
pub async fn within<T>(
    limit: Duration,
    who: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Failure::new(
            FailureKind::Timeout,
            format!("{who} did not complete the connection within {limit:?}"),
        ))
    })
}

/// Begins TLS with `host` on `stream`.
pub async fn secure(config: &Arc<ClientConfig>, host: &str, stream: Stream) -> Result<Stream, Failure> {
    match stream {
        Stream::Tcp(tcp) => handshake(config, host, tcp).await,
        Stream::Layered(layers) => handshake(config, host, layers).await,
    }
}

async fn handshake<S>(config: &Arc<ClientConfig>, host: &str, stream: S) -> Result<Stream, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        Failure::new(
            FailureKind::Tls,
            format!("{host} is no name that a certificate can have"),
        )
    })?;
    let connector = TlsConnector::from(Arc::clone(config));
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

/// Asks an HTTP proxy for a tunnel to the target (RFC 9110, section 9.3.6).
async fn tunnel(authority: &str, authorization: Option<&str>, stream: &mut Stream) -> Result<Tunnel, Failure> {
    let failed = |why: String| Failure::new(FailureKind::Proxy, why);
    let authorization = authorization.map_or_else(String::new, |value| format!("Proxy-Authorization: {value}\r\n"));
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
        (Ok(_), Some(200..=299)) => Ok(Tunnel::Open),
        (Ok(_), Some(407)) => {
            let wanted = response.headers.iter();
            let wanted = wanted.filter(|header| header.name.eq_ignore_ascii_case("proxy-authenticate"));
            Ok(Tunnel::Challenged(Challenge::strongest(
                wanted.map(|header| header.value),
            )))
        }
        (Ok(_), Some(code)) => Err(failed(format!(
            "it refused to connect to {authority} with status {code}"
        ))),
        _ => Err(failed("its answer is not HTTP".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener};

    use super::*;

    /// Reads a head and answers it.
    async fn answer(listener: &TcpListener, text: &str) -> (TcpStream, String) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(text.as_bytes()).await.unwrap();
        (stream, String::from_utf8(head).unwrap())
    }

    #[tokio::test]
    async fn a_proxy_that_asks_for_digest_before_a_tunnel_gets_one_answer() {
        const CHALLENGE: &str = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"tunnel\"\r\nProxy-Authenticate: Digest \
             realm=\"tunnel\", nonce=\"n0nce\", algorithm=SHA-256\r\nConnection: close\r\n\r\n";
        // SHA-256 of the parts by Python's hashlib.
        const RESPONSE: &str = "010be94cde88e4995e7eaf201b949eb8232b913c216cf4dccf4172a0a1269543";
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = SafeUrl::parse(&format!("http://me:open%20sesame@127.0.0.1:{port}")).unwrap();
        let (names, tls) = (Names::default(), Tls::new(None).unwrap());
        let leg = Leg {
            names: &names,
            tls: &tls,
            ignore_tls_errors: false,
            target: ("site.test", 443),
            proxy: Some(&proxy),
            reach: Reach::Anywhere,
            limit: Duration::from_secs(10),
        };
        for is_right in [true, false] {
            let serve = async {
                let (_closed, first) = answer(&listener, CHALLENGE).await;
                let second = if is_right {
                    "HTTP/1.1 200 Yes\r\n\r\n!"
                } else {
                    CHALLENGE
                };
                (first, answer(&listener, second).await)
            };
            let (opened, (first, (_open, second))) = futures_util::future::join(leg.to_target(), serve).await;
            assert!(first.starts_with("CONNECT site.test:443 HTTP/1.1\r\n"), "{first}");
            assert!(second.starts_with("CONNECT site.test:443 HTTP/1.1\r\n"), "{second}");
            assert!(second.contains("uri=\"site.test:443\""), "{second}");
            assert!(second.contains(&format!("response=\"{RESPONSE}\"")), "{second}");
            if is_right {
                let (mut stream, _) = opened.unwrap();
                assert_eq!(
                    stream.read_u8().await.unwrap(),
                    b'!',
                    "what follows the answer is the tunnel's"
                );
            } else {
                let failure = opened.unwrap_err();
                assert_eq!(failure.kind, FailureKind::Unauthorized);
                assert!(!failure.message.contains("sesame"), "{failure}");
            }
        }
    }
}
