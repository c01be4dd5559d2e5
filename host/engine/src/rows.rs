//! The engine's rows: tables, migrations, and how tasks become rows and come back.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::store::{
    MigrationSet, SealedColumn, Store, Vault,
    sql::{self, Connection, Params, Statement, ToSql, Transaction},
};
use transfer::{CookieJar, Credentials, FileName, SafeUrl, Secret};
use uuid::Uuid;

use crate::{
    model::account::{AccountKey, AccountLimits, AccountUsage, AccountUse},
    model::error::StartError,
    model::group::{Group, GroupSpec},
    model::id::{GroupId, QueueId, TaskId, Timestamp},
    model::queue::Queue,
    model::resolution::ResolverId,
    model::seeding::Seeding,
    model::settings::{InvalidSetting, Settings, VersionedSettings},
    model::site::{CookieSite, Site},
    model::task::{After, PackedSpec, Phase, Retry, Task, Unsettled},
    state::{Loaded, Row},
};

mod record;

use record::{CookieRecord, QueueRecord, RareRecord, SecretRecord, SeedingRecord, UnsettledRecord, WaitRecord, text};

/// The migrations of the engine's tables.
pub const MIGRATIONS: MigrationSet = MigrationSet {
    namespace: "engine",
    steps: &[
        include_str!("rows/version_1.sql"),
        include_str!("rows/version_2.sql"),
        include_str!("rows/version_3.sql"),
        include_str!("rows/version_4.sql"),
        include_str!("rows/version_5.sql"),
        include_str!("rows/version_6.sql"),
        include_str!("rows/version_7.sql"),
        include_str!("rows/version_8.sql"),
    ],
};

/// The columns of sealed values, for the rotation of their key.
pub const SEALED: [SealedColumn; 4] = [
    SealedColumn {
        table: "task",
        column: "sealed",
        key: &["serial", "id"],
        context: |row| Ok(task_context(TaskId::from_bytes(row.get(1)?))),
    },
    SealedColumn {
        table: "settings",
        column: "sealed",
        key: &["id"],
        context: |_| Ok(settings_context()),
    },
    SealedColumn {
        table: "site",
        column: "sealed",
        key: &["site"],
        context: |row| Ok(site_context(&row.get::<_, String>(0)?)),
    },
    SealedColumn {
        table: "site_cookies",
        column: "sealed",
        key: &["site"],
        context: |row| Ok(cookies_context(&row.get::<_, String>(0)?)),
    },
];

/// The value of the settings that is kept sealed.
const SECRET_SETTING: &str = "proxy_password";

const FORCED: i64 = 1;
const FILE_MISSING: i64 = 2;
const OWNS_FILE: i64 = 4;

/// The columns that change while a task exists, and its serial.
const STATE_COLUMNS: usize = 17;

