#![expect(clippy::cast_possible_truncation, reason = "the archives of tests are small")]

use std::io::Write as _;

use proptest::prelude::*;

use super::format::*;
use crate::{Check, Digest, Package};

/// One entry of an archive that a test makes; everything in it can be made to lie.
#[derive(Clone)]
struct Part {
    name: String,
    local_name: Option<String>,
    bytes: Vec<u8>,
    packed: Option<Vec<u8>>,
    method: u16,
    flags: u16,
    mode: u32,
    size: Option<u32>,
    checksum: Option<u32>,
    offset: Option<u32>,
}

fn part(name: &str, bytes: &[u8]) -> Part {
    Part {
        name: name.to_owned(),
        local_name: None,
        bytes: bytes.to_vec(),
        packed: None,
        method: DEFLATED,
        flags: 0,
        mode: 0,
        size: None,
        checksum: None,
        offset: None,
    }
}

/// Makes an archive of what a test wants in it.
fn archive(parts: &[Part]) -> Vec<u8> {
    counted_archive(parts, parts.len())
}

/// An empty block that ends deflated bytes.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// Deflates without the end, so that such pieces can be put together.
fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.flush().unwrap();
    encoder.get_ref().clone()
}

fn counted_archive(parts: &[Part], count: usize) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for part in parts {
        let packed = match &part.packed {
            Some(packed) => packed.clone(),
            None if part.method == STORED => part.bytes.clone(),
            None => [deflate(&part.bytes), LAST_BLOCK.to_vec()].concat(),
        };
        let offset = part.offset.unwrap_or(out.len() as u32);
        let local_name = part.local_name.as_ref().unwrap_or(&part.name);
        let mut common = Vec::new();
        for number in [part.flags, part.method, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        let size = part.size.unwrap_or(part.bytes.len() as u32);
        let checksum = part.checksum.unwrap_or_else(|| crc32fast::hash(&part.bytes));
        for number in [checksum, packed.len() as u32, size] {
            common.extend(number.to_le_bytes());
        }
        out.extend(LOCAL);
        out.extend(20_u16.to_le_bytes());
        out.extend(&common);
        out.extend((local_name.len() as u16).to_le_bytes());
        out.extend([0, 0]);
        out.extend(local_name.as_bytes());
        out.extend(&packed);
        central.extend(CENTRAL);
        central.extend([20, 3, 20, 0]);
        central.extend(&common);
        central.extend((part.name.len() as u16).to_le_bytes());
        central.extend([0; 8]);
        central.extend((part.mode << 16).to_le_bytes());
        central.extend(offset.to_le_bytes());
        central.extend(part.name.as_bytes());
    }
    let start = out.len() as u32;
    out.extend(&central);
    out.extend(END);
    out.extend([0; 4]);
    for number in [count as u16, count as u16] {
        out.extend(number.to_le_bytes());
    }
    out.extend((central.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn manifest() -> Part {
    part("plugin.json", b"{}")
}

fn check(parts: &[Part], expected: Check) {
    let error = Package::open(&archive(parts)).unwrap_err();
    assert_eq!(error.check, expected, "{error}");
}

#[test]
fn an_archive_becomes_its_files() {
    let text = b"some text ".repeat(100);
    let mut stored = part("icon.png", b"icon");
    stored.method = STORED;
    stored.mode = 0o100_644;
    let bytes = archive(&[
        manifest(),
        part("fixtures/", b""),
        part("fixtures/one.json", &text),
        stored,
    ]);
    let package = Package::open(&bytes).unwrap();
    let names: Vec<_> = package.files.keys().collect();
    assert_eq!(names, ["fixtures/one.json", "icon.png", "plugin.json"]);
    assert_eq!(package.files["fixtures/one.json"], text);
    assert_eq!(package.digest, Digest::of(&bytes));
    assert_eq!(package.file("nothing", "entry").unwrap_err().check, Check::Content);
}

#[test]
fn one_folder_around_everything_is_taken_off() {
    let wrapped = archive(&[part("acme-1.0/plugin.json", b"{}"), part("acme-1.0/a/b", b"b")]);
    let package = Package::open(&wrapped).unwrap();
    assert_eq!(package.files.keys().collect::<Vec<_>>(), ["a/b", "plugin.json"]);
    check(&[part("acme/plugin.json", b"{}"), part("other/x", b"")], Check::Content);
    check(&[part("a/b/plugin.json", b"{}")], Check::Content);
    check(&[part("readme", b"")], Check::Content);
    check(&[], Check::Content);
}

#[test]
fn names_that_leave_or_differ_between_systems_are_refused() {
    for name in [
        "../evil",
        "/etc/passwd",
        "a/../../b",
        "a//b",
        "./a",
        "a/.",
        "C:/x",
        "a\\b",
        "nul",
        "a/COM1.txt",
        "a.",
        "a ",
        "a:b",
        "a\u{202e}b",
        "e\u{301}",
        "a\nb",
        ".hidden",
    ] {
        check(&[manifest(), part(name, b"")], Check::Name);
    }
    check(
        &[manifest(), part(&format!("{}x", "d/".repeat(MAX_DEPTH)), b"")],
        Check::Name,
    );
    check(&[manifest(), part(&"x".repeat(MAX_PATH_BYTES + 1), b"")], Check::Name);
}

#[test]
fn two_entries_are_never_one_file() {
    check(&[manifest(), part("a", b"1"), part("a", b"2")], Check::Duplicate);
    check(
        &[manifest(), part("Read.me", b"1"), part("read.ME", b"2")],
        Check::Duplicate,
    );
    check(&[manifest(), part("a", b"1"), part("A/b", b"2")], Check::Duplicate);
    check(&[manifest(), part("a", b"1"), part("a/", b"")], Check::Duplicate);
}

#[test]
fn only_plain_files_are_taken() {
    for mode in [0o120_777, 0o020_666, 0o060_666, 0o010_644, 0o140_755, 0o040_755] {
        check(
            &[
                manifest(),
                Part {
                    mode,
                    ..part("a", b"target")
                },
            ],
            Check::Kind,
        );
    }
    check(&[manifest(), part("folder/", b"content")], Check::Kind);
    for flags in [0x0001, 0x0040, 0x2000] {
        check(
            &[
                manifest(),
                Part {
                    flags,
                    ..part("a", b"")
                },
            ],
            Check::Method,
        );
    }
    for method in [1, 9, 12, 14, 93, 99] {
        check(
            &[
                manifest(),
                Part {
                    method,
                    ..part("a", b"")
                },
            ],
            Check::Method,
        );
    }
}

#[test]
fn bombs_are_refused_whatever_their_headers_say() {
    let zeros = vec![0; 300 * 1024];
    check(&[manifest(), part("bomb", &zeros)], Check::Ratio);
    // It says that it is small, and is not.
    check(
        &[
            manifest(),
            Part {
                size: Some(1000),
                ..part("bomb", &zeros)
            },
        ],
        Check::Size,
    );
    check(
        &[
            manifest(),
            Part {
                size: Some(MAX_FILE_BYTES as u32 + 1),
                ..part("bomb", &zeros)
            },
        ],
        Check::Size,
    );
    check(
        &[
            manifest(),
            Part {
                size: Some(5),
                ..part("short", b"four")
            },
        ],
        Check::Size,
    );
    check(
        &[
            manifest(),
            Part {
                checksum: Some(1),
                ..part("damaged", b"four")
            },
        ],
        Check::Checksum,
    );
    // Two names for one packed file.
    check(
        &[
            manifest(),
            part("a", b"1"),
            Part {
                offset: Some(0),
                local_name: None,
                ..part("plugin.json2", b"{}")
            },
        ],
        Check::Layout,
    );
    let exchanges = (0..11).map(|n| part(&format!("fixtures/{n}.json"), &vec![b'{'; 50 * 1024]));
    check(&exchanges.chain([manifest()]).collect::<Vec<_>>(), Check::Size);
    let twice = part("plugin.json", b"{}");
    let mut shared = archive(&[twice.clone(), part("x", b"y")]);
    assert!(Package::open(&shared).is_ok());
    shared.extend([0]);
    assert!(Package::open(&shared).is_err(), "something behind the end");
    let many: Vec<_> = (0..MAX_ENTRIES)
        .map(|n| part(&format!("f{n}"), b""))
        .chain([manifest()])
        .collect();
    check(&many, Check::Entries);
    // Each file packs well enough; all together are too much.
    let piece: Vec<u8> = (0..8192_u32)
        .flat_map(|n| [n.wrapping_mul(2_654_435_761) >> 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .map(|n| n as u8)
        .collect();
    let large = |name: &str| Part {
        packed: Some([deflate(&piece).repeat(130), LAST_BLOCK.to_vec()].concat()),
        ..part(name, &piece.repeat(130))
    };
    assert!(Package::open(&archive(&[manifest(), large("a")])).is_ok());
    check(&[manifest(), large("a"), large("b")], Check::Size);
    assert_eq!(
        Package::open(&vec![0; MAX_ARCHIVE_BYTES + 1]).unwrap_err().check,
        Check::ArchiveSize
    );
}

#[test]
fn the_directory_and_the_files_must_agree() {
    let mut other = part("a", b"1");
    other.local_name = Some("b".to_owned());
    check(&[manifest(), other], Check::Layout);
    for count in [1, 3] {
        let error = Package::open(&counted_archive(&[manifest(), part("a", b"1")], count)).unwrap_err();
        assert_eq!(error.check, Check::Entries, "{error}");
    }
    let mut shifted = b"#!/bin/sh\n".to_vec();
    shifted.extend(archive(&[manifest()]));
    assert_eq!(Package::open(&shifted).unwrap_err().check, Check::Layout);
    assert_eq!(Package::open(b"no archive").unwrap_err().check, Check::Format);
}

#[test]
fn a_refusal_names_check_file_and_limit() {
    let many = archive(&[manifest(), part(&"x".repeat(200), b"")]);
    let error = Package::open(&many).unwrap_err().to_string();
    assert!(
        error.starts_with("package check name failed for \"xxx") && error.ends_with("200 bytes; the limit is 180"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_archive_makes_it_panic_or_leave(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = archive(&[manifest(), part("a/b.txt", b"text"), part("c", &[7; 2000])]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(package) = Package::open(&bytes) {
            for path in package.files.keys() {
                prop_assert!(std::path::Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_))), "{}", path);
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_do_not_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), has_end in any::<bool>()) {
        let mut bytes = bytes;
        if has_end {
            bytes.extend(END);
            bytes.extend([0; 18]);
        }
        let _ = Package::open(&bytes);
    }
}
