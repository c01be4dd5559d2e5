//! The tables of sources and items, and how both become rows and come back.

mod record;

use std::sync::Arc;

use store::{
    MigrationSet, ReadError, SealError, SealedColumn, Store, Vault,
    sql::{self, Connection, Transaction},
};
use uuid::Uuid;

use crate::{
    model::{
        item::{Item, Mark},
        source::{Source, SourceId},
    },
    rows::record::{HistoryRecord, ItemRecord},
    state::{Loaded, Row},
};

/// The migrations of the tables of subscriptions.
pub const MIGRATIONS: MigrationSet = MigrationSet {
    namespace: "rss",
    steps: &[include_str!("rows/version_1.sql")],
};

/// The columns of sealed values, for the rotation of their key.
pub const SEALED: [SealedColumn; 3] = [
    SealedColumn {
        table: "rss_source",
        column: "sealed",
        key: &["id"],
        context: |row| Ok(source_context(SourceId(Uuid::from_bytes(row.get(0)?)))),
    },
    SealedColumn {
        table: "rss_source",
        column: "history",
        key: &["id"],
        context: |row| Ok(history_context(SourceId(Uuid::from_bytes(row.get(0)?)))),
    },
    SealedColumn {
        table: "rss_item",
        column: "sealed",
        key: &["serial"],
        context: |row| Ok(item_context(u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0))),
    },
];

