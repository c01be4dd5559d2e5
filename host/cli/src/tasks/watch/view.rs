//! The watched tasks, kept current by events. Pure.

use std::collections::BTreeMap;

use protocol::{DaemonEvent, DaemonSnapshot, TaskDto, TaskRuntimeDto, TaskStatus};

use crate::tasks::list::is_moving;

#[derive(Debug, Default)]
pub(crate) struct View {
    /// The complete ids of the selected tasks; empty means all.
    wanted: Vec<String>,
    pub(crate) tasks: BTreeMap<String, TaskDto>,
    pub(crate) runs: BTreeMap<String, TaskRuntimeDto>,
    has_begun: bool,
}

impl View {
    pub(crate) fn new(wanted: Vec<String>) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    pub(crate) fn is_wanted(&self, id: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == id)
    }

    /// Replaces the state.
    pub(crate) fn replace(&mut self, daemon: &DaemonSnapshot) {
        self.has_begun = true;
        self.tasks.clear();
        self.runs.clear();
        daemon.tasks.iter().for_each(|task| self.put(task));
        daemon.task_runtime.values().for_each(|run| self.run(run));
    }

    pub(crate) fn apply(&mut self, event: &DaemonEvent) {
        match event {
            DaemonEvent::SnapshotReplaced(daemon) => self.replace(daemon),
            DaemonEvent::TaskChanged(task) => self.put(task),
            DaemonEvent::TasksSnapshot(changed) => {
                changed.tasks.iter().for_each(|task| self.put(task));
                changed.deleted_task_ids.iter().for_each(|id| self.remove(id));
            }
            DaemonEvent::TaskDeleted { task_id } => self.remove(task_id),
            DaemonEvent::TaskRuntimeChanged(run) => self.run(run),
            _ => {}
        }
    }

    fn put(&mut self, task: &TaskDto) {
        // Without a selection, completed tasks are dropped: a service may have many thousands.
        let is_over = self.wanted.is_empty() && task.status == TaskStatus::Completed;
        if !self.is_wanted(&task.task_id) || is_over {
            return self.remove(&task.task_id);
        }
        if !is_moving(task) {
            self.runs.remove(&task.task_id);
        }
        self.tasks.insert(task.task_id.clone(), task.clone());
    }

    fn run(&mut self, run: &TaskRuntimeDto) {
        if self.tasks.get(&run.task_id).is_some_and(is_moving) {
            self.runs.insert(run.task_id.clone(), run.clone());
        }
    }

    fn remove(&mut self, id: &str) {
        self.tasks.remove(id);
        self.runs.remove(id);
    }

    /// Whether all selected tasks have ended.
    pub(crate) fn is_done(&self) -> bool {
        let is_over = |task: &TaskDto| matches!(task.status, TaskStatus::Completed | TaskStatus::Error);
        self.has_begun && !self.wanted.is_empty() && self.tasks.values().all(is_over)
    }

    /// Active tasks first, then by age.
    pub(crate) fn in_order(&self) -> Vec<&TaskDto> {
        let rank = |task: &TaskDto| match task.status {
            TaskStatus::Downloading => 0,
            TaskStatus::Preparing => 1,
            TaskStatus::Pending => 2,
            TaskStatus::Error => 3,
            TaskStatus::Paused => 4,
            TaskStatus::Completed => 5,
        };
        let mut tasks: Vec<_> = self.tasks.values().collect();
        tasks.sort_by_key(|task| (rank(task), task.created_at.parse::<u64>().unwrap_or_default()));
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: TaskStatus) -> TaskDto {
        TaskDto {
            task_id: id.into(),
            status,
            ..TaskDto::default()
        }
    }

    fn changed(id: &str, status: TaskStatus) -> DaemonEvent {
        DaemonEvent::TaskChanged(Box::new(task(id, status)))
    }

    fn replace(view: &mut View, tasks: Vec<TaskDto>) {
        view.replace(&DaemonSnapshot {
            tasks,
            ..DaemonSnapshot::default()
        });
    }

    #[test]
    fn without_a_choice_what_is_unfinished_is_watched_and_what_moves_comes_first() {
        let mut view = View::new(Vec::new());
        let statuses = [
            ("a", TaskStatus::Paused),
            ("b", TaskStatus::Completed),
            ("c", TaskStatus::Pending),
        ];
        replace(&mut view, statuses.map(|(id, status)| task(id, status)).into());
        let order = |view: &View| -> Vec<String> { view.in_order().iter().map(|task| task.task_id.clone()).collect() };
        assert_eq!(order(&view), ["c", "a"]);
        view.apply(&changed("d", TaskStatus::Downloading));
        view.apply(&changed("c", TaskStatus::Completed));
        assert_eq!(order(&view), ["d", "a"]);
        view.apply(&DaemonEvent::TaskDeleted { task_id: "a".into() });
        assert_eq!(order(&view), ["d"]);
        assert!(!view.is_done());
    }

    #[test]
    fn a_choice_is_done_when_all_of_it_has_ended() {
        let mut view = View::new(vec!["a".into(), "b".into()]);
        assert!(!view.is_done());
        let tasks = vec![task("a", TaskStatus::Completed), task("b", TaskStatus::Pending)];
        replace(&mut view, [tasks, vec![task("c", TaskStatus::Pending)]].concat());
        assert!(!view.is_done() && view.tasks.len() == 2);
        view.apply(&changed("b", TaskStatus::Error));
        assert!(view.is_done());
    }

    #[test]
    fn a_run_is_forgotten_with_its_end() {
        let mut view = View::new(Vec::new());
        let run = TaskRuntimeDto {
            task_id: "a".into(),
            ..TaskRuntimeDto::default()
        };
        let run = DaemonEvent::TaskRuntimeChanged(Box::new(run));
        view.apply(&run);
        assert!(view.runs.is_empty());
        view.apply(&changed("a", TaskStatus::Downloading));
        view.apply(&run);
        assert_eq!(view.runs.len(), 1);
        view.apply(&changed("a", TaskStatus::Paused));
        assert!(view.runs.is_empty());
    }
}
