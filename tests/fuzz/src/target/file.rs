//! Files of other programs, which users hand over.

use aria2::files;
use transfer::{CookieJar, SafeUrl};

use super::Target;

/// The time of these tests.
const NOW: u64 = 1_700_000_000;

/// An export of cookies.
pub(super) fn cookies() -> Target {
    let urls = [
        "http://files.test/deep/a",
        "https://a.files.test/",
        "http://other.test:81/",
    ];
    let urls = urls.map(|url| SafeUrl::parse(url).expect("it is a URL"));
    Box::new(move |data| {
        let text = String::from_utf8_lossy(data);
        if let Ok(jar) = CookieJar::parse(&text, NOW) {
            for url in &urls {
                let sent = jar.for_url(url, NOW);
                assert!(
                    !sent.contains(char::is_control),
                    "it would break the head of a request: {sent:?}"
                );
            }
        }
    })
}

/// An `aria2.conf`.
pub(super) fn conf() -> Target {
    Box::new(|data| {
        let text = String::from_utf8_lossy(data);
        let _refused = files::conf(&text, "/home/a");
    })
}

/// An input file, or a session, which is one.
pub(super) fn session() -> Target {
    Box::new(|data| {
        let text = String::from_utf8_lossy(data);
        for entry in files::list(&text) {
            let is_plain = |uri: &String| uri.starts_with(|first: char| first.is_ascii_alphanumeric());
            if !entry.uris.iter().all(is_plain) || entry.uris.is_empty() {
                continue;
            }
            let saved = files::entry(&entry.uris, &entry.options);
            let again = files::list(&saved);
            let [again] = again.as_slice() else {
                panic!("one download is saved as {saved:?}");
            };
            assert_eq!(again.uris, entry.uris);
            assert_eq!(
                files::entry(&again.uris, &again.options),
                saved,
                "it changes whenever it is saved"
            );
        }
    })
}
