//! Writes tar archives byte by byte.

use std::io::Write as _;

pub(crate) struct TarEntry {
    name: String,
    kind: u8,
    data: Vec<u8>,
    size: Option<u64>,
}

pub(crate) fn entry(name: &str, kind: u8, data: impl AsRef<[u8]>) -> TarEntry {
    TarEntry {
        name: name.to_owned(),
        kind,
        data: data.as_ref().to_vec(),
        size: None,
    }
}

pub(crate) fn sized(name: &str, kind: u8, data: &[u8], size: u64) -> TarEntry {
    let size = Some(size);
    TarEntry {
        size,
        ..entry(name, kind, data)
    }
}

/// A pax header with one record.
pub(crate) fn pax(kind: u8, key: &str, value: &str) -> TarEntry {
    let rest = format!(" {key}={value}\n");
    let length = (1..1000)
        .find(|length| length - length.to_string().len() == rest.len())
        .unwrap();
    entry("pax", kind, format!("{length}{rest}"))
}

pub(crate) fn tar(entries: &[TarEntry]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let mut header = [0_u8; 512];
        header[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        let size = entry.size.unwrap_or(entry.data.len() as u64);
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        header[136..148].copy_from_slice(b"14000000000\0");
        header[156] = entry.kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(&entry.data);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1024]);
    archive
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
