//! How many runs of `yt-dlp` go on at once, in all and for one site.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The most extractions at once. They wait for sites most of the time, and one that hangs should not stop those of others;
/// each takes some hundred MiB.
pub(crate) const MAX_EXTRACTIONS: usize = 4;

/// The most extractions for one host at once: a site that answers none of them leaves room for the others, and is not
/// asked by more clients at a time than a person would have open.
pub(crate) const MAX_EXTRACTIONS_OF_HOST: usize = 2;

/// How long an extraction waits for its place. A usual one takes some seconds; behind those that hang it is better tried
/// again later than waited for, since its caller has a place too.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The places of extractions.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    /// Only hosts for which somebody has a place or waits for one.
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The place of one extraction.
#[derive(Debug)]
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    /// The permit keeps the semaphore of its host.
    _of_host: OwnedSemaphorePermit,
}

/// No place was free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Places {
    pub(crate) fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_EXTRACTIONS)),
            hosts: Mutex::default(),
        }
    }

    /// A place for an extraction from `host`; those that wait longest are served first.
    pub(crate) async fn take(&self, host: &str) -> Result<Place, Full> {
        let of_host = self.of_host(host);
        let both = async {
            // The host's first: who waits for a busy host must not hold a place that others could use.
            let of_host = of_host.acquire_owned().await.map_err(|_| Full)?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Full)?;
            Ok(Place {
                _of_all: of_all,
                _of_host: of_host,
            })
        };
        timeout(MAX_WAIT, both).await.unwrap_or(Err(Full))
    }

    fn of_host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = hosts.get(host).and_then(Weak::upgrade) {
            return places;
        }
        hosts.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(MAX_EXTRACTIONS_OF_HOST));
        hosts.insert(host.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_site_that_hangs_leaves_room_for_the_others() {
        let places = Places::new();
        let hang = [places.take("a").await, places.take("a").await];
        assert!(hang.iter().all(Result::is_ok));
        let began = Instant::now();
        let (third, other) = tokio::join!(places.take("a"), async {
            let other = places.take("b").await;
            (other, began.elapsed())
        });
        assert_eq!(third.unwrap_err(), Full);
        assert_eq!(began.elapsed(), MAX_WAIT);
        assert!(other.0.is_ok());
        assert_eq!(other.1, Duration::ZERO, "it did not wait for the other site");
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_bounded_in_all_and_given_back() {
        let places = Places::new();
        let mut taken = Vec::new();
        for host in 0..MAX_EXTRACTIONS {
            taken.push(places.take(&host.to_string()).await.unwrap());
        }
        assert_eq!(places.take("one more").await.unwrap_err(), Full);
        taken.pop();
        places.take("one more").await.unwrap();
        drop(taken);
        for host in 0..1000 {
            places.take(&host.to_string()).await.unwrap();
        }
        assert!(places.hosts.lock().unwrap().len() <= 2);
    }
}