/// A change that saves `rows`.
pub(crate) fn save(
    rows: Arc<[Row]>,
    vault: Arc<Vault>,
) -> impl FnOnce(&Transaction<'_>) -> sql::Result<()> + Send + 'static {
    move |transaction| rows.iter().try_for_each(|row| save_row(transaction, &vault, row))
}

fn save_row(transaction: &Transaction<'_>, vault: &Vault, row: &Row) -> sql::Result<()> {
    let run = |sql, id: &dyn ToSql| execute(transaction, sql, [id]);
    match row {
        Row::Task(task) => save_task(transaction, vault, task),
        Row::TaskState(task) => save_task_state(transaction, task),
        Row::TaskLeaving(serial, paths) => save_leaving(transaction, *serial, paths),
        Row::TaskDeleted(serial) => delete_task(transaction, *serial),
        Row::FeedTaskDeleted(task) => run("INSERT OR IGNORE INTO deleted_feed_task VALUES (?1)", task.as_bytes()),
        Row::FeedTaskNoted(task) => run("DELETE FROM deleted_feed_task WHERE id = ?1", task.as_bytes()),
        Row::Queue(queue) => save_queue(transaction, queue),
        Row::QueueDeleted(queue) => run("DELETE FROM queue WHERE id = ?1", &queue.to_string()),
        Row::Group(group) => save_group(transaction, group),
        Row::GroupDeleted(group) => run("DELETE FROM task_group WHERE id = ?1", group.as_bytes()),
        Row::Settings(settings) => save_settings(transaction, vault, settings),
        Row::Site(site, credentials) => save_site(transaction, vault, site, credentials),
        Row::SiteDeleted(site) => run("DELETE FROM site WHERE site = ?1", &site.as_str()),
        Row::Cookies(site, jar) => save_cookies(transaction, vault, site, jar),
        Row::CookiesDeleted(site) => run("DELETE FROM site_cookies WHERE site = ?1", &site.as_str()),
        Row::Login(account, until) => {
            let sql = "INSERT OR REPLACE INTO login (identity, slot, account, until) VALUES (?1, ?2, ?3, ?4)";
            let (identity, slot, account) = columns(account);
            execute(transaction, sql, (identity, slot, account, int(*until)))
        }
        Row::LoginDone(account) => {
            let sql = "DELETE FROM login WHERE identity = ?1 AND slot = ?2 AND account = ?3";
            execute(transaction, sql, columns(account))
        }
        Row::Account(usage) => save_account(transaction, usage),
        Row::AccountDeleted(account) => {
            let sql = "DELETE FROM account WHERE identity = ?1 AND slot = ?2 AND account = ?3";
            execute(transaction, sql, columns(account))
        }
    }
}

fn execute(transaction: &Transaction<'_>, sql: &str, values: impl Params) -> sql::Result<()> {
    transaction.prepare_cached(sql)?.execute(values).map(drop)
}

fn save_leaving(transaction: &Transaction<'_>, serial: u64, paths: &[PathBuf]) -> sql::Result<()> {
    delete_task(transaction, serial)?;
    let sql = "INSERT INTO leaving (serial, path) VALUES (?1, ?2)";
    let mut paths = paths.iter();
    paths.try_for_each(|path| execute(transaction, sql, (int(serial), text(path))))
}

fn save_queue(transaction: &Transaction<'_>, queue: &Queue) -> sql::Result<()> {
    let record = QueueRecord::of(queue).to_json();
    let sql = "INSERT OR REPLACE INTO queue (id, position, is_running, record) VALUES (?1, ?2, ?3, ?4)";
    let values = (queue.id.to_string(), queue.position, queue.is_running, record);
    execute(transaction, sql, values)
}

fn save_group(transaction: &Transaction<'_>, group: &Group) -> sql::Result<()> {
    let sql = "INSERT OR REPLACE INTO task_group (id, name, source_url, save_dir, created_at, left_out)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let spec = &group.spec;
    let left_out = (!spec.left_out.is_empty()).then(|| serde_json::to_string(&spec.left_out).unwrap_or_default());
    let values = (
        group.id.as_bytes(),
        &spec.name,
        &spec.source_url,
        spec.save_dir.as_deref().map(text),
        group.created_at.unix_millis(),
        left_out,
    );
    execute(transaction, sql, values)
}

fn save_site(transaction: &Transaction<'_>, vault: &Vault, site: &Site, credentials: &Credentials) -> sql::Result<()> {
    let password = credentials.password.expose().as_bytes();
    let sealed = seal(vault, &site_context(site.as_str()), password)?;
    let sql = "INSERT OR REPLACE INTO site (site, user, sealed) VALUES (?1, ?2, ?3)";
    execute(transaction, sql, (site.as_str(), &credentials.user, sealed))
}

fn save_cookies(transaction: &Transaction<'_>, vault: &Vault, site: &CookieSite, jar: &CookieJar) -> sql::Result<()> {
    let record = CookieRecord::text_of(jar);
    let sealed = seal(vault, &cookies_context(site.as_str()), record.as_bytes())?;
    let sql = "INSERT OR REPLACE INTO site_cookies (site, sealed) VALUES (?1, ?2)";
    execute(transaction, sql, (site.as_str(), sealed))
}

fn save_account(transaction: &Transaction<'_>, usage: &AccountUsage) -> sql::Result<()> {
    let AccountLimits {
        parallel,
        daily_bytes,
        daily_downloads,
    } = usage.used.limits;
    let sql = "INSERT OR REPLACE INTO account (identity, slot, account, day, bytes, downloads, parallel, daily_bytes,
               daily_downloads) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (identity, slot, account) = columns(&usage.used.account);
    let values = (
        identity,
        slot,
        account,
        usage.day,
        int(usage.bytes),
        usage.downloads,
        parallel.map(NonZero::get),
        daily_bytes.map(|most| int(most.get())),
        daily_downloads.map(NonZero::get),
    );
    execute(transaction, sql, values)
}

