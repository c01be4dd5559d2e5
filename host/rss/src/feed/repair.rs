//! Makes text that a parser of XML accepts of text that is nearly XML. One pass, linear in the text.

use super::FeedError;

/// The longest name of an entity (`&CounterClockwiseContourIntegral;`).
const MAX_ENTITY_BYTES: usize = 34;

/// Removes what XML forbids (control characters, the declaration of a document type), escapes what was not escaped
/// (ampersands and less-than signs of plain text), and replaces HTML's entities by their characters.
pub(super) fn repair(text: &str) -> Result<String, FeedError> {
    let mut repaired = String::with_capacity(text.len() + text.len() / 16);
    // Looked for once, so that sections without an end do not each search the whole rest.
    let behind = |mark: &str| text.rfind(mark).map_or(0, |at| text.len() - at);
    let (cdata_ends, comments_end) = (behind("]]>"), behind("-->"));
    // A document has one type. Each search for the end of another one would go through the whole rest.
    let mut has_type = false;
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        push_legal(&mut repaired, &rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('&') {
            push_reference(&mut repaired, rest)
        } else if let Some(inner) = rest
            .strip_prefix("<![CDATA[")
            .filter(|inner| (1..=inner.len()).contains(&cdata_ends))
        {
            push_cdata(&mut repaired, inner)
        } else if rest.starts_with("<!--") && (1..=rest.len() - 4).contains(&comments_end) {
            rest[4..].find("-->").map_or(rest.len(), |end| end + 7)
        } else if !has_type && rest.get(..9).is_some_and(|tag| tag.eq_ignore_ascii_case("<!doctype")) {
            has_type = true;
            document_type_length(rest)?
        } else if rest[1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '?' | '_')) {
            let length = tag_length(rest);
            push_tag(&mut repaired, &rest[..length]);
            length
        } else {
            repaired.push_str("&lt;");
            1
        };
        rest = &rest[length..];
    }
    push_legal(&mut repaired, rest);
    Ok(repaired)
}

fn push_legal(repaired: &mut String, text: &str) {
    repaired.extend(text.chars().filter(|c| is_legal(*c)));
}

/// What XML 1.0 allows.
fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

/// Pushes a reference as what it stands for, or its ampersand if it is none. Returns the length of what was consumed.
fn push_reference(repaired: &mut String, rest: &str) -> usize {
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'#';
    let length = rest
        .bytes()
        .skip(1)
        .take(MAX_ENTITY_BYTES)
        .take_while(is_of_name)
        .count();
    let name = &rest[1..=length];
    if name.is_empty() || !rest[1 + length..].starts_with(';') {
        repaired.push_str("&amp;");
        return 1;
    }
    let whole = &rest[..length + 2];
    let decoded = html_escape::decode_html_entities(whole);
    if decoded == whole && !matches!(name, "amp") {
        // No entity of HTML: the text as it stands. References to characters that do not exist have no text.
        if !name.starts_with('#') {
            repaired.push_str("&amp;");
            repaired.push_str(&whole[1..]);
        }
    } else {
        let legal: String = decoded.chars().filter(|c| is_legal(*c)).collect();
        repaired.push_str(&quick_xml::escape::escape(legal.as_str()));
    }
    whole.len()
}

/// Pushes a section of character data as escaped text. Returns the length of what was consumed, with its beginning.
fn push_cdata(repaired: &mut String, inner: &str) -> usize {
    let begin = "<![CDATA[".len();
    let end = inner.find("]]>").unwrap_or(inner.len());
    let legal: String = inner[..end].chars().filter(|c| is_legal(*c)).collect();
    repaired.push_str(&quick_xml::escape::escape(legal.as_str()));
    begin + (end + 3).min(inner.len())
}

/// Where a tag ends, behind its `>`, those in quoted values aside; or where it breaks off.
fn tag_length(text: &str) -> usize {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in text.char_indices().skip(1) {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') if before == '=' => quote = Some(c),
            (None, '>') => return at + 1,
            // A new tag: this one has no end.
            (None, '<') => return at,
            _ => {}
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    // A quote that is never closed; the first `>` must do.
    text.find('>').map_or(text.len(), |at| at + 1)
}

/// A tag, whose attributes may hold bare ampersands.
fn push_tag(repaired: &mut String, tag: &str) {
    let mut rest = tag;
    while let Some(at) = rest.find('&') {
        push_legal(repaired, &rest[..at]);
        let length = push_reference(repaired, &rest[at..]);
        rest = &rest[at + length..];
    }
    push_legal(repaired, rest);
    if !tag.ends_with('>') {
        repaired.push('>');
    }
}

/// The length of a `<!DOCTYPE …>` with its internal subset, which may declare nothing.
fn document_type_length(text: &str) -> Result<usize, FeedError> {
    let end = text.find('>').map_or(text.len(), |at| at + 1);
    let Some(subset) = text[..end].find('[') else {
        return Ok(end);
    };
    let close = text[subset..].find("]>").or_else(|| text[subset..].find(']'));
    let close = subset + close.unwrap_or(text.len() - subset);
    if text[subset..close].to_ascii_uppercase().contains("<!ENTITY") {
        return Err(FeedError::Entities);
    }
    Ok(text[close..].find('>').map_or(text.len(), |at| close + at + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_nearly_xml_becomes_xml() {
        let cases = [
            ("Tom & Jerry &amp; Co", "Tom &amp; Jerry &amp; Co"),
            ("a &nbsp;&eacute;&#233;&#x1;b", "a \u{a0}\u{e9}\u{e9}b"),
            ("&unknown; &lt;b&gt;", "&amp;unknown; &lt;b&gt;"),
            ("1 < 2 <b>x\u{1}\u{0}</b>", "1 &lt; 2 <b>x</b>"),
            ("<a href=\"?a=1&b=2&copy=3\">", "<a href=\"?a=1&amp;b=2&amp;copy=3\">"),
            ("<![CDATA[<p>a & b]]>", "&lt;p&gt;a &amp; b"),
            ("<![CDATA[open", "&lt;![CDATA[open"),
            ("<!DOCTYPE rss PUBLIC \"x\" \"y\"><rss>", "<rss>"),
            ("<!doctype rss [ <!ELEMENT a ANY> ]><rss>", "<rss>"),
            ("<!-- a & b --><c/>", "<c/>"),
            ("<a title=\"1 > 0\">", "<a title=\"1 > 0\">"),
            ("<a <b>", "<a ><b>"),
        ];
        for (text, expected) in cases {
            assert_eq!(repair(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn declared_entities_are_refused() {
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss>&b;</rss>"#;
        assert_eq!(repair(bomb), Err(FeedError::Entities));
    }

    proptest! {
        #[test]
        fn any_text_is_repaired_and_grows_at_most_as_its_escapes(text in "(<|>|&|;|amp|#|!|\\[CDATA\\[|\\]\\]>|--|\"|=|é|\\PC){0,60}") {
            if let Ok(repaired) = repair(&text) {
                prop_assert!(repaired.len() <= text.len() * 6 + 1);
                prop_assert!(repaired.chars().all(is_legal));
            }
        }
    }
}
