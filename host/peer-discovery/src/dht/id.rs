//! Ids of nodes and their distances (BEP 5), and which id an address may have (BEP 42). Pure.

use std::{fmt, net::IpAddr};

use metainfo::InfoHash;

/// A place in the hash table: a node's, or a torrent's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) [u8; 20]);

/// How far two places are from each other: smaller is nearer.
pub(super) type Distance = [u8; 20];

impl NodeId {
    pub(super) fn distance(self, other: Self) -> Distance {
        std::array::from_fn(|at| self.0[at] ^ other.0[at])
    }

    /// The number of first bits that are equal, at most 160.
    pub(super) fn common_bits(self, other: Self) -> usize {
        let distance = self.distance(other);
        let zeros = distance.iter().position(|byte| *byte != 0);
        zeros.map_or(160, |at| at * 8 + distance[at].leading_zeros() as usize)
    }

    /// The id for a node at `address`. Ids follow from addresses, so that nobody chooses a place beside a torrent.
    pub(super) fn of_address(address: IpAddr, random: [u8; 20]) -> Self {
        let [first, second, third] = prefix(address, random[19]);
        let mut id = random;
        id[0] = first;
        id[1] = second;
        id[2] = third | (random[2] & 7);
        Self(id)
    }

    /// Whether a node at `address` may have this id.
    pub(super) fn is_of_address(self, address: IpAddr) -> bool {
        let [first, second, third] = prefix(address, self.0[19]);
        self.0[0] == first && self.0[1] == second && self.0[2] & 0xf8 == third
    }
}

impl From<InfoHash> for NodeId {
    fn from(info_hash: InfoHash) -> Self {
        Self(info_hash.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        InfoHash(self.0).fmt(f)
    }
}

/// The 21 bits that follow from an address.
fn prefix(address: IpAddr, random: u8) -> [u8; 3] {
    let seed = (random & 7) << 5;
    let sum = match address.to_canonical() {
        IpAddr::V4(v4) => {
            let mut bytes = (v4.to_bits() & 0x030f_3fff).to_be_bytes();
            bytes[0] |= seed;
            crc32c(&bytes)
        }
        IpAddr::V6(v6) => {
            let high = u64::try_from(v6.to_bits() >> 64).expect("half of the bits are left");
            let mut bytes = (high & 0x0103_070f_1f3f_7fff).to_be_bytes();
            bytes[0] |= seed;
            crc32c(&bytes)
        }
    };
    let [first, second, third, _] = sum.to_be_bytes();
    [first, second, third & 0xf8]
}

/// CRC-32C (Castagnoli). It is computed once in a while, for eight bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            let shifted = sum >> 1;
            if sum & 1 == 1 { shifted ^ 0x82f6_3b78 } else { shifted }
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_addresses_as_in_the_standard() {
        for (address, random, prefix) in [
            ("124.31.75.21", 1, [0x5f, 0xbf, 0xb8]),
            ("21.75.31.124", 86, [0x5a, 0x3c, 0xe8]),
            ("65.23.51.170", 22, [0xa5, 0xd4, 0x30]),
            ("84.124.73.14", 65, [0x1b, 0x03, 0x20]),
            ("43.213.53.83", 90, [0xe5, 0x6f, 0x68]),
        ] {
            let mut bytes = [0; 20];
            bytes[19] = random;
            let id = NodeId::of_address(address.parse().unwrap(), bytes);
            assert_eq!(id.0[..2], prefix[..2], "{address}");
            assert_eq!(id.0[2] & 0xf8, prefix[2], "{address}");
            assert!(id.is_of_address(address.parse().unwrap()));
            assert!(!id.is_of_address("1.1.1.1".parse().unwrap()));
        }
    }

    #[test]
    fn nearer_places_have_more_bits_in_common() {
        let id = |first, last| {
            let mut bytes = [0; 20];
            (bytes[0], bytes[19]) = (first, last);
            NodeId(bytes)
        };
        assert_eq!(id(0, 0).common_bits(id(0x80, 0)), 0);
        assert_eq!(id(0, 0).common_bits(id(0x01, 0)), 7);
        assert_eq!(id(0, 0).common_bits(id(0, 1)), 159);
        assert_eq!(id(3, 3).common_bits(id(3, 3)), 160);
        assert!(id(0, 0).distance(id(0, 1)) < id(0, 0).distance(id(1, 0)));
    }
}
