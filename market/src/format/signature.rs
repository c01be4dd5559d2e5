//! Signatures, in minisign's form. The purpose of a signature is in its trusted comment, which is signed as well, so
//! that a signature made for one purpose is not accepted for another.

use std::{collections::BTreeMap, fmt};

use minisign_verify::Signature;
use semver::Version;

use crate::{Digest, Identity, PublicKey, Role, format::key::KeyId};

/// The prefix of every trusted comment; the number is the version of these rules.
const PREFIX: &str = "svc-market v1";

/// The lines of one signature.
const LINES: usize = 4;

/// The prefix of the line with the trusted comment.
const TRUSTED: &str = "trusted comment: ";

/// The purpose of a signature. Its `Display` is the trusted comment.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// A file of a source.
    Document {
        /// The role of the key that signs it.
        role: Role,
        /// The number of the file.
        seq: u64,
        /// The digest of the file.
        sha256: Digest,
    },
    /// A whole package.
    Package {
        /// The plugin.
        identity: &'a Identity,
        /// The version of the plugin.
        version: &'a Version,
        /// The package's digest.
        sha256: Digest,
    },
    /// The list of a package's files, which is itself a file of the package.
    Files {
        /// The plugin.
        identity: &'a Identity,
        /// The version of the plugin.
        version: &'a Version,
        /// The digest of the list.
        sha256: Digest,
    },
    /// The statement that another key signs a plugin's packages from now on. The comment is also the signed message.
    Author {
        /// The plugin.
        identity: &'a Identity,
        /// The previous key, which signs the statement.
        from: &'a PublicKey,
        /// The new key.
        to: &'a PublicKey,
    },
}

impl fmt::Display for Purpose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document { role, seq, sha256 } => write!(f, "{PREFIX} role={role} seq={seq} sha256={sha256}"),
            Self::Package {
                identity,
                version,
                sha256,
            } => write!(
                f,
                "{PREFIX} role=package plugin={identity} version={version} sha256={sha256}"
            ),
            Self::Files {
                identity,
                version,
                sha256,
            } => write!(
                f,
                "{PREFIX} role=files plugin={identity} version={version} sha256={sha256}"
            ),
            Self::Author { identity, from, to } => {
                write!(f, "{PREFIX} role=author plugin={identity} from={from} to={to}")
            }
        }
    }
}

/// Those of `keys` that signed `message` for `purpose`. `signatures` are minisign's files, one after another. Invalid
/// signatures and those of other keys are ignored; a key with several signatures counts once.
pub(crate) fn signers(message: &[u8], signatures: &[u8], purpose: Purpose<'_>, keys: &[PublicKey]) -> Vec<PublicKey> {
    let comment = purpose.to_string();
    let mut signers = BTreeMap::new();
    for text in split(signatures) {
        let Ok(signature) = Signature::decode(&text) else {
            continue;
        };
        if signature.trusted_comment() != comment {
            continue;
        }
        let signer = keys.iter().find(|key| key.has_signed(message, &signature));
        signers.extend(signer.map(|key| (key.point(), *key)));
    }
    signers.into_values().collect()
}

fn split(signatures: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(signatures).unwrap_or("");
    let lines: Vec<_> = text.lines().collect();
    lines.chunks(LINES).map(|lines| lines.join("\n")).collect()
}

/// The number in the trusted comment of the first of `signatures`. Not verified: it only says which document to
/// request.
pub fn claimed_sequence(signatures: &[u8], role: Role) -> Option<u64> {
    let first = split(signatures).into_iter().next()?;
    let comment = first.lines().find_map(|line| line.strip_prefix(TRUSTED))?;
    let fields = comment.strip_prefix(&format!("{PREFIX} role={role} seq="))?;
    let (seq, _) = fields.split_once(' ')?;
    let number: u64 = seq.parse().ok()?;
    (number.to_string() == seq).then_some(number)
}

/// A signature whose purpose is known from its place in a document, so that only its two signed lines are stored:
/// `line line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compact(Box<str>);

/// A text that is no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signature is the second and the fourth line of minisign's file, with a space between them")]
pub struct InvalidSignature;

/// Base64 of the two lines: an algorithm, an identifier and an Ed25519 signature; an Ed25519 signature.
const LINE_CHARACTERS: [usize; 2] = [100, 88];

impl Compact {
    /// The two lines of minisign's file.
    pub fn from_file(text: &str) -> Result<Self, InvalidSignature> {
        let lines: Vec<_> = text.lines().collect();
        match lines[..] {
            [_, signature, _, comment] => format!("{signature} {comment}").parse(),
            _ => Err(InvalidSignature),
        }
    }

    /// The signature as a file of minisign, with the trusted comment of `purpose`.
    pub fn to_file(&self, purpose: Purpose<'_>) -> String {
        let (signature, comment) = self.lines();
        format!("untrusted comment: Svc market\n{signature}\n{TRUSTED}{purpose}\n{comment}\n")
    }

    /// The id of the key that it claims to be from. Not verified.
    pub fn key_id(&self) -> KeyId {
        let bytes = data_encoding::BASE64
            .decode(self.lines().0.as_bytes())
            .unwrap_or_default();
        let mut id = [0; 8];
        if let Some(claimed) = bytes.get(2..10) {
            id.copy_from_slice(claimed);
        }
        KeyId::new(id)
    }

    /// Whether `key` made it over `message` for `purpose`.
    pub fn is_by(&self, key: &PublicKey, message: &[u8], purpose: Purpose<'_>) -> bool {
        Signature::decode(&self.to_file(purpose)).is_ok_and(|signature| key.has_signed(message, &signature))
    }

    fn lines(&self) -> (&str, &str) {
        self.0.split_once(' ').expect("a space was there when it was made")
    }
}

impl std::str::FromStr for Compact {
    type Err = InvalidSignature;

    fn from_str(text: &str) -> Result<Self, InvalidSignature> {
        let (signature, comment) = text.split_once(' ').ok_or(InvalidSignature)?;
        let is_base64 = |line: &str| data_encoding::BASE64.decode(line.as_bytes()).is_ok();
        let is_valid =
            [signature.len(), comment.len()] == LINE_CHARACTERS && is_base64(signature) && is_base64(comment);
        is_valid.then(|| Self(text.into())).ok_or(InvalidSignature)
    }
}

impl fmt::Display for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

plugin_package::text_in_json!(Compact);
