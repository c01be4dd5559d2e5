use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use key_store::KeyStore;

use super::{rotation::Step as RotationStep, *};
use crate::migration::MigrationSet;

const TABLES: MigrationSet = MigrationSet {
    namespace: "test",
    steps: &["CREATE TABLE thing (id INTEGER PRIMARY KEY, sealed BLOB) STRICT;
        CREATE TABLE named (a TEXT NOT NULL, b BLOB NOT NULL, one BLOB NOT NULL, two BLOB, PRIMARY KEY (a, b))
            STRICT, WITHOUT ROWID;"],
};

fn thing(id: i64) -> String {
    format!("thing/{id}")
}

fn named(column: &str, a: &str, b: &[u8]) -> String {
    format!("{column}/{a}/{b:?}")
}

const COLUMNS: [SealedColumn; 3] = [
    SealedColumn {
        table: "thing",
        column: "sealed",
        key: &["id"],
        context: |row| Ok(thing(row.get(0)?)),
    },
    SealedColumn {
        table: "named",
        column: "one",
        key: &["a", "b"],
        context: |row| Ok(named("one", &row.get::<_, String>(0)?, &row.get::<_, Vec<u8>>(1)?)),
    },
    SealedColumn {
        table: "named",
        column: "two",
        key: &["a", "b"],
        context: |row| Ok(named("two", &row.get::<_, String>(0)?, &row.get::<_, Vec<u8>>(1)?)),
    },
];

/// More than are read at once.
const THINGS: i64 = 1203;

struct World {
    root: tempfile::TempDir,
    dir: DataDir,
    store: Store,
    vault: Arc<Vault>,
}

async fn open(path: &Path) -> Result<(DataDir, Store, Arc<Vault>), VaultError> {
    let dir = DataDir::lock(path).unwrap();
    let store = Store::open(dir.join("db"), &[TABLES]).unwrap();
    let vault = Arc::new(Vault::open(&dir, &store).await?);
    Ok((dir, store, vault))
}

async fn insert(store: &Store, vault: &Arc<Vault>, id: i64, plain: String) {
    let vault = Arc::clone(vault);
    let write = move |transaction: &rusqlite::Transaction<'_>| {
        let sealed = vault.seal(&thing(id), plain.as_bytes()).unwrap();
        transaction.execute("INSERT OR REPLACE INTO thing VALUES (?1, ?2)", (id, sealed))
    };
    store.write(write).await.unwrap();
}

impl World {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (dir, store, vault) = open(&root.path().join("data")).await.unwrap();
        let world = Self {
            root,
            dir,
            store,
            vault,
        };
        world.fill().await;
        world
    }

    async fn fill(&self) {
        let vault = Arc::clone(&self.vault);
        let write = move |transaction: &rusqlite::Transaction<'_>| {
            for id in 1..=THINGS {
                let sealed = vault.seal(&thing(id), format!("secret {id}").as_bytes()).unwrap();
                transaction.execute("INSERT INTO thing VALUES (?1, ?2)", (id, sealed))?;
            }
            transaction.execute("INSERT INTO thing VALUES (?1, NULL)", [THINGS + 1])?;
            for (a, b) in [("x", b"1".as_slice()), ("x", b"\0\xff"), ("y'", b"")] {
                let seal = |column| vault.seal(&named(column, a, b), column.as_bytes()).unwrap();
                let two = (!b.is_empty()).then(|| seal("two"));
                transaction.execute("INSERT INTO named VALUES (?1, ?2, ?3, ?4)", (a, b, seal("one"), two))?;
            }
            Ok(())
        };
        self.store.write(write).await.unwrap();
    }

    async fn rotate(&self) -> Result<usize, RotateError> {
        self.vault.rotate(&self.store, COLUMNS).await
    }

    async fn execute(&self, sql: &'static str) {
        self.store
            .write(move |transaction| transaction.execute(sql, []))
            .await
            .unwrap();
    }
}

