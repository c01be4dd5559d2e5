//! JSON strings without a JSON library.

/// The string that `raw`, a valid JSON value, is.
pub(crate) fn string(raw: &str) -> Option<String> {
    let inner = raw.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        text.push_str(plain);
        let kind = escaped.chars().next()?;
        rest = &escaped[kind.len_utf8()..];
        match kind {
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let (c, behind) = unicode(rest)?;
                text.push(c);
                rest = behind;
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    Some(text)
}

/// The character of an escape whose `\u` has been read, and what follows it. Half a pair stands for nothing known.
fn unicode(escaped: &str) -> Option<(char, &str)> {
    let (first, rest) = unit(escaped)?;
    let paired = rest.strip_prefix("\\u").and_then(unit);
    let (units, rest) = match (first, paired) {
        (0xd800..=0xdbff, Some((second @ 0xdc00..=0xdfff, behind))) => (vec![first, second], behind),
        _ => (vec![first], rest),
    };
    let c = char::decode_utf16(units).next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((c, rest))
}

fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_a_json_library_reads_them() {
        for raw in [
            r#""""#,
            r#""a\"b\\c\/\n\t""#,
            r#""\u00e4\ud83d\ude00x""#,
            r#" "ü" "#,
            r#""\u0041\u0042""#,
        ] {
            assert_eq!(string(raw), serde_json::from_str(raw).ok(), "{raw}");
        }
        assert_eq!(string(r#""\ud83dx""#).as_deref(), Some("\u{fffd}x"));
        assert_eq!(string("5"), None);
    }
}
