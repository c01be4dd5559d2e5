//! Short-lived bytes in memory, each taken once: uploads until a call names them, exports until they are fetched.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

const TTL: Duration = Duration::from_mins(5);

#[derive(Debug)]
pub(crate) struct Blobs {
    waiting: Mutex<HashMap<String, (Instant, Bytes)>>,
    max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Blobs {
    /// Keeps at most `max` at once.
    pub(crate) fn new(max: usize) -> Self {
        let waiting = Mutex::default();
        Self { waiting, max }
    }

    /// Keeps `bytes` under `name`.
    pub(crate) fn keep(&self, name: String, bytes: Bytes) -> Result<(), Full> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        waiting.retain(|_, (until, _)| *until > now);
        if waiting.len() >= self.max {
            return Err(Full);
        }
        waiting.insert(name, (now + TTL, bytes));
        Ok(())
    }

    /// Removes and returns what was stored under `name`.
    pub(crate) fn take(&self, name: &str) -> Option<Bytes> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, bytes) = waiting.remove(name)?;
        (until > Instant::now()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_blob_is_taken_once_and_not_after_its_time() {
        let blobs = Blobs::new(3);
        blobs.keep("a".into(), Bytes::from_static(b"1")).unwrap();
        assert_eq!(blobs.take("a"), Some(Bytes::from_static(b"1")));
        assert_eq!(blobs.take("a"), None);
        blobs.keep("b".into(), Bytes::new()).unwrap();
        tokio::time::advance(TTL).await;
        assert_eq!(blobs.take("b"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_blobs_are_bounded_and_make_room_with_time() {
        let blobs = Blobs::new(3);
        for index in 0..3 {
            blobs.keep(index.to_string(), Bytes::new()).unwrap();
        }
        assert_eq!(blobs.keep("more".into(), Bytes::new()), Err(Full));
        tokio::time::advance(TTL).await;
        assert_eq!(blobs.keep("more".into(), Bytes::new()), Ok(()));
    }
}
