//! How jobs begin: by a finished task, or by a command.

use std::sync::Arc;

use engine::{Phase, Queue, Snapshot, Task};
use jiff::{Timestamp, tz::TimeZone};
use post::{
    job::{Input, JobError, JobId, MAX_FILES, Passwords, Record, Step, View},
    rename::Source,
};
use tokio::time::Instant;
use transfer::{GivenBy, Secret};

use crate::{
    driver::{CHANGE_INTERVAL, Driver, Error, MARK_DELAY, REVIEW_INTERVAL, Subject},
    plan::{self, Download, Plan},
    rows::About,
};

impl Driver {
    /// Begins the job that follows a task, if one does.
    pub(super) async fn completed(&mut self, task: &Arc<Task>) {
        if self.follow(task, None).await {
            let _is_retried = self.save().await;
        } else {
            let at = Instant::now() + MARK_DELAY;
            self.unsaved.save_at.get_or_insert(at);
        }
    }

    /// Looks for tasks whose completion event was missed: before the start, or because the subscriber lagged.
    pub(super) async fn catch_up(&mut self) {
        // An engine that has ended has nothing to say.
        let Ok(snapshot) = self.parts.engine.snapshot().await else {
            return;
        };
        // As the tasks are in this snapshot: what a job waited for gets no job of its own.
        self.review(Some(&snapshot)).await;
        let looked = &self.unsaved.batch.looked;
        let is_missed = |task: &&Arc<Task>| {
            let at = completed_ms(task).filter(|_| task.phase == Phase::Completed);
            at.is_some_and(|at| !looked.covers(&task.id.to_string(), at))
        };
        let mut missed: Vec<_> = snapshot.tasks.iter().filter(is_missed).collect();
        missed.sort_by_key(|task| completed_ms(task));
        for task in missed {
            self.follow(task, Some(&snapshot)).await;
        }
        let _is_retried = self.save().await;
    }

    /// Looks again at the jobs that wait for files.
    pub(super) async fn review(&mut self, snapshot: Option<&Snapshot>) {
        let waiting = self.state.views().filter(|view| view.record.is_awaiting());
        let waiting: Vec<_> = waiting.map(|view| view.record.clone()).collect();
        self.review_at = (!waiting.is_empty()).then(|| Instant::now() + REVIEW_INTERVAL);
        if waiting.is_empty() {
            return;
        }
        let all = match snapshot {
            Some(snapshot) => downloads(snapshot),
            None => match self.parts.engine.snapshot().await {
                Ok(snapshot) => downloads(&snapshot),
                Err(_) => return,
            },
        };
        for record in waiting {
            let id = record.id;
            if let Err(error) = self.arrive(record, &all) {
                tracing::warn!(job = id.0, %error, "a job does not go on with the files that came");
                let _is_gone = self.apply(Input::Unusable(id, error.to_string()));
            }
        }
        let _is_retried = self.save().await;
    }

    /// Looks at them as soon as that may be: what comes in between is looked at together.
    pub(super) fn review_soon(&mut self) {
        let soon = Instant::now() + CHANGE_INTERVAL;
        self.review_at = Some(self.review_at.map_or(soon, |at| at.min(soon)));
    }

    fn arrive(&mut self, record: Record, all: &[Download]) -> Result<(), JobError> {
        let id = record.id;
        let Some(about) = self.about.get_mut(&id) else {
            return Ok(());
        };
        let mut plan = plan::arrived(&record, &about.tasks, all);
        plan.tasks.truncate(MAX_FILES);
        if about.tasks != plan.tasks {
            about.tasks = plan.tasks;
            about.arrived_ms = Timestamp::now().as_millisecond();
        }
        let mut steps = record.steps;
        if plan.awaits.is_empty() {
            steps = plan::concerning(&steps, &plan.files);
        }
        if steps.is_empty() {
            // With what was deleted, the reason for the job is gone.
            self.apply(Input::Cancel(id))?;
            return self.apply(Input::Forget(id));
        }
        let (files, awaits) = (plan.files, plan.awaits);
        self.apply(Input::Arrived {
            id,
            files,
            steps,
            awaits,
        })
    }

    /// Whether a job works on a task's file as it was completed at `at`.
    fn has_job_since(&self, task: &str, at: i64) -> bool {
        self.about.values().any(|about| about.is_of(task, at))
    }

    /// Adds the job that follows a task, if one does, and notes that it was looked at. It is looked at once, however often it
    /// is said that it was completed.
    async fn follow(&mut self, task: &Arc<Task>, snapshot: Option<&Snapshot>) -> bool {
        let (id, at) = (task.id.to_string(), completed_ms(task).unwrap_or(i64::MAX));
        if self.unsaved.batch.looked.has_seen(&id, at) || self.has_job_since(&id, at) {
            self.unsaved.is_dirty |= self.unsaved.batch.looked.note(&id, at);
            return false;
        }
        let is_added = self.try_follow(task, snapshot).await.unwrap_or_else(|error| {
            tracing::warn!(task = %task.id, %error, "nothing follows a finished download");
            false
        });
        self.unsaved.is_dirty |= self.unsaved.batch.looked.note(&id, at);
        is_added
    }

