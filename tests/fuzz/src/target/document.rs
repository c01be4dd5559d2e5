//! What plugins are made of.

use plugin_host::manifest::{Manifest, Reading};
use plugin_package::Package;

use super::Target;

/// A manifest, as an installation and as an older host read it.
pub(super) fn manifest() -> Target {
    Box::new(|data| {
        let strict = Manifest::parse(data, Reading::Strict);
        let lenient = Manifest::parse(data, Reading::Lenient);
        assert!(strict.is_err() || lenient.is_ok(), "what is good is good for everybody");
    })
}

/// An archive.
pub(super) fn package() -> Target {
    Box::new(|data| {
        if let Ok(opened) = Package::open(data) {
            let again = plugin_package::pack(&opened.files).expect("what was in an archive fits into one");
            let again = Package::open(&again).expect("an archive of ours can be opened");
            assert!(again.files == opened.files, "the same files come out");
        }
    })
}
