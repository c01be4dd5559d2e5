//! The tables of jobs and passwords.

use std::{collections::BTreeMap, sync::Arc};

use engine::TaskId;
use post::{
    job::{JobId, Passwords, Record},
    rename::Source,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use store::{
    MigrationSet, ReadError, SealError, SealedColumn, Store, Vault, WriteError,
    sql::{self, Connection, OptionalExtension as _, Transaction},
};
use transfer::Secret;

/// The migrations of the tables of jobs.
pub const MIGRATIONS: MigrationSet = MigrationSet {
    namespace: "chains",
    steps: &[include_str!("rows/version_1.sql")],
};

/// The columns of sealed values, for the rotation of their key.
pub const SEALED: [SealedColumn; 2] = [
    SealedColumn {
        table: "chain_job",
        column: "sealed",
        key: &["id"],
        context: |row| Ok(job_context(row.get(0)?)),
    },
    SealedColumn {
        table: "chain_passwords",
        column: "sealed",
        key: &["id"],
        context: |_| Ok(PASSWORDS.to_owned()),
    },
];

/// What the sealed passwords are bound to.
const PASSWORDS: &str = "chain passwords";

const LAST: &str = "last";
const MARK: &str = "mark";
const SALT: &str = "salt";

/// Why the jobs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The database cannot be read.
    #[error("cannot read the jobs that follow downloads")]
    Read(#[from] ReadError),
    /// A row cannot be decrypted.
    #[error("cannot decrypt a job that follows downloads")]
    Sealed(#[from] SealError),
    /// A row has content that no version writes.
    #[error("the database holds a job that cannot be read")]
    Content(#[from] serde_json::Error),
}

impl From<sql::Error> for LoadError {
    fn from(error: sql::Error) -> Self {
        Self::Read(ReadError::Sql(error))
    }
}

/// What is known of a job beside its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct About {
    /// The tasks whose files it works on, the one that began it first.
    pub(crate) tasks: Vec<String>,
    pub(crate) group: Option<String>,
    /// The directory of the tasks.
    pub(crate) root: String,
    pub(crate) host: Option<String>,
    /// Of the task that began it; none in a job of an older version.
    #[serde(default)]
    pub(crate) source: Option<Source>,
    /// The day on which the last task was finished.
    pub(crate) date: Option<String>,
    pub(crate) created_ms: i64,
}

impl About {
    pub(crate) fn is_of(&self, task: TaskId) -> bool {
        let task = task.to_string();
        self.tasks.contains(&task)
    }
}

/// A job with what is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) about: About,
    pub(crate) record: Record,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) jobs: Vec<Stored>,
    pub(crate) passwords: Vec<Secret>,
    /// The last id that a job had.
    pub(crate) last: u64,
    /// Tasks that were completed before this moment were looked at, in milliseconds since 1970. `None` at the first start.
    pub(crate) mark: Option<i64>,
    /// `None` at the first start.
    pub(crate) salt: Option<String>,
}

/// What is saved in one transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    /// `None`: forgotten.
    pub(crate) jobs: BTreeMap<JobId, Option<Stored>>,
    pub(crate) passwords: Option<Vec<Secret>>,
    pub(crate) last: u64,
    pub(crate) mark: i64,
    pub(crate) salt: String,
}

pub(crate) async fn save(store: &Store, vault: &Arc<Vault>, batch: Batch) -> Result<(), WriteError> {
    let vault = Arc::clone(vault);
    store
        .write(move |transaction| save_rows(transaction, &vault, &batch))
        .await
}

fn save_rows(transaction: &Transaction<'_>, vault: &Vault, batch: &Batch) -> sql::Result<()> {
    for (id, job) in &batch.jobs {
        let id = i64::try_from(id.0).unwrap_or(i64::MAX);
        match job {
            None => transaction.execute("DELETE FROM chain_job WHERE id = ?1", [id])?,
            Some(job) => transaction
                .prepare_cached("INSERT OR REPLACE INTO chain_job (id, sealed) VALUES (?1, ?2)")?
                .execute((id, seal(vault, &job_context(id), job)?))?,
        };
    }
    if let Some(passwords) = &batch.passwords {
        let sealed = seal(vault, PASSWORDS, &Passwords(passwords.clone()))?;
        transaction.execute(
            "INSERT OR REPLACE INTO chain_passwords (id, sealed) VALUES (0, ?1)",
            [sealed],
        )?;
    }
    let state = [
        (LAST, batch.last.to_string()),
        (MARK, batch.mark.to_string()),
        (SALT, batch.salt.clone()),
    ];
    let mut insert =
        transaction.prepare_cached("INSERT INTO chain_state VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")?;
    state
        .iter()
        .try_for_each(|row| insert.execute((row.0, &row.1)).map(drop))
}

pub(crate) async fn load(store: &Store, vault: &Arc<Vault>) -> Result<Loaded, LoadError> {
    let vault = Arc::clone(vault);
    store.read(move |connection| Ok(load_rows(connection, &vault))).await?
}

fn load_rows(connection: &Connection, vault: &Vault) -> Result<Loaded, LoadError> {
    let mut jobs = Vec::new();
    let mut statement = connection.prepare("SELECT id, sealed FROM chain_job ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        jobs.push(open(vault, &job_context(row.get(0)?), &row.get::<_, Vec<u8>>(1)?)?);
    }
    let passwords: Option<Vec<u8>> = connection
        .query_row("SELECT sealed FROM chain_passwords", [], |row| row.get(0))
        .optional()?;
    let passwords = passwords.map(|sealed| open::<Passwords>(vault, PASSWORDS, &sealed));
    let state = |name: &str| {
        let sql = "SELECT value FROM chain_state WHERE name = ?1";
        connection
            .query_row(sql, [name], |row| row.get::<_, String>(0))
            .optional()
    };
    Ok(Loaded {
        jobs,
        passwords: passwords.transpose()?.unwrap_or_default().0,
        last: state(LAST)?.and_then(|text| text.parse().ok()).unwrap_or(0),
        mark: state(MARK)?.and_then(|text| text.parse().ok()),
        salt: state(SALT)?,
    })
}

fn seal(vault: &Vault, context: &str, value: &impl Serialize) -> sql::Result<Vec<u8>> {
    let plain = serde_json::to_vec(value).map_err(not_encoded)?;
    vault.seal(context, &plain).map_err(not_encoded)
}

fn open<T: DeserializeOwned>(vault: &Vault, context: &str, sealed: &[u8]) -> Result<T, LoadError> {
    Ok(serde_json::from_slice(&vault.unseal(context, sealed)?)?)
}

fn not_encoded(error: impl std::error::Error + Send + Sync + 'static) -> sql::Error {
    sql::Error::ToSqlConversionFailure(Box::new(error))
}

fn job_context(id: i64) -> String {
    format!("chain job {id}")
}
