//! The messages of the hash table (BEP 5, BEP 32, BEP 42, BEP 43). Pure.

use std::net::SocketAddr;

use egress::Family;
use metainfo::{
    InfoHash,
    bencode::{self, DictWriter, Value, Writer},
};

use super::id::NodeId;
use crate::peer::{self, V4_BYTES, V6_BYTES};

/// The longest message that is read. Answers are at most as long as an Ethernet frame.
pub(super) const MAX_BYTES: usize = 1500;

/// The longest transaction id that is returned to a node.
const MAX_TRANSACTION: usize = 32;

/// The longest token that is returned to a node.
const MAX_TOKEN: usize = 64;

/// Nodes that are taken from one answer.
const MAX_NODES: usize = 16;

/// Peers that are taken from one answer.
const MAX_PEERS: usize = 100;

const ID_BYTES: usize = 20;

/// A message of another node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Query {
        transaction: &'a [u8],
        id: NodeId,
        query: Query<'a>,
        /// It answers no queries (BEP 43), so it has no place in a table.
        is_read_only: bool,
    },
    Answer {
        transaction: &'a [u8],
        answer: Answer,
    },
    /// A refusal of a query of ours.
    Error {
        transaction: &'a [u8],
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query<'a> {
    Ping,
    FindNode(NodeId),
    GetPeers(InfoHash),
    AnnouncePeer {
        info_hash: InfoHash,
        /// `None` is the port that the message came from.
        port: Option<u16>,
        token: &'a [u8],
    },
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: NodeId,
    pub(super) nodes: Vec<(NodeId, SocketAddr)>,
    pub(super) peers: Vec<SocketAddr>,
    pub(super) token: Option<Vec<u8>>,
    /// Our own address, as that node sees it.
    pub(super) own_address: Option<SocketAddr>,
}

/// Reads a message; `None` if it is none. Nodes of the other family than `family` are left out.
pub(super) fn read(datagram: &[u8], family: Family) -> Option<Message<'_>> {
    let message = bencode::parse(datagram).ok()?;
    let transaction = message.get(b"t")?.as_bytes()?;
    if transaction.len() > MAX_TRANSACTION {
        return None;
    }
    match message.get(b"y")?.as_bytes()? {
        b"q" => {
            let arguments = message.get(b"a")?;
            Some(Message::Query {
                transaction,
                id: id(arguments.get(b"id")?)?,
                query: query(message.get(b"q")?.as_bytes()?, arguments)?,
                is_read_only: message.get(b"ro").and_then(Value::as_integer) == Some(1),
            })
        }
        b"r" => {
            let values = message.get(b"r")?;
            let address = message.get(b"ip").and_then(Value::as_bytes);
            Some(Message::Answer {
                transaction,
                answer: Answer {
                    id: id(values.get(b"id")?)?,
                    nodes: nodes(values, family),
                    peers: peers(values),
                    token: token(values),
                    own_address: address.and_then(compact),
                },
            })
        }
        b"e" => Some(Message::Error { transaction }),
        _ => None,
    }
}

fn id(value: Value<'_>) -> Option<NodeId> {
    value.as_bytes()?.try_into().ok().map(NodeId)
}

fn query<'a>(name: &[u8], arguments: Value<'a>) -> Option<Query<'a>> {
    let place = |key: &[u8]| id(arguments.get(key)?);
    Some(match name {
        b"ping" => Query::Ping,
        b"find_node" => Query::FindNode(place(b"target")?),
        b"get_peers" => Query::GetPeers(InfoHash(place(b"info_hash")?.0)),
        b"announce_peer" => {
            let is_implied = arguments.get(b"implied_port").and_then(Value::as_integer);
            let port = arguments.get(b"port").and_then(Value::as_integer);
            let port = port.and_then(|port| u16::try_from(port).ok());
            let is_implied = is_implied.is_some_and(|implied| implied != 0);
            Query::AnnouncePeer {
                info_hash: InfoHash(place(b"info_hash")?.0),
                port: if is_implied { None } else { Some(port?) },
                token: arguments.get(b"token")?.as_bytes()?,
            }
        }
        _ => Query::Unknown,
    })
}

