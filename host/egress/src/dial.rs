//! Opens TCP connections: resolves the name, drops forbidden addresses, and tries the rest in a staggered race.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{net::TcpStream, time::timeout};
use tokio_socks::tcp::{Socks4Stream, Socks5Stream};
use transfer::{SafeUrl, proxy::is_socks4};
use url::Host;

use crate::{
    address,
    reach::{Forbidden, Reach},
};

/// Wait before the next address is tried while one is still connecting (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// The most addresses of one host that are tried.
const MAX_ADDRESSES: usize = 16;

/// Limit for lookups of [`check_proxied`].
const CHECKING_LOOKUP: Duration = Duration::from_secs(3);

/// The name resolver: the system's, or a replacement in tests.
#[derive(Clone, Default)]
pub struct Names {
    own: Option<Arc<dyn Lookup>>,
    family: Option<Family>,
}

/// A version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Version 4.
    V4,
    /// Version 6.
    V6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        address.is_ipv6() == (self == Self::V6)
    }
}

/// A name resolver.
pub trait Lookup: Send + Sync {
    /// The present addresses of `name`.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.own.is_some() {
            "Names(own)"
        } else {
            "Names(system)"
        })
    }
}

impl Names {
    /// Uses `lookup` instead of the system.
    pub fn by(lookup: impl Lookup + 'static) -> Self {
        Self {
            own: Some(Arc::new(lookup)),
            family: None,
        }
    }

    /// Leaves out addresses of the other family, also those that are written in a URL.
    #[must_use]
    pub fn only(self, family: Family) -> Self {
        Self {
            family: Some(family),
            ..self
        }
    }