/// The primary key of tables of accounts.
fn columns(account: &AccountKey) -> (&str, &str, &str) {
    (account.identity().as_str(), account.slot(), account.account())
}

fn save_task(transaction: &Transaction<'_>, vault: &Vault, task: &Task) -> sql::Result<()> {
    let asked = &*task.asked;
    let secrets = SecretRecord::of(asked);
    let sealed = secrets
        .as_ref()
        .map(|record| seal(vault, &task_context(task.id), record.to_json().as_bytes()));
    let rare = RareRecord::of(asked).map(|record| record.to_json());
    // A URL with a password is stored with the sealed secrets; the plain column has it without the password.
    let url = if secrets.as_ref().is_some_and(SecretRecord::has_urls) {
        task.url().to_string()
    } else {
        task.url().expose().to_owned()
    };
    let sql = "INSERT OR REPLACE INTO task (serial, phase, failure, retry_at, queue, task_group, queue_order, flags,
               attempts, completed_at, done_bytes, total_bytes, path, unsettled, wait, asked_retries, seeding, id,
               created_at, save_dir, url, file_name, segments, rare, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
               ?22, ?23, ?24, ?25)";
    let mut statement = transaction.prepare_cached(sql)?;
    bind_state(&mut statement, task)?;
    let rest: [&dyn ToSql; 8] = [
        task.id.as_bytes(),
        &task.created_at.unix_millis(),
        &text(&task.save_dir),
        &url,
        &asked.file_name.as_ref().map(FileName::as_str),
        &asked.segments,
        &rare,
        &sealed.transpose()?,
    ];
    bind(&mut statement, STATE_COLUMNS, &rest)?;
    statement.raw_execute().map(drop)
}

fn save_task_state(transaction: &Transaction<'_>, task: &Task) -> sql::Result<()> {
    let sql = "UPDATE task SET phase = ?2, failure = ?3, retry_at = ?4, queue = ?5, task_group = ?6, queue_order = ?7,
               flags = ?8, attempts = ?9, completed_at = ?10, done_bytes = ?11, total_bytes = ?12, path = ?13,
               unsettled = ?14, wait = ?15, asked_retries = ?16, seeding = ?17 WHERE serial = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    bind_state(&mut statement, task)?;
    let changed = statement.raw_execute()?;
    debug_assert!(changed == 1, "a task's state is saved after the task");
    Ok(())
}

/// Binds the first [`STATE_COLUMNS`] parameters: the serial, and what changes while the task exists.
fn bind_state(statement: &mut Statement<'_>, task: &Task) -> sql::Result<()> {
    let phase = PhaseCode::of(&task.phase);
    let failure = task
        .failure()
        .map(|failure| serde_json::to_string(failure).unwrap_or_default());
    let retry_at = match &task.phase {
        Phase::Retrying(retry) => Some(retry.at.unix_millis()),
        _ => None,
    };
    let flag = |is_set: bool, flag: i64| if is_set { flag } else { 0 };
    let flags = flag(task.is_forced, FORCED) | flag(task.file_missing, FILE_MISSING) | flag(task.owns_file, OWNS_FILE);
    let state: [&dyn ToSql; STATE_COLUMNS] = [
        &int(task.serial),
        &(phase as i64),
        &failure,
        &retry_at,
        &task.queue.to_string(),
        &task.group.as_ref().map(GroupId::as_bytes),
        &task.queue_order,
        &flags,
        &task.attempts,
        &task.completed_at.map(Timestamp::unix_millis),
        &int(task.done_bytes),
        &task.total_bytes.map(int),
        &task.path.as_deref().map(text),
        &task.unsettled.as_deref().map(|it| UnsettledRecord::of(it).to_json()),
        &WaitRecord::of(&task.phase).map(|record| record.to_json()),
        &task.asked_retries,
        &task
            .seeding
            .as_deref()
            .map(|seeding| SeedingRecord::of(seeding).to_json()),
    ];
    bind(statement, 0, &state)
}

