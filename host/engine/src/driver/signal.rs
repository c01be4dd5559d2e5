//! Messages to the driver from the runs and jobs that it spawned.

use transfer::{Outcome, Progress, Report};

use crate::{
    driver::batch::Answer,
    model::id::{RunId, TaskId},
    state::Input,
};

pub(super) enum Signal {
    /// A run reports something.
    Reported(TaskId, RunId, Report),
    /// A run ended, with its last progress.
    Ended(TaskId, RunId, Box<Outcome>, Box<Progress>),
    /// A job ended (a save, a rename, a check of files), with the inputs that follow from it.
    Settled(Vec<Input>, Option<Answer>),
}
