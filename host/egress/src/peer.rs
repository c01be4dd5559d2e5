//! Connections to peers, whose addresses come from trackers, other peers and the user.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use transfer::{SafeUrl, proxy};

use crate::{
    dial::Names,
    reach::Reach,
    route::{Leg, Stream},
    tls::Tls,
};

/// Which peers may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerReach {
    /// Peers of the Internet and of the user's own networks: swarms on a local network are usual.
    Networks,
    /// Those, and peers on this machine: the user named one, or a tracker on this machine.
    AlsoThisMachine,
}

impl PeerReach {
    /// Whether a peer may be reached at `address`.
    pub fn allows(self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let is_here = ip.is_loopback() || ip.is_unspecified();
        address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && (!is_here || self == Self::AlsoThisMachine)
    }
}

/// Whether peers can be reached through this proxy: one with TLS would hide nothing that a tunnel does not.
pub fn can_lead(proxy: &SafeUrl) -> bool {
    proxy::check(proxy).is_ok() && proxy.scheme() != "https"
}

/// Connects to a peer within `limit`, through `proxy` if there is one and then never past it. The proxy's name is looked up
/// with `names`.
pub async fn connect(
    address: SocketAddr,
    reach: PeerReach,
    (proxy, names): (Option<&SafeUrl>, &Names),
    limit: Duration,
) -> io::Result<TcpStream> {
    if !reach.allows(address) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let connecting = async {
        match proxy {
            None => TcpStream::connect(address).await,
            Some(proxy) => through(proxy, names, address, limit).await,
        }
    };
    let stream = timeout(limit, connecting)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Requests are written in groups; merging them further would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn through(proxy: &SafeUrl, names: &Names, address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    if !can_lead(proxy) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let leg = Leg {
        names,
        tls: &Tls::new(None).map_err(io::Error::other)?,
        ignore_tls_errors: false,
        target: (&address.ip().to_string(), address.port()),
        proxy: Some(proxy),
        // Which peers may be reached was checked.
        reach: Reach::Anywhere,
        limit,
    };
    match leg.to_target().await.map_err(io::Error::other)?.0 {
        Stream::Tcp(stream) => Ok(stream),
        Stream::Layered(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Connections that wait to be accepted; as many as the kernel queues of itself.
const BACKLOG: i32 = 128;

/// Accepts peers at `address`: an IPv6 one is of that family alone, so that both families can have one port. Must be called
/// within a runtime.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // On Windows this would let another program take the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_families_have_one_port() {
        let v4 = listen("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = v4.local_addr().unwrap().port();
        match listen(format!("[::]:{port}").parse().unwrap()) {
            Ok(v6) => assert!(v6.local_addr().unwrap().is_ipv6()),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::AddrInUse, "there may be no IPv6"),
        }
        let taken = listen(format!("0.0.0.0:{port}").parse().unwrap()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn this_machine_is_reached_only_if_the_user_said_so() {
        let allows = |reach: PeerReach, address: &str| reach.allows(address.parse().unwrap());
        for address in [
            "127.0.0.1:6881",
            "127.9.9.9:6881",
            "[::1]:6881",
            "[::ffff:127.0.0.1]:6881",
        ] {
            assert!(!allows(PeerReach::Networks, address), "{address}");
            assert!(allows(PeerReach::AlsoThisMachine, address), "{address}");
        }
        for address in ["0.0.0.0:6881", "[::]:6881", "224.0.0.1:6881", "1.1.1.1:0"] {
            assert!(!allows(PeerReach::AlsoThisMachine, address), "{address}");
        }
        for address in ["192.168.1.2:6881", "1.1.1.1:6881", "[fd00::1]:6881"] {
            assert!(allows(PeerReach::Networks, address), "{address}");
        }
    }
}
