//! Private keys, in files that minisign reads and writes too.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::Path,
};

use market::{
    PublicKey,
    signature::{Compact, Purpose},
};
use minisign::{KeyPair, SecretKey, SecretKeyBox};
use private_files::FileError;

use crate::ToolError;

/// The size of the checksum at the end of a key file.
const CHECKSUM_BYTES: usize = 32;

/// A source of passphrases.
pub trait Passphrases {
    /// The passphrase of the existing key in this file.
    fn existing(&self, path: &Path) -> io::Result<String>;

    /// The passphrase for new keys; with none, they are stored unencrypted.
    fn chosen(&self) -> io::Result<Option<String>>;
}

/// The same passphrase for all keys, or none for keys without one.
#[derive(Clone)]
pub struct Fixed(pub Option<String>);

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Fixed(…)" } else { "Fixed(none)" })
    }
}

impl Passphrases for Fixed {
    fn existing(&self, _path: &Path) -> io::Result<String> {
        self.0
            .clone()
            .ok_or_else(|| io::Error::other("the key has a passphrase and none was given"))
    }

    fn chosen(&self) -> io::Result<Option<String>> {
        Ok(self.0.clone())
    }
}

/// A private key, ready to sign.
#[derive(Clone)]
pub struct SigningKey {
    secret: SecretKey,
    public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public).finish()
    }
}

impl SigningKey {
    /// Generates a key and writes it to `path`, readable by its owner only, and its public part to `<path>.pub`.
    /// Existing files are not overwritten.
    pub fn generate(path: &Path, passphrase: Option<&str>) -> Result<Self, ToolError> {
        let failed = |error: minisign::PError| invalid(path, &error);
        let pair = match passphrase {
            Some(passphrase) => KeyPair::generate_encrypted_keypair(Some(passphrase.to_owned())),
            None => KeyPair::generate_unencrypted_keypair(),
        };
        let pair = pair.map_err(failed)?;
        let text = pair.sk.to_box(None).map_err(failed)?;
        let public = pair.pk.to_box().map_err(failed)?;
        create(path, &text.to_bytes(), private_files::options())?;
        let mut public_path = path.as_os_str().to_owned();
        public_path.push(".pub");
        create(public_path.as_ref(), &public.to_bytes(), fs::OpenOptions::new())?;
        let secret = match passphrase {
            Some(passphrase) => text.into_secret_key(Some(passphrase.to_owned())).map_err(failed)?,
            None => pair.sk,
        };
        Self::new(path, secret)
    }

    /// Reads the key in `path`, and asks for its passphrase if it has one.
    pub fn read(path: &Path, passphrases: &dyn Passphrases) -> Result<Self, ToolError> {
        let text = fs::read_to_string(path).map_err(FileError::at("read", path))?;
        if let Some(secret) = without_checksum(&text) {
            return Self::new(path, secret);
        }
        let text: SecretKeyBox = text.into();
        if let Ok(secret) = text.clone().into_unencrypted_secret_key() {
            return Self::new(path, secret);
        }
        let passphrase = passphrases.existing(path).map_err(ToolError::Passphrase)?;
        let secret = text
            .into_secret_key(Some(passphrase))
            .map_err(|error| invalid(path, &error))?;
        Self::new(path, secret)
    }

    fn new(path: &Path, secret: SecretKey) -> Result<Self, ToolError> {
        let public = minisign::PublicKey::from_secret_key(&secret).map_err(|error| invalid(path, &error))?;
        let public = public.to_base64().parse().map_err(|error| invalid(path, &error))?;
        Ok(Self { secret, public })
    }

    /// Its public part.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs `message` for `purpose`, as a file that minisign verifies.
    pub fn sign(&self, message: &[u8], purpose: Purpose<'_>) -> String {
        let comment = purpose.to_string();
        let signature = minisign::sign(None, &self.secret, message, Some(&comment), Some("Svc market"));
        let signature = signature.expect("the key is open, and reading from memory does not fail");
        signature.to_string()
    }

    /// Signs `message` for `purpose`, without the trusted comment: the reader must know the purpose.
    pub fn sign_compact(&self, message: &[u8], purpose: Purpose<'_>) -> Compact {
        Compact::from_file(&self.sign(message, purpose)).expect("minisign writes what it reads")
    }
}

/// A key without a passphrase, as minisign's own program writes it: with a checksum of zeros, because the checksum only
/// serves to detect a wrong passphrase.
fn without_checksum(text: &str) -> Option<SecretKey> {
    let bytes = data_encoding::BASE64.decode(text.lines().nth(1)?.as_bytes()).ok()?;
    let (key, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    let is_plain = key.get(2..4)? == [0; 2] && checksum == &[0; CHECKSUM_BYTES];
    is_plain.then(|| SecretKey::from_bytes(&bytes).ok()).flatten()
}

fn invalid(path: &Path, reason: &impl ToString) -> ToolError {
    ToolError::Key {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Writes a new file; an existing one is an error.
fn create(path: &Path, bytes: &[u8], mut options: fs::OpenOptions) -> Result<(), ToolError> {
    let file = options.write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    Ok(written.map_err(FileError::at("make", path))?)
}