/// Binds the parameters after the first `count`.
fn bind(statement: &mut Statement<'_>, count: usize, values: &[&dyn ToSql]) -> sql::Result<()> {
    let mut numbered = (count + 1..).zip(values);
    numbered.try_for_each(|(number, value)| statement.raw_bind_parameter(number, value))
}

fn delete_task(transaction: &Transaction<'_>, serial: u64) -> sql::Result<()> {
    execute(transaction, "DELETE FROM task WHERE serial = ?1", [int(serial)])?;
    execute(transaction, "DELETE FROM leaving WHERE serial = ?1", [int(serial)])
}

fn save_settings(transaction: &Transaction<'_>, vault: &Vault, settings: &VersionedSettings) -> sql::Result<()> {
    let values: serde_json::Map<_, _> = Settings::keys()
        .filter(|key| *key != SECRET_SETTING)
        .filter_map(|key| Some((key.to_owned(), settings.settings.value(key)?.into())))
        .collect();
    let password = settings.settings.proxy_password.expose();
    let sealed = (!password.is_empty())
        .then(|| seal(vault, &settings_context(), password.as_bytes()))
        .transpose()?;
    let sql = "INSERT OR REPLACE INTO settings (id, revision, record, sealed) VALUES (1, ?1, ?2, ?3)";
    let record = serde_json::Value::Object(values).to_string();
    execute(transaction, sql, (int(settings.revision), record, sealed))
}

/// The stored phase of a task. A live run is stored as pending, because after a restart it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhaseCode {
    Pending = 0,
    Retrying = 1,
    Paused = 2,
    Completed = 3,
    Failed = 4,
    NeedsLogin = 5,
    AccountLimited = 6,
}

impl PhaseCode {
    fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Pending | Phase::Running(_) => Self::Pending,
            Phase::Stopping {
                then: After::Requeue, ..
            } => Self::Pending,
            Phase::Retrying(_) => Self::Retrying,
            Phase::Paused | Phase::Stopping { .. } => Self::Paused,
            Phase::Completed => Self::Completed,
            Phase::Failed(_) => Self::Failed,
            Phase::NeedsLogin(_) => Self::NeedsLogin,
            Phase::AccountLimited(_) => Self::AccountLimited,
        }
    }
}

/// Reads everything.
pub(crate) async fn load(store: &Store, vault: &Arc<Vault>) -> Result<Loaded, StartError> {
    let vault = Arc::clone(vault);
    store.read(move |connection| Ok(load_rows(connection, &vault))).await?
}

/// Reads the settings, if some were ever saved.
pub(crate) async fn load_settings_alone(
    store: &Store,
    vault: &Arc<Vault>,
) -> Result<Option<VersionedSettings>, StartError> {
    let vault = Arc::clone(vault);
    store
        .read(move |connection| Ok(load_settings(connection, &vault)))
        .await?
}

fn load_rows(connection: &Connection, vault: &Vault) -> Result<Loaded, StartError> {
    Ok(Loaded {
        settings: load_settings(connection, vault)?,
        tasks: load_tasks(connection, vault)?,
        queues: each(
            connection,
            "queue",
            "SELECT id, position, is_running, record FROM queue",
            load_queue,
        )?,
        groups: each(
            connection,
            "group",
            "SELECT id, name, source_url, save_dir, created_at, left_out FROM task_group",
            load_group,
        )?,
        sites: each(connection, "site", "SELECT site, user, sealed FROM site", |row| {
            load_site(row, vault)
        })?,
        cookies: each(connection, "site", "SELECT site, sealed FROM site_cookies", |row| {
            load_cookies(row, vault)
        })?,
        deleted_feed_tasks: each(connection, "deleted task", "SELECT id FROM deleted_feed_task", |row| {
            Ok(TaskId::from_bytes(row.get(0)?))
        })?,
        logins: each(
            connection,
            "login",
            "SELECT identity, slot, account, until FROM login",
            |row| Ok((load_account(row)?, unsigned(row.get(3)?))),
        )?,
        accounts: each(
            connection,
            "account",
            "SELECT identity, slot, account, day, bytes, downloads, parallel, daily_bytes, daily_downloads FROM account",
            load_usage,
        )?,
        leaving: each(connection, "deleted task", "SELECT serial, path FROM leaving", |row| {
            Ok((unsigned(row.get(0)?), row.get::<_, String>(1)?.into()))
        })?,
    })
}

