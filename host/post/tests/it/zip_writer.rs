//! Writes ZIP archives byte by byte, also those that no program writes.

use std::io::Write as _;

#[derive(Clone)]
pub(crate) struct ZipFile {
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
    /// What is written instead of the truth.
    pub(crate) local_name: Option<Vec<u8>>,
    pub(crate) local_method: Option<u16>,
    pub(crate) local_size: Option<u32>,
    pub(crate) size: Option<u32>,
    pub(crate) packed: Option<u32>,
    pub(crate) checksum: Option<u32>,
    pub(crate) offset: Option<u32>,
}

impl ZipFile {
    pub(crate) fn new(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            data: data.as_ref().to_vec(),
            method: 0,
            flags: 0x0800,
            mode: 0,
            local_name: None,
            local_method: None,
            local_size: None,
            size: None,
            packed: None,
            checksum: None,
            offset: None,
        }
    }

    pub(crate) fn deflated(mut self) -> Self {
        self.method = 8;
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn packed_data(&self) -> Vec<u8> {
        if self.method != 8 {
            return self.data.clone();
        }
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&self.data).unwrap();
        encoder.finish().unwrap()
    }
}

pub(crate) fn zip(files: &[ZipFile]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for file in files {
        let offset = u32::try_from(archive.len()).unwrap();
        let packed = file.packed_data();
        let checksum = file.checksum.unwrap_or_else(|| crc32fast::hash(&file.data));
        let packed_size = file.packed.unwrap_or(u32::try_from(packed.len()).unwrap());
        let size = file.size.unwrap_or(u32::try_from(file.data.len()).unwrap());
        let local_name = file.local_name.as_ref().unwrap_or(&file.name);
        archive.extend(b"PK\x03\x04\x14\0");
        put16(
            &mut archive,
            &[file.flags, file.local_method.unwrap_or(file.method), 0, 0x5a21],
        );
        put32(&mut archive, &[checksum, packed_size, file.local_size.unwrap_or(size)]);
        put16(&mut archive, &[length(local_name), 0]);
        archive.extend(local_name);
        archive.extend(&packed);
        directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        put16(&mut directory, &[file.flags, file.method, 0, 0x5a21]);
        put32(&mut directory, &[checksum, packed_size, size]);
        put16(&mut directory, &[length(&file.name), 0, 0, 0, 0]);
        put32(&mut directory, &[file.mode << 16, file.offset.unwrap_or(offset)]);
        directory.extend(&file.name);
    }
    let offset = u32::try_from(archive.len()).unwrap();
    archive.extend(&directory);
    let count = u16::try_from(files.len()).unwrap();
    end(&mut archive, count, u32::try_from(directory.len()).unwrap(), offset);
    archive
}

pub(crate) fn end(archive: &mut Vec<u8>, count: u16, bytes: u32, offset: u32) {
    archive.extend(b"PK\x05\x06\0\0\0\0");
    put16(archive, &[count, count]);
    put32(archive, &[bytes, offset]);
    put16(archive, &[0]);
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap()
}

fn put16(to: &mut Vec<u8>, numbers: &[u16]) {
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put32(to: &mut Vec<u8>, numbers: &[u32]) {
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
