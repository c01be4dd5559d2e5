//! Where a URL points at a server: the bytes of a path, and whether it is a directory. Pure.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use transfer::{Failure, FileName, SafeUrl, failure::FailureKind, text::decode_or_escape};

/// Bytes of a name that are escaped in the path of a URL: all but the unreserved ones (RFC 3986), and the tilde, which
/// means the home directory where it stands alone.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// The path of a URL as it is sent: absolute, or relative to the home directory if the URL's path begins with `/~/`, as in
/// curl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path without a slash at its end; `.` is the home directory.
    pub path: Vec<u8>,
    /// Whether it is a directory: the URL ends with a slash.
    pub is_directory: bool,
}

impl Place {
    /// The place of `url`. Fails before anything is sent if the path has a NUL character, at which servers end it.
    pub fn of(url: &SafeUrl) -> Result<Self, Failure> {
        let text = text(url);
        let (text, is_home) = match text.strip_prefix("/~/") {
            Some(below) => (below, true),
            None if text == "/~" => ("", true),
            None => (&*text, false),
        };
        let mut path: Vec<u8> = percent_decode_str(text).collect();
        if path.contains(&0) {
            let why = format!("the path of {url} has a NUL character, at which a server would end it");
            return Err(Failure::new(FailureKind::InvalidSource, why));
        }
        let is_directory = path.last().is_none_or(|byte| *byte == b'/');
        let kept = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        path.truncate(kept);
        if path.is_empty() {
            path.push(if is_home { b'.' } else { b'/' });
        }
        Ok(Self { path, is_directory })
    }

    /// The last component of the path as a file's name.
    pub(crate) fn name(&self) -> Option<FileName> {
        let last = self.path.rsplit(|byte| *byte == b'/').next()?;
        file_name(last)
    }

    /// The path of `components` below this one.
    pub(crate) fn below(&self, components: &[Vec<u8>]) -> Vec<u8> {
        let mut path = self.path.clone();
        for component in components {
            if !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(component);
        }
        path
    }
}

/// The name on disk of a file that a server calls `bytes`; `None` if it is not one component.
pub(crate) fn file_name(bytes: &[u8]) -> Option<FileName> {
    if matches!(bytes, b"" | b"." | b"..") || bytes.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return None;
    }
    FileName::sanitise_or_none(&decode_or_escape(bytes))
}

/// The URL of `components` below the directory `url`. A login in `url` is kept.
pub(crate) fn below(url: &SafeUrl, components: &[&[u8]]) -> Result<SafeUrl, Failure> {
    let mut path = text(url).into_owned();
    for component in components {
        if !path.ends_with('/') {
            path.push('/');
        }
        path.extend(percent_encode(component, ESCAPED));
    }
    let mut found = url.as_url().clone();
    found.set_query(None);
    found.set_fragment(None);
    found.set_path(&path);
    SafeUrl::parse(found.as_str()).map_err(|error| Failure::new(FailureKind::InvalidSource, error.to_string()))
}

/// The path, still escaped. SFTP has no queries: what looks like one belongs to the name.
fn text(url: &SafeUrl) -> Cow<'_, str> {
    let parsed = url.as_url();
    match parsed.query() {
        Some(query) => format!("{}?{query}", parsed.path()).into(),
        None => parsed.path().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &[u8], is_directory: bool) {
        let path = path.to_vec();
        let found = Place::of(&SafeUrl::parse(text).unwrap());
        assert_eq!(found, Ok(Place { path, is_directory }), "{text}");
    }

    #[test]
    fn paths_are_absolute_or_below_the_home_directory() {
        check("sftp://h/a/b.bin", b"/a/b.bin", false);
        check("sftp://h/~/b.bin", b"b.bin", false);
        check("sftp://h/~/dir/", b"dir", true);
        check("sftp://h/~/", b".", true);
        check("sftp://h/~", b".", true);
        check("sftp://h/~user/f", b"/~user/f", false);
        check("sftp://h/%7E/f", b"/~/f", false);
        check("sftp://h/", b"/", true);
        check("sftp://h", b"/", true);
        check("sftp://h/dir//", b"/dir", true);
        check("sftp://h/a%20b%FF?x=1;type=a", b"/a b\xff?x=1;type=a", false);
    }

    #[test]
    fn a_nul_character_is_refused() {
        let refused = Place::of(&SafeUrl::parse("sftp://me:secret@h/a%00b").unwrap()).unwrap_err();
        assert_eq!(refused.kind, FailureKind::InvalidSource);
        assert!(!refused.message.contains("secret"), "{refused}");
    }

    #[test]
    fn urls_below_a_directory_lead_to_the_very_name() {
        for base in [
            "sftp://me:pw@h/dir/",
            "sftp://me:pw@h/",
            "sftp://me:pw@h/~/",
            "sftp://me:pw@h/~/d",
        ] {
            let base = SafeUrl::parse(base).unwrap();
            let place = Place::of(&base).unwrap();
            for name in [
                &b"plain.txt"[..],
                b"a b",
                b"50%25.txt",
                b"~",
                b"q?x#y",
                b"\xd6\xd0",
                b"%2e%2e",
            ] {
                let url = below(&base, &[b"~", name]).unwrap();
                let found = Place::of(&url).unwrap().path;
                let found = found.strip_prefix(b"./").unwrap_or(&found).to_vec();
                let expect = place.below(&[b"~".to_vec(), name.to_vec()]);
                let expect = expect.strip_prefix(b"./").unwrap_or(&expect).to_vec();
                assert_eq!(found, expect, "{url}");
                assert!(url.expose().starts_with("sftp://me:pw@h/"), "{}", url.expose());
            }
        }
    }

    #[test]
    fn names_of_servers_are_one_component() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b"] {
            assert_eq!(file_name(name), None, "{name:?}");
        }
        assert_eq!(file_name(b"a.bin").unwrap().as_str(), "a.bin");
    }
}
