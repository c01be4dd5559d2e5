//! What servers of SFTP send: packets in any pieces, and the replies in them; and the user's file of known servers.

use bytes::Bytes;
use transfer_sftp::{
    known_hosts::{Known, Verdict},
    packet::{self, MAX_NAMES, MAX_PACKET_BYTES, Malformed, Reader, Reply},
};

use super::Target;

/// The most bytes of the pieces that a stream comes in.
const PIECE_BYTES: usize = 7;

/// Packets, as a stream and in pieces of it.
pub(super) fn sftp() -> Target {
    Box::new(|data| {
        let whole = packets(data.chunks(data.len().max(1)));
        let pieces = packets(data.chunks(PIECE_BYTES));
        assert_eq!(whole, pieces, "packets do not depend on how their stream is cut");
        for packet in whole.0 {
            assert!(!packet.is_empty() && packet.len() <= MAX_PACKET_BYTES);
            let _any = packet::version(packet.clone());
            let length = packet.len();
            match packet::reply(packet) {
                Ok((_, Reply::Data(bytes) | Reply::Handle(bytes))) => assert!(bytes.len() < length),
                Ok((_, Reply::Names(names))) => assert!(names.len() <= MAX_NAMES),
                Ok((_, Reply::Status(_, message))) => assert!(!message.chars().any(char::is_control)),
                Ok((_, Reply::Attributes(attributes))) => {
                    let _any = attributes.kind();
                }
                Err(_) => {}
            }
        }
    })
}

fn packets<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Bytes>, Option<Malformed>) {
    let (mut reader, mut found) = (Reader::default(), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.take() {
                Ok(Some(packet)) => found.push(packet),
                Ok(None) => break,
                Err(malformed) => return (found, Some(malformed)),
            }
        }
    }
    (found, None)
}

/// Lines of `known_hosts`.
pub(super) fn known_hosts() -> Target {
    Box::new(|data| {
        for (host, port) in [("example.test", 22), ("127.0.0.1", 2222), ("::1", 22)] {
            let known = Known::of(data, host, port);
            for key in &known.keys {
                let verdict = known.verdict(&key.blob);
                let is_revoked = known.revoked.iter().any(|other| other.blob == key.blob);
                assert_eq!(verdict == Verdict::Known, !is_revoked);
            }
            assert_ne!(known.verdict(b"no key"), Verdict::Known);
        }
    })
}
