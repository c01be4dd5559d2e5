//! Replaces the key: makes a new one and seals every value again.
//!
//! Safe against a crash at every point. The new key is on the disk before the database changes; all values and the mark,
//! which only the key in use opens, change in one transaction; the old key file is replaced once that is durable. Until
//! then both files exist, and a start takes the one that opens the mark.
//!
//! All of it runs on the writer's thread, between two transactions of other writes: no value is sealed with a key that is
//! not in use when it is stored, and a caller that does not wait for the end does not interrupt it.

use std::sync::Arc;

use chacha20poly1305::ChaCha20Poly1305;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params_from_iter, types::Value};

use crate::{
    database::{Store, WriteError},
    vault::{
        Keys, MARK, Vault, VaultError,
        key_files::KeyFiles,
        sealing::{SealError, cipher, random_key, seal, unseal},
    },
};

/// Rows that are read before they are written again; bounds the memory.
const ROWS_AT_ONCE: usize = 500;

/// A column of sealed values. A value may be NULL.
#[derive(Debug, Clone, Copy)]
pub struct SealedColumn {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// Columns that together identify a row; those of its primary key, and what `context` needs besides.
    pub key: &'static [&'static str],
    /// The context of a value, from the columns of `key` in their order.
    pub context: fn(&Row<'_>) -> rusqlite::Result<String>,
}

/// Why the key was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The new key cannot be made or stored.
    #[error("the new key cannot be stored; nothing was changed")]
    Key(#[from] VaultError),
    /// A value does not open.
    #[error("cannot open the secrets of {what}; nothing was changed")]
    Sealed {
        /// The row.
        what: String,
        /// Why not.
        #[source]
        source: SealError,
    },
    /// The database refused a change.
    #[error("the database refused the new values; nothing was changed")]
    Sql(#[from] rusqlite::Error),
    /// It is not known whether the change is on the disk; the next start finds out. Both keys are kept.
    #[error("the new values could not be saved; restart the service")]
    Commit(#[source] rusqlite::Error),
    /// The database is closed.
    #[error(transparent)]
    Store(#[from] WriteError),
}

/// The points at which a crash leaves different files behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The new key is on the disk.
    KeyWritten,
    /// The values are sealed with it, within the transaction.
    Resealed,
    /// The transaction is on the disk.
    Committed,
    /// The old key is gone.
    KeyReplaced,
}

impl Vault {
    /// Makes a new key and seals every value of these columns with it. Returns the number of values. Other writes wait
    /// meanwhile; reads do not.
    ///
    /// What the database file still holds of the old values is overwritten, but a copy that was made before, for example
    /// a backup, opens with the old key as long as somebody has that.
    pub async fn rotate(
        self: &Arc<Self>,
        store: &Store,
        columns: impl IntoIterator<Item = SealedColumn>,
    ) -> Result<usize, RotateError> {
        self.rotate_observed(store, columns.into_iter().collect(), |_| ()).await
    }

    /// `observe` is called at each step, by the thread that does it.
    pub(super) async fn rotate_observed(
        self: &Arc<Self>,
        store: &Store,
        columns: Vec<SealedColumn>,
        observe: impl Fn(Step) + Send + 'static,
    ) -> Result<usize, RotateError> {
        let _turn = self.rotation.lock().await;
        let vault = Arc::clone(self);
        let resealed = store
            .exclusively(move |connection| vault.rotate_now(connection, &columns, &observe))
            .await??;
        // Reads that began before the change need the old key.
        store.current_reads().await;
        self.keys_mut().other = None;
        Ok(resealed)
    }

    fn rotate_now(
        &self,
        connection: &mut Connection,
        columns: &[SealedColumn],
        observe: &dyn Fn(Step),
    ) -> Result<usize, RotateError> {
        let key = random_key().map_err(VaultError::Random)?;
        if let Some(files) = &self.files {
            files.write_next(&key)?;
        }
        observe(Step::KeyWritten);
        let (from, to) = (self.keys().current.clone(), cipher(&key));
        self.keys_mut().other = Some(to.clone());
        let resealed = change(connection, &from, &to, columns, observe);
        match resealed {
            Ok(_) => {}
            Err(error @ RotateError::Commit(_)) => return Err(error),
            Err(error) => {
                self.keys_mut().other = None;
                if let Some(Err(left)) = self.files.as_ref().map(KeyFiles::remove_next) {
                    tracing::warn!(error = %left, "a key that is not in use stays beside the other one until the next start");
                }
                return Err(error);
            }
        }
        *self.keys_mut() = Keys {
            current: to,
            other: Some(from),
        };
        observe(Step::Committed);
        if let Some(Err(error)) = self.files.as_ref().map(KeyFiles::promote_next) {
            tracing::warn!(%error, "the old key is removed at the next start");
        }
        observe(Step::KeyReplaced);
        // The log still has the old values.
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(%error, "the old values stay in the database's log until it is written back");
        }
        resealed
    }
}

/// Seals all values again, in one transaction.
fn change(
    connection: &mut Connection,
    from: &ChaCha20Poly1305,
    to: &ChaCha20Poly1305,
    columns: &[SealedColumn],
    observe: &dyn Fn(Step),
) -> Result<usize, RotateError> {
    // What a shorter value or another place leaves free is overwritten with zeros.
    connection.pragma_update(None, "secure_delete", true)?;
    let changed = reseal_all(connection, from, to, columns, observe);
    if let Err(error) = connection.pragma_update(None, "secure_delete", false) {
        tracing::warn!(%error, "writes stay slower until the next start");
    }
    changed
}

fn reseal_all(
    connection: &mut Connection,
    from: &ChaCha20Poly1305,
    to: &ChaCha20Poly1305,
    columns: &[SealedColumn],
    observe: &dyn Fn(Step),
) -> Result<usize, RotateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut resealed = 0;
    for column in columns {
        resealed += reseal(&transaction, from, to, column)?;
    }
    let mark = seal(to, MARK, b"").map_err(|source| sealed(MARK.to_owned(), source))?;
    transaction.execute("INSERT OR REPLACE INTO vault (id, sealed) VALUES (1, ?1)", [mark])?;
    observe(Step::Resealed);
    transaction.commit().map_err(RotateError::Commit)?;
    Ok(resealed)
}