/// Whether every value opens with this vault.
async fn check(store: &Store, vault: &Arc<Vault>) {
    let vault = Arc::clone(vault);
    let read = move |connection: &Connection| {
        let mut statement = connection.prepare("SELECT id, sealed FROM thing WHERE sealed IS NOT NULL")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(i64, Vec<u8>)> = rows.collect::<rusqlite::Result<_>>()?;
        assert!(rows.len() >= usize::try_from(THINGS).unwrap());
        for (id, sealed) in rows {
            assert_eq!(
                vault.unseal(&thing(id), &sealed),
                Ok(format!("secret {id}").into_bytes())
            );
        }
        let mut statement = connection.prepare("SELECT a, b, one, two FROM named")?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let (a, b): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let opened = vault.unseal(&named("one", &a, &b), &row.get::<_, Vec<u8>>(2)?);
            assert_eq!(opened.unwrap(), b"one");
            let two: Option<Vec<u8>> = row.get(3)?;
            assert_eq!(two.is_none(), b.is_empty());
            if let Some(two) = two {
                assert_eq!(vault.unseal(&named("two", &a, &b), &two).unwrap(), b"two");
            }
            count += 1;
        }
        assert_eq!(count, 3);
        Ok(())
    };
    store.read(read).await.unwrap();
}

#[tokio::test]
async fn a_value_opens_with_the_same_key_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let (dir, store, vault) = open(&root.path().join("data")).await.unwrap();
    let sealed = vault.seal("task/1", b"secret").unwrap();
    assert!(!sealed.windows(6).any(|window| window == b"secret"));
    drop((dir, store, vault));
    let (_dir, _store, vault) = open(&root.path().join("data")).await.unwrap();
    assert_eq!(vault.unseal("task/1", &sealed).unwrap(), b"secret");
}

#[tokio::test]
async fn a_value_that_was_moved_or_changed_does_not_open() {
    let vault = Vault::ephemeral().unwrap();
    let sealed = vault.seal("task/1", b"secret").unwrap();
    assert_eq!(vault.unseal("task/2", &sealed), Err(SealError::Forged));
    for index in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[index] ^= 1;
        assert_eq!(vault.unseal("task/1", &changed), Err(SealError::Forged), "byte {index}");
    }
    assert_eq!(vault.unseal("task/1", &sealed[..5]), Err(SealError::Forged));
    assert_eq!(
        Vault::ephemeral().unwrap().unseal("task/1", &sealed),
        Err(SealError::Forged)
    );
}

#[tokio::test]
async fn a_damaged_key_file_is_an_error_and_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let dir = DataDir::lock(root.path().join("data")).unwrap();
    let store = Store::open(dir.join("db"), &[]).unwrap();
    fs::write(dir.join("vault.key"), b"short").unwrap();
    let opened = Vault::open(&dir, &store).await;
    assert!(matches!(opened, Err(VaultError::Damaged { found: 5, .. })));
    assert_eq!(fs::read(dir.join("vault.key")).unwrap(), b"short");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_keys() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (current, next) = (world.dir.join("vault.key"), world.dir.join("vault.key.next"));
    assert_eq!(mode(&current), 0o600);
    let seen = next.clone();
    let observe = move |step| match step {
        RotationStep::KeyWritten | RotationStep::Resealed | RotationStep::Committed => assert_eq!(mode(&seen), 0o600),
        RotationStep::KeyReplaced => assert!(!seen.exists()),
    };
    let rotated = world.vault.rotate_observed(&world.store, COLUMNS.into(), observe).await;
    rotated.unwrap();
    assert_eq!(mode(&current), 0o600);
    assert!(!next.exists());
}

