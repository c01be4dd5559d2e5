//! A new source and its keys.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use market::{
    PublicKey, Role,
    record::{self, IndexRecord, KeyText, RevocationsRecord, RoleRecord, RolesRecord, RootRecord, SPEC, SourceRecord},
};

use crate::{Passphrases, Repository, SigningKey, ToolError, draft::Draft, publish};

/// How long a root is believed: its keys are offline, and a year is how often they are fetched anyway.
pub(crate) const ROOT_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);

/// How long an index is believed without its key being used.
pub(crate) const INDEX_LIFE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Root keys of a new source, and how many of them must sign: one may be lost, and one may be stolen.
const ROOT_KEYS: usize = 3;
const ROOT_THRESHOLD: usize = 2;

/// A source to make.
#[derive(Debug, Clone)]
pub struct Init {
    /// Its identifier, for ever.
    pub id: String,
    /// What users read.
    pub name: String,
    /// Where the keys are put, or are already, as `root-1.key` to `root-3.key`, `timestamp.key`, `index.key` and
    /// `revocations.key`.
    pub keys: PathBuf,
}

/// Makes a source in an empty folder and publishes it. The answer are its root keys, with one of which users add it.
pub async fn init(
    repository: &Repository,
    init: &Init,
    passphrases: &dyn Passphrases,
    now: Timestamp,
) -> Result<Vec<PublicKey>, ToolError> {
    if repository.newest(Role::Root)?.is_some() {
        return Err(ToolError::Refused(format!(
            "there is a source in {}",
            repository.folder().display()
        )));
    }
    std::fs::create_dir_all(&init.keys).map_err(ToolError::io("create", &init.keys))?;
    let names = (1..=ROOT_KEYS).map(|number| format!("root-{number}"));
    let names: Vec<_> = names
        .chain(["timestamp", "index", "revocations"].map(str::to_owned))
        .collect();
    let keys = keys(&init.keys, &names, passphrases)?;
    let (roots, online) = keys.split_at(ROOT_KEYS);
    let [timestamp, index, revocations] = online else {
        unreachable!("three names follow those of the roots")
    };

    let publics: Vec<_> = roots.iter().map(SigningKey::public).collect();
    let role = |key: &SigningKey| role_record(&[key.public()], 1);
    let root = RootRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        expires: now + ROOT_LIFE,
        source: SourceRecord {
            id: init.id.clone(),
            name: init.name.clone(),
        },
        roles: RolesRecord {
            root: role_record(&publics, ROOT_THRESHOLD),
            timestamp: role(timestamp),
            index: role(index),
            revocations: role(revocations),
        },
        authors: std::collections::BTreeMap::new(),
    };
    let index_record = IndexRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        expires: now + INDEX_LIFE,
        plugins: std::collections::BTreeMap::new(),
    };
    let revocations_record = RevocationsRecord {
        spec: SPEC.to_owned(),
        seq: 1,
        items: Vec::new(),
    };
    let mut draft = Draft::new(repository);
    draft.sign(
        Role::Root,
        1,
        record::to_bytes(&root),
        &roots.iter().collect::<Vec<_>>(),
    );
    draft.sign(Role::Index, 1, record::to_bytes(&index_record), &[index]);
    draft.sign(
        Role::Revocations,
        1,
        record::to_bytes(&revocations_record),
        &[revocations],
    );
    draft.write()?;
    publish(repository, timestamp, now).await?;
    Ok(publics)
}

pub(crate) fn role_record(keys: &[PublicKey], threshold: usize) -> RoleRecord {
    RoleRecord {
        keys: keys.iter().copied().map(KeyText).collect(),
        threshold,
    }
}

/// The keys that are there, and new ones with one passphrase for those that are not.
fn keys(folder: &Path, names: &[String], passphrases: &dyn Passphrases) -> Result<Vec<SigningKey>, ToolError> {
    let mut passphrase = None;
    let mut keys = Vec::new();
    for name in names {
        let path = folder.join(format!("{name}.key"));
        if path.exists() {
            keys.push(SigningKey::read(&path, passphrases)?);
            continue;
        }
        let chosen = match &passphrase {
            Some(chosen) => chosen,
            None => passphrase.insert(passphrases.chosen().map_err(ToolError::Passphrase)?),
        };
        keys.push(SigningKey::generate(&path, chosen.as_deref())?);
    }
    Ok(keys)
}
