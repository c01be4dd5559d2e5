//! The persistent storage of plugins: small values by key, in the database, within limits.

use std::time::Duration;

use market::Identity;
use store::{
    ReadError, Store, WriteError,
    sql::{self, OptionalExtension as _},
};
use transfer::ByteCount;

use crate::runtime::now_ms;

/// The longest key in bytes.
const MAX_KEY_BYTES: usize = 256;

/// The longest value in bytes.
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// How many values a plugin may have.
const MAX_KEYS: i64 = 256;

/// The storage of one plugin.
#[derive(Debug, Clone)]
pub struct Storage {
    store: Store,
    plugin: Identity,
    max_bytes: u64,
}

/// Why a value was not stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("a key has 1 to {MAX_KEY_BYTES} bytes, not {0}")]
    Key(usize),
    #[error("a value has at most {}, not {}", ByteCount(MAX_VALUE_BYTES as u64), ByteCount(*.0 as u64))]
    Value(usize),
    #[error("a plugin remembers at most {MAX_KEYS} values and {}", ByteCount(*max_bytes))]
    Full { max_bytes: u64 },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Storage {
    pub(crate) fn new(store: Store, plugin: Identity, max_bytes: u64) -> Self {
        Self {
            store,
            plugin,
            max_bytes,
        }
    }

    /// The value of a key, unless it has expired.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let (plugin, key, now) = (self.plugin.to_string(), key.to_owned(), now_ms());
        let query = "SELECT value FROM plugin_storage
                     WHERE identity = ?1 AND key = ?2 AND (expires_ms IS NULL OR expires_ms > ?3)";
        let read = move |connection: &sql::Connection| {
            connection
                .query_row(query, (plugin, key, now), |row| row.get(0))
                .optional()
        };
        Ok(self.store.read(read).await?)
    }

    /// Stores a value, for `lifetime` if given. Beyond the quota it is refused; nothing is evicted.
    pub async fn set(&self, key: &str, value: Vec<u8>, lifetime: Option<Duration>) -> Result<(), StorageError> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(StorageError::Key(key.len()));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(StorageError::Value(value.len()));
        }
        let (plugin, key, now, max_bytes) = (self.plugin.to_string(), key.to_owned(), now_ms(), self.max_bytes);
        let write = move |transaction: &sql::Transaction<'_>| {
            let expired = "DELETE FROM plugin_storage WHERE identity = ?1 AND expires_ms <= ?2";
            transaction.prepare_cached(expired)?.execute((&plugin, now))?;
            let others = "SELECT count(*), coalesce(sum(length(key) + length(value)), 0) FROM plugin_storage
                          WHERE identity = ?1 AND key <> ?2";
            let (keys, bytes): (i64, i64) = transaction
                .prepare_cached(others)?
                .query_row((&plugin, &key), |row| Ok((row.get(0)?, row.get(1)?)))?;
            let added = u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX);
            if keys >= MAX_KEYS || u64::try_from(bytes).unwrap_or(0) + added > max_bytes {
                return Ok(false);
            }
            let lifetime_ms = lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX));
            let expires_ms = lifetime_ms.map(|lifetime_ms| now.saturating_add(lifetime_ms));
            let insert =
                "INSERT OR REPLACE INTO plugin_storage (identity, key, value, expires_ms) VALUES (?1, ?2, ?3, ?4)";
            transaction
                .prepare_cached(insert)?
                .execute((plugin, key, value, expires_ms))?;
            Ok(true)
        };
        let has_room = self.store.write(write).await?;
        has_room.then_some(()).ok_or(StorageError::Full { max_bytes })
    }

    /// Deletes a value.
    pub async fn remove(&self, key: &str) -> Result<(), StorageError> {
        let (plugin, key) = (self.plugin.to_string(), key.to_owned());
        let delete = "DELETE FROM plugin_storage WHERE identity = ?1 AND key = ?2";
        self.store
            .write(move |transaction| transaction.prepare_cached(delete)?.execute((plugin, key)))
            .await?;
        Ok(())
    }

    /// The keys that begin with `prefix`, in order.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let (plugin, prefix, now) = (self.plugin.to_string(), prefix.to_owned(), now_ms());
        let query = "SELECT key FROM plugin_storage
                     WHERE identity = ?1 AND substr(key, 1, length(?2)) = ?2 AND (expires_ms IS NULL OR expires_ms > ?3)
                     ORDER BY key";
        let read = move |connection: &sql::Connection| {
            let mut statement = connection.prepare_cached(query)?;
            statement.query_map((plugin, prefix, now), |row| row.get(0))?.collect()
        };
        Ok(self.store.read(read).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(store: &Store, plugin: &str) -> Storage {
        Storage::new(store.clone(), plugin.parse().unwrap(), 100 * 1024)
    }

    fn store() -> Store {
        Store::in_memory(&[crate::MIGRATIONS]).unwrap()
    }

    #[tokio::test]
    async fn a_plugin_finds_its_own_values_only() {
        let store = store();
        let (mine, other) = (storage(&store, "a@b"), storage(&store, "c@d"));
        mine.set("page/1", vec![1], None).await.unwrap();
        mine.set("page/2", vec![2], None).await.unwrap();
        mine.set("page/2", vec![3], None).await.unwrap();
        assert_eq!(mine.get("page/2").await.unwrap(), Some(vec![3]));
        assert_eq!(mine.keys("page/").await.unwrap(), ["page/1", "page/2"]);
        assert_eq!(other.get("page/2").await.unwrap(), None);
        other.remove("page/2").await.unwrap();
        assert!(other.keys("").await.unwrap().is_empty());
        mine.remove("page/2").await.unwrap();
        assert_eq!(mine.keys("").await.unwrap(), ["page/1"]);
    }

    #[tokio::test]
    async fn what_has_expired_is_neither_found_nor_counted() {
        let store = store();
        let storage = storage(&store, "a@b");
        storage
            .set("old", vec![0; 64 * 1024], Some(Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(storage.get("old").await.unwrap(), None);
        assert!(storage.keys("").await.unwrap().is_empty());
        storage
            .set("new", vec![0; 64 * 1024], Some(Duration::MAX))
            .await
            .unwrap();
        assert!(storage.get("new").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn every_limit_refuses_and_pushes_nothing_out() {
        let store = store();
        let storage = storage(&store, "a@b");
        assert!(matches!(storage.set("", vec![], None).await, Err(StorageError::Key(0))));
        let long = vec![0; MAX_VALUE_BYTES + 1];
        assert!(matches!(
            storage.set("k", long, None).await,
            Err(StorageError::Value(_))
        ));
        storage.set("big", vec![1; MAX_VALUE_BYTES], None).await.unwrap();
        let second = storage.set("second", vec![1; MAX_VALUE_BYTES], None).await;
        assert!(matches!(second, Err(StorageError::Full { .. })));
        storage.set("big", vec![2; MAX_VALUE_BYTES], None).await.unwrap();
        for key in 1..MAX_KEYS {
            storage.set(&format!("key{key}"), vec![], None).await.unwrap();
        }
        assert!(matches!(
            storage.set("more", vec![], None).await,
            Err(StorageError::Full { .. })
        ));
        assert_eq!(storage.get("big").await.unwrap().unwrap()[0], 2);
    }
}
