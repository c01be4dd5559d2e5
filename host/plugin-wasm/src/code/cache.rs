//! Compiled plugins on the disk. Compiled code is native code, so none is used that was not written here: every file
//! ends with a tag that only the holder of the key can make. What nobody uses any more is removed.
//!
//! Code runs from its file, so that what nobody calls needs no memory. That is as safe as a copy while the bytes stay
//! what was checked. Nobody but our own user, who could as well read the key, can write into the file, and we never do:
//! it is made under another name, read-only, and it is replaced and removed by its name, which leaves what is mapped as
//! it is. A file that others may write is copied. Who cuts a file under a running service makes it crash, as with any
//! program on the disk.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions, TryLockError},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use data_encoding::HEXLOWER;
use ring::{
    digest::{self, Digest, SHA256, SHA256_OUTPUT_LEN, digest},
    hmac,
};
use rustix::process::geteuid;
use wasmtime::Engine;

use crate::code::compile::MAX_WALL;

/// How old a file is at least that is removed: who goes back to the version before does so soon.
const MIN_AGE: Duration = Duration::from_hours(24);

/// Plugins are loaded when the service starts; before that is over, nobody knows which files are in use.
const SETTLED: Duration = Duration::from_mins(10);

/// How long somebody else's compiling is waited for: longer than it may take.
const PATIENCE: Duration = MAX_WALL.saturating_add(Duration::from_secs(5));

/// How often it is looked whether somebody else has finished: the system wakes nobody who waits only for a time.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The file names of compiled code, also while it is written.
const SUFFIX: &str = ".cwasm";

/// What is read of a file at once: enough that asking for it costs nothing beside the digest.
const PIECE_BYTES: usize = 64 * 1024;

/// The permission to write, of everybody but the owner.
const OTHERS_WRITE: u32 = 0o022;

/// Code whose tag was right.
#[derive(Debug)]
pub(crate) enum Code {
    /// It stays as it is on the disk; the tag behind it disturbs nobody.
    File(File),
    /// A copy, or what the compiler said just now.
    Bytes(Vec<u8>),
}

impl Code {
    /// What this very file can be opened by, whatever is at its path by now.
    pub(crate) fn path(file: &File) -> PathBuf {
        Path::new("/dev/fd").join(file.as_raw_fd().to_string())
    }

    /// The code in memory, as the file has it now.
    pub(crate) fn copied(file: &File) -> io::Result<Vec<u8>> {
        Ok(copy(file)?.0)
    }
}

/// Names a plugin by its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; SHA256_OUTPUT_LEN]);

impl ContentHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let digest = digest(&SHA256, bytes);
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// The folder of code for one build of the engine.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    folder: PathBuf,
    /// Names the engine's build and settings; code of another one is another plugin's code.
    engine: [u8; 8],
    key: hmac::Key,
    started: Instant,
    /// What was loaded since then. A lock that is held for a moment only.
    used: Mutex<BTreeSet<ContentHash>>,
}

impl Cache {
    pub(crate) fn new(root: &Path, key: &[u8; 32], engine: &Engine) -> Self {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine = hasher.finish().to_be_bytes();
        Self {
            root: root.to_owned(),
            folder: root.join(HEXLOWER.encode(&engine)),
            engine,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            started: Instant::now(),
            used: Mutex::default(),
        }
    }

