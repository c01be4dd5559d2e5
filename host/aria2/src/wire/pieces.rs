//! Long answers in pieces.

use bytes::Bytes;

/// How much of a list is written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Short texts together, so that what is sent at once is neither one of them nor all.
pub(crate) fn grouped(
    mut texts: impl Iterator<Item = Vec<u8>> + Send + Sync,
) -> impl Iterator<Item = Bytes> + Send + Sync {
    std::iter::from_fn(move || {
        let mut piece = texts.next()?;
        while piece.len() < PIECE_BYTES {
            match texts.next() {
                Some(text) => piece.extend_from_slice(&text),
                None => break,
            }
        }
        Some(piece.into())
    })
}
