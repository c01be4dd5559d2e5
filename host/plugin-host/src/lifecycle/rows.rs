//! The rows of plugins: what is installed, and what users have set.

use std::collections::BTreeMap;

use ::store::{
    MigrationSet, SealedColumn, Vault,
    sql::{self, Connection, Transaction},
};
use market::Identity;
use transfer::Secret;

use crate::{
    error::RowError,
    lifecycle::{Installation, values::Values},
};

/// The migrations of the tables of plugins.
pub const MIGRATIONS: MigrationSet = MigrationSet {
    namespace: "plugin",
    steps: &[
        include_str!("rows/version_1.sql"),
        include_str!("rows/version_2.sql"),
        include_str!("rows/version_3.sql"),
        accounts::TABLE,
    ],
};

/// The column of secret settings.
pub(crate) const SEALED: SealedColumn = SealedColumn {
    table: "plugin_setting",
    column: "sealed",
    key: &["identity"],
    context: |row| Ok(context(&row.get::<_, String>(0)?)),
};

/// The content of the database.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) installations: Vec<(Identity, Installation)>,
    pub(crate) values: BTreeMap<Identity, Values>,
}

/// Deletes an installation with settings and storage; with the accounts, too, unless they are kept for an author.
pub(crate) fn delete_installation(
    transaction: &Transaction<'_>,
    plugin: &Identity,
    kept_for: Option<&str>,
) -> sql::Result<()> {
    match kept_for {
        Some(author) => accounts::keep_for(transaction, plugin, author)?,
        None => accounts::delete_all(transaction, plugin)?,
    }
    for table in ["plugin", "plugin_setting", "plugin_storage"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE identity = ?1"), [plugin.as_str()])?;
    }
    Ok(())
}

/// Saves an installation.
pub(crate) fn save_installation(
    transaction: &Transaction<'_>,
    plugin: &Identity,
    installation: &Installation,
) -> sql::Result<()> {
    let record = serde_json::to_string(installation).map_err(refused)?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO plugin (identity, record) VALUES (?1, ?2)")?
        .execute((plugin.as_str(), record))
        .map(drop)
}