    /// The code of a plugin, if it is here and unharmed.
    pub(crate) fn load(&self, plugin: ContentHash) -> Option<Code> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(plugin);
        let file = File::open(self.path(plugin)).ok()?;
        let code = self.check(plugin, file);
        if code.is_none() {
            tracing::warn!(%plugin, "compiled plugin has been changed on the disk; compiling it again");
        }
        code
    }

    /// The code in a file, if its tag is right.
    fn check(&self, plugin: ContentHash, file: File) -> Option<Code> {
        if is_ours_alone(&file).ok()? {
            let (digest, tag) = read(&file).ok()?;
            return self.is_tag(plugin, &digest, &tag).then_some(Code::File(file));
        }
        let (code, tag) = copy(&file).ok()?;
        let is_right = self.is_tag(plugin, &digest(&SHA256, &code), &tag);
        is_right.then_some(Code::Bytes(code))
    }

    /// Keeps the code of a plugin that [`Cache::load`] did not find. A file is there whole or not at all.
    pub(crate) fn store(&self, plugin: ContentHash, code: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().suffix(SUFFIX).tempfile_in(&self.folder)?;
        file.write_all(code)?;
        file.write_all(hmac::sign(&self.key, &self.tagged(plugin, &digest(&SHA256, code))).as_ref())?;
        file.as_file().set_permissions(Permissions::from_mode(0o400))?;
        file.as_file().sync_all()?;
        file.persist(self.path(plugin))?;
        if self.started.elapsed() > SETTLED {
            self.collect(SystemTime::now() - MIN_AGE);
        }
        Ok(())
    }

    /// The turn to compile a plugin, among all processes that use this folder. It says who works and guards nothing:
    /// `None` after a time, or if there are no locks here, is a turn too.
    pub(crate) async fn turn(&self, plugin: ContentHash) -> Option<Turn> {
        let path = self.folder.join(format!("{plugin}.lock"));
        let waiting = async {
            loop {
                match Turn::take(&path) {
                    Ok(Some(turn)) => return Some(turn),
                    Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
                    Err(error) => {
                        tracing::debug!(%error, "compiling without a lock");
                        return None;
                    }
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_default()
    }

    /// Removes what was written before `limit`, by this engine or another one, and was not loaded since the start. What
    /// does not go stays for the next time.
    fn collect(&self, limit: SystemTime) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let used: BTreeSet<_> = used.into_iter().map(|plugin| self.path(plugin)).collect();
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        for file in entries(&self.root).flat_map(|engine| entries(&engine.path())) {
            let path = file.path();
            let modified = file.metadata().and_then(|metadata| metadata.modified());
            let is_old = modified.is_ok_and(|modified| modified < limit);
            let is_ours = path
                .extension()
                .is_some_and(|extension| extension == "cwasm" || extension == "lock");
            if is_old && is_ours && !used.contains(&path) {
                match fs::remove_file(&path) {
                    Ok(()) => tracing::debug!(path = %path.display(), "removed compiled code that nobody uses"),
                    Err(error) => tracing::warn!(%error, "compiled code that nobody uses stays on the disk"),
                }
            }
        }
    }

    fn path(&self, plugin: ContentHash) -> PathBuf {
        self.folder.join(format!("{plugin}{SUFFIX}"))
    }

    /// What the tag stands for: this code, of this plugin, for this engine.
    fn tagged(&self, plugin: ContentHash, code: &Digest) -> Vec<u8> {
        [&self.engine[..], &plugin.0, code.as_ref()].concat()
    }

    fn is_tag(&self, plugin: ContentHash, code: &Digest, tag: &[u8]) -> bool {
        hmac::verify(&self.key, &self.tagged(plugin, code), tag).is_ok()
    }
}

/// Whether nobody but our own user can change the file.
fn is_ours_alone(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(metadata.uid() == geteuid().as_raw() && metadata.mode() & OTHERS_WRITE == 0)
}

/// How much code is in a file.
fn code_bytes(file: &File) -> io::Result<usize> {
    let code = usize::try_from(file.metadata()?.len())
        .unwrap_or(usize::MAX)
        .checked_sub(SHA256_OUTPUT_LEN);
    code.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// The code in a file, and the tag behind it.
fn copy(file: &File) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let code_bytes = code_bytes(file)?;
    let mut code = vec![0; code_bytes + SHA256_OUTPUT_LEN];
    file.read_exact_at(&mut code, 0)?;
    let tag = code.split_off(code_bytes);
    Ok((code, tag))
}

/// The digest of the code in a file, and the tag behind it; only a piece at a time is in memory.
fn read(mut file: &File) -> io::Result<(Digest, [u8; SHA256_OUTPUT_LEN])> {
    let mut left = code_bytes(file)?;
    let mut context = digest::Context::new(&SHA256);
    let mut piece = vec![0; PIECE_BYTES.min(left)];
    while left > 0 {
        let piece = &mut piece[..PIECE_BYTES.min(left)];
        file.read_exact(piece)?;
        context.update(piece);
        left -= piece.len();
    }
    let mut tag = [0; SHA256_OUTPUT_LEN];
    file.read_exact(&mut tag)?;
    Ok((context.finish(), tag))
}

/// Held by who compiles a plugin. The system takes it back from a process that is killed.
#[derive(Debug)]
pub(crate) struct Turn {
    path: PathBuf,
    _lock: File,
}

impl Turn {
    /// The turn, unless somebody has it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self {
                path: path.to_owned(),
                _lock: file,
            })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Turn {
    /// Who waits already has the file open and finds the code; who comes later makes another one.
    fn drop(&mut self) {
        let _next_time = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;
    use crate::engine;

    #[tokio::test(start_paused = true)]
    async fn one_compiles_and_the_others_wait_for_it_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine::compiler().unwrap();
        let cache = || Cache::new(folder.path(), &[1; 32], &engine);
        let (first, second) = (cache(), cache());
        let [plugin, other] = [b"1", b"2"].map(|bytes| ContentHash::of(bytes));
        fs::create_dir_all(&first.folder).unwrap();
        let left_behind = first.folder.join(format!("{plugin}.lock"));
        fs::write(left_behind, "").unwrap();
        let turn = first.turn(plugin).await.expect("who was killed holds nothing");
        assert!(second.turn(other).await.is_some(), "of another plugin");
        assert!(second.turn(plugin).await.is_none(), "time is up");
        let mut waiting = Box::pin(second.turn(plugin));
        assert!(poll!(&mut waiting).is_pending());
        drop(turn);
        assert!(waiting.await.is_some());
        assert_eq!(fs::read_dir(&first.folder).unwrap().count(), 0, "nothing is left");
        let nowhere = Cache::new(Path::new("/proc/nowhere"), &[1; 32], &engine);
        assert!(nowhere.turn(plugin).await.is_none());
    }

    #[test]
    fn only_what_is_old_and_not_in_use_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine::compiler().unwrap();
        let before = Cache::new(folder.path(), &[1; 32], &engine);
        let [used, unused, new] = [b"1", b"2", b"3"].map(|bytes| ContentHash::of(bytes));
        let other_engine = folder.path().join("0123456789abcdef");
        fs::create_dir(&other_engine).unwrap();
        fs::write(other_engine.join("4.cwasm"), "").unwrap();
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        before.store(used, b"code").unwrap();
        before.store(unused, b"code").unwrap();
        let limit = SystemTime::now() + Duration::from_secs(1);
        before.store(new, b"code").unwrap();
        let file = File::open(before.path(new)).unwrap();
        file.set_modified(limit + Duration::from_secs(1)).unwrap();

        let cache = Cache::new(folder.path(), &[1; 32], &engine);
        cache.load(used).unwrap();
        cache.collect(limit);
        assert!(cache.load(used).is_some() && cache.load(new).is_some());
        assert!(cache.load(unused).is_none() && fs::read_dir(other_engine).unwrap().next().is_none());
        assert!(folder.path().join("notes.txt").exists());
    }

    fn bytes(code: Option<Code>) -> Option<Vec<u8>> {
        Some(match code? {
            Code::File(file) => fs::read(Code::path(&file)).unwrap()[..code_bytes(&file).unwrap()].to_vec(),
            Code::Bytes(bytes) => bytes,
        })
    }

    fn replace(path: &Path, bytes: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn code_comes_back_only_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine::compiler().unwrap();
        let cache = Cache::new(folder.path(), &[1; 32], &engine);
        let plugin = ContentHash::of(b"plugin");
        assert!(cache.load(plugin).is_none());
        let code: Vec<u8> = (0..2 * PIECE_BYTES + 5).map(|at| at.to_le_bytes()[0]).collect();
        cache.store(plugin, &code).unwrap();
        assert_eq!(bytes(cache.load(plugin)).unwrap(), code);

        let other = ContentHash::of(b"other");
        fs::copy(cache.path(plugin), cache.path(other)).unwrap();
        assert!(cache.load(other).is_none(), "another plugin's code");

        let other_key = Cache::new(folder.path(), &[2; 32], &engine);
        assert!(other_key.load(plugin).is_none(), "tagged with another key");

        let right = fs::read(cache.path(plugin)).unwrap();
        for changed in [0, PIECE_BYTES, code.len() - 1, code.len(), right.len() - 1] {
            let mut wrong = right.clone();
            wrong[changed] ^= 1;
            replace(&cache.path(plugin), &wrong);
            assert!(cache.load(plugin).is_none(), "byte {changed} is another");
        }
        for cut in [0, 10, SHA256_OUTPUT_LEN, right.len() - 1] {
            replace(&cache.path(plugin), &right[..cut]);
            assert!(cache.load(plugin).is_none(), "cut to {cut}");
        }
        replace(&cache.path(plugin), &right);
        assert!(cache.load(plugin).is_some());
    }

    #[test]
    fn what_only_we_can_write_runs_from_its_file_and_the_rest_from_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), &[1; 32], &engine::compiler().unwrap());
        let plugin = ContentHash::of(b"plugin");
        cache.store(plugin, b"code").unwrap();
        let path = cache.path(plugin);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
        let Some(Code::File(before)) = cache.load(plugin) else {
            panic!("it is copied");
        };
        cache.store(plugin, b"edoc").unwrap();
        assert_eq!(Code::copied(&before).unwrap(), b"code", "who has it keeps it");
        assert_eq!(&fs::read(Code::path(&before)).unwrap()[..4], b"code");
        for mode in [0o620, 0o602, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(
                matches!(cache.load(plugin), Some(Code::Bytes(code)) if code == b"edoc"),
                "{mode:o}"
            );
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(cache.load(plugin), Some(Code::File(_))), "others may read");
    }
}