#[tokio::test]
async fn a_rotation_leaves_nothing_that_the_old_key_opens() {
    let world = World::new().await;
    let before = fs::read(world.dir.join("vault.key")).unwrap();
    let old = Vault::with_key(&before.try_into().unwrap(), None);
    let of_first = |connection: &Connection| {
        connection.query_row("SELECT sealed FROM thing WHERE id = 1", [], |row| {
            row.get::<_, Vec<u8>>(0)
        })
    };
    let sealed = world.store.read(of_first).await.unwrap();
    assert_eq!(old.unseal(&thing(1), &sealed).unwrap(), b"secret 1");

    assert_eq!(world.rotate().await.unwrap(), usize::try_from(THINGS).unwrap() + 5);
    check(&world.store, &world.vault).await;
    assert_eq!(world.vault.unseal(&thing(1), &sealed), Err(SealError::Forged));
    let resealed = world.store.read(of_first).await.unwrap();
    assert_eq!(old.unseal(&thing(1), &resealed), Err(SealError::Forged));
    // Neither the database nor its log keeps the old value.
    for name in ["db", "db-wal"] {
        let bytes = fs::read(world.dir.join(name)).unwrap_or_default();
        assert!(!bytes.windows(sealed.len()).any(|window| window == sealed), "{name}");
    }
    let World {
        root,
        dir,
        store,
        vault,
    } = world;
    store.close().await;
    drop((dir, store, vault));
    let (_dir, store, vault) = open(&root.path().join("data")).await.unwrap();
    check(&store, &vault).await;
}

#[tokio::test]
async fn a_database_in_memory_has_its_key_replaced_too() {
    let store = Store::in_memory(&[TABLES]).unwrap();
    let vault = Arc::new(Vault::ephemeral().unwrap());
    insert(&store, &vault, 1, "secret 1".into()).await;
    assert_eq!(vault.rotate(&store, COLUMNS).await.unwrap(), 1);
    insert(&store, &vault, 2, "secret 2".into()).await;
    assert_eq!(vault.rotate(&store, COLUMNS).await.unwrap(), 2);
}

/// The files as a kill would leave them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in ["db", "db-wal", "vault.key", "vault.key.next"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_kill_at_any_step_loses_no_value_and_leaves_one_key() {
    let world = World::new().await;
    // The first rotation has no mark yet, the second replaces one.
    for round in ["first", "second"] {
        let before = fs::read(world.dir.join("vault.key")).unwrap();
        let (from, to) = (world.dir.path().to_owned(), world.root.path().join(round));
        fs::create_dir(&to).unwrap();
        let images = to.clone();
        let observe = move |step| copy(&from, &images.join(format!("{step:?}")));
        let rotated = world.vault.rotate_observed(&world.store, COLUMNS.into(), observe).await;
        rotated.unwrap();
        let after = fs::read(world.dir.join("vault.key")).unwrap();
        for (step, key) in [
            (RotationStep::KeyWritten, &before),
            (RotationStep::Resealed, &before),
            (RotationStep::Committed, &after),
            (RotationStep::KeyReplaced, &after),
        ] {
            let image = to.join(format!("{step:?}"));
            let (dir, store, vault) = open(&image).await.unwrap();
            check(&store, &vault).await;
            assert_eq!(&fs::read(dir.join("vault.key")).unwrap(), key, "{round} {step:?}");
            assert!(!dir.join("vault.key.next").exists(), "{round} {step:?}");
            // It goes on as usual.
            vault.rotate(&store, COLUMNS).await.unwrap();
            check(&store, &vault).await;
        }
    }
}

#[tokio::test]
async fn the_key_of_another_directory_is_refused_and_kept() {
    let world = World::new().await;
    world.rotate().await.unwrap();
    let World {
        root,
        dir,
        store,
        vault,
    } = world;
    store.close().await;
    drop((dir, store, vault));
    let path = root.path().join("data");
    let right = fs::read(path.join("vault.key")).unwrap();
    for wrong in [Some([7; KEY_BYTES]), None] {
        match wrong {
            Some(key) => fs::write(path.join("vault.key"), key).unwrap(),
            None => fs::remove_file(path.join("vault.key")).unwrap(),
        }
        assert!(matches!(open(&path).await, Err(VaultError::WrongKey { .. })));
        let kept = fs::read(path.join("vault.key")).ok();
        assert_eq!(kept, wrong.map(Vec::from), "no key is made in its place");
    }
    fs::write(path.join("vault.key"), right).unwrap();
    let (_dir, store, vault) = open(&path).await.unwrap();
    check(&store, &vault).await;
}

