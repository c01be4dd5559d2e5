//! Executes one run: forwards the transport's reports as signals and turns every end, a panic included, into an
//! outcome.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use transfer::{Failure, FailureKind, Job, Outcome, Progress, Report, Transport};

use crate::{
    driver::signal::Signal,
    model::id::{RunId, TaskId},
    resolver::{Resolved, Unresolved},
};

pub(crate) struct Runner {
    pub(crate) task: TaskId,
    pub(crate) run: RunId,
    /// `None` if no transport supports the scheme (any more).
    pub(crate) transport: Option<Arc<dyn Transport>>,
    pub(crate) events: mpsc::Receiver<Box<Report>>,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(super) signals: mpsc::Sender<Signal>,
    /// Cancelled to end a run that did not stop in time.
    pub(crate) force_stop: CancellationToken,
}

impl Runner {
    /// Runs `job` and sends its reports in order; the outcome is last. The driver drains the signals, so sending never
    /// waits for long.
    pub(crate) async fn conduct(mut self: Box<Self>, job: Box<Job>) {
        let outcome = self.run(job).await;
        self.events.close();
        while let Some(report) = self.events.recv().await {
            self.send(Signal::Reported(self.task, self.run, report)).await;
        }
        let last = self.progress.borrow().clone();
        self.send(Signal::Ended(self.task, self.run, Box::new(outcome), Box::new(last)))
            .await;
    }

    async fn run(&mut self, job: Box<Job>) -> Outcome {
        let Some(transport) = self.transport.take() else {
            let scheme = job.source.urls.first().map_or("", |url| url.scheme());
            let message = format!("this program cannot download \"{scheme}\" URLs");
            return Outcome::Failed(Failure::new(FailureKind::UnsupportedScheme, message));
        };
        let force_stop = self.force_stop.clone();
        let mut run = pin!(AssertUnwindSafe(async move { transport.run(*job).await }).catch_unwind());
        loop {
            let report = tokio::select! {
                ended = &mut run => return ended.unwrap_or_else(|panic| Outcome::Failed(defect(panic.as_ref()))),
                () = force_stop.cancelled() => return Outcome::Stopped,
                Some(report) = self.events.recv() => report,
            };
            self.send(Signal::Reported(self.task, self.run, report)).await;
        }
    }

    async fn send(&self, signal: Signal) {
        // In a box: hundreds of runs rarely send, and a future has room for its largest part.
        let _driver_ended = Box::pin(self.signals.send(signal)).await;
    }
}

/// Calls the resolver and turns a panic into a failure.
pub(crate) async fn guarded(
    asked: impl Future<Output = Result<Resolved, Unresolved>> + Send,
) -> Result<Resolved, Unresolved> {
    let outcome = AssertUnwindSafe(asked).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(defect(panic.as_ref()).into()))
}

fn defect(panic: &(dyn std::any::Any + Send)) -> Failure {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(message, "a run panicked");
    let message = format!("a defect of this program ended the run ({message}); please report it");
    Failure::new(FailureKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, F>(_future_of: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Hundreds of torrents seed at the same time, each in a run.
    #[test]
    fn a_run_takes_little_memory_besides_its_transport() {
        let bytes = size(Runner::conduct);
        assert!(bytes <= 448, "{bytes}");
        assert!(size_of::<Signal>() <= 128, "{}", size_of::<Signal>());
    }
}