/// Why the subscriptions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The database cannot be read.
    #[error("cannot read the RSS subscriptions")]
    Read(#[from] ReadError),
    /// A row has content that no version writes.
    #[error("the database holds an RSS {what} that cannot be read: {reason}")]
    Row {
        /// What kind of row.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A sealed value cannot be decrypted.
    #[error("cannot open the secrets of an RSS {what}")]
    Sealed {
        /// What kind of row.
        what: &'static str,
        /// Why not.
        #[source]
        source: SealError,
    },
}

/// Saves `rows` in one transaction; resolves once they are on the disk.
pub(crate) async fn save(store: &Store, vault: &Arc<Vault>, rows: Arc<[Row]>) -> Result<(), store::WriteError> {
    let vault = Arc::clone(vault);
    store
        .write(move |transaction| rows.iter().try_for_each(|row| save_row(transaction, &vault, row)))
        .await
}

fn save_row(transaction: &Transaction<'_>, vault: &Vault, row: &Row) -> sql::Result<()> {
    match row {
        Row::Source(source) => {
            let settings = serde_json::to_vec(source.spec.settings()).map_err(not_encoded)?;
            let sealed = seal(vault, &source_context(source.id), &settings)?;
            let history = HistoryRecord::of(&source.history);
            let history = serde_json::to_vec(&history).map_err(not_encoded)?;
            let history = seal(vault, &history_context(source.id), &history)?;
            transaction
                .prepare_cached("INSERT OR REPLACE INTO rss_source (id, history, sealed) VALUES (?1, ?2, ?3)")?
                .execute((source.id.0.as_bytes(), history, sealed))
                .map(drop)
        }
        Row::SourceDeleted(id) => ["rss_item", "rss_pruned"]
            .into_iter()
            .try_for_each(|table| {
                let sql = format!("DELETE FROM {table} WHERE source = ?1");
                transaction.execute(&sql, [id.0.as_bytes()]).map(drop)
            })
            .and_then(|()| transaction.execute("DELETE FROM rss_source WHERE id = ?1", [id.0.as_bytes()]))
            .map(drop),
        Row::Item(item) => {
            let record = serde_json::to_vec(&ItemRecord::of(item)).map_err(not_encoded)?;
            let sealed = seal(vault, &item_context(item.serial), &record)?;
            transaction
                .prepare_cached("INSERT OR REPLACE INTO rss_item (serial, source, sealed) VALUES (?1, ?2, ?3)")?
                .execute((int(item.serial), item.source.0.as_bytes(), sealed))
                .map(drop)
        }
        Row::ItemDeleted(serial) => transaction
            .prepare_cached("DELETE FROM rss_item WHERE serial = ?1")?
            .execute([int(*serial)])
            .map(drop),
        Row::Pruned(source, mark) => transaction
            .prepare_cached("INSERT INTO rss_pruned (source, mark) VALUES (?1, ?2)")?
            .execute((source.0.as_bytes(), mark.0))
            .map(drop),
        Row::PrunedDeleted(source, mark) => transaction
            .prepare_cached("DELETE FROM rss_pruned WHERE source = ?1 AND mark = ?2")?
            .execute((source.0.as_bytes(), mark.0))
            .map(drop),
    }
}

/// Reads everything.
pub(crate) async fn load(store: &Store, vault: &Arc<Vault>) -> Result<Loaded, LoadError> {
    let vault = Arc::clone(vault);
    store.read(move |connection| Ok(load_rows(connection, &vault))).await?
}

fn load_rows(connection: &Connection, vault: &Vault) -> Result<Loaded, LoadError> {
    Ok(Loaded {
        sources: each(
            connection,
            "source",
            "SELECT id, history, sealed FROM rss_source",
            |row| {
                let id = SourceId(Uuid::from_bytes(row.get(0)?));
                let opened = vault.unseal(&source_context(id), &row.get::<_, Vec<u8>>(2)?)?;
                let spec = record::spec(&opened)?;
                let history = vault.unseal(&history_context(id), &row.get::<_, Vec<u8>>(1)?)?;
                let history: HistoryRecord = serde_json::from_slice(&history)?;
                Ok(Source {
                    id,
                    spec,
                    history: history.into_history()?,
                })
            },
        )?,
        items: each(
            connection,
            "item",
            "SELECT serial, source, sealed FROM rss_item ORDER BY serial",
            |row| {
                let serial = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
                let source = SourceId(Uuid::from_bytes(row.get(1)?));
                let opened = vault.unseal(&item_context(serial), &row.get::<_, Vec<u8>>(2)?)?;
                let record: ItemRecord = serde_json::from_slice(&opened)?;
                Ok::<Item, RowError>(record.into_item(serial, source)?)
            },
        )?,
        pruned: each(
            connection,
            "mark",
            "SELECT source, mark FROM rss_pruned ORDER BY position",
            |row| Ok((SourceId(Uuid::from_bytes(row.get(0)?)), Mark(row.get(1)?))),
        )?,
    })
}

enum RowError {
    Sql(sql::Error),
    Content(String),
    Sealed(SealError),
}

impl From<sql::Error> for RowError {
    fn from(error: sql::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<SealError> for RowError {
    fn from(error: SealError) -> Self {
        Self::Sealed(error)
    }
}

impl From<serde_json::Error> for RowError {
    fn from(error: serde_json::Error) -> Self {
        Self::Content(error.to_string())
    }
}

impl From<String> for RowError {
    fn from(reason: String) -> Self {
        Self::Content(reason)
    }
}

fn each<T>(
    connection: &Connection,
    what: &'static str,
    sql: &str,
    read: impl Fn(&sql::Row<'_>) -> Result<T, RowError>,
) -> Result<Vec<T>, LoadError> {
    let query = || -> Result<Vec<T>, RowError> {
        let mut found = Vec::new();
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    };
    query().map_err(|error| match error {
        RowError::Sql(error) => LoadError::Row {
            what,
            reason: error.to_string(),
        },
        RowError::Content(reason) => LoadError::Row { what, reason },
        RowError::Sealed(source) => LoadError::Sealed { what, source },
    })
}

fn seal(vault: &Vault, context: &str, plain: &[u8]) -> sql::Result<Vec<u8>> {
    vault.seal(context, plain).map_err(not_encoded)
}

fn not_encoded(error: impl std::error::Error + Send + Sync + 'static) -> sql::Error {
    sql::Error::ToSqlConversionFailure(Box::new(error))
}

fn source_context(id: SourceId) -> String {
    format!("rss source {id}")
}

fn history_context(id: SourceId) -> String {
    format!("rss history {id}")
}

fn item_context(serial: u64) -> String {
    format!("rss item {serial}")
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
