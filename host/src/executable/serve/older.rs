//! The switches of an older service, which kept them as rows (`key`, `value`) of the table `config` of a SQLite database in
//! the data directory. They are read once, before this service has settings of its own.

use std::{fs, path::Path};

use serde_json::{Map, Value};
use store::sql::{self, Connection, OpenFlags};

/// The names of what is imported begin so; the other rows are no business of the agent.
const PREFIX: &str = "local_server_";

/// Databases that are looked into.
const MAX_DATABASES: usize = 16;

/// Rows that are read, and how long they may be: the older service had ten such settings.
const MAX_ROWS: usize = 100;
const MAX_VALUE_BYTES: usize = 1024;

/// The settings that the older service left in `data_dir`; empty without one. What cannot be read is no such database.
pub(super) fn switches(data_dir: &Path) -> Map<String, Value> {
    let entries = fs::read_dir(data_dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let is_database = |path: &&std::path::PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["db", "sqlite", "sqlite3"].contains(&extension)) && path.is_file()
    };
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let databases = paths.iter().filter(is_database).take(MAX_DATABASES);
    databases.filter_map(|path| read(path).ok()).flatten().collect()
}

fn read(database: &Path) -> sql::Result<Vec<(String, Value)>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut rows =
        connection.prepare("SELECT key, value FROM config WHERE substr(key, 1, length(?1)) = ?1 LIMIT ?2")?;
    let limit = i64::try_from(MAX_ROWS).unwrap_or(i64::MAX);
    let rows = rows.query_map((PREFIX, limit), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let rows = rows.filter(|row| row.as_ref().is_ok_and(|(_, value)| value.len() <= MAX_VALUE_BYTES));
    rows.map(|row| row.map(|(key, value)| (key, Value::String(value))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_found_in_the_table_of_an_older_service_and_nowhere_else() {
        let data = tempfile::tempdir().unwrap();
        assert!(switches(data.path()).is_empty() && switches(&data.path().join("missing")).is_empty());
        fs::write(data.path().join("a.db"), "no database").unwrap();
        let other = Connection::open(data.path().join("b.db")).unwrap();
        other.execute("CREATE TABLE config (name TEXT)", []).unwrap();
        let old = Connection::open(data.path().join("old.sqlite")).unwrap();
        old.execute("CREATE TABLE config (key TEXT PRIMARY KEY, value TEXT)", [])
            .unwrap();
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        for (key, value) in [
            ("local_server_token", "short"),
            ("local_server_enabled", "false"),
            ("localXserver_port", "1"),
            ("local_server_long", &long),
            ("proxy_password", "secret"),
        ] {
            old.execute("INSERT INTO config VALUES (?1, ?2)", (key, value)).unwrap();
        }
        let found = serde_json::json!({"local_server_token": "short", "local_server_enabled": "false"});
        assert_eq!(Value::Object(switches(data.path())), found);
    }
}
