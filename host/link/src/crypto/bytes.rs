//! Framing, base64 and random bytes.

use data_encoding::BASE64;

/// Appends `bytes` with their length in front, as 32 bits, little-endian.
pub(crate) fn frame(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("what is framed is bounded far below 4 GiB");
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(bytes);
}

/// Reads padded, canonical base64 of exactly `N` bytes.
pub(crate) fn read_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    // A canonical text of these bytes has this length; a longer one is not decoded.
    if text.len() != BASE64.encode_len(N) {
        return None;
    }
    BASE64.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub(crate) fn write_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// 32 random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

/// The operating system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandom;
