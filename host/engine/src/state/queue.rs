//! Commands on queues, and the effects of schedules.

use std::{collections::HashMap, sync::Arc};

use jiff::{ToSpan as _, civil::DateTime};

use crate::{
    model::{
        error::CommandError,
        id::{QueueId, TaskId},
        queue::{Edge, Queue, QueueSpec, Schedule},
        settings::Settings,
        spec::{self, MAX_LABEL_BYTES},
        task::{After, Phase},
    },
    state::{
        model::{State, queue_state::QueueState},
        step::{Effect, LimitScope, Row},
    },
};

/// Limited, because every queue is visited whenever a slot is free.
const MAX_QUEUES: usize = 256;

/// If the clock is further behind the last seen edge than this, the clock was set back and the edge is forgotten.
/// Larger than a change of summer time.
const CLOCK_STEP_HOURS: i64 = 3;

impl State {
    fn known_queue(&self, id: QueueId) -> Result<Arc<Queue>, CommandError> {
        self.queue_states
            .get(&id)
            .map(|queue_state| Arc::clone(&queue_state.queue))
            .ok_or(CommandError::UnknownQueue(id))
    }

    pub(super) fn move_task(
        &mut self,
        id: TaskId,
        queue: Option<QueueId>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let queue = queue.unwrap_or_else(|| self.default_queue());
        self.known_queue(queue)?;
        self.move_each(&[serial], queue, effects);
        Ok(())
    }

    /// A live run keeps the limits of its old queue, so it is stopped and becomes pending in the new one.
    fn move_each(&mut self, serials: &[u64], queue: QueueId, effects: &mut Vec<Effect>) {
        for serial in serials.iter().copied() {
            if self.tasks[&serial].queue == queue {
                continue;
            }
            self.edit(serial, |task| {
                task.queue = queue;
                task.queue_order = 0;
            });
            if matches!(self.tasks[&serial].phase, Phase::Running(_)) {
                self.stop_run(serial, After::Requeue, effects);
            }
        }
    }

    pub(super) fn queue_create(&mut self, id: QueueId, mut spec: QueueSpec) -> Result<(), CommandError> {
        validate_queue(&mut spec)?;
        if self.queue_states.len() >= MAX_QUEUES {
            return Err(CommandError::InvalidField(
                "there are 256 queues already, which is the limit",
            ));
        }
        let position = self
            .queue_states
            .values()
            .map(|queue_state| queue_state.queue.position)
            .max()
            .unwrap_or(0)
            + 1;
        let schedule = Schedule::default();
        let queue = Arc::new(Queue {
            id,
            spec,
            position,
            is_running: true,
            schedule,
            schedule_seen: None,
        });
        self.queue_states.insert(id, QueueState::new(Arc::clone(&queue)));
        self.changes.rows.push(Row::Queue(queue));
        self.changes.queues = true;
        Ok(())
    }

    pub(super) fn queue_update(
        &mut self,
        id: QueueId,
        mut spec: QueueSpec,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        validate_queue(&mut spec)?;
        let before = self.known_queue(id)?;
        if id.is_built_in() && before.spec.name != spec.name {
            return Err(CommandError::BuiltInQueue(id));
        }
        effects.push(Effect::SetLimit(LimitScope::Queue(id), spec.speeds()));
        self.alter_queue(id, |queue| queue.spec = spec);
        Ok(())
    }

    pub(super) fn queue_delete(&mut self, id: QueueId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        self.known_queue(id)?;
        if id.is_built_in() {
            return Err(CommandError::BuiltInQueue(id));
        }
        // Tasks that are being deleted move too: their runs hold slots until they end.
        let members: Vec<u64> = self
            .tasks
            .values()
            .filter(|task| task.queue == id)
            .map(|task| task.serial)
            .collect();
        self.move_each(&members, QueueId::Main, effects);
        self.queue_states.remove(&id);
        self.changes.rows.push(Row::QueueDeleted(id));
        self.changes.queues = true;
        Ok(())
    }

    pub(super) fn queue_start(&mut self, id: QueueId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        self.known_queue(id)?;
        self.alter_queue(id, |queue| queue.is_running = true);
        let paused = self.those(|task| task.queue == id && task.is_paused());
        self.resume_each(&paused, effects);
        Ok(())
    }

    pub(super) fn queue_stop(&mut self, id: QueueId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        self.known_queue(id)?;
        self.alter_queue(id, |queue| queue.is_running = false);
        let members = self.those(|task| task.queue == id);
        self.pause_each(&members, effects);
        Ok(())
    }

