//! The text of a feed's bytes, whose declarations of an encoding are often wrong.

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a document is searched for the declaration of its encoding.
const DECLARATION_BYTES: usize = 256;

/// A byte order mark decides; text that is UTF-8 is UTF-8, whatever was declared; then the declarations of header and
/// document, and a guess where they say UTF-8 or nothing.
pub(super) fn decode<'a>(bytes: &'a [u8], content_type: &str) -> Cow<'a, str> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[length..]).0;
    }
    match bytes {
        [b'<' | b'{', 0, ..] => return UTF_16LE.decode_without_bom_handling(bytes).0,
        [0, b'<' | b'{', ..] => return UTF_16BE.decode_without_bom_handling(bytes).0,
        _ => {}
    }
    // ISO-2022-JP is made of ASCII characters; its escapes tell it from UTF-8.
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\u{1b}')) {
        return text.into();
    }
    let named = of_header(content_type).or_else(|| of_document(bytes));
    let encoding = named
        .filter(|encoding| *encoding != UTF_8)
        .unwrap_or_else(|| guess(bytes));
    encoding.decode_without_bom_handling(bytes).0
}

fn of_header(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches(['"', '\'']))
    })?;
    Encoding::for_label(charset.as_bytes())
}

fn of_document(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let head = String::from_utf8_lossy(head);
    let declaration = head.split("?>").next().filter(|text| text.contains("<?xml"))?;
    let (_, value) = declaration.split_once("encoding")?;
    let label = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = label.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Encoding::for_label(label[1..].split(quote).next()?.as_bytes())
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new();
    detector.feed(bytes, true);
    let guess = detector.guess(None, false);
    // A few broken characters in a text of another encoding than UTF-8 would break all of its characters.
    let broken = |encoding: &'static Encoding| {
        let text = encoding.decode_without_bom_handling(bytes).0;
        text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count()
    };
    let foreign = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    if broken(UTF_8) * 10 < foreign { UTF_8 } else { guess }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_encoding_that_it_has() {
        let declared = |encoding: &str, text: &[u8]| {
            let head = format!("<?xml version='1.0' encoding='{encoding}'?>");
            [head.as_bytes(), text].concat()
        };
        let (russian, _, _) = encoding_rs::WINDOWS_1251.encode("Новая серия вышла сегодня");
        let cases: [(Vec<u8>, &str, &str); 7] = [
            (declared("windows-1251", &russian), "", "Новая серия"),
            (
                declared("utf-8", &russian),
                "text/xml; charset=windows-1251",
                "Новая серия",
            ),
            (declared("utf-8", &russian), "", "Новая серия"),
            (declared("windows-1251", "Новая серия".as_bytes()), "", "Новая серия"),
            (
                declared("utf-8", "Новая серия вышла сегодня \u{fffd}".as_bytes()),
                "",
                "Новая",
            ),
            (b"<\0t\0>\0\xe9\0".to_vec(), "", "<t>\u{e9}"),
            (b"\xef\xbb\xbf<t>".to_vec(), "text/xml; charset=latin1", "<t>"),
        ];
        for (bytes, content_type, expected) in cases {
            let text = decode(&bytes, content_type);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn one_broken_character_does_not_change_the_encoding() {
        let mut bytes = "<t>Die Maus hört früh die Züge über Köln</t>".as_bytes().to_vec();
        bytes.push(0xff);
        assert!(decode(&bytes, "").contains("hört früh"));
    }
}
