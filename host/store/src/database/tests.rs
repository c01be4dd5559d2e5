//! The store on disk: what is promised about durability, order, migrations and damage.

use super::*;

const ONE: MigrationSet = MigrationSet {
    namespace: "things",
    steps: &["CREATE TABLE thing (n INTEGER) STRICT"],
};
const TWO: MigrationSet = MigrationSet {
    namespace: "things",
    steps: &[
        "CREATE TABLE thing (n INTEGER) STRICT",
        "ALTER TABLE thing ADD COLUMN label TEXT",
    ],
};

fn insert(n: i64) -> impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()> + Send + 'static {
    move |transaction| transaction.execute("INSERT INTO thing (n) VALUES (?1)", [n]).map(drop)
}

fn count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM thing", [], |row| row.get(0))
}

#[tokio::test]
async fn an_answered_write_is_seen_by_another_connection() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path, &[ONE]).unwrap();
    store.write(insert(1)).await.unwrap();
    assert_eq!(count(&Connection::open(&path).unwrap()).unwrap(), 1);
    assert_eq!(store.read(count).await.unwrap(), 1);
}

#[tokio::test]
async fn commits_are_synced_and_only_the_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path, &[ONE]).unwrap();
    let pragma = |name: &'static str| {
        store.write(move |transaction| {
            transaction.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        })
    };
    assert_eq!(pragma("synchronous").await.unwrap(), rusqlite::types::Value::Integer(2));
    assert_eq!(
        pragma("journal_mode").await.unwrap(),
        rusqlite::types::Value::Text("wal".to_owned())
    );
    assert_eq!(
        pragma("foreign_keys").await.unwrap(),
        rusqlite::types::Value::Integer(1)
    );
    for name in ["db", "db-wal", "db-shm"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_change_that_fails_or_panics_is_undone_alone() {
    let store = Store::in_memory(&[ONE]).unwrap();
    let first = store.enqueue(insert(1)).await.unwrap();
    let fails = store
        .enqueue(|transaction| {
            transaction.execute("INSERT INTO thing (n) VALUES (2)", [])?;
            transaction.execute("INSERT INTO nowhere VALUES (1)", []).map(drop)
        })
        .await
        .unwrap();
    let panics = store
        .enqueue(|transaction| {
            transaction.execute("INSERT INTO thing (n) VALUES (3)", [])?;
            panic!("on purpose")
        })
        .await
        .unwrap();
    let panics: Committed<()> = panics;
    let last = store.enqueue(insert(4)).await.unwrap();
    first.durable().await.unwrap();
    assert!(matches!(fails.durable().await, Err(WriteError::Refused(_))));
    assert!(matches!(panics.durable().await, Err(WriteError::Panicked)));
    last.durable().await.unwrap();
    assert_eq!(store.read(count).await.unwrap(), 2);
}

#[tokio::test]
async fn closing_waits_for_every_write_and_later_calls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path, &[ONE]).unwrap();
    let mut waiting = Vec::new();
    for n in 0..500 {
        waiting.push(store.enqueue(insert(n)).await.unwrap());
    }
    store.close().await;
    for write in waiting {
        write.durable().await.unwrap();
    }
    assert!(matches!(store.write(insert(0)).await, Err(WriteError::Closed)));
    assert!(matches!(store.read(count).await, Err(ReadError::Closed)));
    assert_eq!(count(&Connection::open(&path).unwrap()).unwrap(), 500);
}

#[tokio::test]
async fn a_clean_close_leaves_one_file_whether_or_not_there_was_something_to_do() {
    for writes in [0, 1, 100] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("db"), &[ONE]).unwrap();
        for n in 0..writes {
            let _on_its_way = store.enqueue(insert(n)).await.unwrap();
        }
        store.read(count).await.unwrap();
        store.close().await;
        let names = std::fs::read_dir(dir.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["db"]);
    }
}

#[tokio::test]
async fn an_older_database_is_migrated_and_a_newer_one_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let store = Store::open(&path, &[ONE]).unwrap();
    store.write(insert(7)).await.unwrap();
    store.close().await;
    let store = Store::open(&path, &[TWO]).unwrap();
    let label = "SELECT coalesce(label, 'none') FROM thing WHERE n = 7";
    let found: String = store
        .read(move |connection| connection.query_row(label, [], |row| row.get(0)))
        .await
        .unwrap();
    assert_eq!(found, "none");
    store.close().await;
    let error = Store::open(&path, &[ONE]).unwrap_err().to_string();
    assert!(error.contains("things version 2, this program knows 1"), "{error}");
    assert!(error.contains(&path.display().to_string()), "{error}");
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let broken = MigrationSet {
        namespace: "things",
        steps: &["CREATE TABLE thing (n)", "NOT SQL"],
    };
    assert!(matches!(Store::open(&path, &[broken]), Err(OpenError::Sql { .. })));
    let store = Store::open(&path, &[ONE]).unwrap();
    assert_eq!(store.read(count).await.unwrap(), 0);
}

#[test]
fn files_that_are_no_database_of_ours_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = dir.path().join("garbage");
    std::fs::write(&garbage, vec![b'x'; 8192]).unwrap();
    let error = Store::open(&garbage, &[ONE]).unwrap_err();
    assert!(error.to_string().contains("garbage"), "{error}");
    let foreign = dir.path().join("foreign");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE other (n)")
        .unwrap();
    assert!(matches!(Store::open(&foreign, &[ONE]), Err(OpenError::Foreign { .. })));
    let missing = dir.path().join("no/such/dir/db");
    assert!(matches!(Store::open(&missing, &[ONE]), Err(OpenError::Io { .. })));
}

#[tokio::test]
async fn many_writers_at_once_all_get_their_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("db"), &[ONE]).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..2000_i64 {
        let store = store.clone();
        writers.spawn(async move {
            let id = store.write(move |transaction| {
                transaction.execute("INSERT INTO thing (n) VALUES (?1)", [n])?;
                transaction.query_row("SELECT max(n) FROM thing WHERE n = ?1", [n], |row| row.get::<_, i64>(0))
            });
            assert_eq!(id.await.unwrap(), n);
        });
    }
    writers.join_all().await;
    assert_eq!(store.read(count).await.unwrap(), 2000);
}
