//! Assigns free slots: fairly among the queues; a boosted task runs alone.

use transfer::Stage;

use crate::{
    milestone::TaskMilestone,
    model::{
        id::RunId,
        task::{After, Phase, Run},
    },
    state::{model::State, step::Effect},
};

impl State {
    /// Ends the boost of a task that neither runs nor is pending.
    pub(super) fn settle_boost(&mut self) {
        let Some(serial) = self.boost else { return };
        let goes_on = self.tasks.get(&serial).is_some_and(|task| match &task.phase {
            Phase::Pending | Phase::Running(_) => true,
            Phase::Stopping { then, .. } => *then == After::Requeue,
            // The runs that have the places of its account are being stopped.
            Phase::AccountLimited(wait) => wait.until.is_none(),
            _ => false,
        });
        if !goes_on {
            self.boost = None;
            self.changes.boost = true;
        }
    }

    /// Starts pending tasks while limits allow it.
    pub(super) fn fill_slots(&mut self, effects: &mut Vec<Effect>) {
        let limit = usize::try_from(self.settings.settings.max_concurrent_tasks).unwrap_or(usize::MAX);
        while !self.is_closing && self.index.active.len() < limit {
            let Some(serial) = self.next_to_start() else { return };
            self.next_run += 1;
            let run = RunId(self.next_run);
            let phase = Phase::Running(Run {
                id: run,
                stage: Stage::Preparing,
            });
            match self.tasks[&serial].limited_account().cloned() {
                Some(account) => {
                    self.accounts.enter(run, account);
                    // Its row says that it waits.
                    self.edit(serial, |task| task.phase = phase);
                }
                None => self.mark(serial, |task| task.phase = phase),
            }
            if self.tasks[&serial].attempts == 0 {
                self.changes.reached.push((TaskMilestone::Started, serial));
            }
            effects.push(self.begin(&self.tasks[&serial], run));
        }
    }

    /// The first task of the queue with the fewest live runs, so that a long queue does not starve another.
    pub(super) fn next_to_start(&self) -> Option<u64> {
        if let Some(serial) = self.boost {
            let task = self.tasks.get(&serial)?;
            let is_waiting = match &task.phase {
                Phase::Pending => true,
                Phase::AccountLimited(wait) => self.accounts.has_room(&wait.account),
                _ => false,
            };
            let may_start = is_waiting && self.queue_states.get(&task.queue)?.has_room();
            return (may_start && !task.is_settling()).then_some(serial);
        }
        let ready = self
            .queue_states
            .values()
            .filter(|queue_state| queue_state.has_room())
            .filter_map(|queue_state| {
                let first = queue_state.first(|account| self.accounts.has_room(account))?;
                Some((queue_state, first))
            });
        ready
            .min_by_key(|(queue_state, _)| (queue_state.active, queue_state.queue.position))
            .map(|(_, serial)| serial)
    }
}
