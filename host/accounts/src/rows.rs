//! Accounts and sealed secrets in the database. Every statement about a plugin's secrets is here.

use std::collections::BTreeSet;

use plugin_package::Identity;
use serde::{Deserialize, Serialize};
use store::{
    SealedColumn,
    sql::{self, Connection, OptionalExtension as _, Transaction},
};

use crate::error::MAX_SECRETS;

/// The table of accounts, for the migrations of plugins, whose other tables `plugin` and `plugin_secret` it joins.
pub const TABLE: &str = include_str!("rows.sql");

/// The column of captured values and cookies.
pub const SEALED: SealedColumn = SealedColumn {
    table: "plugin_secret",
    column: "sealed",
    key: &["identity", "account", "kind", "name"],
    context: |row| {
        let text = |index| row.get::<_, String>(index);
        Ok(context(&text(0)?, &text(1)?, &text(2)?, &text(3)?))
    },
};

/// The vault context of a row.
pub(crate) fn context(plugin: &str, account: &str, kind: &str, name: &str) -> String {
    format!("plugin.{kind}/{plugin}/{account}/{name}")
}

/// The account of the plugin itself, which needs no login.
pub(crate) const NO_ACCOUNT: &str = "";

/// The two kinds of secret rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A captured value.
    Secret,
    /// The cookies of the account, as one value without a name.
    Cookies,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Cookies => "cookies",
        }
    }
}

/// An account that a plugin is logged in to. No field is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The slot of the manifest that it fills.
    #[serde(skip)]
    pub slot: String,
    /// Identifies the account at its site.
    pub id: String,
    /// The name that users see.
    pub name: String,
    /// When the user logged in, in milliseconds of the Unix epoch.
    pub since_ms: i64,
    /// Whether the site has ended its session: it is used again after another login.
    pub is_expired: bool,
    /// When its session ends, in milliseconds of the Unix epoch, if the site says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// The site, if the plugin is for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// How often its session was renewed since the login.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub renewals: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Tells the session of an account from that of a later login to the same slot, also by the same person, and from a renewed
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginId {
    id: String,
    since_ms: i64,
    renewals: u32,
}

impl Account {
    /// Whether both are of one login, which may have been renewed between them.
    pub fn is_of_same_login(&self, other: &Self) -> bool {
        self.id == other.id && self.since_ms == other.since_ms
    }

    /// The same account after a renewal.
    #[must_use]
    pub(crate) fn renewed(self) -> Self {
        Self {
            renewals: self.renewals.wrapping_add(1),
            ..self
        }
    }

    /// Its session.
    pub fn login_id(&self) -> LoginId {
        LoginId {
            id: self.id.clone(),
            since_ms: self.since_ms,
            renewals: self.renewals,
        }
    }
}

/// A row of a secret: the account, its kind and its name.
pub(crate) type Key = (String, Kind, String);

pub(crate) fn read(connection: &Connection, plugin: &str, (account, kind, name): &Key) -> sql::Result<Option<Vec<u8>>> {
    let query = "SELECT sealed FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3 AND name = ?4";
    let mut statement = connection.prepare_cached(query)?;
    let key = (plugin, account, kind.name(), name);
    statement.query_row(key, |row| row.get(0)).optional()
}

/// All captured values of an account: names and sealed values.
pub(crate) fn read_all(connection: &Connection, plugin: &str, account: &str) -> sql::Result<Vec<(String, Vec<u8>)>> {
    let query = "SELECT name, sealed FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3";
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map((plugin, account, Kind::Secret.name()), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.collect()
}

/// Saves a sealed value; `false` if the account has as many as it may. A call that began with `login` may outlive it; then
/// nothing is written, because the account is another one or has another session.
pub(crate) fn save(
    transaction: &Transaction<'_>,
    plugin: &str,
    (key, login): (&Key, Option<&LoginId>),
    sealed: &[u8],
) -> sql::Result<bool> {
    if !is_current(transaction, plugin, &key.0, login)? {
        return Ok(true);
    }
    let fits = has_room(transaction, plugin, &key.0, &[key])?;
    if fits {
        put(transaction, plugin, key, sealed)?;
    }
    Ok(fits)
}

/// Whether an account may have the values of `added` beside its own.
pub(crate) fn has_room(connection: &Connection, plugin: &str, account: &str, added: &[&Key]) -> sql::Result<bool> {
    let query = "SELECT name FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3";
    let mut statement = connection.prepare_cached(query)?;
    let names = statement.query_map((plugin, account, Kind::Secret.name()), |row| row.get(0))?;
    let mut names: BTreeSet<String> = names.collect::<sql::Result<_>>()?;
    let added = added.iter().filter(|(_, kind, _)| *kind == Kind::Secret);
    names.extend(added.map(|(_, _, name)| name.clone()));
    Ok(names.len() <= MAX_SECRETS)
}

/// Saves a sealed value. A call may outlive its plugin; then nothing is written, because nothing would delete it.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    plugin: &str,
    (account, kind, name): &Key,
    sealed: &[u8],
) -> sql::Result<()> {
    let insert = "INSERT OR REPLACE INTO plugin_secret (identity, account, kind, name, sealed)
                  SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM plugin WHERE identity = ?1)";
    let row = (plugin, account, kind.name(), name, sealed);
    transaction.prepare_cached(insert)?.execute(row).map(drop)
}

