//! The extension protocol (BEP 10): its handshake, metadata (BEP 9), peer exchange (BEP 11) and pieces that are gone
//! (BEP 54). What a peer's dictionary says beyond that is ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use metainfo::bencode::{self, Value};

use super::Malformed;

/// Numbers that we give to extensions in our handshake; peers use them towards us.
pub(crate) const HANDSHAKE: u8 = 0;
pub(crate) const OUR_METADATA: u8 = 1;
pub(crate) const OUR_EXCHANGE: u8 = 2;
pub(crate) const OUR_DONT_HAVE: u8 = 3;

/// Bytes of a block of metadata, by BEP 9.
pub(crate) const METADATA_BLOCK_BYTES: usize = 16 * 1024;

/// Requests that a peer may have open with us at once; what exceeds it is refused or ends the connection.
pub(crate) const MAX_QUEUED_REQUESTS: usize = 512;

/// Requests that a peer accepts if it does not say (libtorrent's and our own assumption).
const USUAL_QUEUE: u32 = 250;

/// Addresses of one message of peer exchange that are read; BEP 11 allows 50 of each family.
const MAX_EXCHANGED: usize = 100;

/// The longest name of a client that is kept.
const MAX_CLIENT_CHARS: usize = 64;

/// A peer's answer to the question which extensions it supports. A later one replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExtensionHandshake {
    /// Its number for metadata; 0 for none, as below.
    pub(crate) metadata: u8,
    pub(crate) exchange: u8,
    pub(crate) dont_have: u8,
    pub(crate) metadata_bytes: Option<u64>,
    /// Port on which it accepts connections.
    pub(crate) port: Option<u16>,
    /// Requests that it accepts at once; at least 1.
    pub(crate) queue: u32,
    /// It will not download (BEP 21).
    pub(crate) is_upload_only: bool,
    pub(crate) client: Option<String>,
}

impl ExtensionHandshake {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let value = bencode::parse(bytes).map_err(|_| Malformed::Dictionary)?;
        let numbers = value.get(b"m");
        let number = |name: &[u8]| {
            let number = numbers
                .and_then(|numbers| numbers.get(name))
                .and_then(Value::as_integer);
            number.and_then(|number| u8::try_from(number).ok()).unwrap_or(0)
        };
        let integer = |name: &[u8]| value.get(name).and_then(Value::as_integer);
        let client = value.get(b"v").and_then(Value::as_bytes).map(client_name);
        Ok(Self {
            metadata: number(b"ut_metadata"),
            exchange: number(b"ut_pex"),
            dont_have: number(b"lt_donthave"),
            metadata_bytes: integer(b"metadata_size").and_then(|size| u64::try_from(size).ok()),
            port: integer(b"p")
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port != 0),
            queue: integer(b"reqq").map_or(USUAL_QUEUE, |queue| u32::try_from(queue).unwrap_or(USUAL_QUEUE).max(1)),
            is_upload_only: integer(b"upload_only").is_some_and(|value| value != 0),
            client,
        })
    }
}

/// A peer's text, short and without control characters.
fn client_name(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(MAX_CLIENT_CHARS).collect()
}

/// What our handshake says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OurHandshake {
    /// Bytes of the metadata, once we have it.
    pub(crate) metadata_bytes: Option<usize>,
    pub(crate) port: Option<u16>,
    pub(crate) exchanges_peers: bool,
    pub(crate) is_upload_only: bool,
    /// The peer's address as we see it.
    pub(crate) your_address: IpAddr,
}

impl OurHandshake {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = b"d1:md11:lt_donthavei3e11:ut_metadatai1e".to_vec();
        if self.exchanges_peers {
            text.extend_from_slice(b"6:ut_pexi2e");
        }
        text.push(b'e');
        if let Some(bytes) = self.metadata_bytes {
            text.extend_from_slice(format!("13:metadata_sizei{bytes}e").as_bytes());
        }
        if let Some(port) = self.port {
            text.extend_from_slice(format!("1:pi{port}e").as_bytes());
        }
        text.extend_from_slice(format!("4:reqqi{MAX_QUEUED_REQUESTS}e").as_bytes());
        if self.is_upload_only {
            text.extend_from_slice(b"11:upload_onlyi1e");
        }
        text.extend_from_slice(format!("1:v{}:{}", egress::USER_AGENT.len(), egress::USER_AGENT).as_bytes());
        match self.your_address.to_canonical() {
            IpAddr::V4(address) => {
                text.extend_from_slice(b"6:yourip4:");
                text.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                text.extend_from_slice(b"6:yourip16:");
                text.extend_from_slice(&address.octets());
            }
        }
        text.push(b'e');
        text
    }
}

/// A message about metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata<'a> {
    Request(u32),
    Data {
        block: u32,
        total_bytes: u64,
        data: &'a [u8],
    },
    Reject(u32),
    /// A kind that BEP 9 tells to ignore.
    Unknown,
}

impl<'a> Metadata<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (value, data) = bencode::parse_prefix(bytes).map_err(|_| Malformed::Dictionary)?;
        let integer = |name: &[u8]| value.get(name).and_then(Value::as_integer);
        let block = integer(b"piece")
            .and_then(|block| u32::try_from(block).ok())
            .ok_or(Malformed::Dictionary)?;
        Ok(match integer(b"msg_type") {
            Some(0) => Self::Request(block),
            Some(1) => Self::Data {
                block,
                total_bytes: integer(b"total_size")
                    .and_then(|size| u64::try_from(size).ok())
                    .ok_or(Malformed::Dictionary)?,
                data,
            },
            Some(2) => Self::Reject(block),
            _ => Self::Unknown,
        })
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Request(block) => format!("d8:msg_typei0e5:piecei{block}ee").into_bytes(),
            Self::Data {
                block,
                total_bytes,
                data,
            } => {
                let head = format!("d8:msg_typei1e5:piecei{block}e10:total_sizei{total_bytes}ee");
                [head.as_bytes(), data].concat()
            }
            Self::Reject(block) => format!("d8:msg_typei2e5:piecei{block}ee").into_bytes(),
            Self::Unknown => Vec::new(),
        }
    }
}

