//! Tells the user which of several sources of a run failed: each kind of failure of a source once, however often it is tried.

use std::{cell::RefCell, collections::HashMap};

use crate::{Failure, FailureKind, Reporter, RunEvent, SafeUrl, SourceFailure, transport::SourceFate};

/// What was reported of the sources of one run. It stays on one lane, so a plain cell suffices.
#[derive(Debug)]
pub struct SourceReports {
    /// Of the only source, the run's own failures tell.
    is_only: bool,
    reported: RefCell<HashMap<SafeUrl, FailureKind>>,
    reporter: Reporter,
}

impl SourceReports {
    /// Of a run with `count` sources.
    pub fn new(count: usize, reporter: Reporter) -> Self {
        Self {
            is_only: count < 2,
            reported: RefCell::default(),
            reporter,
        }
    }

    /// Reports that the source at `url` failed, and may be asked again.
    pub async fn failed(&self, url: &SafeUrl, failure: &Failure) {
        let is_new =
            !self.is_only && self.reported.borrow_mut().insert(url.clone(), failure.kind) != Some(failure.kind);
        if is_new {
            self.report(url, failure.clone(), SourceFate::Kept).await;
        }
    }

    /// Reports that the source at `url` is no longer used in this run.
    pub async fn dropped(&self, url: &SafeUrl, failure: Failure) {
        self.reported.borrow_mut().insert(url.clone(), failure.kind);
        self.report(url, failure, SourceFate::Dropped).await;
    }

    async fn report(&self, url: &SafeUrl, failure: Failure, fate: SourceFate) {
        let url = url.clone();
        self.reporter
            .event(RunEvent::SourceFailed(SourceFailure { url, failure, fate }))
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(count: usize) -> Vec<String> {
        let (reporter, mut reports) = Reporter::new();
        let sources = SourceReports::new(count, reporter);
        let [a, b] = ["http://a.test/f?token=1", "http://b.test/f"].map(|url| SafeUrl::parse(url).unwrap());
        let failure = |kind| Failure::new(kind, "no answer");
        sources.failed(&a, &failure(FailureKind::Timeout)).await;
        sources.failed(&a, &failure(FailureKind::Timeout)).await;
        sources.failed(&b, &failure(FailureKind::Timeout)).await;
        sources.failed(&a, &failure(FailureKind::Connect)).await;
        if count > 1 {
            sources.dropped(&a, failure(FailureKind::Connect)).await;
        }
        drop(sources);
        let mut told = Vec::new();
        while let Some(report) = reports.events.recv().await {
            let RunEvent::SourceFailed(failed) = report.event else {
                panic!("{report:?}")
            };
            told.push(failed.to_string());
        }
        told
    }

    #[tokio::test]
    async fn a_failure_is_reported_once_until_its_kind_changes_or_the_source_is_dropped() {
        let expect = [
            "http://a.test/f?… failed: no answer",
            "http://b.test/f failed: no answer",
            "http://a.test/f?… failed: no answer",
            "http://a.test/f?… is no longer used: no answer",
        ];
        assert_eq!(told(2).await, expect);
    }

    #[tokio::test]
    async fn the_only_source_is_not_reported_beside_the_failure_of_its_run() {
        assert!(told(1).await.is_empty());
    }
}
