//! Text in an unknown encoding: headers and listings have whatever the file system of the server has.

use chardetng::EncodingDetector;
use encoding_rs::{UTF_8, WINDOWS_1252};
use percent_encoding::{CONTROLS, percent_encode};

/// Text of bytes in an unknown encoding.
pub fn decode_guessing(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => guess(bytes).0,
    }
}

/// The name of a file from bytes in an unknown encoding. Bytes that are no text in the guessed one are percent-escaped, so
/// that no two names become the same.
pub fn decode_or_escape(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    match guess(bytes) {
        (text, false) => text,
        (_, true) => percent_encode(bytes, CONTROLS).to_string(),
    }
}

/// The text in the likeliest encoding, and whether some bytes are invalid in it.
fn guess(bytes: &[u8]) -> (String, bool) {
    let mut detector = EncodingDetector::new();
    detector.feed(bytes, true);
    let guessed = detector.guess(None, false);
    let encoding = if guessed == UTF_8 { WINDOWS_1252 } else { guessed };
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    let is_no_text = has_errors || text.chars().any(char::is_control);
    (text.into_owned(), is_no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text_of_some_encoding_or_escaped() {
        for (bytes, name) in [
            ("naïve.txt".as_bytes(), "naïve.txt"),
            (
                b"\xd6\xd0\xce\xc4\xce\xc4\xbc\xfe\xc3\xfb\xb3\xc6.zip",
                "中文文件名称.zip",
            ),
            (b"a\x81\x01b", "a%81%01b"),
        ] {
            assert_eq!(decode_or_escape(bytes), name);
        }
    }
}
