//! Archives of any format that is unpacked.

use std::{fs, path::Path};

use transfer::Secret;

use super::Target;

/// Bytes that may be unpacked: enough for everything that such small archives honestly hold.
const MAX_BYTES: u64 = 4 << 20;

/// An archive, tried with one password. Nothing may appear outside of the directory that it is unpacked to, and no more
/// than may be.
pub(super) fn unpack() -> Target {
    Box::new(|data| {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        let (archive, into) = (root.path().join("archive"), root.path().join("into"));
        fs::write(&archive, data).expect("the directory is empty");
        fs::create_dir(&into).expect("the directory is empty");
        let passwords = [Secret::new("secret")];
        // A refusal is an answer.
        let _refused = post::unpack_in_process(&[archive], &passwords, MAX_BYTES, &into);
        let outside = fs::read_dir(root.path()).expect("it can be read").count();
        assert_eq!(outside, 2, "something was written outside");
        assert!(size(&into) <= MAX_BYTES, "more than may be unpacked");
    })
}

/// Bytes of all files below `path`, none of which is a link.
fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("what was unpacked can be read").flatten();
    let sizes = entries.map(|entry| {
        let kind = entry.file_type().expect("it has a type");
        assert!(kind.is_dir() || kind.is_file(), "neither a file nor a directory");
        if kind.is_dir() {
            size(&entry.path())
        } else {
            entry.metadata().map_or(0, |metadata| metadata.len())
        }
    });
    sizes.sum()
}
