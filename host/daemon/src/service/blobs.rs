//! Short-lived bytes in memory, each taken once: uploads until a call names them, exports until they are fetched.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

const TTL: Duration = Duration::from_mins(5);

/// With the largest allowed body each, this is 128 MiB.
const MAX_BLOBS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Blobs(Mutex<HashMap<String, (Instant, Bytes)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Blobs {
    /// Keeps `bytes` under `name`.
    pub(crate) fn keep(&self, name: String, bytes: Bytes) -> Result<(), Full> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        waiting.retain(|_, (until, _)| *until > now);
        if waiting.len() >= MAX_BLOBS {
            return Err(Full);
        }
        waiting.insert(name, (now + TTL, bytes));
        Ok(())
    }

    /// Removes and returns what was stored under `name`.
    pub(crate) fn take(&self, name: &str) -> Option<Bytes> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, bytes) = waiting.remove(name)?;
        (until > Instant::now()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_blob_is_taken_once_and_not_after_its_time() {
        let blobs = Blobs::default();
        blobs.keep("a".into(), Bytes::from_static(b"1")).unwrap();
        assert_eq!(blobs.take("a"), Some(Bytes::from_static(b"1")));
        assert_eq!(blobs.take("a"), None);
        blobs.keep("b".into(), Bytes::new()).unwrap();
        tokio::time::advance(TTL).await;
        assert_eq!(blobs.take("b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_blobs_are_bounded_and_make_room_with_time() {
        let blobs = Blobs::default();
        for index in 0..MAX_BLOBS {
            blobs.keep(index.to_string(), Bytes::new()).unwrap();
        }
        assert_eq!(blobs.keep("more".into(), Bytes::new()), Err(Full));
        tokio::time::advance(TTL).await;
        assert_eq!(blobs.keep("more".into(), Bytes::new()), Ok(()));
    }
}
