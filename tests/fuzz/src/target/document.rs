//! What plugins are made of.

use plugin_package::{
    Manifest, Package, UrlPattern,
    manifest::{Asked, Reading},
};

use super::Target;

/// A manifest, as an installation and as an older host read it, and as the permissions of an index entry. What is
/// accepted keeps its meaning when it is written and read again, and is consistent in itself.
pub(super) fn manifest() -> Target {
    Box::new(|data| {
        let strict = Manifest::parse(data, Reading::Strict);
        let lenient = Manifest::parse(data, Reading::Lenient);
        assert!(strict.is_err() || lenient.is_ok(), "what is good is good for everybody");
        let _asked = std::str::from_utf8(data).map(Asked::parse);
        let Ok((manifest, _)) = lenient else {
            return;
        };
        assert_eq!(manifest.identity.to_string().parse(), Ok(manifest.identity));
        let capabilities = &manifest.capabilities;
        let resolver = capabilities.resolver.iter().flat_map(|resolver| &resolver.matches);
        let feed = capabilities.feed.iter().flat_map(|feed| &feed.matches);
        for pattern in resolver.chain(feed) {
            let again: UrlPattern = pattern.to_string().parse().expect("a pattern reads what it prints");
            assert_eq!(again.to_string(), pattern.to_string(), "a pattern keeps its meaning");
        }
        let hosts = &manifest.permissions.hosts;
        for host in hosts.iter().chain(&manifest.permissions.optional_hosts.named) {
            assert_eq!(host.to_string().parse(), Ok(host.clone()), "a host keeps its meaning");
        }
        for setting in &manifest.settings {
            let default = setting.default.iter().try_for_each(|value| setting.check(value));
            assert_eq!(default, Ok(()), "a default is a good value");
            assert!(
                setting.default.is_none() || !setting.is_secret,
                "no secret is in a package"
            );
        }
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
