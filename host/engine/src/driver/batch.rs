//! What one turn of the loop leaves for the disk, and the callers that wait for it.

use std::{error::Error as _, path::PathBuf};

use tokio::sync::oneshot;

use crate::{
    error::CommandError,
    file,
    id::TaskId,
    state::{Input, Reply, Row},
};

/// Rows to save together, the callers to answer once they are on disk, and the files that may go then.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<Row>,
    pub(super) answers: Vec<Answer>,
    pub(super) deletions: Vec<(u64, Vec<PathBuf>)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.answers.is_empty() && self.deletions.is_empty()
    }
}

type Outcome = Result<Reply, CommandError>;

/// A caller's answer. It is given when the value is dropped, so that no path of the driver can forget it.
pub(crate) struct Answer(Option<(oneshot::Sender<Outcome>, Outcome)>);

impl Answer {
    pub(super) fn new(reply: oneshot::Sender<Outcome>, outcome: Outcome) -> Self {
        Self(Some((reply, outcome)))
    }

    /// The task whose rename the answer waits for.
    pub(super) fn renaming(&self) -> Option<TaskId> {
        match self.0 {
            Some((_, Ok(Reply::Renaming(task)))) => Some(task),
            _ => None,
        }
    }

    pub(super) fn set(&mut self, outcome: Outcome) {
        if let Some((_, answer)) = &mut self.0 {
            *answer = outcome;
        }
    }

    /// The change could not be saved. What was refused anyway stays refused.
    pub(super) fn fail(&mut self, reason: &str) {
        if let Some((_, answer @ Ok(_))) = &mut self.0 {
            *answer = Err(CommandError::NotSaved(reason.to_owned()));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some((reply, outcome)) = self.0.take() {
            let _nobody_waits = reply.send(outcome);
        }
    }
}

/// Removes the files of deleted tasks.
pub(super) async fn delete_files(deletions: Vec<(u64, Vec<PathBuf>)>) -> Vec<Input> {
    if deletions.is_empty() {
        return Vec::new();
    }
    let removing = tokio::task::spawn_blocking(move || {
        for (_, paths) in &deletions {
            file::remove(paths);
        }
        deletions
            .into_iter()
            .map(|(serial, _)| Input::FilesDeleted(serial))
            .collect()
    });
    removing.await.unwrap_or_default()
}

/// An error and its cause in one line, for people.
pub(super) fn reason(error: &store::WriteError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
