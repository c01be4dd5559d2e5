//! The file name in a `Content-Disposition` header (RFC 6266, RFC 8187), and in those that real servers send.

use encoding_rs::Encoding;
use percent_encoding::percent_decode;

use transfer::text::decode_guessing;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Disposition {
    /// Whether the body is meant to be saved (`attachment`).
    pub(crate) is_attachment: bool,
    /// The name, decoded but not made safe.
    pub(crate) name: Option<String>,
}

impl Disposition {
    /// Parses a header value, bytes as sent. Broken parts are skipped.
    pub(crate) fn parse(value: &[u8]) -> Self {
        let mut parts = split_parameters(value).into_iter();
        let kind = parts.next().unwrap_or_default();
        // Some servers omit the type and start with the name.
        let has_kind = !kind.contains(&b'=');
        let mut plain = None;
        let mut extended = None;
        let rest = (!has_kind).then(|| kind.clone()).into_iter().chain(parts);
        for part in rest {
            let Some(equals) = part.iter().position(|byte| *byte == b'=') else {
                continue;
            };
            let (name, value) = (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"filename*") {
                extended = extended.or_else(|| decode_extended(value));
            } else if name.eq_ignore_ascii_case(b"filename") {
                plain = plain.or_else(|| Some(decode_plain(&unquote(value))));
            }
        }
        let name = extended.or(plain).filter(|name| !name.trim().is_empty());
        Self {
            is_attachment: has_kind && kind.trim_ascii().eq_ignore_ascii_case(b"attachment"),
            name,
        }
    }
}

/// Splits at semicolons that are not inside quotes.
fn split_parameters(value: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for &byte in value {
        match byte {
            b';' if !is_quoted => {
                parts.push(Vec::new());
                continue;
            }
            b'"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = byte == b'\\' && is_quoted && !is_escaped;
        parts.last_mut().expect("there is always a part").push(byte);
    }
    parts
}

/// Removes quotes. A backslash escapes only quotes and backslashes: browsers of Windows send paths with bare ones.
fn unquote(value: &[u8]) -> Vec<u8> {
    let Some(inner) = value.strip_prefix(b"\"") else {
        return value.to_vec();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => match rest.next_if(|next| matches!(next, b'"' | b'\\')) {
                Some(next) => bytes.push(next),
                None => bytes.push(byte),
            },
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// `charset'language'percent-encoded` (RFC 8187). `None` if malformed, so that the plain name is used.
fn decode_extended(value: &[u8]) -> Option<String> {
    let value = unquote(value);
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let encoding = Encoding::for_label(charset)?;
    let bytes: Vec<u8> = percent_decode(encoded).collect();
    encoding
        .decode_without_bom_handling_and_without_replacement(&bytes)
        .map(std::borrow::Cow::into_owned)
}

/// A name in no declared encoding: UTF-8 if it is valid, else guessed from its bytes (GBK, Shift-JIS, Latin-1 …).
/// Percent signs that decode to UTF-8 are decoded, as browsers do.
fn decode_plain(bytes: &[u8]) -> String {
    let unescaped: Vec<u8> = percent_decode(bytes).collect();
    match std::str::from_utf8(&unescaped) {
        Ok(text) => text.to_owned(),
        Err(_) => decode_guessing(bytes),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{GBK, SHIFT_JIS};
    use proptest::prelude::*;

    use super::*;

    fn name(value: &[u8]) -> Option<String> {
        Disposition::parse(value).name
    }

    fn check(value: &str, expected: &str) {
        assert_eq!(name(value.as_bytes()).as_deref(), Some(expected), "of {value}");
    }

    #[test]
    fn plain_and_quoted_names() {
        check("attachment; filename=plain.txt", "plain.txt");
        check(
            "attachment; filename=\"with space; and semicolon.txt\"",
            "with space; and semicolon.txt",
        );
        check(
            r#"attachment; filename="a \"quoted\" name.txt""#,
            "a \"quoted\" name.txt",
        );
        check(r#"attachment; FileName = "C:\dir\file.txt""#, r"C:\dir\file.txt");
        check("filename=bare.txt", "bare.txt");
        check("inline; filename=\"unclosed.txt", "unclosed.txt");
    }

    #[test]
    fn the_extended_name_wins_wherever_it_stands() {
        check(
            "attachment; filename*=UTF-8''%e2%82%ac%20rates.txt; filename=\"EURO rates\"",
            "€ rates.txt",
        );
        check(
            "attachment; filename=\"x\"; filename*=iso-8859-1'en'%A3%20rates",
            "£ rates",
        );
    }

    #[test]
    fn a_broken_extended_name_falls_back_to_the_plain_one() {
        check("attachment; filename=ok.txt; filename*=UTF-8''%ff%fe", "ok.txt");
        check("attachment; filename*=nonsense; filename=ok.txt", "ok.txt");
        check("attachment; filename*=no-such-charset''x; filename=ok.txt", "ok.txt");
    }

    #[test]
    fn raw_names_of_old_servers_are_recognised() {
        for (encoding, text) in [
            (GBK, "中文文件名称测试.zip"),
            (SHIFT_JIS, "日本語のファイル名テスト.zip"),
        ] {
            let mut value = b"attachment; filename=\"".to_vec();
            value.extend_from_slice(&encoding.encode(text).0);
            value.push(b'"');
            assert_eq!(name(&value).as_deref(), Some(text));
        }
        assert_eq!(
            name(b"attachment; filename=\"r\xe9sum\xe9 d\xe9j\xe0.pdf\"").as_deref(),
            Some("résumé déjà.pdf")
        );
        assert_eq!(
            name("attachment; filename=\"naïve.txt\"".as_bytes()).as_deref(),
            Some("naïve.txt")
        );
    }

    #[test]
    fn percent_signs_are_decoded_as_browsers_do() {
        check("attachment; filename=\"a%20b%C3%A9.txt\"", "a bé.txt");
        check("attachment; filename=\"100%.txt\"", "100%.txt");
    }

    #[test]
    fn attachment_is_told_apart_from_inline() {
        assert!(Disposition::parse(b"Attachment").is_attachment);
        assert!(!Disposition::parse(b"inline; filename=attachment").is_attachment);
        assert_eq!(Disposition::parse(b""), Disposition::default());
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(value in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ignored = Disposition::parse(&value);
        }
    }
}