#[tokio::test]
async fn a_value_that_was_tampered_with_stops_the_rotation_and_nothing_changes() {
    for (change, what) in [
        ("UPDATE thing SET sealed = zeroblob(40) WHERE id = 1203", "thing/1203"),
        ("UPDATE thing SET sealed = x'00' WHERE id = 1", "thing/1"),
        // A value of another row, and one of another column.
        (
            "UPDATE thing SET sealed = (SELECT sealed FROM thing WHERE id = 2) WHERE id = 1",
            "thing/1",
        ),
        ("UPDATE named SET two = one WHERE a = 'x'", "two/x/"),
    ] {
        let world = World::new().await;
        let key = fs::read(world.dir.join("vault.key")).unwrap();
        world.execute(change).await;
        let count = |connection: &Connection| {
            connection.query_row("SELECT group_concat(hex(sealed)) FROM thing", [], |row| {
                row.get::<_, String>(0)
            })
        };
        let before = world.store.read(count).await.unwrap();
        let error = world.rotate().await.unwrap_err();
        assert!(
            matches!(&error, RotateError::Sealed { what: named, .. } if named.starts_with(what)),
            "{change}: {error}"
        );
        assert_eq!(world.store.read(count).await.unwrap(), before);
        assert_eq!(fs::read(world.dir.join("vault.key")).unwrap(), key);
        assert!(!world.dir.join("vault.key.next").exists());
        assert!(world.vault.keys().other.is_none());
        let sealed = world.vault.seal("a", b"b").unwrap();
        let old = Vault::with_key(&key.try_into().unwrap(), None);
        assert_eq!(old.unseal("a", &sealed).unwrap(), b"b", "the old key is in use");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_and_reads_go_on_during_rotations() {
    let world = World::new().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let (store, vault, over) = (world.store.clone(), Arc::clone(&world.vault), Arc::clone(&is_over));
    let mut others = tokio::task::JoinSet::new();
    others.spawn(async move {
        let mut id = THINGS + 10;
        while !over.load(Ordering::Relaxed) {
            insert(&store, &vault, id, format!("secret {id}")).await;
            id += 1;
        }
    });
    let (store, vault, over) = (world.store.clone(), Arc::clone(&world.vault), Arc::clone(&is_over));
    others.spawn(async move {
        while !over.load(Ordering::Relaxed) {
            check(&store, &vault).await;
        }
    });
    for _ in 0..10 {
        world.rotate().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    others.join_all().await;
    check(&world.store, &world.vault).await;
}

/// The desktop's key store, with its failures at a switch.
#[derive(Debug, Default)]
struct Keyring {
    items: Mutex<BTreeMap<String, Vec<u8>>>,
    is_locked: AtomicBool,
    forgets: AtomicBool,
}

impl Keyring {
    fn check(&self) -> Result<MutexGuard<'_, BTreeMap<String, Vec<u8>>>, KeyStoreError> {
        if self.is_locked.load(Ordering::SeqCst) {
            return Err(KeyStoreError::Locked);
        }
        Ok(self.items.lock().unwrap())
    }

    fn lock(&self, is_locked: bool) {
        self.is_locked.store(is_locked, Ordering::SeqCst);
    }
}

impl KeyStore for Keyring {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, KeyStoreError> {
        Ok(self.check()?.get(name).cloned())
    }

    fn save(&self, name: &str, secret: &[u8]) -> Result<(), KeyStoreError> {
        let mut items = self.check()?;
        if !self.forgets.load(Ordering::SeqCst) {
            items.insert(name.to_owned(), secret.to_owned());
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), KeyStoreError> {
        self.check()?.remove(name);
        Ok(())
    }
}

fn kept(ring: &Arc<Keyring>, place: KeyPlace) -> KeyKeeping {
    KeyKeeping {
        store: Some(Arc::<Keyring>::clone(ring)),
        place,
    }
}

/// Opens the copy or the original of a data directory at `path` with this keyring, and reads a secret.
async fn secret_at(path: &Path, keeping: KeyKeeping) -> Result<String, VaultError> {
    let dir = DataDir::lock(path).unwrap();
    let store = Store::open(dir.join("db"), &[TABLES]).unwrap();
    let vault = Arc::new(Vault::open_keeping(&dir, &store, keeping).await?);
    let read = store.read(|connection| {
        connection.query_row("SELECT sealed FROM thing WHERE id = 7", [], |row| {
            row.get::<_, Vec<u8>>(0)
        })
    });
    Ok(String::from_utf8(vault.unseal(&thing(7), &read.await.unwrap()).unwrap()).unwrap())
}

/// A data directory with secrets, closed.
async fn closed_world() -> tempfile::TempDir {
    let World {
        root,
        dir,
        store,
        vault,
    } = World::new().await;
    drop((vault, store, dir));
    root
}

fn key_file(root: &tempfile::TempDir) -> Vec<u8> {
    fs::read(root.path().join("data/vault.key")).unwrap()
}

#[tokio::test]
async fn a_key_goes_to_the_desktops_store_and_comes_back() {
    let root = closed_world().await;
    let data = root.path().join("data");
    let ring = Arc::new(Keyring::default());
    let before = key_file(&root);
    assert_eq!(
        secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap(),
        "secret 7"
    );
    let note = String::from_utf8(key_file(&root)).unwrap();
    let name = note.strip_prefix("org.freedesktop.secrets ").unwrap().trim_end();
    assert_eq!(ring.items.lock().unwrap().keys().collect::<Vec<_>>(), [name]);
    // A server that gets the directory finds the key where it is, if it can reach it, and moves nothing.
    assert_eq!(secret_at(&data, kept(&ring, KeyPlace::AsIs)).await.unwrap(), "secret 7");
    assert_eq!(secret_at(&data, kept(&ring, KeyPlace::File)).await.unwrap(), "secret 7");
    assert_eq!(key_file(&root), before);
    assert!(ring.items.lock().unwrap().is_empty());
    assert_eq!(secret_at(&data, KeyKeeping::default()).await.unwrap(), "secret 7");
}

#[tokio::test]
async fn a_store_that_is_locked_or_gone_is_named_and_nothing_is_overwritten() {
    let root = closed_world().await;
    let data = root.path().join("data");
    let ring = Arc::new(Keyring::default());
    let before = key_file(&root);
    // Not usable from the beginning, or not keeping what it is given: the file stays.
    ring.lock(true);
    secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap();
    assert_eq!(key_file(&root), before);
    ring.lock(false);
    ring.forgets.store(true, Ordering::SeqCst);
    secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap();
    assert_eq!(key_file(&root), before);
    ring.forgets.store(false, Ordering::SeqCst);
    secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap();
    let note = key_file(&root);
    assert_ne!(note, before);
    // Usable no more.
    let items = ring.items.lock().unwrap().clone();
    for place in [KeyPlace::AsIs, KeyPlace::File, KeyPlace::Desktop] {
        ring.lock(true);
        let locked = secret_at(&data, kept(&ring, place)).await.unwrap_err();
        assert!(
            matches!(
                &locked,
                VaultError::KeyStore {
                    source: KeyStoreError::Locked,
                    ..
                }
            ),
            "{locked:?}"
        );
        assert!(locked.to_string().contains("--keys file"), "{locked}");
        ring.lock(false);
        let gone = secret_at(&data, KeyKeeping { store: None, place }).await.unwrap_err();
        assert!(matches!(
            gone,
            VaultError::KeyStore {
                source: KeyStoreError::Absent(_),
                ..
            }
        ));
        ring.items.lock().unwrap().clear();
        let missing = secret_at(&data, kept(&ring, place)).await.unwrap_err();
        assert!(matches!(missing, VaultError::NotInStore { .. }), "{missing:?}");
        ring.items
            .lock()
            .unwrap()
            .extend(items.keys().map(|name| (name.clone(), vec![b'0'; 64])));
        let wrong = secret_at(&data, kept(&ring, place)).await.unwrap_err();
        assert!(matches!(wrong, VaultError::NotInStore { .. }), "{wrong:?}");
        ring.items.lock().unwrap().clone_from(&items);
        assert_eq!(key_file(&root), note, "{place:?}");
    }
    assert_eq!(secret_at(&data, kept(&ring, KeyPlace::AsIs)).await.unwrap(), "secret 7");
}

/// A copy of the directory and of the keyring at each step of a move is what a kill at that step leaves.
#[tokio::test]
async fn a_move_that_is_killed_at_any_step_loses_no_secret() {
    for place in [KeyPlace::Desktop, KeyPlace::File] {
        let root = closed_world().await;
        let data = root.path().join("data");
        let ring = Arc::new(Keyring::default());
        if place == KeyPlace::File {
            secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap();
        }
        let steps = Arc::new(Mutex::new(Vec::new()));
        let dir = DataDir::lock(&data).unwrap();
        let store = Store::open(dir.join("db"), &[TABLES]).unwrap();
        let observe = {
            let (steps, ring, data, root) = (steps.clone(), ring.clone(), data.clone(), root.path().to_owned());
            move |step| {
                copy(&data, &root.join(format!("{step:?}")));
                steps.lock().unwrap().push((step, ring.items.lock().unwrap().clone()));
            }
        };
        let opened = Vault::open_observed(&dir, &store, kept(&ring, place), observe).await;
        drop((opened.unwrap(), store, dir));
        let steps = steps.lock().unwrap().clone();
        assert_eq!(steps.len(), if place == KeyPlace::Desktop { 3 } else { 2 });
        for (step, items) in steps {
            for next in [KeyPlace::AsIs, KeyPlace::Desktop, KeyPlace::File] {
                let left = root.path().join(format!("{step:?}{next:?}"));
                copy(&root.path().join(format!("{step:?}")), &left);
                let ring = Arc::new(Keyring {
                    items: Mutex::new(items.clone()),
                    ..Keyring::default()
                });
                let secret = secret_at(&left, kept(&ring, next)).await;
                assert_eq!(secret.unwrap(), "secret 7", "{place:?} {step:?} {next:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_rotation_with_the_key_in_the_store_leaves_one_item_and_survives_a_kill_at_each_step() {
    let root = closed_world().await;
    let data = root.path().join("data");
    let ring = Arc::new(Keyring::default());
    secret_at(&data, kept(&ring, KeyPlace::Desktop)).await.unwrap();
    let dir = DataDir::lock(&data).unwrap();
    let store = Store::open(dir.join("db"), &[TABLES]).unwrap();
    let vault = Arc::new(
        Vault::open_keeping(&dir, &store, kept(&ring, KeyPlace::AsIs))
            .await
            .unwrap(),
    );
    ring.lock(true);
    let before = key_file(&root);
    let refused = vault.rotate(&store, COLUMNS).await.unwrap_err();
    assert!(refused.to_string().contains("nothing was changed"), "{refused}");
    assert_eq!(key_file(&root), before);
    ring.lock(false);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let observe = {
        let (steps, ring, data, root) = (steps.clone(), ring.clone(), data.clone(), root.path().to_owned());
        move |step: RotationStep| {
            copy(&data, &root.join(format!("{step:?}")));
            steps.lock().unwrap().push((step, ring.items.lock().unwrap().clone()));
        }
    };
    vault.rotate_observed(&store, COLUMNS.to_vec(), observe).await.unwrap();
    drop((vault, store, dir));
    assert_eq!(ring.items.lock().unwrap().len(), 1);
    assert_eq!(secret_at(&data, kept(&ring, KeyPlace::AsIs)).await.unwrap(), "secret 7");
    let steps = steps.lock().unwrap().clone();
    assert_eq!(steps.len(), 4);
    for (step, items) in steps {
        let ring = Arc::new(Keyring {
            items: Mutex::new(items),
            ..Keyring::default()
        });
        let secret = secret_at(&root.path().join(format!("{step:?}")), kept(&ring, KeyPlace::AsIs)).await;
        assert_eq!(secret.unwrap(), "secret 7", "{step:?}");
        assert_eq!(ring.items.lock().unwrap().len(), 1, "{step:?}");
    }
}