    async fn try_follow(&mut self, task: &Arc<Task>, snapshot: Option<&Snapshot>) -> Result<bool, Error> {
        let steps = self.chain_of(task).await?;
        if steps.is_empty() {
            return Ok(false);
        }
        let done = Download::of(task);
        let all = match snapshot {
            Some(snapshot) => downloads(snapshot),
            None => downloads(&self.parts.engine.snapshot().await.map_err(|_| Error::Closed)?),
        };
        let Some(plan) = plan::plan(&done, &all, &steps) else {
            return Ok(false);
        };
        let same = |view: &View<'_>| {
            self.about
                .get(&view.record.id)
                .is_some_and(|about| about.shares(&plan.tasks))
        };
        let same = self.state.views().filter(same);
        let (waits, is_declined) = same.fold((false, false), |(waits, declined), view| {
            (
                waits || view.record.is_awaiting(),
                declined || plan::is_declined(view.record),
            )
        });
        if waits {
            // It takes the file, together with what else comes soon.
            self.review_soon();
            return Ok(false);
        }
        if is_declined {
            return Ok(false);
        }
        plan.check()?;
        let concerned = plan::concerning(&steps, &plan.expected);
        if concerned.is_empty() {
            return Ok(false);
        }
        // Which of them have something to do is known when all files are.
        let steps = if plan.awaits.is_empty() { concerned } else { steps };
        self.add(task, plan, steps)?;
        Ok(true)
    }

    /// Adds a job that a client wants.
    pub(super) async fn begin(
        &mut self,
        of: Subject,
        steps: Vec<Step>,
        passwords: Vec<Secret>,
    ) -> Result<JobId, Error> {
        if passwords.len() > post::MAX_PASSWORDS {
            return Err(Error::Passwords(passwords.len()));
        }
        let snapshot = self.parts.engine.snapshot().await.map_err(|_| Error::Closed)?;
        let all = downloads(&snapshot);
        let is_meant = |task: &&Arc<Task>| match of {
            Subject::Task(id) => task.id == id,
            Subject::Group(id) => task.group == Some(id),
        };
        let task = snapshot.tasks.iter().find(is_meant).ok_or(Error::Unknown)?;
        let steps = if steps.is_empty() {
            self.chain_of(task).await?
        } else {
            steps
        };
        if steps.is_empty() {
            let reason = "no step was named, and the task's queue has none (see the setting post_chain)";
            return Err(Error::NothingToDo(reason.to_owned()));
        }
        let done = Download::of(task);
        let plan = match of {
            Subject::Task(_) => plan::plan(&done, &all, &steps),
            Subject::Group(id) => plan::of_all(&done, all.iter().filter(|other| other.group == Some(id)), true),
        };
        let plan = plan.ok_or_else(|| Error::NotFinished(done.name.clone()))?;
        if let Some(missing) = plan.awaits.first() {
            return Err(Error::NotFinished(missing.clone()));
        }
        let steps = steps.into_iter().map(|step| with_passwords(step, &passwords));
        self.add(task, plan, steps.collect())
    }

    async fn chain_of(&self, task: &Task) -> Result<Vec<Step>, Error> {
        let queues = self.parts.engine.queues().await.map_err(|_| Error::Closed)?;
        let queue: Option<&Arc<Queue>> = queues.iter().find(|queue| queue.id == task.queue);
        Ok((self.parts.chain_of)(queue.map(AsRef::as_ref)))
    }

    fn add(&mut self, task: &Task, plan: Plan, steps: Vec<Step>) -> Result<JobId, Error> {
        let id = JobId(self.unsaved.batch.last + 1);
        let about = About {
            tasks: plan.tasks.into_iter().take(MAX_FILES).collect(),
            group: task.group.filter(|_| plan.is_of_group).map(|group| group.to_string()),
            root: task.save_dir.to_string_lossy().into_owned(),
            host: task.url().as_url().host_str().map(ToOwned::to_owned),
            source: Some(Source {
                url: task.url().as_url().to_string(),
                by_user: task.options().given_by == GivenBy::User,
            }),
            date: completed_ms(task).and_then(day),
            created_ms: Timestamp::now().as_millisecond(),
            arrived_ms: 0,
        };
        self.about.insert(id, about);
        let (files, awaits) = (plan.files, plan.awaits);
        if !awaits.is_empty() {
            self.review_at.get_or_insert(Instant::now() + REVIEW_INTERVAL);
        }
        let input = Input::Add {
            id,
            files,
            steps,
            awaits,
        };
        if let Err(error) = self.apply(input) {
            self.about.remove(&id);
            return Err(error.into());
        }
        self.unsaved.batch.last = id.0;
        Ok(id)
    }
}

fn downloads(snapshot: &Snapshot) -> Vec<Download> {
    snapshot.tasks.iter().map(|task| Download::of(task)).collect()
}

fn with_passwords(step: Step, asked: &[Secret]) -> Step {
    match step {
        Step::Unpack {
            delete_original, into, ..
        } => Step::Unpack {
            passwords: Passwords(asked.to_vec()),
            delete_original,
            into,
        },
        step => step,
    }
}

fn completed_ms(task: &Task) -> Option<i64> {
    task.completed_at.map(engine::Timestamp::unix_millis)
}

/// The day of a moment where this computer is.
fn day(millis: i64) -> Option<String> {
    let at = Timestamp::from_millisecond(millis).ok()?;
    Some(at.to_zoned(TimeZone::system()).date().to_string())
}
