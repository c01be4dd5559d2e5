//! Why secrets are not used or stored.

use store::{ReadError, SealError, WriteError};
use transfer::ByteCount;
use url::Url;

/// The longest template, and its most placeholders. Bounds the filled text.
pub(crate) const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
pub(crate) const MAX_PLACES: usize = 16;

/// The longest name in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// The shortest captured value: shorter ones can be guessed, and occur in pages by chance.
pub(crate) const MIN_VALUE_BYTES: usize = 4;

/// The most bytes of a captured value: the longest tokens of sites have some 2 KiB.
pub const MAX_VALUE_BYTES: usize = 4096;

/// How many captured values an account has at most.
pub(crate) const MAX_SECRETS: usize = 32;

/// How many values a call or a login replaces or forgets at most. A login that waits for its user may get a token a second.
pub(crate) const MAX_REPLACED: usize = 256;

/// Why a secret was not used or stored. No message contains a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("there is no secret {0}")]
    Unknown(String),
    #[error("the secret {name} is not bound to {host}")]
    NotBound { name: String, host: String },
    /// A name that no secret can have, or that a setting has.
    #[error(
        "a captured secret has a name of 1 to {MAX_NAME_BYTES} letters, digits, _, - and ., and not that of a setting"
    )]
    Name,
    #[error("a captured secret has {MIN_VALUE_BYTES} B to {}, not {}", ByteCount(MAX_VALUE_BYTES as u64), ByteCount(*.0 as u64))]
    Value(usize),
    #[error("a template has at most {} and {MAX_PLACES} places for secrets", ByteCount(MAX_TEMPLATE_BYTES as u64))]
    Template,
    #[error("an account keeps at most {MAX_SECRETS} captured secrets")]
    Full,
    #[error("nobody is logged in to the account {0}")]
    LoggedOut(String),
    /// Its captures were forgotten.
    #[error("the login is over")]
    Over,
    #[error("a call computes at most {MAX_SECRETS} secrets from others")]
    Derived,
    #[error("a call or a login replaces or forgets at most {MAX_REPLACED} secrets")]
    Replaced,
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("a sealed secret cannot be read")]
    Content,
}

/// The refusal to send a secret to the host of `url`.
pub fn not_bound(name: &str, url: &Url) -> SecretError {
    SecretError::NotBound {
        name: name.to_owned(),
        host: url.host_str().unwrap_or_default().to_owned(),
    }
}
