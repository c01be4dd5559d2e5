//! The pure state machine: all tasks, queues, groups and settings, and what follows from each input. It does no I/O:
//! the driver passes the time with each input and performs the effects it returns.
//!
//! Invariants, each with a property test:
//! - A task has at most one live run. A task that was asked to stop keeps its run, and with it its files and its slot,
//!   until the run has ended; so there are never two writers of one file.
//! - No run starts while the settings' or its queue's limit is reached.
//! - No run of an account starts while its site's limits for the account are reached.
//! - No task of a running queue waits while all of these leave room (unless a boosted task runs alone): tasks that wait
//!   for an account delay no others.
//! - No two unfinished tasks have reserved one path, and none that of a group's directory. No two groups that were made
//!   in directories of their own have the same one while there are places.
//! - No more tasks seed at once than the settings allow, none waits for a slot while there is one, and none seeds whose limits
//!   are reached.
//! - A task that waits for a login is pending again after each login that meets its need and after no other one, however
//!   many wait and whenever the process ends; one that its plugin refuses again waits for the next login.
//! - The saved rows, loaded again, give an equal state.

mod account;
mod change;
mod command;
mod create;
mod load;
mod login;
mod model;
mod queue;
mod resolve;
mod run;
mod seeding;
mod slots;
mod start;
mod step;
mod tasks;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::civil::DateTime;

use crate::model::{
    error::CommandError,
    id::Timestamp,
    task::{After, Phase},
};

pub(crate) use step::SECRETS_DROPPED;
pub use {
    crate::model::file::{FileState, Move},
    load::Loaded,
    model::State,
    step::{Command, Effect, Input, LimitScope, Rename, Reply, Resolve, Row, Start},
};

impl State {
    /// Handles `input` at `now` and appends the effects to perform. A refused command has changed nothing.
    pub fn apply(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<Reply, CommandError> {
        self.begin_day(now);
        let reply = self.handle(now, input, effects);
        self.resume_after_login();
        self.correct_waits();
        self.settle_boost();
        self.fill_slots(effects);
        self.end_seeds(effects);
        self.fill_seeds(effects);
        self.flush(effects);
        reply
    }

    /// Says how long the engine has run, in front of each input: time that only passes, unlike the clock's, for what counts
    /// how long something lasts.
    pub fn set_uptime(&mut self, uptime: Duration) {
        self.uptime = self.uptime.max(uptime);
    }

    /// Whether an earlier input has begun something for so many tasks that the next inputs finish it.
    pub fn has_work_left(&self) -> bool {
        self.is_resuming() || self.has_stale_waits()
    }

    fn handle(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<Reply, CommandError> {
        match input {
            Input::Command(command) => return self.command(now, command, effects),
            Input::Resolved(task, run, outcome, places) => {
                self.resolved(now, (task, run), (outcome, &places), effects);
            }
            Input::Reserved(task, run, path, total) => self.reserved(task, run, path, total)?,
            Input::Landing(task, run, landing) => self.landing(task, run, landing),
            Input::LandingLookedFor(task, found) => self.landing_looked_for(now, task, found),
            Input::Progressed(samples) => self.progressed(samples, effects),
            Input::Checkpoint => self.checkpoint(),
            Input::Ended(task, run, outcome) => self.ended(now, (task, run), outcome, effects),
            Input::Renamed(task, outcome) => self.renamed(task, outcome)?,
            Input::FilesDeleted(serial) => self.files_deleted(serial),
            Input::FilesLookedFor(files) => self.files_looked_for(files),
            Input::Clock(local) => self.clock(now, local, effects),
            Input::NotSaved(rows) => self.changes.keep_unsaved(rows),
            Input::SaveAgain => self.save_again(),
            Input::Discard(command, leftovers) => {
                self.leftovers = leftovers;
                let reply = self.command(now, command, effects);
                self.leftovers.clear();
                return reply;
            }
            Input::LeftoversListed(task, files) => self.leftovers_listed(task, files),
            Input::Shutdown => self.close(effects),
        }
        Ok(Reply::Done)
    }

    fn clock(&mut self, now: Timestamp, local: DateTime, effects: &mut Vec<Effect>) {
        // No retry waits longer; one that would was scheduled by a clock that was ahead.
        let latest = now.after(run::LONGEST_SERVER_WAIT);
        let due = self.index.retries.iter().filter(|(at, _)| *at <= now || *at > latest);
        let due: Vec<_> = due.map(|(_, serial)| *serial).collect();
        for serial in due {
            self.edit(serial, |task| task.phase = Phase::Pending);
        }
        self.act_on_schedules(local, effects);
        self.act_on_turtle(local, effects);
    }

    fn close(&mut self, effects: &mut Vec<Effect>) {
        self.is_closing = true;
        for serial in self.index.active.clone() {
            self.stop_run(serial, After::Requeue, effects);
        }
        self.suspend_seeds(effects);
        self.checkpoint();
    }
}
