//! Splits long answers into pieces.

use bytes::Bytes;

/// The target size of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Groups short texts into pieces of about that size.
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
