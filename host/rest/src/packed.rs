//! Committed descriptions of interfaces, as the service sends them. They are made from the handlers and records, but by a
//! test and not by the service, because what makes them is half a megabyte of code.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// `openapi.json`.
pub(crate) fn openapi() -> Vec<u8> {
    unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz")))
}

/// A text that a build script has packed.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let unpacked = GzDecoder::new(packed).read_to_end(&mut text);
    unpacked.expect("the build script packed it");
    text
}