enum RowError {
    Sql(sql::Error),
    Content(String),
    Sealed(String, ::store::SealError),
}

impl From<sql::Error> for RowError {
    fn from(error: sql::Error) -> Self {
        Self::Sql(error)
    }
}

impl RowError {
    #[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
    fn content(reason: impl ToString) -> Self {
        Self::Content(reason.to_string())
    }

    fn into_start(self, what: &'static str) -> StartError {
        match self {
            Self::Sql(error) => StartError::Row {
                what,
                reason: error.to_string(),
            },
            Self::Content(reason) => StartError::Row { what, reason },
            Self::Sealed(what, source) => StartError::Sealed { what, source },
        }
    }
}

fn each<T>(
    connection: &Connection,
    what: &'static str,
    sql: &str,
    mut read: impl FnMut(&sql::Row<'_>) -> Result<T, RowError>,
) -> Result<Vec<T>, StartError> {
    let mut found = Vec::new();
    let mut query = || -> Result<(), RowError> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(())
    };
    query().map_err(|error| error.into_start(what))?;
    Ok(found)
}

fn load_tasks(connection: &Connection, vault: &Vault) -> Result<Vec<Task>, StartError> {
    let sql = "SELECT serial, id, phase, failure, retry_at, queue, task_group, queue_order, flags, attempts,
               created_at, completed_at, done_bytes, total_bytes, save_dir, path, url, file_name, segments, rare, sealed,
               unsettled, wait, asked_retries, seeding FROM task ORDER BY serial";
    // Consecutive tasks mostly share a directory: share its allocation.
    let mut last_dir: Arc<Path> = Path::new("").into();
    each(connection, "task", sql, |row| load_task(row, vault, &mut last_dir))
}

fn load_task(row: &sql::Row<'_>, vault: &Vault, last_dir: &mut Arc<Path>) -> Result<Task, RowError> {
    let id = TaskId::from_bytes(row.get(1)?);
    let flags: i64 = row.get(8)?;
    let dir: String = row.get(14)?;
    if last_dir.as_os_str() != dir.as_str() {
        *last_dir = Path::new(&dir).into();
    }
    let path: Option<String> = row.get(15)?;
    Ok(Task {
        id,
        serial: unsigned(row.get(0)?),
        phase: load_phase(row)?,
        queue: row.get::<_, String>(5)?.parse().map_err(RowError::content)?,
        group: row.get::<_, Option<[u8; 16]>>(6)?.map(GroupId::from_bytes),
        queue_order: row.get(7)?,
        is_forced: flags & FORCED != 0,
        file_missing: flags & FILE_MISSING != 0,
        attempts: row.get(9)?,
        asked_retries: row.get(23)?,
        created_at: Timestamp::from_unix_millis(row.get(10)?),
        completed_at: row.get::<_, Option<i64>>(11)?.map(Timestamp::from_unix_millis),
        done_bytes: unsigned(row.get(12)?),
        total_bytes: row.get::<_, Option<i64>>(13)?.map(unsigned),
        save_dir: Arc::clone(last_dir),
        path: path.map(|path| Path::new(&path).into()),
        owns_file: flags & OWNS_FILE != 0,
        seeding: load_seeding(row)?,
        unsettled: load_unsettled(row)?,
        asked: Arc::new(load_asked(row, id, vault)?),
    })
}

fn load_unsettled(row: &sql::Row<'_>) -> Result<Option<Box<Unsettled>>, RowError> {
    let Some(text) = row.get::<_, Option<String>>(21)? else {
        return Ok(None);
    };
    let record = UnsettledRecord::from_json(&text).map_err(RowError::content)?;
    Ok(record.into_unsettled().map(Box::new))
}

