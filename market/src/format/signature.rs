//! Signatures, in minisign's form. What a signature is for stands in its trusted comment, which is signed too: a
//! signature made for one purpose is worth nothing for another.

use std::{collections::BTreeMap, fmt};

use minisign_verify::Signature;
use semver::Version;

use crate::{Digest, Identity, PublicKey, Role, format::key::KeyId};

/// What every trusted comment begins with; the number is that of these rules.
const PREFIX: &str = "svc-market v1";

/// The lines of one signature.
const LINES: usize = 4;

/// How the line that holds the trusted comment begins.
const TRUSTED: &str = "trusted comment: ";

/// What a signature says that it is for. Its `Display` is the trusted comment, word for word.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// A file of a source.
    Document {
        /// In which role it speaks.
        role: Role,
        /// Its number.
        seq: u64,
        /// Its digest.
        sha256: Digest,
    },
    /// A package, whole.
    Package {
        /// Which plugin's.
        identity: &'a Identity,
        /// Which version of it.
        version: &'a Version,
        /// The package's digest.
        sha256: Digest,
    },
    /// The list of a package's files, which lies in the package.
    Files {
        /// Which plugin's.
        identity: &'a Identity,
        /// Which version of it.
        version: &'a Version,
        /// The list's digest.
        sha256: Digest,
    },
    /// From now on another key speaks for a plugin. The comment is the message as well.
    Author {
        /// For which plugin.
        identity: &'a Identity,
        /// The key that says so.
        from: &'a PublicKey,
        /// The key that speaks from now on.
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

/// Which of `keys` have signed `message` for `purpose` in `signatures`, which are minisign's files one after another.
/// What is no signature, or somebody else's, does not count; a key that is there twice counts once.
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

/// The number that the first of `signatures` claims to be for, before anything is checked: with it, the document is
/// asked for.
pub fn claimed_sequence(signatures: &[u8], role: Role) -> Option<u64> {
    let first = split(signatures).into_iter().next()?;
    let comment = first.lines().find_map(|line| line.strip_prefix(TRUSTED))?;
    let fields = comment.strip_prefix(&format!("{PREFIX} role={role} seq="))?;
    let (seq, _) = fields.split_once(' ')?;
    let number: u64 = seq.parse().ok()?;
    (number.to_string() == seq).then_some(number)
}

/// A signature whose purpose is known from where it stands, so that only its two signed lines are kept: `line line`.
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

    /// Minisign's file for the purpose that it was made for.
    pub fn to_file(&self, purpose: Purpose<'_>) -> String {
        let (signature, comment) = self.lines();
        format!("untrusted comment: Svc market\n{signature}\n{TRUSTED}{purpose}\n{comment}\n")
    }

    /// Whose it claims to be.
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
