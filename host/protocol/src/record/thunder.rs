//! `thunder://` links, as pages for the download program Thunder write them: a URL between `AA` and `ZZ`, in base64.

use std::borrow::Cow;

use data_encoding::BASE64_NOPAD;
use serde::{Deserialize, Deserializer};

const SCHEME: &str = "thunder://";

/// The URL in a `thunder://` link; any other text as it is, also a damaged link, which is then refused as a URL of an
/// unknown scheme.
pub fn unwrapped(url: &str) -> Cow<'_, str> {
    decode(url.trim()).map_or(Cow::Borrowed(url), Cow::Owned)
}

fn decode(url: &str) -> Option<String> {
    let (scheme, packed) = url.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    // Browsers add the slash, and may escape the padding.
    let packed = packed.trim_end_matches('/').replace("%3D", "=").replace("%3d", "=");
    let text = BASE64_NOPAD.decode(packed.trim_end_matches('=').as_bytes()).ok()?;
    let text = String::from_utf8(text).ok()?;
    Some(text.strip_prefix("AA")?.strip_suffix("ZZ")?.to_owned())
}

/// Reads the URL of a record.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(unwrapped(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_url_in_it_and_any_other_text_stays() {
        let check = |link: &str, expect: &str| assert_eq!(unwrapped(link), expect, "{link}");
        check("thunder://QUFodHRwczovL2EudGVzdC9mP3g9MVpa", "https://a.test/f?x=1");
        check(" Thunder://QUFodHRwOi8vYS50ZXN0L2ZaWg==/ ", "http://a.test/f");
        check("thunder://QUFodHRwOi8vYS50ZXN0L2ZaWg%3D%3D", "http://a.test/f");
        for other in [
            "",
            "thunder://",
            "thunder://!",
            "thunder://aHR0cDovL2EudGVzdC9m",
            "https://a.test/thunder://QUFaWlpa",
        ] {
            check(other, other);
        }
    }
}
