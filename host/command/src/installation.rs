//! How this executable was installed, which decides who updates it.

use std::path::{Path, PathBuf};

/// What `host/packaging/container/rootfs` puts into the image, below the prefix.
const CONTAINER_MARK: &str = "share/svc/container";

/// What dpkg keeps of the package while it is installed.
const DEBIAN_LIST: &str = "var/lib/dpkg/info/svc.list";

/// The packages of `host/packaging`, and everything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    /// By `install.sh`, below this prefix.
    Installer(PathBuf),
    /// By dpkg, as the package `svc`.
    Debian,
    /// In the image of `host/packaging/container`.
    Container,
    /// Built from its sources, or copied to where it is.
    Other,
}

impl Installation {
    /// Of the executable of this process; without a path to it, [`Installation::Other`].
    #[must_use]
    pub fn here() -> Self {
        std::env::current_exe().map_or(Self::Other, |program| Self::of(&program, Path::new("/")))
    }

    fn of(program: &Path, root: &Path) -> Self {
        // PREFIX/bin/svc
        let prefix = program.parent().and_then(Path::parent).unwrap_or(root);
        if prefix.join("share/svc/receipt").is_file() && script(prefix).is_file() {
            Self::Installer(prefix.to_owned())
        } else if prefix.join(CONTAINER_MARK).is_file() {
            Self::Container
        } else if program == root.join("usr/bin/svc") && root.join(DEBIAN_LIST).is_file() {
            Self::Debian
        } else {
            Self::Other
        }
    }

    /// What it is, and how it gets newer.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Installer(prefix) => format!("installed by install.sh in {}; svc self-update", prefix.display()),
            Self::Debian => "from the Debian package; apt updates it".to_owned(),
            Self::Container => "in a container; a new image updates it".to_owned(),
            Self::Other => "not from a package; git pull and cargo build update sources".to_owned(),
        }
    }
}

/// The copy of the installer that was installed below `prefix`.
#[must_use]
pub fn script(prefix: &Path) -> PathBuf {
    prefix.join("share/svc/install.sh")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_form_is_told_by_its_own_files() {
        let root = tempfile::tempdir().expect("there is room for a directory");
        let of = |prefix: &str| Installation::of(&root.path().join(prefix).join("bin/svc"), root.path());
        let write = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("it is ours");
            fs::write(path, "").expect("it is ours");
        };
        assert_eq!(of("usr"), Installation::Other);
        write(DEBIAN_LIST);
        assert_eq!(of("usr"), Installation::Debian);
        // Another executable of a machine that has the package, too.
        assert_eq!(of("usr/local"), Installation::Other);
        write("usr/local/share/svc/container");
        assert_eq!(of("usr/local"), Installation::Container);
        write("home/a/.local/share/svc/receipt");
        // Without its script it cannot be updated.
        assert_eq!(of("home/a/.local"), Installation::Other);
        write("home/a/.local/share/svc/install.sh");
        let prefix = root.path().join("home/a/.local");
        assert_eq!(of("home/a/.local"), Installation::Installer(prefix));
    }
}
