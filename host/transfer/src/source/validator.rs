//! HTTP validators (entity tags and dates). They are sent back to the server later, perhaps from a journal on disk, so
//! nothing outside the grammar may pass as one.

/// The longest validator.
pub const MAX_VALIDATOR_BYTES: usize = 1024;

/// Whether `text` can be stored and compared with the server's next one. To be sent, it must also match the grammar:
/// [`is_entity_tag`] or [`is_date_like`].
pub fn is_comparable(text: &str) -> bool {
    (1..=MAX_VALIDATOR_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Whether `text` is an entity tag, strong or weak (RFC 9110, section 8.8.3): a quoted text without quotes, white space
/// and control characters.
pub fn is_entity_tag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    text.len() <= MAX_VALIDATOR_BYTES
        && inner.is_some_and(|inner| !inner.chars().any(|c| c == '"' || c == ' ' || c.is_control()))
}

/// Whether `text` has only characters that dates of HTTP have (RFC 9110, section 5.6.7). It need not be a valid date.
pub fn is_date_like(text: &str) -> bool {
    (1..=MAX_DATE_BYTES).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b" ,:-".contains(&byte))
}

/// The longest of the three forms of a date is `Wednesday, 06-Nov-94 08:49:37 GMT`.
const MAX_DATE_BYTES: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_grammar_makes_a_validator() {
        for good in ["\"\"", "\"a\"", "W/\"a-1:b\"", "\"\u{e9}\"", "\"a\\b\""] {
            assert!(is_entity_tag(good), "{good}");
        }
        let bad = [
            "",
            "a",
            "\"",
            "\"a",
            "w/\"a\"",
            "\"a\"b\"",
            "\"a b\"",
            "\"a\r\n b\"",
            "\"a\tb\"",
            "\"\u{7f}\"",
            "\"\0\"",
        ];
        for bad in bad {
            assert!(!is_entity_tag(bad), "{bad:?}");
        }
        assert!(!is_entity_tag(&format!("\"{}\"", "x".repeat(MAX_VALIDATOR_BYTES))));
        for good in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Wednesday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert!(is_date_like(good), "{good}");
        }
        for bad in [
            "",
            "Sun, 06 Nov 1994\r\n 08:49:37 GMT",
            "a\tb",
            "\"x\"",
            &"1".repeat(41),
        ] {
            assert!(!is_date_like(bad), "{bad:?}");
        }
    }
}