/// Saves all settings of a plugin.
pub(crate) fn save_values(
    transaction: &Transaction<'_>,
    vault: &Vault,
    plugin: &Identity,
    values: &Values,
) -> sql::Result<()> {
    let plain = serde_json::to_string(&values.plain).map_err(refused)?;
    let secret: BTreeMap<_, _> = values.secret.iter().map(|(key, value)| (key, value.expose())).collect();
    let sealed = (!secret.is_empty()).then(|| {
        let secret = serde_json::to_vec(&secret).map_err(refused)?;
        vault.seal(&context(plugin.as_str()), &secret).map_err(refused)
    });
    transaction
        .prepare_cached("INSERT OR REPLACE INTO plugin_setting (identity, plain, sealed) VALUES (?1, ?2, ?3)")?
        .execute((plugin.as_str(), plain, sealed.transpose()?))
        .map(drop)
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> sql::Error {
    sql::Error::ToSqlConversionFailure(Box::new(error))
}

/// The vault context of a plugin's secret settings.
fn context(plugin: &str) -> String {
    format!("plugin.setting/{plugin}")
}

/// Reads everything.
pub(crate) fn load(connection: &Connection, vault: &Vault) -> sql::Result<Result<Rows, RowError>> {
    let mut statement = connection.prepare("SELECT identity, record FROM plugin ORDER BY identity")?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let installations: Vec<(String, String)> = found.collect::<sql::Result<_>>()?;
    let mut statement = connection.prepare("SELECT identity, plain, sealed FROM plugin_setting")?;
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let values: Vec<(String, String, Option<Vec<u8>>)> = found.collect::<sql::Result<_>>()?;
    Ok(parse_rows(installations, values, vault))
}

fn parse_rows(
    installations: Vec<(String, String)>,
    values: Vec<(String, String, Option<Vec<u8>>)>,
    vault: &Vault,
) -> Result<Rows, RowError> {
    let mut rows = Rows::default();
    for (plugin, record) in installations {
        let parsed = parse_installation(&plugin, &record);
        rows.installations
            .push(parsed.map_err(|reason| RowError::Content { plugin, reason })?);
    }
    for (plugin, plain, sealed) in values {
        let secret = sealed
            .map(|sealed| vault.unseal(&context(&plugin), &sealed))
            .transpose();
        let secret = secret.map_err(|source| RowError::Sealed {
            plugin: plugin.clone(),
            source,
        })?;
        let parsed = parse_values(&plugin, &plain, secret.as_deref());
        let (identity, values) = parsed.map_err(|reason| RowError::Content { plugin, reason })?;
        rows.values.insert(identity, values);
    }
    Ok(rows)
}

fn parse_installation(plugin: &str, record: &str) -> Result<(Identity, Installation), String> {
    let identity = plugin.parse().map_err(|error| format!("{error}"))?;
    let installation = serde_json::from_str(record).map_err(|error| error.to_string())?;
    Ok((identity, installation))
}

fn parse_values(plugin: &str, plain: &str, secret: Option<&[u8]>) -> Result<(Identity, Values), String> {
    let identity = plugin.parse().map_err(|error| format!("{error}"))?;
    let plain = serde_json::from_str(plain).map_err(|error| error.to_string())?;
    let secret: Option<BTreeMap<String, String>> = secret
        .map(serde_json::from_slice)
        .transpose()
        .map_err(|error| error.to_string())?;
    let secret = secret
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, Secret::new(value)));
    let values = Values {
        plain,
        secret: secret.collect(),
    };
    Ok((identity, values))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::store::Store;
    use accounts::{Accounts, Secrets};

    use super::*;

    /// A row as written by version 1; all later versions must read it.
    const VERSION_1: &str = r#"{"source":{"Market":"main"},"active":{"digest":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","version":"1.2.3","needed":["host https://*.acme.com","inputHost"],"installed_ms":5},"previous":null,"staged":null,"switch":"Tripped","allowed":["host https://*.acme.com","inputHost"],"optional":{"https://mirror.org":false},"is_pinned":true}"#;

    #[test]
    fn a_row_of_version_1_is_read_and_written_as_it_was() {
        let (identity, installation) = parse_installation("acme@test", VERSION_1).unwrap();
        assert_eq!(identity.as_str(), "acme@test");
        assert_eq!(
            installation.source,
            crate::lifecycle::Source::Market("main".parse().unwrap())
        );
        assert_eq!(installation.active.as_ref().unwrap().version.to_string(), "1.2.3");
        let written = serde_json::to_string(&installation).unwrap();
        assert_eq!(written, VERSION_1);
    }

    #[tokio::test]
    async fn secrets_and_accounts_in_tables_of_every_version_are_read() {
        for version in 1..=MIGRATIONS.steps.len() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("svc.db");
            let vault = Arc::new(Vault::ephemeral().unwrap());
            let tables = MigrationSet {
                steps: &MIGRATIONS.steps[..version],
                ..MIGRATIONS
            };
            let old = Store::open(&path, &[tables]).unwrap();
            let record = r#"{"value":"opensesame","captured":{"site":"acme.test","is_https":true}}"#;
            let sealed = vault.seal("plugin.secret/acme@test//token", record.as_bytes()).unwrap();
            let write = move |transaction: &Transaction<'_>| {
                transaction.execute("INSERT INTO plugin VALUES ('acme@test', ?1)", [VERSION_1])?;
                if version >= 2 {
                    let row = "INSERT INTO plugin_secret VALUES ('acme@test', '', 'secret', 'token', ?1)";
                    transaction.execute(row, [sealed])?;
                }
                if version >= 4 {
                    let account = r#"{"id":"7","name":"Ann","since_ms":5,"is_expired":false}"#;
                    let row = "INSERT INTO plugin_account VALUES ('acme@test', 'main', ?1)";
                    transaction.execute(row, [account])?;
                }
                Ok(())
            };
            old.write(write).await.unwrap();
            old.close().await;
            let accounts = Accounts::new(Store::open(&path, &[MIGRATIONS]).unwrap(), vault);
            let acme: Identity = "acme@test".parse().unwrap();
            let ids: Vec<_> = accounts
                .list(&acme)
                .await
                .unwrap()
                .into_iter()
                .map(|account| account.id)
                .collect();
            assert_eq!(ids, vec!["7"; usize::from(version >= 4)], "version {version}");
            let secrets = Secrets::new(accounts, acme, BTreeMap::new(), BTreeMap::new());
            let token = secrets.find("token").await.unwrap();
            let token = token.map(|token| token.for_url(&"https://acme.test/".parse().unwrap()).is_some());
            assert_eq!(token, (version >= 2).then_some(true), "version {version}");
        }
    }

    #[test]
    fn a_row_that_no_version_wrote_is_refused_with_its_plugin() {
        let vault = Vault::ephemeral().unwrap();
        let bad = VERSION_1.replace("inputHost", "everything");
        for record in ["{}", bad.as_str()] {
            let rows = vec![("acme@test".to_owned(), record.to_owned())];
            let error = parse_rows(rows, Vec::new(), &vault).unwrap_err();
            assert!(error.to_string().contains("acme@test"), "{error}");
        }
        let moved = vault.seal("plugin.setting/other@test", b"{}").unwrap();
        let values = vec![("acme@test".to_owned(), "{}".to_owned(), Some(moved))];
        let error = parse_rows(Vec::new(), values, &vault).unwrap_err();
        assert!(matches!(error, RowError::Sealed { .. }));
    }
}
