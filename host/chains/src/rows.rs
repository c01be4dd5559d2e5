//! The tables of jobs and passwords.

use std::{collections::BTreeMap, sync::Arc};

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
const SEEN: &str = "seen";
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
    /// When the last of the tasks came that it had to wait for; 0 if it never had to.
    #[serde(default)]
    pub(crate) arrived_ms: i64,
}

impl About {
    /// Whether the job works on the file of a task as it was completed at `at`.
    pub(crate) fn is_of(&self, task: &str, at: i64) -> bool {
        self.created_ms.max(self.arrived_ms) >= at && self.tasks.iter().any(|other| other == task)
    }

    /// Whether the job works on the file of one of these tasks.
    pub(crate) fn shares(&self, tasks: &[String]) -> bool {
        self.tasks.iter().any(|task| tasks.contains(task))
    }
}

/// Up to where completed tasks were looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Those that were completed before were, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Those that were completed in that millisecond and were looked at.
    pub(crate) tasks: Vec<String>,
}

impl Looked {
    /// Whether a task that was completed at `at` was looked at.
    pub(crate) fn covers(&self, task: &str, at: i64) -> bool {
        at < self.at || self.has_seen(task, at)
    }

    /// Whether it was the last that was looked at, or one of those.
    pub(crate) fn has_seen(&self, task: &str, at: i64) -> bool {
        at == self.at && self.tasks.iter().any(|seen| seen == task)
    }

    /// Notes a task that was looked at; whether that is new.
    pub(crate) fn note(&mut self, task: &str, at: i64) -> bool {
        if self.covers(task, at) {
            return false;
        }
        if at > self.at {
            self.at = at;
            self.tasks.clear();
        }
        self.tasks.push(task.to_owned());
        true
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
    /// `None` at the first start.
    pub(crate) looked: Option<Looked>,
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
    pub(crate) looked: Looked,
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
        (MARK, batch.looked.at.to_string()),
        (SEEN, batch.looked.tasks.join(" ")),
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
    let seen = state(SEEN)?.unwrap_or_default();
    let seen = seen.split_whitespace().map(ToOwned::to_owned).collect();
    Ok(Loaded {
        jobs,
        passwords: passwords.transpose()?.unwrap_or_default().0,
        last: state(LAST)?.and_then(|text| text.parse().ok()).unwrap_or(0),
        looked: state(MARK)?
            .and_then(|text| text.parse().ok())
            .map(|at| Looked { at, tasks: seen }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_looked_at_once_and_others_of_its_millisecond_are_not_left_out() {
        let mut looked = Looked::default();
        assert!(looked.note("a", 7));
        assert!(
            looked.covers("a", 7) && !looked.note("a", 7),
            "after a restart it is not begun again"
        );
        assert!(!looked.covers("b", 7));
        assert!(looked.note("b", 7));
        assert!(looked.covers("a", 7) && looked.covers("b", 7));
        assert!(looked.note("c", 8));
        assert_eq!(looked.tasks, ["c"], "no more than those of one moment");
        assert!(looked.covers("b", 7) && !looked.has_seen("b", 7));
        assert!(!looked.covers("a", 9), "it was completed once more");
    }

    #[test]
    fn a_job_is_that_of_a_completion_and_not_of_the_next_one() {
        let about = About {
            tasks: vec!["a".to_owned()],
            created_ms: 10,
            ..About::default()
        };
        assert!(about.is_of("a", 10) && !about.is_of("a", 11) && !about.is_of("b", 9));
        let about = About {
            arrived_ms: 20,
            ..about
        };
        assert!(about.is_of("a", 20) && !about.is_of("a", 21));
    }

    #[tokio::test]
    async fn what_was_looked_at_survives_a_restart() {
        let store = Store::in_memory(&[MIGRATIONS]).unwrap();
        let vault = Arc::new(Vault::ephemeral().unwrap());
        assert_eq!(load(&store, &vault).await.unwrap().looked, None);
        let mut batch = Batch::default();
        batch.looked.note("a", 7);
        batch.looked.note("b", 7);
        save(&store, &vault, batch.clone()).await.unwrap();
        assert_eq!(load(&store, &vault).await.unwrap().looked, Some(batch.looked));
    }
}
