//! Memory for what clients send and are sent, beyond what every request may have anyway. It is reserved before anything
//! is read or expanded, and free again when the last byte is parsed or sent: so a crowd of large requests waits, and the
//! process does not grow with it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The largest body of any route.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// What a body may have before its sender has authenticated, and without a reservation.
pub(crate) const FREE_BODY_BYTES: usize = 64 * 1024;

/// The largest answer that is not streamed.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// What an answer may have without a reservation.
pub(crate) const FREE_ANSWER_BYTES: usize = 64 * 1024;

/// All large bodies together.
const BODIES_BYTES: usize = 4 * MAX_BODY_BYTES;

/// All large answers together: one of the largest, and some beside it.
const ANSWERS_BYTES: usize = MAX_ANSWER_BYTES + MAX_ANSWER_BYTES / 2;

/// Large requests that are worked on at once, each with a tree of [`admission::json::MAX_TREE_BYTES`] at most.
const LARGE_AT_ONCE: u32 = 2;

/// The unit in which is counted.
const UNIT_BYTES: usize = 1024;

/// How long a request waits for others to be done.
const WAITING_TIME: Duration = Duration::from_secs(20);

/// Others have it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests at once; try again, or send smaller ones")]
pub(crate) struct Exhausted;

/// A part of the budget; free again when it is dropped.
pub(crate) type Share = OwnedSemaphorePermit;

/// What there is.
#[derive(Debug)]
pub(crate) struct Budget {
    bodies: Arc<Semaphore>,
    large: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bodies: Arc::new(Semaphore::new(BODIES_BYTES / UNIT_BYTES)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE as usize)),
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

/// Gives back what is more than `bytes` need.
fn trim(mut share: Share, bytes: usize) -> Share {
    let more = share.num_permits().saturating_sub(bytes.div_ceil(UNIT_BYTES));
    drop(share.split(more));
    share
}

/// Bytes together with their share.
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
    /// Room for a body of up to this many bytes.
    pub(crate) async fn body(&self, bytes: usize) -> Result<Share, Exhausted> {
        acquire(&self.bodies, units(bytes)).await
    }

    /// The turn of a large request, from before its body is parsed until its answer is there.
    pub(crate) async fn large(&self) -> Result<Share, Exhausted> {
        acquire(&self.large, 1).await
    }

    /// As `large`, for a request that is parsed into a tree (XML): no other large request is processed meanwhile.
    pub(crate) async fn largest(&self) -> Result<Share, Exhausted> {
        acquire(&self.large, LARGE_AT_ONCE).await
    }

    /// Room for the largest answer that there is.
    pub(crate) async fn answer(&self) -> Result<Share, Exhausted> {
        acquire(&self.answers, units(MAX_ANSWER_BYTES)).await
    }

    /// An answer that keeps its room until it is sent. A small one needs none, a large one that has none yet waits for it.
    pub(crate) async fn hold(&self, answer: Vec<u8>, share: Option<Share>) -> Result<Bytes, Exhausted> {
        let share = match share {
            Some(share) => trim(share, answer.len()),
            None if answer.len() <= FREE_ANSWER_BYTES => return Ok(answer.into()),
            None => acquire(&self.answers, units(answer.len().min(MAX_ANSWER_BYTES))).await?,
        };
        Ok(with_share(answer, share))
    }
}

/// Bytes that give their share back when they are dropped.
pub(crate) fn with_share(bytes: impl AsRef<[u8]> + Send + 'static, share: Share) -> Bytes {
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
        // A small one never waits, and what was reserved and not needed is there for others.
        budget.hold(vec![0; FREE_ANSWER_BYTES], None).await.unwrap();
        let less = budget.hold(vec![0; UNIT_BYTES], Some(share)).await.unwrap();
        drop(first);
        budget.hold(large(), None).await.unwrap();
        drop(less);
    }
}
