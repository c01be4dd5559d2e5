//! Bundled plugins, as packages from `plugins/build`. They are part of the executable and trusted like it.

use plugin_host::market::Bundled;

macro_rules! bundled {
    ($($name:literal $version:literal),+ $(,)?) => {
        &[$(Bundled {
            identity: concat!($name, "@svc"),
            version: $version,
            zip: include_bytes!(concat!("../../../plugins/bundled/", $name, "@svc-", $version, ".zip")),
        }),+]
    };
}

pub(super) const BUNDLED: &[Bundled] = bundled![
    "archive-item" "0.1.0",
    "dataset-repo" "0.1.0",
    "directory-watch" "0.1.0",
    "hls" "0.1.0",
    "http-form-login" "0.1.0",
    "metalink" "0.1.0",
    "open-directory" "0.1.0",
    "release-assets" "0.1.0",
    "release-feed" "0.1.0",
    "torznab" "0.1.0",
    "unpack" "0.1.0",
    "yt-dlp" "0.1.0",
];

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fmt::Write as _,
        fs,
        path::{Path, PathBuf},
    };

    use plugin_host::{
        Digest,
        manifest::{self, Manifest, Reading},
    };
    use plugin_package::Package;

    use super::*;

    fn plugins() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")
    }

    /// The digests of all source files at and below `path`, keyed by path as `find` prints it.
    fn digests(path: &str, into: &mut BTreeMap<String, Digest>) {
        let full = plugins().join(path);
        if !full.is_dir() {
            into.insert(path.to_owned(), Digest::of(&fs::read(full).unwrap()));
            return;
        }
        for entry in fs::read_dir(full).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !["tests", "plugin.wasm"].contains(&&*name) {
                digests(&format!("{path}/{name}"), into);
            }
        }
    }

    #[test]
    fn the_packages_that_are_embedded_were_made_from_the_sources_beside_them() {
        let sdk = ["Cargo.toml", "derive/src", "src", "text/src", "wit"].map(|name| format!("../plugin-sdk/{name}"));
        let plugins_own = BUNDLED.iter().map(|plugin| plugin.identity.split('@').next().unwrap());
        let mut files = BTreeMap::new();
        for path in ["Cargo.toml", "Cargo.lock"].into_iter().chain(plugins_own) {
            digests(path, &mut files);
        }
        for path in &sdk {
            digests(path, &mut files);
        }
        let list = files.iter().fold(String::new(), |mut list, (path, digest)| {
            writeln!(list, "{digest}  {path}").unwrap();
            list
        });
        let noted = fs::read_to_string(plugins().join("bundled/made.from")).unwrap();
        assert!(
            noted
                .lines()
                .any(|line| line == format!("sources {}", Digest::of(list.as_bytes()))),
            "plugins/ or plugin-sdk/ has changed; plugins/build makes the packages again"
        );
    }

    #[test]
    fn every_package_that_was_made_is_embedded_under_its_own_name() {
        for Bundled { identity, version, zip } in BUNDLED {
            let package = Package::open(zip).unwrap();
            let manifest = package.file(manifest::FILE, "manifest").unwrap();
            let (manifest, _) = Manifest::parse(manifest, Reading::Strict).unwrap();
            assert_eq!(manifest.identity.to_string(), *identity);
            assert_eq!(manifest.version.to_string(), *version);
        }
        let made = fs::read_dir(plugins().join("bundled")).unwrap().count();
        // One more for the record of the sources they were built from.
        assert_eq!(made, BUNDLED.len() + 1);
    }
}