/// Whether the account in a slot still has the session of `login`; always for the plugin's own secrets, which have no login.
pub(crate) fn is_current(
    connection: &Connection,
    plugin: &str,
    slot: &str,
    login: Option<&LoginId>,
) -> sql::Result<bool> {
    let Some(login) = login else { return Ok(true) };
    Ok(account(connection, plugin, slot)?.is_some_and(|account| account.login_id() == *login))
}

pub(crate) fn is_installed(connection: &Connection, plugin: &str) -> sql::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM plugin WHERE identity = ?1)";
    connection.prepare_cached(query)?.query_row([plugin], |row| row.get(0))
}

pub(crate) fn delete(transaction: &Transaction<'_>, plugin: &str, (account, kind, name): &Key) -> sql::Result<()> {
    let delete = "DELETE FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3 AND name = ?4";
    let key = (plugin, account, kind.name(), name);
    transaction.prepare_cached(delete)?.execute(key).map(drop)
}

/// The accounts of a plugin, in the order of their slots.
pub(crate) fn accounts(connection: &Connection, plugin: &str) -> sql::Result<Vec<Account>> {
    let query = "SELECT slot, record FROM plugin_account WHERE identity = ?1 ORDER BY slot";
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map([plugin], parse_account)?;
    rows.collect()
}

/// The account in a slot.
pub(crate) fn account(connection: &Connection, plugin: &str, slot: &str) -> sql::Result<Option<Account>> {
    let query = "SELECT slot, record FROM plugin_account WHERE identity = ?1 AND slot = ?2";
    let mut statement = connection.prepare_cached(query)?;
    statement.query_row([plugin, slot], parse_account).optional()
}

fn parse_account(row: &sql::Row<'_>) -> sql::Result<Account> {
    let (slot, record): (String, String) = (row.get(0)?, row.get(1)?);
    let account: Account = serde_json::from_str(&record)
        .map_err(|error| sql::Error::FromSqlConversionFailure(1, sql::types::Type::Text, Box::new(error)))?;
    Ok(Account { slot, ..account })
}

/// Saves an account of an installed plugin; `false` if the plugin is not installed any more.
pub(crate) fn save_account(transaction: &Transaction<'_>, plugin: &str, account: &Account) -> sql::Result<bool> {
    let record = serde_json::to_string(account).map_err(|error| sql::Error::ToSqlConversionFailure(Box::new(error)))?;
    let insert = "INSERT OR REPLACE INTO plugin_account (identity, slot, record)
                  SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM plugin WHERE identity = ?1)";
    let saved = transaction
        .prepare_cached(insert)?
        .execute((plugin, &account.slot, record))?;
    Ok(saved > 0)
}

/// Deletes an account with its secrets and cookies; returns whether there was one.
pub(crate) fn delete_account(transaction: &Transaction<'_>, plugin: &str, slot: &str) -> sql::Result<bool> {
    let secrets = "DELETE FROM plugin_secret WHERE identity = ?1 AND account = ?2";
    transaction.prepare_cached(secrets)?.execute((plugin, slot))?;
    let account = "DELETE FROM plugin_account WHERE identity = ?1 AND slot = ?2";
    Ok(transaction.prepare_cached(account)?.execute((plugin, slot))? > 0)
}

/// Keeps the accounts of a plugin that is uninstalled, for another installation of it by this author.
pub fn keep_for(transaction: &Transaction<'_>, plugin: &Identity, author: &str) -> sql::Result<()> {
    let keep = "INSERT OR REPLACE INTO plugin_kept (identity, author) VALUES (?1, ?2)";
    transaction.execute(keep, (plugin.as_str(), author)).map(drop)
}

/// Gives a plugin that is installed the accounts that were kept, if it is by the same author; else deletes them.
pub fn take_back(transaction: &Transaction<'_>, plugin: &Identity, author: Option<&str>) -> sql::Result<()> {
    let query = "DELETE FROM plugin_kept WHERE identity = ?1 RETURNING author";
    let kept: Option<String> = transaction
        .query_row(query, [plugin.as_str()], |row| row.get(0))
        .optional()?;
    match kept {
        Some(kept) if Some(&*kept) != author => delete_all(transaction, plugin),
        _ => Ok(()),
    }
}

/// Deletes all accounts and secrets of a plugin.
pub fn delete_all(transaction: &Transaction<'_>, plugin: &Identity) -> sql::Result<()> {
    for table in ["plugin_secret", "plugin_account"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE identity = ?1"), [plugin.as_str()])?;
    }
    Ok(())
}
