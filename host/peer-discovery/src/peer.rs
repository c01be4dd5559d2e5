//! Addresses of peers: where they come from, which are used, and their compact form (BEP 23, BEP 7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Where an address comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A tracker of the torrent, or an additional one.
    Tracker,
    /// The distributed hash table.
    Dht,
    /// The local network (BEP 14).
    Lsd,
}

/// Addresses of peers that say to have a torrent. None of it is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where they come from.
    pub origin: Origin,
    /// At most [`MAX_BATCH`].
    pub peers: Vec<SocketAddr>,
}

/// The most addresses of one batch; an answer of a tracker has at most 200, because no more are asked for.
pub const MAX_BATCH: usize = 200;

/// The bytes of an IPv4 address and its port.
pub(crate) const V4_BYTES: usize = 6;

/// The bytes of an IPv6 address and its port.
pub(crate) const V6_BYTES: usize = 18;

/// Whether a peer can be at `address`. Private networks count, because swarms on a local network are usual; this machine
/// only where the user named a source on it: otherwise a stranger could have us send bytes to services that trust it.
pub fn is_usable(address: SocketAddr, may_be_this_machine: bool) -> bool {
    let ip = address.ip().to_canonical();
    let is_peer = match ip {
        IpAddr::V4(v4) => !v4.is_link_local() && !v4.is_broadcast() && v4.octets()[0] != 0,
        IpAddr::V6(_) => true,
    };
    address.port() != 0
        && is_peer
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && (may_be_this_machine || !ip.is_loopback())
}

/// The addresses of compact peers of IPv4; a part of one at the end is left out.
pub(crate) fn compact_v4(bytes: &[u8]) -> impl Iterator<Item = SocketAddr> {
    let (chunks, _) = bytes.as_chunks::<V4_BYTES>();
    chunks.iter().map(|&[a, b, c, d, high, low]| {
        let port = u16::from_be_bytes([high, low]);
        SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port)
    })
}

/// The addresses of compact peers of IPv6.
pub(crate) fn compact_v6(bytes: &[u8]) -> impl Iterator<Item = SocketAddr> {
    let (chunks, _) = bytes.as_chunks::<V6_BYTES>();
    chunks.iter().map(|chunk| {
        let (address, port) = chunk.split_at(16);
        let address: [u8; 16] = address.try_into().expect("it was split there");
        let port = u16::from_be_bytes([port[0], port[1]]);
        SocketAddr::new(Ipv6Addr::from(address).into(), port)
    })
}

/// The compact form of an address.
pub(crate) fn to_compact(address: SocketAddr) -> Vec<u8> {
    let mut bytes = match address.ip().to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    bytes.extend_from_slice(&address.port().to_be_bytes());
    bytes
}

/// `address` as equal addresses are written: IPv4 is not wrapped in IPv6.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into()
        }
        _ => SocketAddr::new(address.ip().to_canonical(), address.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_leads_to_this_machine_unless_the_user_named_it() {
        for (address, anywhere, here) in [
            ("93.184.216.34:1", true, true),
            ("192.168.1.5:6881", true, true),
            ("[fd00::1]:6881", true, true),
            ("127.0.0.1:6881", false, true),
            ("[::1]:6881", false, true),
            ("[::ffff:127.0.0.1]:6881", false, true),
            ("0.0.0.0:6881", false, false),
            ("[::]:6881", false, false),
            ("0.1.2.3:6881", false, false),
            ("255.255.255.255:6881", false, false),
            ("224.0.0.1:6881", false, false),
            ("[ff02::1]:6881", false, false),
            ("169.254.169.254:80", false, false),
            ("93.184.216.34:0", false, false),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(is_usable(address, false), anywhere, "{address}");
            assert_eq!(is_usable(address, true), here, "{address}");
        }
    }

    #[test]
    fn the_compact_form_is_read_as_it_is_written() {
        for text in ["1.2.3.4:5", "[2001:db8::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut bytes = to_compact(address);
            bytes.push(1);
            let read: Vec<_> = if address.is_ipv4() {
                compact_v4(&bytes).collect()
            } else {
                compact_v6(&bytes).collect()
            };
            assert_eq!(read, [address]);
        }
    }
}
