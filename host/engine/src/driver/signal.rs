//! Messages to the driver from the runs and jobs that it spawned.

use std::path::PathBuf;

use transfer::{Outcome, Progress, Report};

use crate::{
    driver::batch::Answer,
    model::{
        file::FileState,
        id::{RunId, TaskId},
    },
    state::Input,
};

pub(super) enum Signal {
    /// A run reports something.
    Reported(TaskId, RunId, Box<Report>),
    /// A run ended, with its last progress.
    Ended(TaskId, RunId, Box<Outcome>, Box<Progress>),
    /// What a check of completed tasks' files found.
    FilesChecked(Vec<(TaskId, PathBuf, FileState)>),
    /// A job ended (a save, a rename), with the inputs that follow from it.
    Settled(Vec<Input>, Option<Answer>),
}