fn compact(bytes: &[u8]) -> Option<SocketAddr> {
    match bytes.len() {
        V4_BYTES => peer::compact_v4(bytes).next(),
        V6_BYTES => peer::compact_v6(bytes).next(),
        _ => None,
    }
}

fn nodes(values: Value<'_>, family: Family) -> Vec<(NodeId, SocketAddr)> {
    let (key, length) = match family {
        Family::V4 => (&b"nodes"[..], ID_BYTES + V4_BYTES),
        Family::V6 => (&b"nodes6"[..], ID_BYTES + V6_BYTES),
    };
    let bytes = values.get(key).and_then(Value::as_bytes).unwrap_or_default();
    read_nodes(bytes, length).take(MAX_NODES).collect()
}

/// Nodes in the compact form, each of so many bytes.
pub(super) fn read_nodes(bytes: &[u8], length: usize) -> impl Iterator<Item = (NodeId, SocketAddr)> {
    bytes.chunks_exact(length).filter_map(|node| {
        let (id, address) = node.split_first_chunk()?;
        Some((NodeId(*id), compact(address)?))
    })
}

/// The compact form of nodes.
pub(super) fn compact_nodes(nodes: &[(NodeId, SocketAddr)]) -> Vec<u8> {
    let nodes = nodes.iter();
    nodes
        .flat_map(|(id, address)| id.0.into_iter().chain(peer::to_compact(*address)))
        .collect()
}

fn peers(values: Value<'_>) -> Vec<SocketAddr> {
    let list = values.get(b"values").and_then(Value::as_list).into_iter().flatten();
    let peers = list.filter_map(|peer| compact(peer.as_bytes()?));
    peers.map(peer::canonical).take(MAX_PEERS).collect()
}

fn token(values: Value<'_>) -> Option<Vec<u8>> {
    let token = values.get(b"token")?.as_bytes()?;
    (token.len() <= MAX_TOKEN).then(|| token.to_vec())
}

/// Our program, as messages name it.
const VERSION: &[u8] = b"SV\0\x01";

/// A query of ours.
pub(super) fn write_query(transaction: u32, own: NodeId, query: Query<'_>) -> Vec<u8> {
    let name = match query {
        Query::Ping | Query::Unknown => "ping",
        Query::FindNode(_) => "find_node",
        Query::GetPeers(_) => "get_peers",
        Query::AnnouncePeer { .. } => "announce_peer",
    };
    Writer::dict(|message| {
        message.entry("a").dict_value(|arguments| {
            arguments.entry("id").bytes(own.0);
            write_arguments(arguments, query);
        });
        message.entry("q").bytes(name);
        message.entry("t").bytes(transaction.to_be_bytes());
        message.entry("v").bytes(VERSION);
        message.entry("y").bytes("q");
    })
}

fn write_arguments(arguments: &mut DictWriter<'_>, query: Query<'_>) {
    match query {
        Query::Ping | Query::Unknown => {}
        Query::FindNode(target) => arguments.entry("target").bytes(target.0),
        Query::GetPeers(info_hash) => arguments.entry("info_hash").bytes(info_hash.0),
        Query::AnnouncePeer { info_hash, port, token } => {
            arguments.entry("implied_port").integer(i64::from(port.is_none()));
            arguments.entry("info_hash").bytes(info_hash.0);
            arguments.entry("port").integer(i64::from(port.unwrap_or(0)));
            arguments.entry("token").bytes(token);
        }
    }
}

/// What an answer of ours has besides our id.
#[derive(Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) nodes: &'a [(NodeId, SocketAddr)],
    pub(super) token: Option<&'a [u8]>,
    pub(super) peers: &'a [SocketAddr],
}