    /// The addresses of `host`, a name or an address without brackets.
    pub(crate) async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut found = self.lookup_any(host, port).await?;
        if let Some(family) = self.family {
            found.retain(|address| family.has(address));
            if found.is_empty() {
                let version = if family == Family::V4 { 4 } else { 6 };
                return Err(io::Error::other(format!("it has no address of IPv{version}")));
            }
        }
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    async fn lookup_any(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        match &self.own {
            None => {
                let found = tokio::net::lookup_host((host, port)).await?;
                Ok(found.collect())
            }
            Some(own) => {
                let found = own.lookup(host).await?.into_iter();
                Ok(found.map(|address| SocketAddr::new(address, port)).collect())
            }
        }
    }
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name is unknown.
    #[error("the host {host} cannot be found: {source}")]
    Unknown {
        /// The name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// All addresses of the name are forbidden.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// No address accepts a connection.
    #[error("cannot connect to {host} port {port}: {source}")]
    Refused {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The error of the last one.
        source: io::Error,
    },
    /// Resolving the name took too long.
    #[error("finding the host {host} took over {limit:?}")]
    SlowLookup {
        /// The name.
        host: String,
        /// The limit.
        limit: Duration,
    },
    /// Connecting took too long.
    #[error("{host} port {port} did not answer within {limit:?}")]
    SlowAnswer {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The limit.
        limit: Duration,
    },
}

/// Parses a name, or an address without brackets, into the form that URLs have.
pub fn host_of(text: &str) -> Host<&str> {
    match text.parse() {
        Ok(IpAddr::V4(address)) => Host::Ipv4(address),
        Ok(IpAddr::V6(address)) => Host::Ipv6(address),
        Err(_) => Host::Domain(text),
    }
}

/// Connects to the first address of `host` that `reach` allows and that accepts; tries the next one whenever one fails
/// or is slow. `host` is a name or an address without brackets; `limit` is for the lookup and for connecting, each.
pub async fn dial(
    names: &Names,
    (host, port): (&str, u16),
    reach: Reach,
    limit: Duration,
) -> Result<TcpStream, DialError> {
    if !reach.allows_host(&host_of(host)) {
        return Err(Forbidden::new(host).into());
    }
    let resolving = timeout(limit, names.lookup(host, port));
    let addresses = match resolving.await {
        Ok(Ok(addresses)) => interleave(addresses),
        Ok(Err(source)) => {
            let host = host.to_owned();
            return Err(DialError::Unknown { host, source });
        }
        Err(_) => {
            let host = host.to_owned();
            return Err(DialError::SlowLookup { host, limit });
        }
    };
    let allowed = allowed(reach, &addresses);
    if allowed.is_empty() && !addresses.is_empty() {
        return Err(Forbidden::new(host).into());
    }
    let stream = match timeout(limit, race(&allowed)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => {
            let host = host.to_owned();
            return Err(DialError::Refused { host, port, source });
        }
        Err(_) => {
            let host = host.to_owned();
            return Err(DialError::SlowAnswer { host, port, limit });
        }
    };
    // Check the actual peer, not the requested address: 0.0.0.0, for one, connects to this machine.
    if !stream.peer_addr().is_ok_and(|peer| reach.allows(peer.ip())) {
        return Err(Forbidden::new(host).into());
    }
    // Requests are written at once; merging small writes would only delay them.
    let _unsupported = stream.set_nodelay(true);
    Ok(stream)
}

/// The addresses that `reach` allows.
pub(crate) fn allowed(reach: Reach, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let allowed = addresses.iter().filter(|address| reach.allows(address.ip()));
    allowed.copied().collect()
}

/// Whether `proxy` may be asked to connect to `host`.
///
/// A proxy resolves names itself, so there is no address to check: names are checked by their spelling, and addresses
/// directly. If only global addresses are allowed, a name for an HTTP proxy is also resolved here and refused if it has
/// a local address: proxies often run on this machine or beside it, and then reach the same network. A name that is
/// unknown here is left to the proxy: such proxies exist because some networks have no name server for the Internet. A
/// name server that gives the proxy another answer than us defeats this check; only the proxy itself could prevent
/// that.
///
/// Names for a SOCKS proxy are never resolved here: such proxies are used to hide lookups from the local network.
pub async fn check_proxied(names: &Names, host: &str, reach: Reach, proxy: &SafeUrl) -> Result<(), Forbidden> {
    let spelled = host_of(host);
    if !reach.allows_host(&spelled) {
        return Err(Forbidden::new(host));
    }
    let is_looked_up = reach != Reach::Anywhere && matches!(spelled, Host::Domain(_)) && !is_socks(proxy);
    if !is_looked_up {
        return Ok(());
    }
    let found = timeout(CHECKING_LOOKUP, names.lookup(host, 0)).await;
    let found = found.ok().and_then(Result::ok).unwrap_or_default();
    let is_here = |address: &SocketAddr| address::is_here(address.ip()) && !reach.allows(address.ip());
    if found.iter().any(is_here) {
        return Err(Forbidden::new(host));
    }
    Ok(())
}

/// Whether a proxy speaks SOCKS.
pub fn is_socks(proxy: &SafeUrl) -> bool {
    proxy.scheme().starts_with("socks")
}

/// Has the SOCKS proxy at the other end of `stream` connect to a host and port. The proxy resolves the name: a lookup here
/// would reveal it to the local name server.
pub async fn through_socks(stream: TcpStream, target: (&str, u16), proxy: &SafeUrl) -> io::Result<TcpStream> {
    let connected = match proxy.credentials() {
        _ if is_socks4(proxy.scheme()) => {
            let led = Socks4Stream::connect_with_socket(stream, target).await;
            led.map(Socks4Stream::into_inner)
        }
        None => {
            let led = Socks5Stream::connect_with_socket(stream, target).await;
            led.map(Socks5Stream::into_inner)
        }
        Some(login) => {
            let (user, password) = (login.user.as_str(), login.password.expose());
            let led = Socks5Stream::connect_with_password_and_socket(stream, target, user, password).await;
            led.map(Socks5Stream::into_inner)
        }
    };
    connected.map_err(io::Error::other)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers consecutive lookups from a list, then repeats the last answer.
    struct Changing(Vec<Vec<IpAddr>>, AtomicUsize);

    impl Lookup for Changing {
        fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let nth = self.1.fetch_add(1, Ordering::Relaxed).min(self.0.len() - 1);
            Box::pin(async move { Ok(self.0[nth].clone()) })
        }
    }

    fn names(answers: &[&[&str]]) -> Names {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Names::by(Changing(answers.iter().map(parse).collect(), AtomicUsize::new(0)))
    }

    const LIMIT: Duration = Duration::from_secs(5);

