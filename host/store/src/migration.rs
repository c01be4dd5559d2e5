//! Brings a database up to the version that this program knows, one namespace after the other.

use rusqlite::{Connection, OptionalExtension as _};

/// The migrations of one crate's tables.
#[derive(Debug, Clone, Copy)]
pub struct MigrationSet {
    /// Identifies the tables; their version is recorded under it.
    pub namespace: &'static str,
    /// SQL scripts; the first `n` of them make version `n`. A released script is never changed.
    pub steps: &'static [&'static str],
}

/// The store's own table: a value that only the key in use opens, so that a start can tell which of two keys that is. Empty
/// until the first rotation.
pub(crate) const OWN: MigrationSet = MigrationSet {
    namespace: "vault",
    steps: &["CREATE TABLE vault (id INTEGER PRIMARY KEY CHECK (id = 1), sealed BLOB NOT NULL) STRICT"],
};

/// Why a database could not be brought up to date.
#[derive(Debug)]
pub(crate) enum MigrationError {
    /// It is newer than this program: `namespace found (knows known)`, for each that is.
    Newer(String),
    /// A statement failed.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_version \
                        (namespace TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID";

/// Runs missing migrations in one transaction: a failure leaves the database unchanged. Namespaces without a set are
/// ignored: tables of different crates do not refer to each other.
pub(crate) fn migrate(connection: &mut Connection, sets: &[MigrationSet]) -> Result<(), MigrationError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(VERSIONS)?;
    let mut newer = Vec::new();
    for set in sets {
        let found: u32 = transaction
            .query_row(
                "SELECT version FROM schema_version WHERE namespace = ?1",
                [set.namespace],
                |row| row.get(0),
            )
            .optional()?
            .unwrap_or(0);
        let Some(missing) = set.steps.get(found as usize..) else {
            newer.push(format!(
                "{} version {found}, this program knows {}",
                set.namespace,
                set.steps.len()
            ));
            continue;
        };
        for step in missing {
            transaction.execute_batch(step)?;
        }
        if !missing.is_empty() {
            transaction.execute(
                "INSERT INTO schema_version VALUES (?1, ?2) ON CONFLICT DO UPDATE SET version = excluded.version",
                (set.namespace, u32::try_from(set.steps.len()).unwrap_or(u32::MAX)),
            )?;
        }
    }
    if !newer.is_empty() {
        return Err(MigrationError::Newer(newer.join("; ")));
    }
    Ok(transaction.commit()?)
}
