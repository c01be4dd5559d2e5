//! The access key: rules, comparison in constant time, and the one-time code of the first set-up.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use ring::rand::SecureRandom as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The shortest key.
pub const MIN_KEY_CHARS: usize = 8;

/// The longest key; it must fit into headers.
const MAX_KEY_CHARS: usize = 128;

/// Random bytes of a generated key, which has 40 characters.
const RANDOM_KEY_BYTES: usize = 25;

/// 50 random bits; with ten attempts a minute the code cannot be guessed.
const SETUP_CODE_CHARS: usize = 10;

/// The rule that a key violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakKey {
    /// It has fewer than [`MIN_KEY_CHARS`] characters.
    #[error("the access key must have at least {MIN_KEY_CHARS} characters")]
    Short,
    /// It has more than 128 characters.
    #[error("the access key must have at most {MAX_KEY_CHARS} characters")]
    Long,
    /// It contains a space, a control character or a character outside ASCII.
    #[error("the access key must consist of visible ASCII characters")]
    NotVisibleAscii,
    /// It contains no letter.
    #[error("the access key must have at least one letter")]
    NoLetter,
    /// It contains no digit.
    #[error("the access key must have at least one digit")]
    NoDigit,
}

/// A key. Where users choose one, it satisfies the rules; a stored one may be older than they are. Its `Debug` output is
/// `***`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct AccessKey {
    text: String,
    /// Requests are compared with the digest.
    digest: KeyDigest,
}

impl AccessKey {
    /// Parses a key; an error names the violated rule.
    pub fn new(text: &str) -> Result<Self, WeakKey> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(WeakKey::NotVisibleAscii);
        }
        match text.len() {
            ..MIN_KEY_CHARS => Err(WeakKey::Short),
            MIN_KEY_CHARS..=MAX_KEY_CHARS if !text.bytes().any(|byte| byte.is_ascii_alphabetic()) => {
                Err(WeakKey::NoLetter)
            }
            MIN_KEY_CHARS..=MAX_KEY_CHARS if !text.bytes().any(|byte| byte.is_ascii_digit()) => Err(WeakKey::NoDigit),
            MIN_KEY_CHARS..=MAX_KEY_CHARS => Ok(Self::agreed(text)),
            _ => Err(WeakKey::Long),
        }
    }

    /// A secret that another component or version generated; the rules are not checked.
    pub fn agreed(text: impl Into<String>) -> Self {
        let text = text.into();
        let digest = KeyDigest::of(&text);
        Self { text, digest }
    }

    /// Generates a random key.
    pub fn random() -> Result<Self, NoRandom> {
        loop {
            let text = BASE32_NOPAD.encode(&random::<RANDOM_KEY_BYTES>()?);
            // About one random text in three thousand lacks a digit.
            if let Ok(key) = Self::new(&text) {
                return Ok(key);
            }
        }
    }

    /// The plain text.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        self.digest
    }
}

impl From<String> for AccessKey {
    fn from(text: String) -> Self {
        Self::agreed(text)
    }
}

impl From<AccessKey> for String {
    fn from(key: AccessKey) -> Self {
        key.text
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessKey(***)")
    }
}

/// The operating system provides no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandom;

/// Compared instead of the secret, in constant time.
#[derive(Clone, Copy)]
pub(crate) struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        let difference = self
            .0
            .iter()
            .zip(other.0)
            .fold(0, |sum, (left, right)| sum | (left ^ right));
        std::hint::black_box(difference) == 0
    }
}

impl Eq for KeyDigest {}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(***)")
    }
}

/// The code that a remote client must send to set the first key; printed on the server's terminal.
#[derive(Clone)]
pub struct SetupCode(String);

impl SetupCode {
    pub(crate) fn random() -> Result<Self, NoRandom> {
        let mut text = BASE32_NOPAD.encode(&random::<SETUP_CODE_CHARS>()?);
        text.truncate(SETUP_CODE_CHARS);
        text.insert(SETUP_CODE_CHARS / 2, '-');
        Ok(Self(text))
    }

    /// The plain text, for display.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares, ignoring separators and case.
    pub(crate) fn is(&self, text: &str) -> bool {
        let plain = |text: &str| -> String {
            let visible = text.chars().filter(char::is_ascii_alphanumeric);
            visible.map(|char| char.to_ascii_uppercase()).collect()
        };
        KeyDigest::of(&plain(&self.0)) == KeyDigest::of(&plain(text))
    }
}

impl fmt::Debug for SetupCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetupCode(***)")
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], NoRandom> {
    let mut bytes = [0; BYTES];
    ring::rand::SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_every_rule() {
        let check = |text: &str, expect: Result<(), WeakKey>| {
            assert_eq!(AccessKey::new(text).map(|_| ()), expect, "{text}");
        };
        check("abcdefg1", Ok(()));
        check("abcdef1", Err(WeakKey::Short));
        check("", Err(WeakKey::Short));
        check(&"a1".repeat(64), Ok(()));
        check(&"a1".repeat(65), Err(WeakKey::Long));
        check("abcdefgh", Err(WeakKey::NoDigit));
        check("12345678", Err(WeakKey::NoLetter));
        check("abc def 12", Err(WeakKey::NotVisibleAscii));
        check("abcdefg1ü", Err(WeakKey::NotVisibleAscii));
        check("abcdefg1\n", Err(WeakKey::NotVisibleAscii));
    }

    #[test]
    fn random_keys_are_allowed_and_differ() {
        let (one, two) = (AccessKey::random().unwrap(), AccessKey::random().unwrap());
        assert_ne!(one.expose(), two.expose());
        assert_eq!(one.digest(), KeyDigest::of(one.expose()));
        assert_ne!(one.digest(), two.digest());
    }

    #[test]
    fn no_secret_prints_itself() {
        let key = AccessKey::new("secret-key-1").unwrap();
        let code = SetupCode::random().unwrap();
        let shown = format!("{key:?} {:?} {code:?}", key.digest());
        assert!(!shown.contains("secret") && !shown.contains(code.expose()));
    }

    #[test]
    fn a_code_may_be_typed_in_any_way() {
        let code = SetupCode::random().unwrap();
        assert_eq!(code.expose().len(), SETUP_CODE_CHARS + 1);
        assert!(code.is(code.expose()));
        assert!(code.is(&format!(" {} ", code.expose().to_lowercase().replace('-', ""))));
        assert!(!code.is(""));
        assert!(!code.is("AAAAA-AAAAA"));
    }
}
