//! The cache of compiled plugins on disk. Compiled code is native code, so only our own may be run: every file ends
//! with an authentication tag made with a secret key. Unused files are deleted.
//!
//! Code is mapped from its file, so that unused code needs no memory. That is as safe as a copy while the checked bytes
//! do not change. Only our own user, who could as well read the key, can write to the file, and we never do: it is
//! created read-only under another name, and replaced and deleted by name, which does not affect mappings. A file that
//! others may write is copied instead. Truncating a mapped file crashes the service, as with any executable.

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

/// The minimum age of deleted files, so that a rollback finds the previous version's code.
const MIN_AGE: Duration = Duration::from_hours(24);

/// Delay after a start before files are deleted: which are in use is known only once all plugins are loaded.
const COLLECT_DELAY: Duration = Duration::from_mins(10);

/// How long to wait for another process that compiles the same plugin: longer than that may take.
const LOCK_TIMEOUT: Duration = MAX_WALL.saturating_add(Duration::from_secs(5));

/// Polling interval of that wait: file locks have no wait with a timeout.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Suffix of compiled code.
const SUFFIX: &str = ".cwasm";

/// Read size: large enough that system calls are cheap beside the digest.
const PIECE_BYTES: usize = 64 * 1024;

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Verified code.
#[derive(Debug)]
pub(crate) enum Code {
    /// In its file, to be mapped; the engine ignores the tag after it.
    File(File),
    /// A copy, or the compiler's output.
    Bytes(Vec<u8>),
}

impl Code {
    /// A path that opens this very file, even if it was replaced.
    pub(crate) fn path(file: &File) -> PathBuf {
        Path::new("/dev/fd").join(file.as_raw_fd().to_string())
    }

    /// A copy of the code in memory.
    pub(crate) fn copied(file: &File) -> io::Result<Vec<u8>> {
        Ok(copy(file)?.0)
    }
}

/// The digest of a plugin's bytes.
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

/// The cache for one build of the engine.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    folder: PathBuf,
    /// Hash of the engine's build and settings, part of every file name and tag.
    engine: [u8; 8],
    key: hmac::Key,
    started: Instant,
    /// The plugins loaded since the start.
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

    /// The code of a plugin, if cached and unmodified.
    pub(crate) fn load(&self, plugin: ContentHash) -> Option<Code> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(plugin);
        let file = File::open(self.path(plugin)).ok()?;
        let code = self.check(plugin, file);
        if code.is_none() {
            tracing::warn!(%plugin, "compiled plugin has been changed on the disk; compiling it again");
        }
        code
    }

    /// The code in a file, if its tag is valid.
    fn check(&self, plugin: ContentHash, file: File) -> Option<Code> {
        if is_ours_alone(&file).ok()? {
            let (digest, tag) = read(&file).ok()?;
            return self.is_tag(plugin, &digest, &tag).then_some(Code::File(file));
        }
        let (code, tag) = copy(&file).ok()?;
        let is_right = self.is_tag(plugin, &digest(&SHA256, &code), &tag);
        is_right.then_some(Code::Bytes(code))
    }

    /// Stores code that [`Cache::load`] did not find. Atomic.
    pub(crate) fn store(&self, plugin: ContentHash, code: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().suffix(SUFFIX).tempfile_in(&self.folder)?;
        file.write_all(code)?;
        file.write_all(hmac::sign(&self.key, &self.tagged(plugin, &digest(&SHA256, code))).as_ref())?;
        file.as_file().set_permissions(Permissions::from_mode(0o400))?;
        file.as_file().sync_all()?;
        file.persist(self.path(plugin))?;
        if self.started.elapsed() > COLLECT_DELAY {
            self.collect(SystemTime::now() - MIN_AGE);
        }
        Ok(())
    }

    /// Lock for compiling a plugin, among all processes that use this folder. It only avoids duplicate work: after a
    /// timeout, or without support for locks, returns `None` and the caller compiles anyway.
    pub(crate) async fn compile_lock(&self, plugin: ContentHash) -> Option<CompileLock> {
        let path = self.folder.join(format!("{plugin}.lock"));
        let waiting = async {
            loop {
                match CompileLock::take(&path) {
                    Ok(Some(turn)) => return Some(turn),
                    Ok(None) => tokio::time::sleep(LOCK_POLL_INTERVAL).await,
                    Err(error) => {
                        tracing::debug!(%error, "compiling without a lock");
                        return None;
                    }
                }
            }
        };
        tokio::time::timeout(LOCK_TIMEOUT, waiting).await.unwrap_or_default()
    }

    /// Deletes files of any engine older than `limit` that were not loaded since the start. Errors are ignored; the
    /// next run retries.
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
                    Ok(()) => tracing::debug!(path = %path.display(), "removed unused compiled code"),
                    Err(error) => tracing::warn!(%error, "unused compiled code cannot be removed"),
                }
            }
        }
    }

    fn path(&self, plugin: ContentHash) -> PathBuf {
        self.folder.join(format!("{plugin}{SUFFIX}"))
    }

    /// The authenticated message: this code, of this plugin, for this engine.
    fn tagged(&self, plugin: ContentHash, code: &Digest) -> Vec<u8> {
        [&self.engine[..], &plugin.0, code.as_ref()].concat()
    }

    fn is_tag(&self, plugin: ContentHash, code: &Digest, tag: &[u8]) -> bool {
        hmac::verify(&self.key, &self.tagged(plugin, code), tag).is_ok()
    }
}

/// Whether only our own user can change the file.
fn is_ours_alone(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(metadata.uid() == geteuid().as_raw() && metadata.mode() & OTHERS_WRITE == 0)
}

/// The length of the code in a file.
fn code_bytes(file: &File) -> io::Result<usize> {
    let code = usize::try_from(file.metadata()?.len())
        .unwrap_or(usize::MAX)
        .checked_sub(SHA256_OUTPUT_LEN);
    code.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// The code in a file, and its tag.
fn copy(file: &File) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let code_bytes = code_bytes(file)?;
    let mut code = vec![0; code_bytes + SHA256_OUTPUT_LEN];
    file.read_exact_at(&mut code, 0)?;
    let tag = code.split_off(code_bytes);
    Ok((code, tag))
}

/// The digest of the code in a file, and its tag; reads in pieces.
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

/// The lock of a process that compiles a plugin. The operating system releases it when the process ends.
#[derive(Debug)]
pub(crate) struct CompileLock {
    path: PathBuf,
    _lock: File,
}

impl CompileLock {
    /// Takes the lock, unless another process has it.
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

impl Drop for CompileLock {
    /// Waiting processes have the file open and will find the code; later ones create a new lock file.
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
        let turn = first.compile_lock(plugin).await.expect("who was killed holds nothing");
        assert!(second.compile_lock(other).await.is_some(), "of another plugin");
        assert!(second.compile_lock(plugin).await.is_none(), "time is up");
        let mut waiting = Box::pin(second.compile_lock(plugin));
        assert!(poll!(&mut waiting).is_pending());
        drop(turn);
        assert!(waiting.await.is_some());
        assert_eq!(fs::read_dir(&first.folder).unwrap().count(), 0, "nothing is left");
        let nowhere = Cache::new(Path::new("/proc/nowhere"), &[1; 32], &engine);
        assert!(nowhere.compile_lock(plugin).await.is_none());
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
