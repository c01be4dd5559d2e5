//! The nodes that are known, kept over a restart. A cache: a file that cannot be read is none.

use std::{net::SocketAddr, path::Path};

use metainfo::bencode::{self, Value, Writer};

use super::{
    id::NodeId,
    message::{compact_nodes, read_nodes},
};
use crate::peer::{V4_BYTES, V6_BYTES};

/// The largest file that is read; some hundred nodes have 10 KiB.
const MAX_BYTES: usize = 64 * 1024;

const VERSION: i64 = 1;

/// What is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: NodeId,
    /// Of one family.
    pub(super) nodes: Vec<(NodeId, SocketAddr)>,
}

pub(super) fn read(path: &Path) -> Option<Kept> {
    let bytes = private_files::read(path).ok()??;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<Kept> {
    let value = bencode::parse(bytes).ok().filter(|_| bytes.len() <= MAX_BYTES)?;
    if value.get(b"version").and_then(Value::as_integer) != Some(VERSION) {
        return None;
    }
    let id = value.get(b"id")?.as_bytes()?.try_into().ok()?;
    let nodes = |key: &[u8], length| {
        let bytes = value.get(key).and_then(Value::as_bytes).unwrap_or_default();
        read_nodes(bytes, 20 + length).collect::<Vec<_>>()
    };
    Some(Kept {
        id: NodeId(id),
        nodes: [nodes(b"nodes", V4_BYTES), nodes(b"nodes6", V6_BYTES)].concat(),
    })
}

pub(super) fn write(kept: &Kept) -> Vec<u8> {
    let (v6, v4): (Vec<_>, Vec<_>) = kept.nodes.iter().copied().partition(|(_, address)| address.is_ipv6());
    Writer::dict(|file| {
        file.entry("id").bytes(kept.id.0);
        file.entry("nodes").bytes(compact_nodes(&v4));
        file.entry("nodes6").bytes(compact_nodes(&v6));
        file.entry("version").integer(VERSION);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_and_anything_else_is_nothing() {
        for address in ["1.2.3.4:5", "[2001:db8::1]:5"] {
            let kept = Kept {
                id: NodeId([1; 20]),
                nodes: vec![(NodeId([2; 20]), address.parse().unwrap())],
            };
            let bytes = write(&kept);
            assert_eq!(parse(&bytes), Some(kept));
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), None);
            }
        }
        assert_eq!(parse(b"de"), None);
    }
}
