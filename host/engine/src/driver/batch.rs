//! The rows and file operations of one turn of the loop, and the callers that wait until they are on disk.

use std::{error::Error as _, path::PathBuf};

use tokio::sync::oneshot;
use transfer::{Failure, FailureKind, Receipt, Recorded};

use crate::{
    model::error::CommandError,
    model::file,
    model::id::TaskId,
    state::{Input, Rename, Reply, Row},
};

/// Rows to save together, the callers to answer and the runs to continue once they are on disk, and the file operations
/// that are allowed then.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<Row>,
    pub(super) answers: Vec<Answer>,
    pub(super) receipts: Vec<Receipt>,
    pub(super) work: FileWork,
}

/// File operations that must not start before the rows are on disk.
#[derive(Default)]
pub(super) struct FileWork {
    pub(super) deletions: Vec<(u64, Vec<PathBuf>)>,
    pub(super) renames: Vec<Rename>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.answers.is_empty() && self.receipts.is_empty() && self.work.is_empty()
    }
}

impl FileWork {
    pub(super) fn is_empty(&self) -> bool {
        self.deletions.is_empty() && self.renames.is_empty()
    }

    pub(super) async fn perform(self) -> Vec<Input> {
        if self.is_empty() {
            return Vec::new();
        }
        let working = tokio::task::spawn_blocking(move || {
            file::remove(self.deletions.iter().flat_map(|(_, paths)| paths));
            let deleted = self
                .deletions
                .into_iter()
                .map(|(serial, _)| Input::FilesDeleted(serial));
            let renamed = self
                .renames
                .into_iter()
                .map(|Rename { task, free, moves }| Input::Renamed(task, file::rename(free.as_deref(), &moves)));
            deleted.chain(renamed).collect()
        });
        working.await.unwrap_or_default()
    }

    /// Fails the operations, because the rows could not be saved.
    pub(super) fn fail(self, reason: &str) -> impl Iterator<Item = Input> {
        let refused = move |rename: Rename| Input::Renamed(rename.task, Err(CommandError::NotSaved(reason.to_owned())));
        self.renames.into_iter().map(refused)
    }
}

/// Tells the waiting runs whether their report was saved. A run ends if it was not.
pub(super) fn send_receipts(receipts: Vec<Receipt>, saved: Result<(), &str>) {
    for receipt in receipts {
        receipt.give(match saved {
            Ok(()) => Ok(Recorded::Done),
            Err(reason) => Err(Failure::new(
                FailureKind::DiskIo,
                format!("the state of the download could not be saved: {reason}"),
            )),
        });
    }
}

type Outcome = Result<Reply, CommandError>;

/// A caller's answer. Sent on drop, so that no path of the driver can forget it.
pub(crate) struct Answer {
    waiting: Option<(oneshot::Sender<Outcome>, Outcome)>,
    /// Whether even a refusal is true only once it is saved: the row still says that the rename is to be carried out.
    is_settled: bool,
}

impl Answer {
    pub(super) fn new(reply: oneshot::Sender<Outcome>, outcome: Outcome) -> Self {
        Self {
            waiting: Some((reply, outcome)),
            is_settled: false,
        }
    }

    /// The task whose rename the answer waits for.
    pub(super) fn renaming(&self) -> Option<TaskId> {
        match self.waiting {
            Some((_, Ok(Reply::Renaming(task)))) => Some(task),
            _ => None,
        }
    }

    /// Settles the rename that the answer waits for.
    pub(super) fn set(&mut self, outcome: Outcome) {
        if let Some((_, answer)) = &mut self.waiting {
            *answer = outcome;
        }
        self.is_settled = true;
    }

    /// The change could not be saved. An error that changed nothing stays.
    pub(super) fn fail(&mut self, reason: &str) {
        if let Some((_, answer)) = &mut self.waiting
            && (answer.is_ok() || self.is_settled)
        {
            *answer = Err(CommandError::NotSaved(reason.to_owned()));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some((reply, outcome)) = self.waiting.take() {
            let _nobody_waits = reply.send(outcome);
        }
    }
}

/// An error and its cause in one line, for people.
pub(super) fn reason(error: &store::WriteError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(outcome: Outcome, settled: Option<Outcome>) -> Outcome {
        let (reply, answered) = oneshot::channel();
        let mut answer = Answer::new(reply, outcome);
        if let Some(outcome) = settled {
            answer.set(outcome);
        }
        answer.fail("the disk is full");
        drop(answer);
        answered.blocking_recv().expect("an answer is sent when it is dropped")
    }

    #[test]
    fn what_could_not_be_saved_is_neither_done_nor_refused() {
        let not_saved = Err(CommandError::NotSaved("the disk is full".to_owned()));
        assert_eq!(answered(Ok(Reply::Done), None), not_saved);
        let taken = || Err(CommandError::TargetExists("taken.bin".into()));
        // The row still has the rename, which the next start carries out.
        assert_eq!(answered(Ok(Reply::Done), Some(taken())), not_saved);
        // This one never reached a row.
        assert_eq!(answered(taken(), None), taken());
    }
}