/// An answer of ours to a node at `to`.
pub(super) fn write_answer(
    transaction: &[u8],
    own: NodeId,
    to: SocketAddr,
    family: Family,
    values: &Values<'_>,
) -> Vec<u8> {
    Writer::dict(|message| {
        message.entry("ip").bytes(peer::to_compact(to));
        message.entry("r").dict_value(|answer| {
            answer.entry("id").bytes(own.0);
            if !values.nodes.is_empty() {
                let key = if family == Family::V4 { "nodes" } else { "nodes6" };
                answer.entry(key).bytes(compact_nodes(values.nodes));
            }
            if let Some(token) = values.token {
                answer.entry("token").bytes(token);
            }
            if !values.peers.is_empty() {
                let peers = values.peers.iter();
                answer.entry("values").texts(peers.map(|peer| peer::to_compact(*peer)));
            }
        });
        message.entry("t").bytes(transaction);
        message.entry("v").bytes(VERSION);
        message.entry("y").bytes("r");
    })
}

/// A refusal: a code of the standard and its text.
pub(super) fn write_error(transaction: &[u8], code: i64, text: &str) -> Vec<u8> {
    Writer::dict(|message| {
        message.entry("e").list(|error| {
            error.integer(code);
            error.bytes(text);
        });
        message.entry("t").bytes(transaction);
        message.entry("v").bytes(VERSION);
        message.entry("y").bytes("e");
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own() -> NodeId {
        NodeId([7; 20])
    }

    #[test]
    fn queries_are_read_as_they_are_written() {
        let info_hash = InfoHash([1; 20]);
        for expected in [
            Query::Ping,
            Query::FindNode(NodeId([2; 20])),
            Query::GetPeers(info_hash),
            Query::AnnouncePeer {
                info_hash,
                port: Some(6881),
                token: b"t",
            },
            Query::AnnouncePeer {
                info_hash,
                port: None,
                token: b"t",
            },
        ] {
            let bytes = write_query(5, own(), expected);
            let Some(Message::Query {
                transaction, id, query, ..
            }) = read(&bytes, Family::V4)
            else {
                panic!("{expected:?}");
            };
            assert_eq!((transaction, id, query), (&[0, 0, 0, 5][..], own(), expected));
        }
    }

    #[test]
    fn an_answer_fits_into_a_frame_and_is_read_as_it_is_written() {
        for (family, address) in [(Family::V4, "1.2.3.4:5"), (Family::V6, "[2001:db8::1]:5")] {
            let address: SocketAddr = address.parse().unwrap();
            let nodes = vec![(NodeId([3; 20]), address); 8];
            let peers = vec![address; 40];
            let values = Values {
                nodes: &nodes,
                token: Some(b"token"),
                peers: &peers,
            };
            let bytes = write_answer(b"aa", own(), address, family, &values);
            assert!(bytes.len() <= MAX_BYTES);
            let Some(Message::Answer {
                transaction: b"aa",
                answer,
            }) = read(&bytes, family)
            else {
                panic!("it is read");
            };
            assert_eq!((answer.nodes, answer.peers), (nodes, peers));
            assert_eq!(
                (answer.token.as_deref(), answer.own_address),
                (Some(&b"token"[..]), Some(address))
            );
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_read_or_passed_over(
            changes in prop::collection::vec((0_usize..300, any::<u8>()), 0..8),
            length in 0_usize..400,
        ) {
            let nodes = vec![(NodeId([3; 20]), "1.2.3.4:5".parse().unwrap()); 8];
            let values = Values { nodes: &nodes, token: Some(b"token"), peers: &[] };
            let answer = write_answer(b"aa", own(), nodes[0].1, Family::V4, &values);
            let query = write_query(1, own(), Query::AnnouncePeer { info_hash: InfoHash([1; 20]), port: Some(1), token: b"x" });
            for mut bytes in [answer, query] {
                let end = bytes.len();
                for (at, byte) in &changes {
                    bytes[at % end] = *byte;
                }
                bytes.truncate(end.min(length));
                let _message = read(&bytes, Family::V4);
            }
        }
    }
}
