//! Creation of a source and its keys.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use market::{
    PublicKey, Role, SourceId,
    record::{self, IndexRecord, RevocationsRecord, RoleRecord, RolesRecord, RootRecord, SPEC, SourceRecord},
};

use private_files::FileError;

use crate::{Passphrases, Repository, SigningKey, ToolError, draft::Draft, publish};

/// How long clients accept a root. Its keys are offline; a year is how often a maintainer can be expected to fetch
/// them.
pub(crate) const ROOT_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);

/// How long clients accept an index that is not signed again.
pub(crate) const INDEX_LIFE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// How many of the three root keys of a new source must sign: one may be lost, and one may be stolen.
const ROOT_THRESHOLD: usize = 2;

/// A source to create.
#[derive(Debug, Clone, clap::Args)]
pub struct Init {
    /// The source's permanent id: lower-case letters, digits, '-' and '.'
    #[arg(long)]
    pub id: SourceId,
    /// The name that users see
    #[arg(long)]
    pub name: String,
    /// The folder for the keys: root-1.key to root-3.key, timestamp.key, index.key and revocations.key. Existing ones
    /// are used. It must not be inside the published folder
    #[arg(long, value_name = "FOLDER")]
    pub keys: PathBuf,
}

/// Creates a source in an empty folder and publishes it. Returns its root keys; users add the source with any of them.
pub async fn init(
    repository: &Repository,
    init: &Init,
    passphrases: &dyn Passphrases,
    now: Timestamp,
) -> Result<Vec<PublicKey>, ToolError> {
    if repository.newest(Role::Root)?.is_some() {
        return Err(ToolError::Refused(format!(
            "there is a source in {} already",
            repository.folder().display()
        )));
    }
    std::fs::create_dir_all(&init.keys).map_err(FileError::at("make", &init.keys))?;
    // New keys share one passphrase, which is asked for once.
    let mut passphrase = None;
    let mut key = |name: &str| {
        let path = init.keys.join(format!("{name}.key"));
        if path.exists() {
            return SigningKey::read(&path, passphrases);
        }
        let chosen = match &passphrase {
            Some(chosen) => chosen,
            None => passphrase.insert(passphrases.chosen().map_err(ToolError::Passphrase)?),
        };
        SigningKey::generate(&path, chosen.as_deref())
    };
    let roots = [key("root-1")?, key("root-2")?, key("root-3")?];
    let (timestamp, index, revocations) = (key("timestamp")?, key("index")?, key("revocations")?);
    let publics = roots.each_ref().map(SigningKey::public);
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
            timestamp: role(&timestamp),
            index: role(&index),
            revocations: role(&revocations),
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
    draft.sign(Role::Root, 1, record::to_bytes(&root), &roots.each_ref());
    draft.sign(Role::Index, 1, record::to_bytes(&index_record), &[&index]);
    draft.sign(
        Role::Revocations,
        1,
        record::to_bytes(&revocations_record),
        &[&revocations],
    );
    draft.write()?;
    publish(repository, &timestamp, now).await?;
    Ok(publics.to_vec())
}

pub(crate) fn role_record(keys: &[PublicKey], threshold: usize) -> RoleRecord {
    RoleRecord {
        keys: keys.to_vec(),
        threshold,
    }
}
