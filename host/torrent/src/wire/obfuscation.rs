//! Message stream encryption (MSE/PE, as libtorrent and aria2 have it): a connection that looks like random bytes, so that it
//! is not told apart and slowed down. It hides nothing from somebody who knows the info hash, and proves nothing about the
//! peer.
//!
//! Pure: both sides of the exchange as functions of bytes.

mod group;
mod rc4;

use metainfo::InfoHash;
use sha1::{Digest as _, Sha1};

pub(crate) use self::{
    group::{KEY_BYTES, KeyPair, Secret},
    rc4::Rc4,
};

/// The most padding in each of four places.
pub(crate) const MAX_PADDING_BYTES: usize = 512;

/// Bytes of the digest by which one side finds where the other one's padding ends.
pub(crate) const MARK_BYTES: usize = 20;

/// Zeros: the right key is known by them.
pub(crate) const CHECK_BYTES: usize = 8;

/// Bytes before the padding of an offer: the check, the ways, the length of the padding.
pub(crate) const OFFER_BYTES: usize = CHECK_BYTES + 6;

/// Ways to go on after the exchange, as bits.
const PLAIN: u32 = 1;
const RC4: u32 = 2;

/// Which ways are offered or accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) plain: bool,
    pub(crate) rc4: bool,
}

impl Ways {
    fn bits(self) -> u32 {
        u32::from(self.plain) * PLAIN + u32::from(self.rc4) * RC4
    }

    fn of(bits: u32) -> Self {
        Self {
            plain: bits & PLAIN != 0,
            rc4: bits & RC4 != 0,
        }
    }

    /// What both sides know: without encryption if that is allowed, because it hides nothing that matters more than time.
    pub(crate) fn choose(self, offered: Self) -> Option<Self> {
        let plain = self.plain && offered.plain;
        let rc4 = !plain && self.rc4 && offered.rc4;
        (plain || rc4).then_some(Self { plain, rc4 })
    }
}

/// The keys of a connection.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Of what the side that connected sends.
    pub(crate) connecting: Rc4,
    /// Of what the other side sends.
    pub(crate) accepting: Rc4,
}

impl Keys {
    pub(crate) fn new(secret: &Secret, torrent: InfoHash) -> Self {
        let key = |name: &[u8]| Rc4::new(&digest(&[name, secret.as_bytes(), torrent.as_bytes()]));
        Self {
            connecting: key(b"keyA"),
            accepting: key(b"keyB"),
        }
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 20] {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// What the side that connected sends after the keys, before it encrypts.
pub(crate) fn first_mark(secret: &Secret) -> [u8; MARK_BYTES] {
    digest(&[b"req1", secret.as_bytes()])
}

/// How it says which torrent it wants, so that only somebody who knows the torrent understands it.
pub(crate) fn torrent_mark(secret: &Secret, torrent: InfoHash) -> [u8; MARK_BYTES] {
    let (of_torrent, of_secret) = (
        digest(&[b"req2", torrent.as_bytes()]),
        digest(&[b"req3", secret.as_bytes()]),
    );
    std::array::from_fn(|index| of_torrent[index] ^ of_secret[index])
}

/// Check, ways and length of padding, in clear.
pub(crate) fn offer(ways: Ways, padding: usize) -> Vec<u8> {
    let mut bytes = vec![0; CHECK_BYTES];
    bytes.extend(ways.bits().to_be_bytes());
    let padding = u16::try_from(padding.min(MAX_PADDING_BYTES)).expect("512 fit");
    bytes.extend(padding.to_be_bytes());
    bytes.resize(bytes.len() + usize::from(padding), 0);
    bytes
}

/// Reads an offer that was decrypted: the ways, and how much padding follows. `None` if it is none.
pub(crate) fn read_offer(bytes: &[u8; OFFER_BYTES]) -> Option<(Ways, usize)> {
    let (check, rest) = bytes.split_at(CHECK_BYTES);
    let (ways, padding) = rest.split_at(4);
    let ways = u32::from_be_bytes(ways.try_into().ok()?);
    let padding = usize::from(u16::from_be_bytes(padding.try_into().ok()?));
    (check == [0; CHECK_BYTES] && padding <= MAX_PADDING_BYTES).then_some((Ways::of(ways), padding))
}

#[cfg(test)]
mod tests;
