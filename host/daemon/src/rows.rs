//! The daemon's own tables: the configuration keys that are not the engine's, and the histories of tasks.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use engine::TaskId;
use protocol::{ActivityEntry, LinkRow, LinkRows, SourceFailureDto, TaskStatus};
use store::{
    MigrationSet, ReadError, SealError, SealedColumn, Store, Vault, WriteError,
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// The migrations of the daemon's tables.
pub const MIGRATIONS: MigrationSet = MigrationSet {
    namespace: "daemon",
    steps: &[
        include_str!("version_1.sql"),
        include_str!("version_2.sql"),
        include_str!("version_3.sql"),
        include_str!("version_4.sql"),
        include_str!("version_5.sql"),
    ],
};

/// The columns of sealed values, for the rotation of their key.
pub const SEALED: [SealedColumn; 2] = [
    SealedColumn {
        table: "daemon_webhooks",
        column: "sealed",
        key: &["id"],
        context: |_| Ok(SEALED_AS.to_owned()),
    },
    SealedColumn {
        table: "daemon_link",
        column: "sealed",
        key: &["kind", "key"],
        context: |row| Ok(link_context(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?)),
    },
];

/// What a value of the device link is bound to.
fn link_context(kind: &str, key: &str) -> String {
    format!("daemon link/{kind}/{key}")
}

/// What the sealed endpoints of webhooks are bound to.
const SEALED_AS: &str = "daemon webhooks";

/// Entries kept per task. A task that fails every few minutes keeps its last days.
const MAX_PER_TASK: i64 = 200;

/// Entries kept in all: about ten megabytes.
const MAX_ENTRIES: i64 = 100_000;

const CONFIG_REVISION: &str = "config_revision";

/// The stored keys, and the revision.
pub(crate) async fn load_config(store: &Store) -> Result<(u64, BTreeMap<String, String>), ReadError> {
    store
        .read(|connection| {
            let revision: Option<i64> = connection
                .query_row(
                    "SELECT value FROM daemon_state WHERE name = ?1",
                    [CONFIG_REVISION],
                    |row| row.get(0),
                )
                .optional()?;
            let values = connection
                .prepare("SELECT key, value FROM daemon_config")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<sql::Result<_>>()?;
            Ok((u64::try_from(revision.unwrap_or(0)).unwrap_or(0), values))
        })
        .await
}

/// The stored endpoints of webhooks, secrets included; none is an empty text.
pub(crate) async fn load_endpoints(store: &Store, vault: Arc<Vault>) -> Result<Result<String, SealError>, ReadError> {
    store
        .read(move |connection| {
            let sealed: Option<Vec<u8>> = connection
                .query_row("SELECT sealed FROM daemon_webhooks", [], |row| row.get(0))
                .optional()?;
            let opened = sealed.map_or_else(|| Ok(Vec::new()), |sealed| vault.unseal(SEALED_AS, &sealed));
            Ok(opened.and_then(|text| String::from_utf8(text).map_err(|_| SealError::Forged)))
        })
        .await
}

/// Resolves once the values are on disk, and the endpoints of webhooks, if there are new ones.
pub(crate) async fn save_config(
    store: &Store,
    vault: Arc<Vault>,
    revision: u64,
    values: BTreeMap<String, String>,
    endpoints: Option<String>,
) -> Result<(), WriteError> {
    store
        .write(move |transaction| {
            if let Some(endpoints) = &endpoints {
                save_endpoints(transaction, &vault, endpoints)?;
            }
            for (key, value) in &values {
                transaction.execute(
                    "INSERT INTO daemon_config VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value",
                    (key, value),
                )?;
            }
            transaction.execute(
                "INSERT INTO daemon_state VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value",
                (CONFIG_REVISION, i64::try_from(revision).unwrap_or(i64::MAX)),
            )?;
            Ok(())
        })
        .await
}

fn save_endpoints(transaction: &Transaction<'_>, vault: &Vault, endpoints: &str) -> sql::Result<()> {
    if endpoints.is_empty() {
        return transaction.execute("DELETE FROM daemon_webhooks", []).map(drop);
    }
    let sealed = vault.seal(SEALED_AS, endpoints.as_bytes());
    let sealed = sealed.map_err(|error| sql::Error::ToSqlConversionFailure(Box::new(error)))?;
    transaction
        .execute("INSERT OR REPLACE INTO daemon_webhooks VALUES (1, ?1)", [sealed])
        .map(drop)
}

/// What is stored for the device link.
pub(crate) async fn load_link(store: &Store, vault: Arc<Vault>) -> Result<Result<Vec<LinkRow>, SealError>, ReadError> {
    store
        .read(move |connection| {
            let mut statement = connection.prepare("SELECT kind, key, sealed, expires FROM daemon_link")?;
            let rows = statement.query_map([], |row| {
                let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((kind, key, row.get::<_, Vec<u8>>(2)?, row.get(3)?))
            })?;
            let mut opened = Vec::new();
            for row in rows {
                let (kind, key, sealed, until) = row?;
                let value = vault.unseal(&link_context(&kind, &key), &sealed);
                match value.and_then(|text| String::from_utf8(text).map_err(|_| SealError::Forged)) {
                    Ok(value) => opened.push(LinkRow {
                        kind,
                        key,
                        value: Some(value),
                        until,
                    }),
                    Err(error) => return Ok(Err(error)),
                }
            }
            Ok(Ok(opened))
        })
        .await
}

/// Resolves once the rows are on disk, and those that expired are gone.
pub(crate) async fn commit_link(store: &Store, vault: Arc<Vault>, rows: LinkRows) -> Result<(), WriteError> {
    store
        .write(move |transaction| {
            let LinkRows { rows, now } = &rows;
            transaction.execute(
                "DELETE FROM daemon_link WHERE expires IS NOT NULL AND expires <= ?1",
                [now],
            )?;
            for row in rows {
                let LinkRow {
                    kind,
                    key,
                    value,
                    until,
                } = row;
                let Some(value) = value else {
                    transaction.execute("DELETE FROM daemon_link WHERE kind = ?1 AND key = ?2", (kind, key))?;
                    continue;
                };
                let sealed = vault.seal(&link_context(kind, key), value.as_bytes());
                let sealed = sealed.map_err(|error| sql::Error::ToSqlConversionFailure(Box::new(error)))?;
                transaction.execute(
                    "INSERT OR REPLACE INTO daemon_link VALUES (?1, ?2, ?3, ?4)",
                    (kind, key, sealed, until),
                )?;
            }
            Ok(())
        })
        .await
}

/// The newest id of a history entry, and the tasks that have a history.
pub(crate) async fn load_history(store: &Store) -> Result<(i64, HashSet<TaskId>), ReadError> {
    store
        .read(|connection| {
            let newest: Option<i64> =
                connection.query_row("SELECT max(id) FROM daemon_activity", [], |row| row.get(0))?;
            let tasks = connection
                .prepare("SELECT DISTINCT task FROM daemon_activity")?
                .query_map([], |row| row.get(0).map(TaskId::from_bytes))?
                .collect::<sql::Result<_>>()?;
            Ok((newest.unwrap_or(0), tasks))
        })
        .await
}

/// A history entry as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    pub(crate) id: i64,
    pub(crate) task: TaskId,
    pub(crate) at_ms: i64,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) status: Option<TaskStatus>,
    /// The code of the failure that the entry tells of.
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) source: Option<FailedSource>,
}

