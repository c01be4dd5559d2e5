//! A process-wide memory budget for large request and response bodies. Bytes are reserved before a body is read or a
//! response is built, and released after the last byte is parsed or sent: many large requests wait for each other
//! instead of growing the process.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Applies to every route.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// A body up to this size needs neither authentication nor a reservation.
pub const FREE_BODY_BYTES: usize = 64 * 1024;

/// Applies to responses that are not streamed.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A response up to this size needs no reservation.
pub const FREE_ANSWER_BYTES: usize = 64 * 1024;

/// For all large bodies together: what is waiting to be parsed while two are ([`LARGE_AT_ONCE`]), and one more.
const BODIES_BYTES: usize = 3 * MAX_BODY_BYTES;

/// For all large responses together: one of the largest size and some smaller ones.
const ANSWERS_BYTES: usize = MAX_ANSWER_BYTES + MAX_ANSWER_BYTES / 2;

/// Large requests processed concurrently; the tree of each takes up to [`crate::json::MAX_TREE_BYTES`].
const LARGE_AT_ONCE: usize = 2;

/// Semaphore permits count in this unit.
const UNIT_BYTES: usize = 1024;

/// How long a request waits for a reservation before it is refused.
const WAITING_TIME: Duration = Duration::from_secs(20);

/// No reservation became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests at once; try again, or send smaller ones")]
pub struct Exhausted;

/// A reservation; released when dropped.
pub type Share = OwnedSemaphorePermit;

/// What is left of the budget. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget {
    bodies: Arc<Semaphore>,
    large: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bodies: Arc::new(Semaphore::new(BODIES_BYTES / UNIT_BYTES)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            answers: Arc::new(Semaphore::new(ANSWERS_BYTES / UNIT_BYTES)),
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

async fn acquire(from: &Arc<Semaphore>, count: u32) -> Result<Share, Exhausted> {
    let acquired = timeout(WAITING_TIME, Arc::clone(from).acquire_many_owned(count)).await;
    acquired.map_err(|_| Exhausted)?.map_err(|_| Exhausted)
}

/// Releases what exceeds `bytes`.
fn trim(mut share: Share, bytes: usize) -> Share {
    let more = share.num_permits().saturating_sub(bytes.div_ceil(UNIT_BYTES));
    drop(share.split(more));
    share
}

/// Bytes that own their reservation.
struct Held<T> {
    bytes: T,
    _share: Share,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Budget {
    /// Reserves a body of up to this many bytes.
    pub async fn body(&self, bytes: usize) -> Result<Share, Exhausted> {
        acquire(&self.bodies, units(bytes)).await
    }

    /// Limits concurrency of large requests; held from before parsing until the response is built.
    pub async fn large(&self) -> Result<Share, Exhausted> {
        acquire(&self.large, 1).await
    }

    /// Reserves a response of the largest size.
    pub async fn answer(&self) -> Result<Share, Exhausted> {
        acquire(&self.answers, units(MAX_ANSWER_BYTES)).await
    }

    /// Attaches a reservation to a response until it is sent. A small response needs none; a large one without `share`
    /// waits for it.
    pub async fn hold(&self, mut answer: Vec<u8>, share: Option<Share>) -> Result<Bytes, Exhausted> {
        let share = match share {
            Some(share) => trim(share, answer.len()),
            None if answer.len() <= FREE_ANSWER_BYTES => return Ok(answer.into()),
            None => acquire(&self.answers, units(answer.len().min(MAX_ANSWER_BYTES))).await?,
        };
        // A vector grows by doubling; what is reserved is its length.
        answer.shrink_to_fit();
        Ok(with_share(answer, share))
    }
}

/// Bytes that release the reservation when dropped.
pub fn with_share(bytes: impl AsRef<[u8]> + Send + 'static, share: Share) -> Bytes {
    let length = bytes.as_ref().len();
    Bytes::from_owner(Held {
        bytes,
        _share: trim(share, length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_free_again_when_it_was_sent() {
        let budget = Budget::default();
        let large = || vec![0; MAX_ANSWER_BYTES / 2];
        let first = budget.hold(large(), None).await.unwrap();
        let share = budget.answer().await.unwrap();
        assert_eq!(budget.hold(large(), None).await, Err(Exhausted));
        // A small response never waits, and the unused part of a reservation is released.
        budget.hold(vec![0; FREE_ANSWER_BYTES], None).await.unwrap();
        let less = budget.hold(vec![0; UNIT_BYTES], Some(share)).await.unwrap();
        drop(first);
        budget.hold(large(), None).await.unwrap();
        drop(less);
    }
}
