//! Milestones of the engine as events without secrets, for `hooks` and for the hooks of plugins.

use std::sync::Arc;

use engine::{Engine, Milestone, Milestones, Proxies, ProxyChoice, Queue, SystemProxy, Task, TaskMilestone};
use hooks::{EventKind, Hooks, Occurrence, ProxyFor, event::QueueName};
use plugin_host::Plugins;
use protocol::TaskDto;
use transfer::SafeUrl;

use crate::view;

/// Mirrors of a task that an event lists: a Metalink may have thousands.
const MAX_MIRRORS: usize = 8;

/// The proxies of the settings as they are then.
pub(super) fn of_settings(engine: Engine, system: Arc<SystemProxy>) -> impl Fn() -> Proxies + Send + Sync + 'static {
    move || {
        let settings = engine.settings().settings;
        Proxies::new(ProxyChoice::Settings, settings, Arc::clone(&system))
    }
}

/// The proxies of the settings as they are when a delivery is sent.
pub(super) fn proxies(engine: Engine, system: Arc<SystemProxy>) -> ProxyFor {
    let proxies = of_settings(engine, system);
    Arc::new(move |url: &SafeUrl| proxies().for_url(url))
}

/// Tells the hooks of plugins until the engine or the plugins have ended. The engine never waits for this.
pub(super) async fn to_plugins(plugins: &Plugins, milestones: Milestones, engine: Engine, system: &Arc<SystemProxy>) {
    let proxies = of_settings(engine.clone(), Arc::clone(system));
    plugins.follow(milestones, engine, proxies).await;
}

/// Passes milestones on until the engine or the webhooks have ended. The engine never waits for this.
pub(super) async fn relay(mut milestones: Milestones, hooks: Hooks) {
    while let Some(milestone) = milestones.next().await {
        let passed = match milestone {
            Err(engine::Gap(missed)) => hooks.missed(missed).await,
            Ok(milestone) => match occurrence(&milestone, |kind| hooks.want(kind)) {
                Some(occurrence) => hooks.happened(occurrence).await,
                None => Ok(()),
            },
        };
        if passed.is_err() {
            return;
        }
    }
}

/// The event of a milestone, if it is wanted.
fn occurrence(milestone: &Milestone, is_wanted: impl Fn(EventKind) -> bool) -> Option<Occurrence> {
    let kind = match milestone {
        Milestone::Task(TaskMilestone::Created, _) => EventKind::TaskCreated,
        Milestone::Task(TaskMilestone::Started, _) => EventKind::TaskStarted,
        Milestone::Task(TaskMilestone::MetaProbed, _) => EventKind::TaskMetaProbed,
        Milestone::Task(TaskMilestone::Completed, _) => EventKind::TaskCompleted,
        Milestone::Task(TaskMilestone::Failed, _) => EventKind::TaskFailed,
        Milestone::Task(TaskMilestone::Paused, _) => EventKind::TaskPaused,
        Milestone::Task(TaskMilestone::Cancelled, _) => EventKind::TaskCancelled,
        Milestone::QueueDrained(_) => EventKind::QueueDrained,
    };
    if !is_wanted(kind) {
        return None;
    }
    let at_ms = view::now_millis();
    Some(match milestone {
        Milestone::Task(_, task) => Occurrence::of_task(kind, at_ms, record(task)),
        Milestone::QueueDrained(queue) => Occurrence {
            kind,
            at_ms,
            task: None,
            queue: name(queue),
            is_test: false,
        },
    })
}

/// The task as the REST interface shows it, but with URLs as they are logged: the query of a link is often a credential,
/// and an endpoint belongs to somebody else.
fn record(task: &Task) -> TaskDto {
    let mirrors = &task.urls()[1..];
    let referrer = SafeUrl::parse(&task.options().request.referrer);
    TaskDto {
        url: task.url().to_string(),
        mirrors: mirrors.iter().take(MAX_MIRRORS).map(ToString::to_string).collect(),
        referrer: referrer.map(|url| url.to_string()).unwrap_or_default(),
        ..view::task(task)
    }
}

fn name(queue: &Queue) -> QueueName {
    QueueName {
        queue_id: queue.id.to_string(),
        name: queue.spec.name.clone(),
    }
}
