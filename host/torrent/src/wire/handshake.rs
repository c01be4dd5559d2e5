//! The first 68 bytes of a connection.

use metainfo::InfoHash;

use super::Malformed;

/// Bytes of a handshake.
pub(crate) const HANDSHAKE_BYTES: usize = 68;

/// The first bytes of a connection in clear.
pub(crate) const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";

/// What both sides say first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) info_hash: InfoHash,
    pub(crate) peer_id: [u8; 20],
    pub(crate) features: Features,
}

/// What a side supports beyond BEP 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Features {
    /// BEP 6.
    pub(crate) fast: bool,
    /// BEP 10.
    pub(crate) extended: bool,
}

impl Handshake {
    /// Ours.
    pub(crate) fn new(info_hash: InfoHash, peer_id: [u8; 20]) -> Self {
        Self {
            info_hash,
            peer_id,
            features: Features {
                fast: true,
                extended: true,
            },
        }
    }

    pub(crate) fn encode(&self) -> [u8; HANDSHAKE_BYTES] {
        let mut bytes = [0; HANDSHAKE_BYTES];
        bytes[..20].copy_from_slice(PROTOCOL);
        if self.features.extended {
            bytes[25] |= 0x10;
        }
        if self.features.fast {
            bytes[27] |= 0x04;
        }
        bytes[28..48].copy_from_slice(self.info_hash.as_bytes());
        bytes[48..].copy_from_slice(&self.peer_id);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HANDSHAKE_BYTES]) -> Result<Self, Malformed> {
        let (protocol, rest) = bytes.split_at(20);
        if protocol != PROTOCOL {
            return Err(Malformed::Protocol);
        }
        let mut info_hash = [0; 20];
        info_hash.copy_from_slice(&rest[8..28]);
        let mut peer_id = [0; 20];
        peer_id.copy_from_slice(&rest[28..]);
        Ok(Self {
            info_hash: InfoHash(info_hash),
            peer_id,
            features: Features {
                extended: rest[5] & 0x10 != 0,
                fast: rest[7] & 0x04 != 0,
            },
        })
    }
}
