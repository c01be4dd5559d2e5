//! SQLite on disk: durable writes, concurrent reads, migrations, sealed values and the lock of the data directory.
//!
//! *Owns* the database connections (one writer thread with group commit, a few readers), the migration runner, the
//! [`Vault`] of sealed values and the [`DataDir`] lock. Only this crate names the SQLite library; crates with tables
//! write their SQL with what [`sql`] re-exports.
//!
//! *Never* knows a domain table.
//!
//! # Layers
//!
//! - `sql`: rusqlite, for the crates that keep tables
//! - `vault`: the encryption of values in the store
//! - `database`: the store
//! - `data_dir`, `migration`, `writer`
//!
//! Start reading at [`Store::open`] and [`Store::write`].

mod data_dir;
mod database;
mod migration;
mod vault;
mod writer;

pub use data_dir::{DataDir, LockError};
pub use database::{Committed, OpenError, ReadError, Store, WriteError};
pub use key_store::{BusAddress, KeyStore, KeyStoreError, SecretService};
pub use migration::MigrationSet;
pub use vault::{KeyKeeping, KeyPlace, RotateError, SealError, SealedColumn, Vault, VaultError};

/// The rusqlite items that crates with tables need.
pub mod sql {
    pub use rusqlite::{
        Connection, Error, OpenFlags, OptionalExtension, Params, Result, Row, Statement, ToSql, Transaction, params,
        params_from_iter, types,
    };
}
