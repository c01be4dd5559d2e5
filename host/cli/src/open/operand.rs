//! What an operand of `svc open` asks for. Pure.

use command::UsageError;
use url::{Url, form_urlencoded};

/// Schemes of links that the service is asked to download.
const DOWNLOADED: [&str; 6] = ["http", "https", "ftp", "ftps", "ftpes", "magnet"];

/// Endings of files that describe downloads.
const FILES: [&str; 3] = [".torrent", ".metalink", ".meta4"];

/// The page of plugins that can be installed.
const MARKET: &str = "/market";

/// The longest link: longer than any that a browser hands to another program.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A place on the page of the service.
    Page(&'static str),
    /// A link that another program opened, most likely a browser.
    Download { url: String, file_name: String },
    /// A file on this machine.
    File(String),
    /// A link that asks for nothing; it is ignored silently.
    Nothing,
}

impl Operand {
    pub(super) fn parse(text: &str) -> Result<Self, UsageError> {
        let text = text.trim();
        let refuse = |problem: String| Err(UsageError::new("LINK", problem));
        if text.len() > MAX_BYTES {
            return refuse(format!("has more than {MAX_BYTES} bytes"));
        }
        match Url::parse(text) {
            Ok(url) if url.scheme() == "svc" => own(&url),
            Ok(url) if DOWNLOADED.contains(&url.scheme()) => Ok(Self::Download {
                url: text.to_owned(),
                file_name: String::new(),
            }),
            Ok(url) if url.scheme() == "file" => match url
                .to_file_path()
                .ok()
                .and_then(|path| path.to_str().map(ToOwned::to_owned))
            {
                Some(path) => file(path),
                None => refuse("is no path on this machine".to_owned()),
            },
            // On Windows the letter of a drive looks like a scheme.
            Ok(url) if url.scheme().len() > 1 => refuse(format!(
                "cannot open {} links; known are svc, {}",
                url.scheme(),
                DOWNLOADED.join(", ")
            )),
            _ => file(text.to_owned()),
        }
    }
}

fn file(path: String) -> Result<Operand, UsageError> {
    let lower = path.to_ascii_lowercase();
    if FILES.iter().any(|ending| lower.ends_with(ending)) {
        Ok(Operand::File(path))
    } else {
        let problem = format!("is neither a link nor a file that ends with {}", FILES.join(", "));
        Err(UsageError::new(path, problem))
    }
}

/// `svc://download?url=…&filename=…` and `svc://market`.
fn own(url: &Url) -> Result<Operand, UsageError> {
    let action = url.host_str().unwrap_or_else(|| url.path()).trim_matches('/');
    if action.eq_ignore_ascii_case("market") {
        return Ok(Operand::Page(MARKET));
    }
    if !action.eq_ignore_ascii_case("download") {
        return Err(UsageError::new(
            "LINK",
            "asks for something that this version cannot do; known are svc://download and svc://market",
        ));
    }
    // Percent-encoded, not as forms are: a plus sign is one.
    let query = url.query().unwrap_or_default().replace('+', "%2B");
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let pair = pairs.find(|(key, _)| key == name);
        pair.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let link = value("url");
    if link.is_empty() {
        return Ok(Operand::Nothing);
    }
    // A line break would make several downloads of it.
    let has_control = |text: &str| text.chars().any(char::is_control);
    let scheme = Url::parse(&link)
        .map(|link| link.scheme().to_owned())
        .unwrap_or_default();
    if !DOWNLOADED.contains(&scheme.as_str()) || has_control(&link) {
        let problem = format!("is not a link with one of the schemes {}", DOWNLOADED.join(", "));
        return Err(UsageError::new("url", problem));
    }
    let file_name = value("filename");
    if has_control(&file_name) {
        return Err(UsageError::new("filename", "has control characters"));
    }
    Ok(Operand::Download { url: link, file_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn download(url: &str, file_name: &str) -> Operand {
        Operand::Download {
            url: url.to_owned(),
            file_name: file_name.to_owned(),
        }
    }

    #[test]
    fn links_of_our_own_are_downloads_or_places() {
        for (text, expected) in [
            (
                "svc://download?url=https%3A%2F%2Fa.test%2Fx%3Fb%3D1%26c&filename=a%20b.iso",
                download("https://a.test/x?b=1&c", "a b.iso"),
            ),
            (
                "SVC://Download/?filename=n&url=ftp://a.test/a+b",
                download("ftp://a.test/a+b", "n"),
            ),
            (
                "svc:download?url=magnet%3A%3Fxt%3Durn%3Abtih%3Aaa",
                download("magnet:?xt=urn:btih:aa", ""),
            ),
            ("svc://download", Operand::Nothing),
            ("svc://download?url=&filename=x", Operand::Nothing),
            ("svc://download?url=%20", Operand::Nothing),
            ("svc://download?URL=http://a.test/", Operand::Nothing),
            ("svc://market", Operand::Page(MARKET)),
            ("svc://market/", Operand::Page(MARKET)),
            (
                "magnet:?xt=urn:btih:aa&dn=a+b",
                download("magnet:?xt=urn:btih:aa&dn=a+b", ""),
            ),
            (" https://a.test/ ", download("https://a.test/", "")),
            (
                "file:///tmp/a%20b.TORRENT",
                Operand::File("/tmp/a b.TORRENT".to_owned()),
            ),
            ("x/list.meta4", Operand::File("x/list.meta4".to_owned())),
        ] {
            assert_eq!(Operand::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_must_not_be_opened_is_refused() {
        for text in [
            "svc://download?url=file%3A%2F%2F%2Fetc%2Fpasswd",
            "svc://download?url=javascript%3Aalert(1)",
            "svc://download?url=http%3A%2F%2Fa%2F%0Ahttp%3A%2F%2Fb%2F",
            "svc://download?url=http%3A%2F%2Fa%2F&filename=a%1B%5B2J",
            "svc://download?url=a.iso",
            "svc://setup?key=x",
            "svc://",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "/etc/passwd",
            "--help",
            "",
        ] {
            assert!(Operand::parse(text).is_err(), "{text}");
        }
        assert!(Operand::parse(&format!("http://a/{}", "x".repeat(MAX_BYTES))).is_err());
    }
}
