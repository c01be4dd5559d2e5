//! Metalink documents, version 4 (RFC 5854) and 3: files, URLs and checksums. Pure.

use super::xml::{Element, NotXml};

/// Files per document; the same limit as for calls.
const MAX_FILES: usize = 10_000;

/// The priority of URLs without one: the last.
const NO_PRIORITY: u32 = 999_999;

#[derive(Debug, PartialEq)]
pub(crate) struct File {
    /// The name in the document, without hidden directories. Untrusted.
    pub(crate) name: String,
    /// Best first, never empty.
    pub(crate) urls: Vec<String>,
    /// `algorithm=hex` of the strongest hash of a known kind.
    pub(crate) checksum: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) version: Option<String>,
}

/// How URLs are ranked.
#[derive(Debug, Default)]
pub(crate) struct Preference {
    /// Preferred country codes, in lower case.
    pub(crate) locations: Vec<String>,
    /// The preferred scheme.
    pub(crate) protocol: Option<String>,
    /// The base of relative URLs.
    pub(crate) base: String,
}

/// Strongest first.
const HASHES: [&str; 4] = ["sha-512", "sha-256", "sha-1", "md5"];

/// Parses a document. Keeps files with HTTP or HTTPS URLs, in order.
pub(crate) fn read(text: &str, preference: &Preference) -> Result<Vec<File>, NotXml> {
    let root = Element::read(text)?;
    if root.name != "metalink" {
        return Ok(Vec::new());
    }
    let files = root.child("files").unwrap_or(&root);
    let files: Vec<File> = files
        .children("file")
        .filter_map(|element| file(element, preference))
        .collect();
    if files.len() > MAX_FILES {
        return Err(NotXml);
    }
    Ok(files)
}

fn file(element: &Element, preference: &Preference) -> Option<File> {
    // Version 3 nests URLs and hashes in their own elements.
    let urls = element.child("resources").unwrap_or(element);
    let hashes = element.child("verification").unwrap_or(element);
    let mut ranked: Vec<_> = urls.children("url").filter_map(|url| ranked(url, preference)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let text = |name: &str| {
        let found = element.child(name).map(|child| child.text.trim().to_owned());
        found.filter(|text| !text.is_empty())
    };
    let urls: Vec<String> = ranked.into_iter().map(|(_, url)| url).collect();
    (!urls.is_empty()).then(|| File {
        name: visible(element.attribute("name").unwrap_or_default()),
        urls,
        checksum: checksum(hashes),
        language: text("language"),
        os: text("os"),
        version: text("version"),
    })
}

/// Removes control characters, and leading and trailing dots of path segments: a document must not reach `.ssh` or
/// `.config`.
fn visible(path: &str) -> String {
    let steps = path.split(['/', '\\']).map(|step| {
        let plain: String = step.chars().filter(|c| !c.is_control()).collect();
        plain.trim_matches(|c: char| c == '.' || c.is_whitespace()).to_owned()
    });
    steps.filter(|step| !step.is_empty()).collect::<Vec<_>>().join("/")
}

/// A URL with its rank; less is better.
fn ranked(url: &Element, preference: &Preference) -> Option<((bool, bool, u32), String)> {
    let mut text = url.text.trim().to_owned();
    if !text.contains("://") {
        text.insert_str(0, &preference.base);
    }
    let (scheme, _) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") || url::Url::parse(&text).is_err() {
        return None;
    }
    let is_elsewhere = !url
        .attribute("location")
        .is_some_and(|location| preference.locations.contains(&location.to_ascii_lowercase()));
    let is_other = preference.protocol.as_ref().is_some_and(|wanted| *wanted != scheme);
    let number = |name: &str| url.attribute(name).and_then(|number| number.trim().parse::<u32>().ok());
    // Version 3 has the opposite order: 100 is best.
    let turned = || number("preference").map(|preference| 100u32.saturating_sub(preference));
    let priority = number("priority").or_else(turned).unwrap_or(NO_PRIORITY);
    Some(((is_elsewhere, is_other, priority), text))
}

fn checksum(hashes: &Element) -> Option<String> {
    let of = |wanted: &str| {
        hashes.children("hash").find_map(|hash| {
            let kind = hash.attribute("type")?.to_ascii_lowercase().replace('-', "");
            let is_wanted = kind == wanted.replace('-', "");
            let hex = hash.text.trim();
            let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
            (is_wanted && is_hex).then(|| format!("{wanted}={}", hex.to_ascii_lowercase()))
        })
    };
    HASHES.into_iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V4: &str = r#"<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="a/b.iso"><size>7</size><hash type="md5">AA</hash><hash type="sha-256">BB</hash>
            <language>en</language><os>linux</os><version>1</version>
            <url priority="2" location="de">https://b.test/x</url><url priority="1">http://a.test/x</url>
            <url>ftp://c.test/x</url><url>y</url><metaurl mediatype="torrent">http://t.test</metaurl></file>
        <file name="none"><url>ftp://c.test/x</url></file></metalink>"#;

    const V3: &str = r#"<metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="v3">
        <verification><hash type="sha1">00</hash></verification><resources maxconnections="1">
        <url type="http" preference="10">http://low.test/</url><url type="http" preference="90">http://high.test/</url>
        </resources></file></files></metalink>"#;

    #[test]
    fn both_versions_say_where_a_file_is_and_what_it_hashes_to() {
        let files = read(V4, &Preference::default()).unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].urls, ["http://a.test/x", "https://b.test/x"]);
        assert_eq!(files[0].checksum.as_deref(), Some("sha-256=bb"));
        assert_eq!(
            (files[0].name.as_str(), files[0].os.as_deref()),
            ("a/b.iso", Some("linux"))
        );
        let files = read(V3, &Preference::default()).unwrap();
        assert_eq!(files[0].urls, ["http://high.test/", "http://low.test/"]);
        assert_eq!(files[0].checksum.as_deref(), Some("sha-1=00"));
    }

    #[test]
    fn preferences_go_before_the_documents_order() {
        let near = Preference {
            locations: vec!["de".into()],
            ..Preference::default()
        };
        assert_eq!(read(V4, &near).unwrap()[0].urls[0], "https://b.test/x");
        let secure = Preference {
            protocol: Some("https".into()),
            base: "http://base.test/".into(),
            ..Preference::default()
        };
        let urls = &read(V4, &secure).unwrap()[0].urls;
        assert_eq!(urls, &["https://b.test/x", "http://a.test/x", "http://base.test/y"]);
    }

    #[test]
    fn no_document_reaches_hidden_directories() {
        for (name, kept) in [
            ("a/b.iso", "a/b.iso"),
            ("../.ssh/authorized_keys", "ssh/authorized_keys"),
            ("..\\.config\\autostart/x.desktop", "config/autostart/x.desktop"),
            ("a\u{1b}[2J/ . /b", "a[2J/b"),
        ] {
            assert_eq!(visible(name), kept);
        }
    }

    #[test]
    fn what_is_no_metalink_has_no_files() {
        assert_eq!(read("<x/>", &Preference::default()), Ok(Vec::new()));
        assert_eq!(read("<metalink", &Preference::default()), Err(NotXml));
    }

    proptest! {
        #[test]
        fn no_document_makes_the_reader_panic(inner in "[<>/a-z\"= 0-9]{0,80}") {
            let _any = read(&format!("<metalink><file name=\"x\"><url>{inner}</url></file></metalink>"), &Preference::default());
        }
    }
}
