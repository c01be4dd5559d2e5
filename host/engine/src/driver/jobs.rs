//! The jobs that the driver spawned. Each ends with a signal; the engine ends only when all have.

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::{
    driver::{batch::Answer, signal::Signal},
    state::Input,
};

pub(super) struct Jobs {
    pub(super) tracker: TaskTracker,
    pub(super) signal: mpsc::Sender<Signal>,
    /// Jobs whose signal has not arrived.
    unsettled: usize,
}

impl Jobs {
    pub(super) fn new(signal: mpsc::Sender<Signal>) -> Self {
        Self {
            tracker: TaskTracker::new(),
            signal,
            unsettled: 0,
        }
    }

    pub(super) fn are_settled(&self) -> bool {
        self.unsettled == 0
    }

    pub(super) fn settled(&mut self) {
        self.unsettled -= 1;
    }

    /// Spawns `work`; its inputs come back as a signal.
    pub(super) fn spawn(&mut self, work: impl Future<Output = Vec<Input>> + Send + 'static, answer: Option<Answer>) {
        self.unsettled += 1;
        let signal = self.signal.clone();
        self.tracker.spawn(async move {
            let inputs = work.await;
            let _driver_ended = signal.send(Signal::Settled(inputs, answer)).await;
        });
    }

    /// [`Jobs::spawn`] on a thread that may block.
    pub(super) fn spawn_blocking(
        &mut self,
        work: impl FnOnce() -> Vec<Input> + Send + 'static,
        answer: Option<Answer>,
    ) {
        let work = async { tokio::task::spawn_blocking(work).await.unwrap_or_default() };
        self.spawn(work, answer);
    }
}
