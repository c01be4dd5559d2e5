//! The access key: which ones are allowed, how they are compared, and the one-time code of the first set-up.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use ring::rand::SecureRandom as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The shortest key.
pub const MIN_KEY_CHARS: usize = 8;

/// The longest key: it travels in headers.
const MAX_KEY_CHARS: usize = 128;

/// Random bytes of a key that we make; 40 characters.
const RANDOM_KEY_BYTES: usize = 25;

/// Random bytes of a set-up code. 50 bits with ten tries a minute cannot be guessed.
const SETUP_CODE_CHARS: usize = 10;

/// Which rule a key breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakKey {
    /// Too short.
    #[error("the access key must have at least {MIN_KEY_CHARS} characters")]
    Short,
    /// Too long.
    #[error("the access key must have at most {MAX_KEY_CHARS} characters")]
    Long,
    /// A space, a control character or a letter beyond ASCII.
    #[error("the access key must consist of visible ASCII characters")]
    NotVisibleAscii,
    /// No letter.
    #[error("the access key must have at least one letter")]
    NoLetter,
    /// No digit.
    #[error("the access key must have at least one digit")]
    NoDigit,
}

/// A key that keeps all the rules. Prints as `***`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccessKey {
    text: String,
    /// Every request is compared with it.
    digest: KeyDigest,
}

impl AccessKey {
    /// The key, if it keeps the rules.
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

    /// A secret that was agreed on elsewhere, whatever it is like.
    pub fn agreed(text: impl Into<String>) -> Self {
        let text = text.into();
        let digest = KeyDigest::of(&text);
        Self { text, digest }
    }

    /// A new random one.
    pub fn random() -> Result<Self, NoRandom> {
        loop {
            let text = BASE32_NOPAD.encode(&random::<RANDOM_KEY_BYTES>()?);
            // A random text may lack a digit, about once in three thousand.
            if let Ok(key) = Self::new(&text) {
                return Ok(key);
            }
        }
    }

    /// Its text.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        self.digest
    }
}

impl TryFrom<String> for AccessKey {
    type Error = WeakKey;

    fn try_from(text: String) -> Result<Self, WeakKey> {
        Self::new(&text)
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

/// The operating system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandom;

/// What is compared instead of a secret. Comparing takes equally long wherever they differ.
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

/// The code that a remote visitor must know to set the first key; it is printed where the server was started.
#[derive(Clone)]
pub struct SetupCode(String);

impl SetupCode {
    pub(crate) fn random() -> Result<Self, NoRandom> {
        let mut text = BASE32_NOPAD.encode(&random::<SETUP_CODE_CHARS>()?);
        text.truncate(SETUP_CODE_CHARS);
        text.insert(SETUP_CODE_CHARS / 2, '-');
        Ok(Self(text))
    }

    /// Its text, to be shown.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `text` is the code, however it was typed.
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
