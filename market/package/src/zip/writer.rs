//! Writes archives that [`Package::open`](crate::Package::open) accepts. The same files give the same bytes at any time
//! and on any machine.

use std::{collections::BTreeMap, io::Write as _};

use bytes::Bytes;
use flate2::{Compression, write::DeflateEncoder};

use super::format::{CENTRAL, CENTRAL_BYTES, DEFLATED, END, LOCAL, REGULAR, STORED, is_bomb};
use crate::refusal::{Check, InvalidPackage, Result, refuse};

/// The version of ZIP that a reader needs: 2.0, for deflated files.
const NEEDED: u16 = 20;

/// The version of ZIP of the writer, and in the upper half the system that defines the modes: Unix.
const MADE_BY: u16 = 3 << 8 | NEEDED;

/// The flag for names in UTF-8.
const FLAGS: u16 = 1 << 11;

/// 1980-01-01, the first date of the format.
const DATE: u16 = 1 << 5 | 1;
const TIME: u16 = 0;

/// The mode of every file: readable by all, writable by its owner.
const PERMISSIONS: u32 = 0o644;

/// Packs files, sorted by their names.
pub fn pack(files: &BTreeMap<String, Bytes>) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, bytes) in files {
        let offset = number(archive.len(), name)?;
        let header = header(name, bytes)?;
        archive.extend_from_slice(LOCAL);
        archive.extend_from_slice(&NEEDED.to_le_bytes());
        archive.extend_from_slice(&header.common);
        archive.extend_from_slice(&0_u16.to_le_bytes());
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(&header.data);
        directory.extend_from_slice(CENTRAL);
        directory.extend_from_slice(&MADE_BY.to_le_bytes());
        directory.extend_from_slice(&NEEDED.to_le_bytes());
        directory.extend_from_slice(&header.common);
        // No extra field, no comment, the first disk, no attributes of ours.
        directory.extend_from_slice(&[0; 8]);
        directory.extend_from_slice(&((REGULAR | PERMISSIONS) << 16).to_le_bytes());
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (offset, length) = (number(archive.len(), "")?, number(directory.len(), "")?);
    let count = u16::try_from(files.len()).or_else(|_| refuse(Check::Entries, None, "too many files"))?;
    archive.append(&mut directory);
    archive.extend_from_slice(END);
    archive.extend_from_slice(&[0; 4]);
    archive.extend_from_slice(&count.to_le_bytes());
    archive.extend_from_slice(&count.to_le_bytes());
    archive.extend_from_slice(&length.to_le_bytes());
    archive.extend_from_slice(&offset.to_le_bytes());
    archive.extend_from_slice(&[0; 2]);
    debug_assert!(archive.len() >= files.len() * CENTRAL_BYTES);
    Ok(archive)
}

/// The fields that the local header and the directory share, and the compressed bytes of a file.
struct Header {
    common: Vec<u8>,
    data: Vec<u8>,
}

fn header(name: &str, bytes: &[u8]) -> Result<Header> {
    let (method, data) = packed(bytes);
    let mut common = Vec::new();
    for number in [FLAGS, method, TIME, DATE] {
        common.extend_from_slice(&number.to_le_bytes());
    }
    let name_bytes = u16::try_from(name.len()).or_else(|_| refuse(Check::Name, Some(name), "is too long"))?;
    let sizes = [
        crc32fast::hash(bytes),
        number(data.len(), name)?,
        number(bytes.len(), name)?,
    ];
    for number in sizes {
        common.extend_from_slice(&number.to_le_bytes());
    }
    common.extend_from_slice(&name_bytes.to_le_bytes());
    Ok(Header { common, data })
}

/// The method and the bytes of a file: deflated if that is smaller and the reader would not take it for a bomb.
fn packed(bytes: &[u8]) -> (u16, Vec<u8>) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    let deflated = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let deflated = deflated.expect("memory takes whatever is written");
    if deflated.len() < bytes.len() && !is_bomb(bytes.len() as u64, deflated.len() as u64) {
        (DEFLATED, deflated)
    } else {
        (STORED, bytes.to_vec())
    }
}

fn number(length: usize, name: &str) -> Result<u32> {
    u32::try_from(length).map_err(|_| InvalidPackage {
        check: Check::Size,
        file: Some(name.to_owned()),
        reason: "is larger than archives can be".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Package, manifest};

    fn files(pairs: &[(&str, Vec<u8>)]) -> BTreeMap<String, Bytes> {
        let pairs = pairs.iter().cloned();
        pairs.map(|(name, bytes)| (name.to_owned(), bytes.into())).collect()
    }

    #[test]
    fn what_is_packed_is_unpacked_and_the_same_every_time() {
        let files = files(&[
            (manifest::FILE, b"{}".to_vec()),
            ("a/empty", vec![]),
            ("a/\u{e4}.txt", b"text ".repeat(1000)),
            ("zeros.bin", vec![0; 1 << 20]),
        ]);
        let archive = pack(&files).unwrap();
        assert_eq!(Package::open(&archive).unwrap().files, files);
        assert_eq!(pack(&files).unwrap(), archive);
    }

    proptest! {
        #[test]
        fn any_file_survives(bytes in prop::collection::vec(any::<u8>(), 0..5000), repeat in 1_usize..50) {
            let files = files(&[(manifest::FILE, bytes.repeat(repeat))]);
            prop_assert_eq!(Package::open(&pack(&files).unwrap()).unwrap().files, files);
        }
    }
}