fn sealed(what: String, source: SealError) -> RotateError {
    RotateError::Sealed { what, source }
}

/// A value that was read: the key of its row, its context, and itself.
type Found = (Vec<Value>, String, Vec<u8>);

/// Seals the values of a column again, in the order of their keys.
fn reseal(
    transaction: &Transaction<'_>,
    from: &ChaCha20Poly1305,
    to: &ChaCha20Poly1305,
    column: &SealedColumn,
) -> Result<usize, RotateError> {
    let keys = column.key.join(", ");
    let places = |first: usize| {
        let places: Vec<_> = (first..first + column.key.len()).map(|n| format!("?{n}")).collect();
        places.join(", ")
    };
    let (table, name) = (column.table, column.column);
    let update = format!("UPDATE {table} SET {name} = ?1 WHERE ({keys}) = ({})", places(2));
    let first = format!("SELECT {keys}, {name} FROM {table} WHERE {name} IS NOT NULL");
    let later = format!("{first} AND ({keys}) > ({})", places(1));
    let order = format!("ORDER BY {keys} LIMIT {ROWS_AT_ONCE}");
    let mut last: Vec<Value> = Vec::new();
    let mut count = 0;
    loop {
        let query = if last.is_empty() { &first } else { &later };
        let mut statement = transaction.prepare_cached(&format!("{query} {order}"))?;
        let found = statement.query_map(params_from_iter(&last), |row| read(row, column))?;
        let found: Vec<Found> = found.collect::<rusqlite::Result<_>>()?;
        let mut statement = transaction.prepare_cached(&update)?;
        let is_last = found.len() < ROWS_AT_ONCE;
        count += found.len();
        for (key, context, value) in found {
            let opened = unseal(from, &context, &value).and_then(|plain| seal(to, &context, &plain));
            let value = Value::Blob(opened.map_err(|source| sealed(context, source))?);
            statement.execute(params_from_iter(std::iter::once(&value).chain(&key)))?;
            last = key;
        }
        if is_last {
            return Ok(count);
        }
    }
}

fn read(row: &Row<'_>, column: &SealedColumn) -> rusqlite::Result<Found> {
    let key = (0..column.key.len()).map(|index| row.get(index));
    Ok((
        key.collect::<rusqlite::Result<_>>()?,
        (column.context)(row)?,
        row.get(column.key.len())?,
    ))
}
