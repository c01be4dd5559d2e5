//! Archives that lie, reach out of their folder or unfold without end.

use std::io::Write as _;

use super::{Attempt, Case, case};

/// An entry of an archive; every part of it may lie.
#[derive(Clone)]
struct Part {
    name: &'static str,
    /// Its name where its bytes are.
    local_name: &'static str,
    bytes: Vec<u8>,
    /// Bytes that are packed, if they are.
    packed: Option<Vec<u8>>,
    flags: u16,
    mode: u32,
    /// Its length, as it says.
    size: u32,
    checksum: u32,
}

fn part(name: &'static str, bytes: &[u8]) -> Part {
    Part {
        name,
        local_name: name,
        bytes: bytes.to_vec(),
        packed: None,
        flags: 0,
        mode: 0,
        size: u32::try_from(bytes.len()).unwrap(),
        checksum: crc32fast::hash(bytes),
    }
}

fn manifest() -> Part {
    part("plugin.json", b"{}")
}

fn archive(parts: &[Part]) -> Attempt {
    let short = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    let long = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for part in parts {
        let stored = part.packed.as_ref().unwrap_or(&part.bytes);
        let method = if part.packed.is_some() { 8 } else { 0 };
        let offset = out.len();
        let common = [
            &part.flags.to_le_bytes()[..],
            &short(method),
            &[0; 4],
            &part.checksum.to_le_bytes(),
            &long(stored.len()),
            &part.size.to_le_bytes(),
        ]
        .concat();
        out.extend([b"PK\x03\x04\x14\0", &common[..], &short(part.local_name.len()), &[0; 2]].concat());
        out.extend([part.local_name.as_bytes(), &stored[..]].concat());
        central.extend(
            [
                b"PK\x01\x02\x14\x03\x14\0",
                &common[..],
                &short(part.name.len()),
                &[0; 8],
            ]
            .concat(),
        );
        central.extend(
            [
                &(part.mode << 16).to_le_bytes()[..],
                &long(offset),
                part.name.as_bytes(),
            ]
            .concat(),
        );
    }
    let start = out.len();
    out.extend(&central);
    let count = short(parts.len());
    out.extend(
        [
            b"PK\x05\x06\0\0\0\0",
            &count[..],
            &count,
            &long(central.len()),
            &long(start),
            &[0; 2],
        ]
        .concat(),
    );
    Attempt::Package(out)
}

/// An archive that holds a manifest and `other`.
fn with(other: Part) -> Attempt {
    archive(&[manifest(), other])
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = names();
    cases.extend(lies());
    cases
}

fn names() -> Vec<Case> {
    let named = |case_name, name: &'static str| {
        let what = format!("holds a file `{}`.", name.replace('\0', "\\0"));
        case(case_name, &what, "name", with(part(name, b"x")))
    };
    vec![
        named("zip-parent", "../evil"),
        named("zip-absolute", "/etc/cron.d/evil"),
        named("zip-backslash", "..\\evil"),
        named("zip-device", "aux.txt"),
        named("zip-nul", "a\0b"),
        named("zip-trailing-dot", "evil."),
        case(
            "zip-same-name",
            "holds two files of one name.",
            "duplicate",
            archive(&[manifest(), part("a", b"1"), part("a", b"2")]),
        ),
        case(
            "zip-same-name-somewhere",
            "holds two files that are one where case does not count.",
            "duplicate",
            archive(&[manifest(), part("a", b"1"), part("A", b"2")]),
        ),
        case(
            "zip-symlink",
            "holds a link to a file of the user.",
            "kind",
            with(Part {
                mode: 0o120_777,
                ..part("link", b"/etc/passwd")
            }),
        ),
    ]
}

fn lies() -> Vec<Case> {
    let zeros = vec![0; 4 * 1024 * 1024];
    vec![
        case(
            "zip-bomb",
            "unfolds to a thousand times its length.",
            "ratio",
            with(Part {
                packed: Some(deflated(&zeros)),
                ..part("bomb", &zeros)
            }),
        ),
        case(
            "zip-lying-size",
            "unfolds to more than it says.",
            "size",
            with(Part {
                packed: Some(deflated(&zeros[..60_000])),
                size: 5,
                ..part("liar", &zeros[..60_000])
            }),
        ),
        case(
            "zip-lying-checksum",
            "unfolds to something else than it says.",
            "checksum",
            with(Part {
                checksum: 1,
                ..part("liar", b"x")
            }),
        ),
        case(
            "zip-two-names",
            "gives a file another name in the list than at the file.",
            "layout",
            with(Part {
                local_name: "b",
                ..part("a", b"x")
            }),
        ),
        case(
            "zip-encrypted",
            "is encrypted.",
            "method",
            with(Part {
                flags: 1,
                ..part("a", b"x")
            }),
        ),
        case(
            "zip-many",
            "holds 500 files.",
            "entries",
            archive(&vec![manifest(); 500]),
        ),
        case("zip-none", "is no archive.", "format", Attempt::Package(b"MZ".to_vec())),
    ]
}