    fn is_forbidden<T>(outcome: &Result<T, DialError>) -> bool {
        matches!(outcome, Err(DialError::Forbidden(_)))
    }

    #[tokio::test]
    async fn a_name_that_leads_here_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lookups: [&[&[&str]]; 3] = [&[&["127.0.0.1"]], &[&["::ffff:127.0.0.1"]], &[&["0.0.0.0", "10.0.0.1"]]];
        for answers in lookups {
            let refused = dial(&names(answers), ("evil.example", port), Reach::Global, LIMIT).await;
            assert!(is_forbidden(&refused), "{refused:?}");
        }
        for host in ["127.0.0.1", "::1", "localhost", "nas"] {
            assert!(
                is_forbidden(&dial(&Names::default(), (host, port), Reach::Global, LIMIT).await),
                "{host}"
            );
        }
        assert!(
            dial(&names(&[&["127.0.0.1"]]), ("nas.example", port), Reach::Anywhere, LIMIT)
                .await
                .is_ok()
        );
        let (_stream, _) = listener.accept().await.unwrap();
        let another = timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(another.is_err(), "only the allowed one connected");
    }

    #[tokio::test]
    async fn each_connection_is_judged_by_its_own_lookup() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let rebinding = names(&[&["192.0.2.1"], &["127.0.0.1"]]);
        assert_eq!(
            rebinding.lookup("evil.example", port).await.unwrap()[0]
                .ip()
                .to_string(),
            "192.0.2.1"
        );
        let second = dial(&rebinding, ("evil.example", port), Reach::Global, LIMIT).await;
        assert!(is_forbidden(&second), "{second:?}");
        assert!(timeout(Duration::from_millis(50), listener.accept()).await.is_err());
    }

    #[tokio::test]
    async fn an_http_proxy_is_not_named_what_leads_here_and_a_socks_proxy_is_not_looked_up_for() {
        let check = async |answers: &[&[&str]], host: &str, reach, proxy: &str| {
            let proxy = SafeUrl::parse(proxy).unwrap();
            check_proxied(&names(answers), host, reach, &proxy).await
        };
        let http = "http://proxy.test:3128";
        for here in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "::1",
            "fe80::1",
            "::ffff:192.168.1.1",
        ] {
            let leads_here: &[&[&str]] = &[&["1.1.1.1", here]];
            assert!(
                check(leads_here, "x.nip.example", Reach::Global, http).await.is_err(),
                "{here}"
            );
            assert!(check(leads_here, "x.nip.example", Reach::Anywhere, http).await.is_ok());
            assert!(
                check(leads_here, "x.nip.example", Reach::Global, "socks5://p.test:1")
                    .await
                    .is_ok()
            );
            for proxy in [http, "socks5://p.test:1"] {
                assert!(check(&[&[]], here, Reach::Global, proxy).await.is_err(), "{here}");
            }
        }
        assert!(check(&[&["1.1.1.1"]], "a.example", Reach::Global, http).await.is_ok());
        assert!(
            check(&[&[]], "only-the-proxy-knows.example", Reach::Global, http)
                .await
                .is_ok()
        );
        assert!(
            check(&[&["198.18.0.7"]], "invented.example", Reach::Global, http)
                .await
                .is_ok()
        );
        for local in ["localhost", "x.localhost.", "router", "db.internal"] {
            assert!(
                check(&[&[]], local, Reach::Global, "socks5://p.test:1").await.is_err(),
                "{local}"
            );
        }
    }

    #[tokio::test]
    async fn only_addresses_of_the_chosen_family_are_tried() {
        let found = async |family, host: &str| {
            let names = names(&[&["::1", "127.0.0.1"]]).only(family);
            let found = names.lookup(host, 1).await.map_err(|error| error.to_string());
            found.map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(found(Family::V4, "a.test").await.unwrap(), ["127.0.0.1:1"]);
        assert_eq!(found(Family::V6, "a.test").await.unwrap(), ["[::1]:1"]);
        assert_eq!(found(Family::V4, "::1").await.unwrap_err(), "it has no address of IPv4");
        assert_eq!(
            found(Family::V6, "127.0.0.1").await.unwrap_err(),
            "it has no address of IPv6"
        );
    }

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