    pub(super) fn queue_schedule(&mut self, id: QueueId, schedule: Schedule) -> Result<(), CommandError> {
        self.known_queue(id)?;
        if schedule.is_enabled && schedule.start.is_none() && schedule.stop.is_none() {
            return Err(CommandError::InvalidField("a schedule needs a start or a stop time"));
        }
        self.alter_queue(id, |queue| {
            queue.schedule = schedule;
            queue.schedule_seen = None;
        });
        Ok(())
    }

    pub(super) fn queue_reorder(&mut self, id: QueueId, tasks: &[TaskId]) -> Result<(), CommandError> {
        self.known_queue(id)?;
        let mut places = HashMap::new();
        for serial in tasks.iter().filter_map(|task| self.serial(*task).ok()) {
            let place = u32::try_from(places.len() + 1).unwrap_or(u32::MAX);
            places.entry(serial).or_insert(place);
        }
        for serial in self.those(|task| task.queue == id) {
            let place = places.get(&serial).copied().unwrap_or(0);
            if self.tasks[&serial].queue_order != place {
                self.edit(serial, |task| task.queue_order = place);
            }
        }
        Ok(())
    }

    pub(super) fn act_on_schedules(&mut self, local: DateTime, effects: &mut Vec<Effect>) {
        let queues: Vec<_> = self
            .queue_states
            .values()
            .map(|queue_state| Arc::clone(&queue_state.queue))
            .collect();
        for queue in queues.iter().filter(|queue| queue.schedule.is_enabled) {
            // A new schedule applies edges that passed today.
            let midnight = local.date().to_datetime(jiff::civil::Time::midnight());
            let seen = queue
                .schedule_seen
                .unwrap_or_else(|| midnight.saturating_sub(1.second()));
            let is_ahead = seen > local.saturating_add(CLOCK_STEP_HOURS.hours());
            let edge = queue.schedule.due(seen, local);
            if edge.is_some() || is_ahead || queue.schedule_seen.is_none() {
                self.alter_queue(queue.id, |queue| queue.schedule_seen = Some(local));
            }
            let _queue_exists = match edge {
                Some(Edge::Start) => self.queue_start(queue.id, effects),
                Some(Edge::Stop) => self.queue_stop(queue.id, effects),
                None => Ok(()),
            };
        }
    }

    /// Switches the turtle at the edges of its schedule, as those of queues; what a user switched meanwhile holds until the
    /// next edge.
    pub(super) fn act_on_turtle(&mut self, local: DateTime, effects: &mut Vec<Effect>) {
        let schedule = self.settings.settings.turtle_schedule;
        if !schedule.is_enabled {
            return;
        }
        let midnight = local.date().to_datetime(jiff::civil::Time::midnight());
        let seen = self.turtle_seen.unwrap_or_else(|| midnight.saturating_sub(1.second()));
        let is_ahead = seen > local.saturating_add(CLOCK_STEP_HOURS.hours());
        self.turtle_seen = Some(if is_ahead { local } else { seen.max(local) });
        if let Some(edge) = schedule.due(seen, local) {
            let settings = Settings {
                is_turtle: edge == Edge::Start,
                ..Settings::clone(&self.settings.settings)
            };
            let _revision = self.change_settings(None, settings, effects);
        }
    }

    fn alter_queue(&mut self, id: QueueId, change: impl FnOnce(&mut Queue)) {
        let Some(queue_state) = self.queue_states.get_mut(&id) else {
            return;
        };
        let before = Arc::clone(&queue_state.queue);
        change(Arc::make_mut(&mut queue_state.queue));
        if before != queue_state.queue {
            self.changes.rows.push(Row::Queue(Arc::clone(&queue_state.queue)));
            self.changes.queues = true;
        }
    }
}

fn validate_queue(spec: &mut QueueSpec) -> Result<(), CommandError> {
    spec.name = spec.name.trim().to_owned();
    if spec.name.is_empty() || spec.name.len() > MAX_LABEL_BYTES {
        return Err(CommandError::InvalidField("a queue's name has 1 to 512 bytes"));
    }
    if spec.default_segments > spec::MAX_SEGMENTS {
        return Err(CommandError::InvalidField("a queue's segments are 0 to 64"));
    }
    if spec.max_concurrent > 1024 {
        return Err(CommandError::InvalidField("a queue runs at most 1024 tasks"));
    }
    if spec.default_user_agent.chars().any(|c| c.is_control() && c != '\t') {
        return Err(CommandError::InvalidField(
            "a queue's user agent holds a control character",
        ));
    }
    if let Some(dir) = &spec.default_save_dir {
        spec::validate_dir(dir)?;
    }
    Ok(())
}
