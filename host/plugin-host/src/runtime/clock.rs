//! The clock of a call, which stands still while the call waits for a turn at a site: the host makes it wait, so the
//! plugin's time limit does not run meanwhile.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

/// How long a call may wait for turns in total: with its own time limit, less than the two minutes that clients give a
/// preview. At the polite rate that is a crowd of three hundred requests to one site before it.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

/// The clock of a call, or of one request of it. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct CallClock {
    waits: Arc<watch::Sender<Waits>>,
    /// The clock of the call, if this one is of a request.
    call: Option<Arc<watch::Sender<Waits>>>,
}

/// Time spent waiting. Waits at the same time count once, so that a plugin cannot lengthen its time with many of them.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    running: u32,
    /// When the first of the running ones began.
    since: Option<Instant>,
    /// Without the running ones.
    ended: Duration,
}

/// A running wait.
#[derive(Debug)]
pub struct Wait<'a>(&'a CallClock);

/// The time limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl CallClock {
    /// The clock of a request of this call: it stands still during the request's own waits only. Those also count for
    /// the call.
    #[must_use]
    pub fn of_request(&self) -> Self {
        Self {
            waits: Arc::default(),
            call: Some(Arc::clone(self.of_call())),
        }
    }

    /// Stops the clock until the returned value is dropped.
    pub fn wait(&self) -> Wait<'_> {
        for waits in self.affected() {
            waits.send_modify(Waits::begin);
        }
        Wait(self)
    }

    /// How long it has stood still.
    pub fn waited(&self) -> Duration {
        self.waits.borrow().total()
    }

    /// How long the call may still wait.
    pub fn wait_left(&self) -> Duration {
        MAX_WAIT.saturating_sub(self.of_call().borrow().total())
    }

    /// Runs `future` for at most `limit` of this clock.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Result<F::Output, TimedOut> {
        let mut future = pin!(future);
        let mut changes = self.waits.subscribe();
        let (started, before) = (Instant::now(), self.waited());
        loop {
            let waits = *changes.borrow_and_update();
            let deadline = started + limit + waits.total().saturating_sub(before);
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep_until(deadline), if waits.running == 0 => return Err(TimedOut),
            }
        }
    }

    fn of_call(&self) -> &Arc<watch::Sender<Waits>> {
        self.call.as_ref().unwrap_or(&self.waits)
    }

    fn affected(&self) -> impl Iterator<Item = &Arc<watch::Sender<Waits>>> {
        std::iter::once(&self.waits).chain(&self.call)
    }
}

impl Waits {
    fn begin(&mut self) {
        self.running += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn end(&mut self) {
        self.running -= 1;
        if self.running == 0 {
            self.ended = self.total();
            self.since = None;
        }
    }

    fn total(&self) -> Duration {
        self.ended + self.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        for waits in self.0.affected() {
            waits.send_modify(Waits::end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn wait(clock: &CallClock, time: Duration) {
        let _waiting = clock.wait();
        tokio::time::sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_does_not_count_and_working_does() {
        let clock = CallClock::default();
        let call = async |work: Duration| {
            tokio::time::sleep(SECOND).await;
            wait(&clock, SECOND * 30).await;
            tokio::time::sleep(work).await;
        };
        assert_eq!(clock.timeout(SECOND * 5, call(SECOND * 3)).await, Ok(()));
        let started = Instant::now();
        assert_eq!(clock.timeout(SECOND * 5, call(SECOND * 9)).await, Err(TimedOut));
        assert_eq!(started.elapsed().as_secs(), 35);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once() {
        let clock = CallClock::default();
        let later = async {
            tokio::time::sleep(SECOND * 2).await;
            wait(&clock, SECOND * 3).await;
        };
        tokio::join!(wait(&clock, SECOND * 4), wait(&clock, SECOND), later);
        assert_eq!(clock.waited().as_secs(), 5);
        assert_eq!(clock.wait_left().as_secs(), 55);
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_of_a_request_do_not_lengthen_another() {
        let call = CallClock::default();
        let (first, second) = (call.of_request(), call.of_request());
        let hanging = first.timeout(SECOND * 5, std::future::pending::<()>());
        let waiting = async {
            let done = second.timeout(SECOND * 5, wait(&second, SECOND * 30)).await;
            (done, Instant::now())
        };
        let started = Instant::now();
        let timed_out = async { (hanging.await, started.elapsed().as_secs()) };
        let (timed_out, (done, _)) = tokio::join!(timed_out, waiting);
        assert_eq!((timed_out, done), ((Err(TimedOut), 5), Ok(())));
        assert_eq!((first.waited().as_secs(), call.waited().as_secs()), (0, 30));
    }
}