/// The addresses that a message of peer exchange adds; those that it drops are of no use.
pub(crate) fn decode_exchange(bytes: &[u8]) -> Result<Vec<SocketAddr>, Malformed> {
    let value = bencode::parse(bytes).map_err(|_| Malformed::Dictionary)?;
    let list = |name: &[u8]| value.get(name).and_then(Value::as_bytes).unwrap_or_default();
    let v4 = list(b"added").chunks_exact(6).map(|bytes| {
        let address = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
        SocketAddr::new(address.into(), u16::from_be_bytes([bytes[4], bytes[5]]))
    });
    let v6 = list(b"added6").chunks_exact(18).map(|bytes| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&bytes[..16]);
        SocketAddr::new(
            Ipv6Addr::from(octets).into(),
            u16::from_be_bytes([bytes[16], bytes[17]]),
        )
    });
    Ok(v4.chain(v6).take(MAX_EXCHANGED).collect())
}

/// A message of peer exchange.
pub(crate) fn encode_exchange(added: &[SocketAddr], dropped: &[SocketAddr]) -> Vec<u8> {
    let mut text = b"d".to_vec();
    for (name, addresses) in [("added", added), ("dropped", dropped)] {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for address in addresses {
            match address.ip().to_canonical() {
                IpAddr::V4(ip) => {
                    v4.extend_from_slice(&ip.octets());
                    v4.extend_from_slice(&address.port().to_be_bytes());
                }
                IpAddr::V6(ip) => {
                    v6.extend_from_slice(&ip.octets());
                    v6.extend_from_slice(&address.port().to_be_bytes());
                }
            }
        }
        let flags = |bytes: usize| vec![0; bytes];
        let mut entry = |key: String, bytes: &[u8]| {
            text.extend_from_slice(format!("{}:{key}{}:", key.len(), bytes.len()).as_bytes());
            text.extend_from_slice(bytes);
        };
        let is_added = name == "added";
        entry(name.to_owned(), &v4);
        if is_added {
            entry("added.f".to_owned(), &flags(v4.len() / 6));
        }
        entry(format!("{name}6"), &v6);
        if is_added {
            entry("added6.f".to_owned(), &flags(v6.len() / 18));
        }
    }
    text.push(b'e');
    text
}

/// The piece that a peer no longer has.
pub(crate) fn decode_dont_have(bytes: &[u8]) -> Result<u32, Malformed> {
    let bytes = bytes.try_into().map_err(|_| Malformed::Extension)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn our_handshake_is_read_as_it_was_meant() {
        let ours = OurHandshake {
            metadata_bytes: Some(1234),
            port: Some(6881),
            exchanges_peers: true,
            is_upload_only: true,
            your_address: IpAddr::from([10, 0, 0, 1]),
        };
        let read = ExtensionHandshake::decode(&ours.encode()).unwrap();
        let expected = ExtensionHandshake {
            metadata: OUR_METADATA,
            exchange: OUR_EXCHANGE,
            dont_have: OUR_DONT_HAVE,
            metadata_bytes: Some(1234),
            port: Some(6881),
            queue: 512,
            is_upload_only: true,
            client: Some(egress::USER_AGENT.to_owned()),
        };
        assert_eq!(read, expected);
        let private = OurHandshake {
            exchanges_peers: false,
            ..ours
        };
        assert_eq!(ExtensionHandshake::decode(&private.encode()).unwrap().exchange, 0);
    }

    #[test]
    fn numbers_that_make_no_sense_count_as_absent() {
        let read =
            ExtensionHandshake::decode(b"d1:md11:ut_metadatai999ee13:metadata_sizei-1e1:pi70000e4:reqqi-5ee").unwrap();
        assert_eq!((read.metadata, read.metadata_bytes, read.port), (0, None, None));
        assert_eq!(read.queue, USUAL_QUEUE);
        assert_eq!(ExtensionHandshake::decode(b"d1:vi3e"), Err(Malformed::Dictionary));
    }

    #[test]
    fn data_of_metadata_follows_its_dictionary() {
        let data = Metadata::Data {
            block: 2,
            total_bytes: 40_000,
            data: b"e1:xe",
        };
        assert_eq!(Metadata::decode(&data.encode()), Ok(data));
        assert_eq!(Metadata::decode(b"d8:msg_typei9e5:piecei0ee"), Ok(Metadata::Unknown));
        assert_eq!(
            Metadata::decode(b"d8:msg_typei0e5:piecei-1ee"),
            Err(Malformed::Dictionary)
        );
    }

    #[test]
    fn exchanged_addresses_arrive_and_a_flood_is_cut_off() {
        let peers: Vec<SocketAddr> = vec!["10.1.2.3:5".parse().unwrap(), "[2001:db8::1]:6".parse().unwrap()];
        assert_eq!(decode_exchange(&encode_exchange(&peers, &[])), Ok(peers));
        let flood = vec![SocketAddr::from(([1, 2, 3, 4], 5)); 3000];
        assert_eq!(
            decode_exchange(&encode_exchange(&flood, &flood)).unwrap().len(),
            MAX_EXCHANGED
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _read = ExtensionHandshake::decode(&bytes);
            let _read = Metadata::decode(&bytes);
            let _read = decode_exchange(&bytes);
        }
    }
}
