//! Datagrams: what a protocol over UDP may be sent to, by the same rules as connections.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::{net::UdpSocket, time::timeout};

use crate::{
    dial::{self, DialError, Names},
    reach::{Forbidden, Reach},
};

/// A socket for datagrams.
#[derive(Debug)]
pub struct Datagrams(UdpSocket);

impl Datagrams {
    /// Binds to `address`. A socket of IPv6 takes no IPv4: each family has its own.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = new(address)?;
        socket.bind(&SockAddr::from(address))?;
        Self::of(socket)
    }

    /// Binds to a multicast group of IPv4 on all interfaces; other processes may do so, too. Datagrams are received by
    /// ours and theirs, and stay in the local network.
    pub fn join(group: SocketAddrV4) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, group.port()));
        let socket = new(any)?;
        socket.set_reuse_address(true)?;
        #[cfg(all(unix, not(target_os = "linux")))]
        socket.set_reuse_port(true)?;
        socket.bind(&SockAddr::from(any))?;
        socket.join_multicast_v4(group.ip(), &Ipv4Addr::UNSPECIFIED)?;
        socket.set_multicast_ttl_v4(1)?;
        Self::of(socket)
    }

    fn of(socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket.into()).map(Self)
    }

    /// A socket for one conversation, which receives datagrams from `peer` only.
    pub async fn connect(peer: SocketAddr, reach: Reach) -> io::Result<Self> {
        check(peer, reach)?;
        let any = match peer {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(peer).await?;
        Ok(Self(socket))
    }

    /// Sends to the peer of [`connect`](Self::connect).
    pub async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.0.send(datagram).await.map(|_| ())
    }

    /// Sends to `to`, if `reach` allows it. `to` is an address of the socket's family.
    pub async fn send_to(&self, datagram: &[u8], to: SocketAddr, reach: Reach) -> io::Result<()> {
        check(to, reach)?;
        self.0.send_to(datagram, to).await.map(|_| ())
    }

    /// Sends to a multicast group in the local network.
    pub async fn send_to_group(&self, datagram: &[u8], group: SocketAddrV4) -> io::Result<()> {
        if !group.ip().is_multicast() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.0.send_to(datagram, group).await.map(|_| ())
    }

    /// The next datagram, and its sender. What `buffer` has no room for is lost. Cancel-safe.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            match self.0.recv_from(buffer).await {
                // Windows reports this for an earlier datagram whose port had no listener.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                received => return received,
            }
        }
    }

    /// The address that the socket is bound to.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

fn new(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn check(to: SocketAddr, reach: Reach) -> io::Result<()> {
    if reach.allows(to.ip()) {
        Ok(())
    } else {
        let refused = Forbidden::new(to.ip().to_string());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, refused))
    }
}

/// The addresses of `host`, a name or an address without brackets, that `reach` allows, for protocols over UDP. `limit`
/// is for the lookup.
pub async fn resolve(
    names: &Names,
    (host, port): (&str, u16),
    reach: Reach,
    limit: Duration,
) -> Result<Vec<SocketAddr>, DialError> {
    if !reach.allows_host(&dial::host_of(host)) {
        return Err(Forbidden::new(host).into());
    }
    let found = match timeout(limit, names.lookup(host, port)).await {
        Ok(Ok(found)) => found,
        Ok(Err(source)) => {
            let host = host.to_owned();
            return Err(DialError::Unknown { host, source });
        }
        Err(_) => {
            let host = host.to_owned();
            return Err(DialError::SlowLookup { host, limit });
        }
    };
    let allowed = dial::allowed(reach, &found);
    if allowed.is_empty() {
        return Err(Forbidden::new(host).into());
    }
    Ok(allowed)
}

/// The address that the system would use to send to `peer`. Nothing is sent.
pub fn own_address_towards(peer: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => [0, 0, 0, 0].into(),
        IpAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    socket.connect((peer, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_datagram_goes_only_where_its_reach_allows() {
        let ours = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let theirs = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = theirs.local_address().unwrap();
        let refused = ours.send_to(b"x", to, Reach::Global).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(Datagrams::connect(to, Reach::Global).await.is_err());
        let refused = resolve(
            &Names::default(),
            ("127.0.0.1", 1),
            Reach::Global,
            Duration::from_secs(1),
        )
        .await;
        assert!(matches!(refused, Err(DialError::Forbidden(_))));

        ours.send_to(b"hello", to, Reach::Anywhere).await.unwrap();
        let mut buffer = [0; 16];
        let (length, from) = theirs.receive(&mut buffer).await.unwrap();
        assert_eq!(
            (&buffer[..length], from),
            (&b"hello"[..], ours.local_address().unwrap())
        );
    }

    #[tokio::test]
    async fn a_conversation_takes_no_datagram_of_others() {
        let server = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Datagrams::connect(server.local_address().unwrap(), Reach::Anywhere)
            .await
            .unwrap();
        let other = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = client.local_address().unwrap();
        other.send_to(b"forged", to, Reach::Anywhere).await.unwrap();
        server.send_to(b"answer", to, Reach::Anywhere).await.unwrap();
        let mut buffer = [0; 16];
        let (length, _) = client.receive(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"answer");
    }
}
