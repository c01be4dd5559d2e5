//! Any bytes: never a panic, and never a file outside.

use std::fs;

use proptest::prelude::*;

use crate::{
    rig::files,
    tar_writer::{entry, gzip, tar},
    zip_writer::{ZipFile, zip},
};

/// Real archives, to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let files = [
        ZipFile::new("a/b.txt", "text ".repeat(50)).deflated(),
        ZipFile::new("c", "1"),
    ];
    let tarred = tar(&[
        entry("a/b", b'0', "text"),
        entry("d", b'5', ""),
        entry("../x", b'0', "1"),
    ]);
    vec![
        zip(&files),
        gzip(&tarred),
        tarred,
        include_bytes!("../data/v5.rar").to_vec(),
        include_bytes!("../data/v4.rar").to_vec(),
        include_bytes!("../data/small.7z").to_vec(),
        b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(),
        b"\x28\xb5\x2f\xfd".to_vec(),
        b"BZh9".to_vec(),
        b"\xfd7zXZ\0".to_vec(),
    ]
}

fn check(bytes: &[u8]) {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("into");
    fs::create_dir(&into).unwrap();
    let archive = root.path().join("archive");
    fs::write(&archive, bytes).unwrap();
    let result = post::unpack_in_process(&[archive], &["p".into_secret()], 8 << 20, &into);
    if let Err(refusal) = &result {
        assert!(refusal.to_string().len() < 2000);
    }
    for name in files(root.path()).keys() {
        assert!(name.starts_with("into/") || name == "archive", "{name}");
    }
}

trait IntoSecret {
    fn into_secret(self) -> transfer::Secret;
}

impl IntoSecret for &str {
    fn into_secret(self) -> transfer::Secret {
        transfer::Secret::new(self)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_archives_do_no_harm(
        seed in 0..10_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = seeds().swap_remove(seed);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            let keep = keep.index(bytes.len() + 1);
            bytes.truncate(keep);
        }
        check(&bytes);
    }

    #[test]
    fn noise_does_no_harm(seed in 0..10_usize, noise in prop::collection::vec(any::<u8>(), 0..2000)) {
        let start = &seeds()[seed];
        check(&[&start[..start.len().min(8)], &noise].concat());
    }

    #[test]
    fn any_name_stays_inside(name in prop::collection::vec(prop_oneof![Just('/'), Just('.'), Just('\\'), any::<char>()], 0..40)) {
        let name: String = name.into_iter().collect();
        check(&zip(&[ZipFile::new(name, "1")]));
    }
}
