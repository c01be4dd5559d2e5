//! Header values as text: HTTP does not define their encoding, and servers send whatever their file system has.

use chardetng::EncodingDetector;
use encoding_rs::{UTF_8, WINDOWS_1252};

/// Text of bytes in an unknown encoding.
pub(crate) fn decode_guessing(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut detector = EncodingDetector::new();
    detector.feed(bytes, true);
    let guessed = detector.guess(None, false);
    let encoding = if guessed == UTF_8 { WINDOWS_1252 } else { guessed };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}
