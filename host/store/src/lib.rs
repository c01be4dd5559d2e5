//! SQLite on disk: durable writes, reads beside them, migrations, sealed values and the lock of the data directory.
//!
//! *Owns* the database connections (one writer thread with group commit, a few readers), the migration runner, the
//! [`Vault`] of sealed values and the [`DataDir`] lock. Only this crate names the SQLite library; whoever owns rows
//! writes its SQL with what [`sql`] re-exports.
//!
//! *Never* knows a domain table.
//!
//! # Layers
//!
//! - `sql`: rusqlite, for the crates that keep tables
//! - `database`, `vault`: the store, and what seals values in it
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
pub use migration::MigrationSet;
pub use vault::{SealError, Vault, VaultError};

/// What the owners of rows need to write SQL.
pub mod sql {
    pub use rusqlite::{
        Connection, Error, OptionalExtension, Result, Row, ToSql, Transaction, params, params_from_iter, types,
    };
}