fn load_seeding(row: &sql::Row<'_>) -> Result<Option<Box<Seeding>>, RowError> {
    let Some(text) = row.get::<_, Option<String>>(24)? else {
        return Ok(None);
    };
    let record = SeedingRecord::from_json(&text).map_err(RowError::content)?;
    Ok(Some(Box::new(record.into_seeding())))
}

fn load_phase(row: &sql::Row<'_>) -> Result<Phase, RowError> {
    let failure = || -> Result<transfer::Failure, RowError> {
        let text: Option<String> = row.get(3)?;
        serde_json::from_str(&text.unwrap_or_default()).map_err(RowError::content)
    };
    let wait = || -> Result<WaitRecord, RowError> {
        let text: Option<String> = row.get(22)?;
        WaitRecord::from_json(&text.unwrap_or_default()).map_err(RowError::content)
    };
    let code: i64 = row.get(2)?;
    Ok(match code {
        code if code == PhaseCode::Pending as i64 => Phase::Pending,
        code if code == PhaseCode::Retrying as i64 => {
            let at = Timestamp::from_unix_millis(row.get::<_, Option<i64>>(4)?.unwrap_or(0));
            Phase::Retrying(Box::new(Retry {
                failure: failure()?,
                at,
            }))
        }
        code if code == PhaseCode::Paused as i64 => Phase::Paused,
        code if code == PhaseCode::Completed as i64 => Phase::Completed,
        code if code == PhaseCode::Failed as i64 => Phase::Failed(Box::new(failure()?)),
        code if code == PhaseCode::NeedsLogin as i64 => Phase::NeedsLogin(Box::new(wait()?.into_login(failure()?))),
        code if code == PhaseCode::AccountLimited as i64 => {
            Phase::AccountLimited(Box::new(wait()?.into_account(failure()?)))
        }
        other => return Err(RowError::content(format!("phase {other} is unknown"))),
    })
}

fn load_asked(row: &sql::Row<'_>, id: TaskId, vault: &Vault) -> Result<PackedSpec, RowError> {
    let rare: Option<String> = row.get(19)?;
    let sealed: Option<Vec<u8>> = row.get(20)?;
    let rare = rare
        .map(|text| RareRecord::from_json(&text))
        .transpose()
        .map_err(RowError::content)?;
    let secrets = sealed.map(|sealed| -> Result<SecretRecord, RowError> {
        let plain = unseal(vault, &task_context(id), &sealed)?;
        SecretRecord::from_json(&plain).map_err(RowError::content)
    });
    let url: String = row.get(16)?;
    let name: Option<String> = row.get(17)?;
    let mut spec = rare
        .map(RareRecord::into_spec)
        .transpose()
        .map_err(RowError::Content)?
        .unwrap_or_default();
    let first = SafeUrl::stored(&url).map_err(RowError::content)?;
    spec.urls.insert(0, first);
    if let Some(secrets) = secrets.transpose()? {
        secrets.fill(&mut spec).map_err(RowError::Content)?;
    }
    spec.file_name = name.as_deref().and_then(FileName::sanitise_or_none);
    spec.segments = row.get(18)?;
    Ok(PackedSpec::pack(spec))
}

fn load_queue(row: &sql::Row<'_>) -> Result<Queue, RowError> {
    let id: QueueId = row.get::<_, String>(0)?.parse().map_err(RowError::content)?;
    let record = QueueRecord::from_json(&row.get::<_, String>(3)?).map_err(RowError::content)?;
    let (spec, schedule, schedule_seen) = record.into_parts();
    Ok(Queue {
        id,
        spec,
        position: row.get(1)?,
        is_running: row.get(2)?,
        schedule,
        schedule_seen,
    })
}

fn load_group(row: &sql::Row<'_>) -> Result<Group, RowError> {
    let dir: Option<String> = row.get(3)?;
    let left_out: Option<String> = row.get(5)?;
    let left_out = left_out.map(|text| serde_json::from_str(&text).map_err(RowError::content));
    Ok(Group {
        id: GroupId::from_bytes(*Uuid::from_bytes(row.get(0)?).as_bytes()),
        spec: GroupSpec {
            name: row.get(1)?,
            source_url: row.get(2)?,
            save_dir: dir.map(Into::into),
            left_out: left_out.transpose()?.unwrap_or_default(),
        },
        created_at: Timestamp::from_unix_millis(row.get(4)?),
    })
}

