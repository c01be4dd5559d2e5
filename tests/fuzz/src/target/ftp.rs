//! What servers of FTP say: replies in any pieces, the values in them, and the lines of listings.

use transfer::{SafeUrl, run::walk::Kind};
use transfer_ftp::{
    facts,
    listing::{self, Line},
    passive,
    place::Place,
    reply::{Malformed, Reader, Reply},
};

use super::Target;

/// The most bytes of the pieces that a stream comes in.
const PIECE_BYTES: usize = 7;

/// Replies and listings, as a stream and in pieces of it.
pub(super) fn ftp() -> Target {
    Box::new(|data| {
        let whole = replies(data.chunks(data.len().max(1)));
        let pieces = replies(data.chunks(PIECE_BYTES));
        assert_eq!(whole, pieces, "replies do not depend on how their stream is cut");
        for reply in whole.0 {
            assert!((100..600).contains(&reply.code) && !reply.lines.is_empty());
            assert!(!reply.shown().chars().any(char::is_control));
            assert!(passive::extended(&reply) != Some(0) && passive::plain(&reply) != Some(0));
            let _any = facts::size(&reply);
            if let Some(changed) = facts::changed(&reply) {
                let found = facts::Facts {
                    size: None,
                    changed: Some(changed),
                };
                let _any = found.changed_at();
            }
        }
        for line in data.split(|byte| *byte == b'\n') {
            for read in [listing::machine(line), listing::long(line)] {
                let Line::Entry(entry) = read else { continue };
                let name = entry.name;
                assert!(!name.is_empty() && !matches!(&*name, b"." | b".."));
                assert!(!name.iter().any(|byte| matches!(byte, b'/' | b'\r' | b'\n' | 0)));
                assert!(entry.kind == Kind::File || entry.size.is_none());
            }
            let url = std::str::from_utf8(line)
                .ok()
                .and_then(|text| SafeUrl::parse(text).ok());
            if let Some(Ok(place)) = url.map(|url| Place::of(&url)) {
                assert!(!place.path.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
            }
        }
    })
}

fn replies<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Reply>, Option<Malformed>) {
    let (mut reader, mut found) = (Reader::default(), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.take() {
                Ok(Some(reply)) => found.push(reply),
                Ok(None) => break,
                Err(malformed) => return (found, Some(malformed)),
            }
        }
    }
    (found, None)
}