/// The source that an entry tells of.
#[derive(Debug, Clone)]
pub(crate) struct FailedSource {
    /// Its URL, as it is shown.
    pub(crate) url: String,
    /// The message without the URL.
    pub(crate) reason: String,
}

impl Activity {
    pub(crate) fn view(&self) -> ActivityEntry {
        ActivityEntry {
            id: self.id,
            task_id: self.task.to_string(),
            timestamp_ms: self.at_ms,
            kind: self.kind.to_owned(),
            message: self.message.clone(),
            status: self.status,
            error_kind: self.error_kind.unwrap_or_default().to_owned(),
        }
    }
}

/// Inserts entries, deletes the histories of deleted tasks, and enforces the bounds.
pub(crate) fn save_history(transaction: &Transaction<'_>, entries: &[Activity], gone: &[TaskId]) -> sql::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT OR REPLACE INTO daemon_activity VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for entry in entries {
        let status = entry.status.map(|status| status as u8);
        insert.execute((
            entry.id,
            entry.task.as_bytes(),
            entry.at_ms,
            entry.kind,
            &entry.message,
            status,
            entry.error_kind,
            entry.source.as_ref().map(|source| &source.url),
            entry.source.as_ref().map(|source| &source.reason),
        ))?;
    }
    let mut trim = transaction.prepare_cached(
        "DELETE FROM daemon_activity WHERE task = ?1 AND id <= \
         (SELECT id FROM daemon_activity WHERE task = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    let touched: HashSet<_> = entries.iter().map(|entry| entry.task).collect();
    for task in touched {
        trim.execute((task.as_bytes(), MAX_PER_TASK))?;
    }
    let mut forget = transaction.prepare_cached("DELETE FROM daemon_activity WHERE task = ?1")?;
    for task in gone {
        forget.execute([task.as_bytes()])?;
    }
    if let Some(newest) = entries.last() {
        transaction
            .prepare_cached("DELETE FROM daemon_activity WHERE id <= ?1")?
            .execute([newest.id - MAX_ENTRIES])?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Page {
    Newest,
    Before(i64),
    After(i64),
}

/// Up to `limit` entries, oldest first, and whether there are more in the page's direction.
pub(crate) async fn read_history(
    store: &Store,
    task: TaskId,
    page: Page,
    limit: u32,
) -> Result<(Vec<ActivityEntry>, bool), ReadError> {
    store
        .read(move |connection| {
            let (bound, condition) = match page {
                Page::Newest => (i64::MAX, "id < ?2 ORDER BY id DESC"),
                Page::Before(id) => (id, "id < ?2 ORDER BY id DESC"),
                Page::After(id) => (id, "id > ?2 ORDER BY id ASC"),
            };
            let query = format!(
                "SELECT id, at_ms, kind, message, status, error_kind FROM daemon_activity WHERE task = ?1 AND {condition} LIMIT ?3"
            );
            let mut entries = connection
                .prepare_cached(&query)?
                .query_map((task.as_bytes(), bound, limit + 1), |row| read_entry(row, task))?
                .collect::<sql::Result<Vec<_>>>()?;
            let has_more = entries.len() > limit as usize;
            entries.truncate(limit as usize);
            if !matches!(page, Page::After(_)) {
                entries.reverse();
            }
            Ok((entries, has_more))
        })
        .await
}

/// The last failure of each source of a task, the newest first.
pub(crate) async fn read_failed_sources(
    store: &Store,
    task: TaskId,
) -> Result<Vec<(String, SourceFailureDto)>, ReadError> {
    store
        .read(move |connection| {
            // The other columns are those of the row with the greatest id.
            let query = "SELECT max(id), at_ms, error_kind, reason, source FROM daemon_activity \
                         WHERE task = ?1 AND source IS NOT NULL GROUP BY source ORDER BY 1 DESC";
            connection
                .prepare_cached(query)?
                .query_map([task.as_bytes()], |row| {
                    let failure = SourceFailureDto {
                        timestamp_ms: row.get(1)?,
                        error_kind: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
                        message: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
                    };
                    Ok((row.get(4)?, failure))
                })?
                .collect()
        })
        .await
}

fn read_entry(row: &Row<'_>, task: TaskId) -> sql::Result<ActivityEntry> {
    let status: Option<u8> = row.get(4)?;
    Ok(ActivityEntry {
        id: row.get(0)?,
        task_id: task.to_string(),
        timestamp_ms: row.get(1)?,
        kind: row.get(2)?,
        message: row.get(3)?,
        status: status.and_then(|number| TaskStatus::ALL.get(usize::from(number)).copied()),
        error_kind: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE_KINDS: MigrationSet = MigrationSet {
        namespace: "daemon",
        steps: &[include_str!("version_1.sql"), include_str!("version_2.sql")],
    };

    #[tokio::test]
    async fn of_each_source_the_last_failure_is_kept_the_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("db"), &[MIGRATIONS]).unwrap();
        let task = |number| TaskId::from_bytes([number; 16]);
        let failed = |id, number, url: &str, kind| Activity {
            id,
            task: task(number),
            at_ms: id * 10,
            kind: "source",
            message: format!("{url} failed: reason {id}"),
            status: None,
            error_kind: Some(kind),
            source: Some(FailedSource {
                url: url.to_owned(),
                reason: format!("reason {id}"),
            }),
        };
        let entries = [
            failed(1, 7, "http://a/", "timeout"),
            failed(2, 7, "http://b/", "connect"),
            failed(3, 7, "http://a/", "not-found"),
            failed(4, 8, "http://b/", "gone"),
            Activity {
                source: None,
                ..failed(5, 7, "", "gone")
            },
        ];
        store
            .write(move |transaction| save_history(transaction, &entries, &[]))
            .await
            .unwrap();
        let expected = |url: &str, id: i64, kind: &str| {
            let failure = SourceFailureDto {
                timestamp_ms: id * 10,
                error_kind: kind.to_owned(),
                message: format!("reason {id}"),
            };
            (url.to_owned(), failure)
        };
        assert_eq!(
            read_failed_sources(&store, task(7)).await.unwrap(),
            [
                expected("http://a/", 3, "not-found"),
                expected("http://b/", 2, "connect")
            ]
        );
        store.close().await;
    }

    #[tokio::test]
    async fn a_history_without_kinds_of_failures_is_read_and_continued() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let task = TaskId::from_bytes([7; 16]);
        let store = Store::open(&path, &[BEFORE_KINDS]).unwrap();
        let insert = move |transaction: &Transaction<'_>| {
            let entry = (1, task.as_bytes(), 5, "status", "paused", 2);
            let insert = "INSERT INTO daemon_activity VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            transaction.execute(insert, entry).map(drop)
        };
        store.write(insert).await.unwrap();
        store.close().await;

        let store = Store::open(&path, &[MIGRATIONS]).unwrap();
        let failed = Activity {
            id: 2,
            task,
            at_ms: 6,
            kind: "status",
            message: "no route".to_owned(),
            status: Some(TaskStatus::Error),
            error_kind: Some("connect"),
            source: None,
        };
        let expected = failed.view();
        store
            .write(move |transaction| save_history(transaction, std::slice::from_ref(&failed), &[]))
            .await
            .unwrap();
        let (entries, has_more) = read_history(&store, task, Page::Newest, 9).await.unwrap();
        assert_eq!((entries.len(), has_more), (2, false));
        assert_eq!(
            (entries[0].message.as_str(), entries[0].error_kind.as_str()),
            ("paused", "")
        );
        assert_eq!(entries[1], expected);
        store.close().await;
    }
}
