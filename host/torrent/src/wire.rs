//! The peer protocol, as bytes: BEP 3, 6 (fast), 9 (metadata), 10 (extensions), 11 (peer exchange), 21 (upload only) and
//! 54 (pieces that are gone). Pure.
//!
//! What breaks the format is an error that ends the connection; what merely makes no sense for a torrent is judged by
//! [`crate::heart`].

pub(crate) mod extension;
pub(crate) mod handshake;
pub(crate) mod message;
pub(crate) mod obfuscation;

/// Why a peer's bytes are not the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the handshake is of another protocol")]
    Protocol,
    #[error("the message {id} has {length} bytes, more than the {limit} that it may have")]
    Long { id: u8, length: u32, limit: u32 },
    #[error("the message {id} has {length} bytes, which is no length of it")]
    Length { id: u8, length: u32 },
    #[error("the dictionary of an extension is malformed")]
    Dictionary,
    #[error("an extension message has a number that was not agreed on")]
    Extension,
}
