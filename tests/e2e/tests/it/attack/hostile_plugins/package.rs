//! Archives that lie, reach out of their folder or unfold without end.

use std::io::Write as _;

use super::{
    Attempt, Case, REFUSED, case,
    guest::{MEMORY, previewer},
    manifest,
};

/// An entry of an archive; every part of it may lie.
#[derive(Clone)]
struct Part {
    name: String,
    /// Its name where its bytes are.
    local_name: String,
    bytes: Vec<u8>,
    /// Bytes that are packed, if they are.
    packed: Option<Vec<u8>>,
    flags: u16,
    mode: u32,
    /// Its length, as it says.
    size: u32,
    checksum: u32,
}

fn part(name: &str, bytes: &[u8]) -> Part {
    Part {
        name: name.to_owned(),
        local_name: name.to_owned(),
        bytes: bytes.to_vec(),
        packed: None,
        flags: 0,
        mode: 0,
        size: u32::try_from(bytes.len()).unwrap(),
        checksum: crc32fast::hash(bytes),
    }
}

/// The package of a plugin, as an honest author makes one.
pub(super) fn of(manifest: &[u8], code: &[u8]) -> Vec<u8> {
    archive(&honest(manifest, code))
}

fn honest(manifest: &[u8], code: &[u8]) -> [Part; 2] {
    [part("plugin.json", manifest), part("plugin.wasm", code)]
}

fn archive(parts: &[Part]) -> Vec<u8> {
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
    out
}

/// A case of a plugin that is accepted without these other parts.
fn with(name: &'static str, what: &str, others: &[Part]) -> Case {
    let honest = honest(&manifest(name), &previewer(MEMORY, ""));
    case(
        name,
        what,
        REFUSED,
        Attempt::Install(archive(&[&honest, others].concat())),
    )
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
    let named = |case_name, name: &str| {
        let what = format!("holds a file `{}`.", name.replace('\0', "\\0"));
        with(case_name, &what, &[part(name, b"x")])
    };
    vec![
        named("zip-parent", "../evil"),
        named("zip-absolute", "/etc/cron.d/evil"),
        named("zip-backslash", "..\\evil"),
        named("zip-device", "aux.txt"),
        named("zip-nul", "a\0b"),
        named("zip-trailing-dot", "evil."),
        with(
            "zip-same-name",
            "holds two files of one name.",
            &[part("a", b"1"), part("a", b"2")],
        ),
        with(
            "zip-same-name-somewhere",
            "holds two files that are one where case does not count.",
            &[part("a", b"1"), part("A", b"2")],
        ),
        with(
            "zip-symlink",
            "holds a link to a file of the user.",
            &[Part {
                mode: 0o120_777,
                ..part("link", b"/etc/passwd")
            }],
        ),
    ]
}

fn lies() -> Vec<Case> {
    let zeros = vec![0; 4 * 1024 * 1024];
    let many: Vec<_> = (0..500).map(|number| part(&number.to_string(), b"x")).collect();
    vec![
        with(
            "zip-bomb",
            "unfolds to a thousand times its length.",
            &[Part {
                packed: Some(deflated(&zeros)),
                ..part("bomb", &zeros)
            }],
        ),
        with(
            "zip-lying-size",
            "unfolds to more than it says.",
            &[Part {
                packed: Some(deflated(&zeros[..60_000])),
                size: 5,
                ..part("liar", &zeros[..60_000])
            }],
        ),
        with(
            "zip-lying-checksum",
            "unfolds to something else than it says.",
            &[Part {
                checksum: 1,
                ..part("liar", b"x")
            }],
        ),
        with(
            "zip-two-names",
            "gives a file another name in the list than at the file.",
            &[Part {
                local_name: "b".to_owned(),
                ..part("a", b"x")
            }],
        ),
        with(
            "zip-encrypted",
            "is encrypted.",
            &[Part {
                flags: 1,
                ..part("a", b"x")
            }],
        ),
        with("zip-many", "holds 500 more files.", &many),
        case("zip-none", "is no archive.", REFUSED, Attempt::Install(b"MZ".to_vec())),
    ]
}
