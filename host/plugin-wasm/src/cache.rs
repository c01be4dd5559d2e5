//! Compiled plugins on the disk. Compiled code is native code, so none is used that was not written here: every file
//! begins with a tag that only the holder of the key can make.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use ring::{
    digest::{SHA256, SHA256_OUTPUT_LEN, digest},
    hmac,
};
use wasmtime::Engine;

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
    folder: PathBuf,
    /// Names the engine's build and settings; code of another one is another plugin's code.
    engine: [u8; 8],
    key: hmac::Key,
}

impl Cache {
    pub(crate) fn new(root: &Path, key: &[u8; 32], engine: &Engine) -> Self {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine = hasher.finish().to_be_bytes();
        Self {
            folder: root.join(HEXLOWER.encode(&engine)),
            engine,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// The code of a plugin, if it is here and unharmed.
    pub(crate) fn load(&self, plugin: ContentHash) -> Option<Vec<u8>> {
        let file = fs::read(self.path(plugin)).ok()?;
        let (tag, code) = file.split_at_checked(SHA256_OUTPUT_LEN)?;
        let is_ours = hmac::verify(&self.key, &self.tagged(plugin, code), tag).is_ok();
        if !is_ours {
            tracing::warn!(%plugin, "compiled plugin has been changed on the disk; compiling it again");
        }
        is_ours.then(|| code.to_vec())
    }

    /// Keeps the code of a plugin. A file is there whole or not at all.
    pub(crate) fn store(&self, plugin: ContentHash, code: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(hmac::sign(&self.key, &self.tagged(plugin, code)).as_ref())?;
        file.write_all(code)?;
        file.as_file().sync_all()?;
        file.persist(self.path(plugin))?;
        Ok(())
    }

    fn path(&self, plugin: ContentHash) -> PathBuf {
        self.folder.join(format!("{plugin}.cwasm"))
    }

    /// What the tag stands for: this code, of this plugin, for this engine.
    fn tagged(&self, plugin: ContentHash, code: &[u8]) -> Vec<u8> {
        [&self.engine[..], &plugin.0, code].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine;

    #[test]
    fn code_comes_back_only_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine::compiler().unwrap();
        let cache = Cache::new(folder.path(), &[1; 32], &engine);
        let plugin = ContentHash::of(b"plugin");
        assert_eq!(cache.load(plugin), None);
        cache.store(plugin, b"code").unwrap();
        assert_eq!(cache.load(plugin).unwrap(), b"code");

        let other = ContentHash::of(b"other");
        fs::copy(cache.path(plugin), cache.path(other)).unwrap();
        assert_eq!(cache.load(other), None, "another plugin's code");

        let other_key = Cache::new(folder.path(), &[2; 32], &engine);
        assert_eq!(other_key.load(plugin), None, "tagged with another key");

        let mut bytes = fs::read(cache.path(plugin)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(cache.path(plugin), &bytes).unwrap();
        assert_eq!(cache.load(plugin), None, "changed code");
        fs::write(cache.path(plugin), &bytes[..10]).unwrap();
        assert_eq!(cache.load(plugin), None, "cut");
    }
}
