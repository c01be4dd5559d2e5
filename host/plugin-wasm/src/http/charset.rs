//! Bodies in UTF-8, whatever their sites write them in: a secret is searched for in one encoding only.

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};

use super::{Answer, computing::Computing};

/// How much is decoded without letting others work.
const TURN_BYTES: usize = 128 * 1024;

/// Decodes the body of a response that says by its byte order mark, or else by its type, that it is not UTF-8. Returns
/// whether it is at most `most` bytes long then; otherwise the body stays as it is.
pub(crate) async fn decode(answer: &mut Answer, most: u64, computing: &Computing) -> bool {
    let Some(encoding) = encoding(answer) else { return true };
    let mut decoder = encoding.new_decoder();
    let mut text = String::new();
    let mut pieces = answer.body.chunks(TURN_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        computing.work(|| {
            let longest = decoder.max_utf8_buffer_length(piece.len());
            text.reserve(longest.expect("a piece is short"));
            let _whole = decoder.decode_to_string(piece, &mut text, pieces.peek().is_none());
        });
        if text.len() as u64 > most {
            return false;
        }
        tokio::task::yield_now().await;
    }
    answer.body = Bytes::from(text);
    true
}

/// The encoding, unless it is UTF-8.
fn encoding(answer: &Answer) -> Option<&'static Encoding> {
    let marked = Encoding::for_bom(&answer.body).map(|(encoding, _)| encoding);
    let labelled = || {
        let types = answer
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        types.flat_map(|(_, value)| value.split(';')).find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let label = value.trim().trim_matches('"');
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| Encoding::for_label(label.as_bytes()))
        })?
    };
    marked.or_else(labelled).filter(|encoding| *encoding != UTF_8)
}
