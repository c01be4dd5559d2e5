//! Where a URL points at a server: the bytes of a path, and whether it is a directory. Pure.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use transfer::{Failure, FileName, SafeUrl, failure::FailureKind, text::decode_or_escape};

/// Bytes of a name that are escaped in the path of a URL: all but the unreserved ones (RFC 3986).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a URL (RFC 1738, section 3.2), as it is sent: relative to the directory after the login, or absolute if the
/// URL's path begins with `%2F`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path without a slash at its end; empty is the directory after the login.
    pub path: Vec<u8>,
    /// Whether it is a directory: the URL ends with a slash or `;type=d`.
    pub is_directory: bool,
}

impl Place {
    /// The place of `url`. Fails before anything is sent if the path has characters that would end a command.
    pub fn of(url: &SafeUrl) -> Result<Self, Failure> {
        let invalid = |message: String| Err(Failure::new(FailureKind::InvalidSource, message));
        let (text, kind) = parts(url);
        let kind = kind.map(str::to_ascii_lowercase);
        if !matches!(kind.as_deref(), None | Some("i" | "d")) {
            let kind = kind.unwrap_or_default();
            return invalid(format!(
                "{url} asks for type={kind}; files are only fetched as they are: leave ;type={kind} out"
            ));
        }
        let mut path: Vec<u8> = percent_decode_str(&text).collect();
        if !is_sendable(&path) {
            return invalid(format!(
                "the path of {url} has a line end or a NUL character, which would be a command of its own"
            ));
        }
        let has_slash = path.last().is_none_or(|byte| *byte == b'/');
        if path.len() > 1 {
            let kept = path.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
            path.truncate(kept);
        }
        Ok(Self {
            path,
            is_directory: has_slash || kind.as_deref() == Some("d"),
        })
    }

    /// The last component of the path as a file's name.
    pub(crate) fn name(&self) -> Option<FileName> {
        let last = self.path.rsplit(|byte| *byte == b'/').next()?;
        file_name(last)
    }
}

/// Whether `bytes` can be the argument of a command.
pub(crate) fn is_sendable(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

/// The name on disk of a file that a server calls `bytes`.
pub(crate) fn file_name(bytes: &[u8]) -> Option<FileName> {
    FileName::sanitise_or_none(&decode_or_escape(bytes))
}

/// The URL of `components` below the directory `url`. A login in `url` is kept; what follows `;` in it is not.
pub(crate) fn below(url: &SafeUrl, components: &[&[u8]], is_directory: bool) -> Result<SafeUrl, Failure> {
    let (base, _) = parts(url);
    let mut path = format!("/{base}");
    for component in components {
        if !path.ends_with('/') {
            path.push('/');
        }
        path.extend(percent_encode(component, ESCAPED));
    }
    if is_directory && !path.ends_with('/') {
        path.push('/');
    }
    let mut found = url.as_url().clone();
    found.set_query(None);
    found.set_fragment(None);
    found.set_path(&path);
    SafeUrl::parse(found.as_str()).map_err(|error| Failure::new(FailureKind::InvalidSource, error.to_string()))
}

/// The path without its first slash, still escaped, and its `;type=`. FTP has no queries: what looks like one belongs to
/// the name.
fn parts(url: &SafeUrl) -> (Cow<'_, str>, Option<&str>) {
    let parsed = url.as_url();
    let path = parsed.path().strip_prefix('/').unwrap_or(parsed.path());
    if let Some(query) = parsed.query() {
        return (format!("{path}?{query}").into(), None);
    }
    let typed = path.rfind(';').filter(|at| {
        let end = &path[*at + 1..];
        end.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("type=")) && !end.contains('/')
    });
    match typed {
        Some(at) => (path[..at].into(), Some(&path[at + 6..])),
        None => (path.into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Result<Place, Failure> {
        Place::of(&SafeUrl::parse(text).unwrap())
    }

    fn check(text: &str, path: &[u8], is_directory: bool) {
        let path = path.to_vec();
        assert_eq!(place(text), Ok(Place { path, is_directory }), "{text}");
    }

    #[test]
    fn paths_are_relative_to_the_login_and_end_as_directories_do() {
        check("ftp://h/a/b.bin", b"a/b.bin", false);
        check("ftp://h/%2Fetc/motd", b"/etc/motd", false);
        check("ftps://h//etc/motd", b"/etc/motd", false);
        check("ftp://h/", b"", true);
        check("ftpes://h", b"", true);
        check("ftp://h/%2F", b"/", true);
        check("ftp://h/dir//", b"dir", true);
        check("ftp://h/dir;type=D", b"dir", true);
        check("ftp://h/f;type=i", b"f", false);
        check("ftp://h/f;v=1", b"f;v=1", false);
        check("ftp://h/a%20b%FF?x=1", b"a b\xff?x=1", false);
    }

    #[test]
    fn what_would_end_a_command_is_refused() {
        for text in [
            "ftp://h/a%0d%0aDELE%20b",
            "ftp://h/a%0A",
            "ftp://h/%00",
            "ftpes://h/x?%0Dy",
            "ftp://h/d%0a/",
        ] {
            assert_eq!(place(text).unwrap_err().kind, FailureKind::InvalidSource, "{text}");
        }
        let refused = place("ftp://me:secret@h/f;type=a").unwrap_err().to_string();
        assert!(refused.contains("type=a") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn urls_below_a_directory_lead_to_the_very_name() {
        let base = SafeUrl::parse("ftp://me:pw@h/dir/").unwrap();
        for name in [
            &b"plain.txt"[..],
            b"a b",
            b"50%25.txt",
            b"x;type=a",
            b"q?x#y",
            b"\xd6\xd0",
            b"%2e%2e",
            b"~",
        ] {
            let url = below(&base, &[b"sub", name], false).unwrap();
            let expect = [&b"dir/sub/"[..], name].concat();
            assert_eq!(Place::of(&url).unwrap().path, expect, "{url}");
            assert!(url.expose().starts_with("ftp://me:pw@h/dir/sub/"), "{}", url.expose());
        }
        assert_eq!(below(&base, &[], true).unwrap().expose(), "ftp://me:pw@h/dir/");
        let root = SafeUrl::parse("ftp://h/%2F").unwrap();
        assert_eq!(Place::of(&below(&root, &[b"f"], false).unwrap()).unwrap().path, b"//f");
    }

    proptest::proptest! {
        #[test]
        fn no_url_makes_a_second_command(text in "ftp://h/[a-c/;=?%0-9ADad\\.]{0,30}") {
            if let Ok(url) = SafeUrl::parse(&text)
                && let Ok(place) = Place::of(&url)
            {
                proptest::prop_assert!(is_sendable(&place.path));
            }
        }
    }
}
