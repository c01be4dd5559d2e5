//! The pure state machine: all sources and items, and what follows from each input. It does no I/O: the driver passes
//! the time with each input, performs the effects in their order, and calls [`State::wake_at`] to know when to pass the
//! time again.
//!
//! Invariants, each with a property test:
//! - One fetch per source, one per host, and at most [`MAX_FETCHES`] are alive. Two fetches of one host begin at least
//!   [`HOST_GAP`] apart.
//! - The first round of a source downloads nothing.
//! - An entry is downloaded at most once without the user's asking: whatever its identifier becomes, in however many
//!   sources it is, and whenever the process ends. That is: no two tasks of automatic downloads share a mark, and, in
//!   sources that take each episode once, no two share an episode unless one corrects the other or has failed.
//! - A task is created only after the row that names it was saved.
//! - The saved rows, loaded again, give an equal state.

mod command;
mod dispatch;
mod load;
mod machine;
mod poll;
mod preview;
mod round;
mod step;
mod view;

#[cfg(test)]
mod tests;

use jiff::Timestamp;

pub use {
    load::Loaded,
    machine::State,
    poll::{HOST_GAP, MAX_BACKOFF, MAX_FETCHES, MAX_RETRY_AFTER},
    round::{MAX_ITEMS, MAX_PRUNED, MAX_WAITING},
    step::{
        Action, Command, CommandError, Created, Dispatch, Effect, Event, Fetch, Fetched, Input, Row, RunId, Target,
    },
};

impl State {
    /// Handles `input` at `now` and appends the effects to perform. A refused command has changed nothing.
    pub fn apply(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let reply = self.handle(now, input, effects);
        self.start_due(now, effects);
        self.flush(effects);
        reply
    }

    fn handle(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        match input {
            Input::Command(command) => return self.command(now, command, effects),
            Input::Fetched(source, run, fetched) => self.fetched(now, source, run, fetched),
            Input::Created(task, created) => self.created(now, task, created),
            Input::TaskDeleted(task) => self.task_deleted(task),
            Input::TaskChanged(task, has_failed) => self.task_changed(task, has_failed),
            Input::Clock => self.recover_schedule(now),
        }
        Ok(())
    }
}