fn load_account(row: &sql::Row<'_>) -> Result<AccountKey, RowError> {
    let [identity, slot, account] = [row.get::<_, String>(0)?, row.get(1)?, row.get(2)?];
    Ok(AccountKey::stored(ResolverId::new(&identity), &slot, &account))
}

fn load_usage(row: &sql::Row<'_>) -> Result<AccountUsage, RowError> {
    let daily_bytes = row.get::<_, Option<i64>>(7)?.map(unsigned);
    Ok(AccountUsage {
        used: AccountUse {
            account: load_account(row)?,
            limits: AccountLimits {
                parallel: row.get::<_, Option<u32>>(6)?.and_then(NonZero::new),
                daily_bytes: daily_bytes.and_then(NonZero::new),
                daily_downloads: row.get::<_, Option<u32>>(8)?.and_then(NonZero::new),
            },
        },
        day: row.get(3)?,
        bytes: unsigned(row.get(4)?),
        downloads: row.get(5)?,
    })
}

fn load_site(row: &sql::Row<'_>, vault: &Vault) -> Result<(Site, Credentials), RowError> {
    let text: String = row.get(0)?;
    let password = unseal(vault, &site_context(&text), &row.get::<_, Vec<u8>>(2)?)?;
    let site = text.parse().map_err(RowError::content)?;
    Ok((
        site,
        Credentials {
            user: row.get(1)?,
            password: Secret::new(password),
        },
    ))
}

fn load_cookies(row: &sql::Row<'_>, vault: &Vault) -> Result<(CookieSite, Arc<CookieJar>), RowError> {
    let site: String = row.get(0)?;
    let record = unseal(vault, &cookies_context(&site), &row.get::<_, Vec<u8>>(1)?)?;
    let jar = CookieRecord::read(&record).map_err(RowError::content)?;
    Ok((site.parse().map_err(RowError::content)?, Arc::new(jar)))
}

fn load_settings(connection: &Connection, vault: &Vault) -> Result<Option<VersionedSettings>, StartError> {
    let found = each(
        connection,
        "settings",
        "SELECT revision, record, sealed FROM settings",
        |row| {
            let record: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&row.get::<_, String>(1)?).map_err(RowError::content)?;
            let mut settings = Settings::default();
            for (key, value) in &record {
                set_stored(&mut settings, key, value.as_str().unwrap_or_default()).map_err(RowError::content)?;
            }
            if let Some(sealed) = row.get::<_, Option<Vec<u8>>>(2)? {
                settings.proxy_password = Secret::new(unseal(vault, &settings_context(), &sealed)?);
            }
            Ok(VersionedSettings {
                revision: unsigned(row.get(0)?),
                settings: Arc::new(settings),
            })
        },
    )?;
    Ok(found.into_iter().next())
}

/// [`Settings::set`] for what may have been stored by an older version, which also had a second name for the proxy mode
/// `system`.
fn set_stored(settings: &mut Settings, key: &str, value: &str) -> Result<(), InvalidSetting> {
    match key {
        "proxy_mode" if value == "auto" => settings.set(key, "system"),
        _ => settings.set(key, value),
    }
}

fn task_context(id: TaskId) -> String {
    format!("engine.task/{id}")
}

fn site_context(site: &str) -> String {
    format!("engine.site/{site}")
}

fn cookies_context(site: &str) -> String {
    format!("engine.site-cookies/{site}")
}

fn settings_context() -> String {
    format!("engine.settings/{SECRET_SETTING}")
}

fn seal(vault: &Vault, context: &str, plain: &[u8]) -> sql::Result<Vec<u8>> {
    vault
        .seal(context, plain)
        .map_err(|error| sql::Error::ToSqlConversionFailure(Box::new(error)))
}

fn unseal(vault: &Vault, context: &str, sealed: &[u8]) -> Result<String, RowError> {
    let plain = vault
        .unseal(context, sealed)
        .map_err(|error| RowError::Sealed(context.to_owned(), error))?;
    String::from_utf8(plain).map_err(RowError::content)
}

/// SQLite's integers are signed; our counts never come near the difference.
fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
