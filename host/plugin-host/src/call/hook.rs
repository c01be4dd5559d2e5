//! Hooks: tells plugins what becomes of tasks. Nobody waits for them: events are queued (`policy::hooks`), and a few calls
//! go on at once, beside all other calls.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use engine::{Engine, Milestone, Milestones, Proxies, Task, TaskMilestone};
use futures_util::FutureExt as _;
use market::Identity;
use plugin_package::manifest;
use transfer::{GivenBy, RequestOptions};
use url::Url;

use crate::{
    install::{Plugins, Shared},
    lifecycle::{Status, registry::Snapshot},
    policy::{
        grant::CallTarget,
        hooks::{Due, HookQueue},
    },
    runtime::{Ask, Guest, HookCall, HookEvent, HookInput, LogLevel},
};

impl Plugins {
    /// Tells plugins what becomes of tasks until `milestones` or the plugins end, and has `engine` retry what their hooks
    /// ask for. Neither the engine nor a task waits for this. `proxies` are those of the settings, at each call.
    pub async fn follow(&self, mut milestones: Milestones, engine: Engine, proxies: impl Fn() -> Proxies) {
        let following = async {
            while let Some(milestone) = milestones.next().await {
                match milestone {
                    Ok(Milestone::Task(reached, task)) => self.0.happened(reached, &task, &engine, &proxies),
                    Ok(Milestone::QueueDrained(_)) => {}
                    Err(gap) if with_hooks(&self.0.registry.snapshot()).next().is_some() => {
                        tracing::warn!(events = gap.0, "hooks of plugins are not told of all tasks");
                    }
                    Err(_) => {}
                }
            }
        };
        self.0.stop.run_until_cancelled(following).await;
    }
}

impl Shared {
    /// Queues an event for the plugins that want it.
    fn happened(
        self: &Arc<Self>,
        reached: TaskMilestone,
        task: &Task,
        engine: &Engine,
        proxies: &impl Fn() -> Proxies,
    ) {
        let event = match reached {
            TaskMilestone::Started => manifest::HookEvent::Start,
            TaskMilestone::MetaProbed => manifest::HookEvent::MetaProbed,
            TaskMilestone::Completed => manifest::HookEvent::Done,
            TaskMilestone::Failed => manifest::HookEvent::Error,
            TaskMilestone::Created | TaskMilestone::Paused | TaskMilestone::Cancelled => return,
        };
        let interested = interested(&self.registry.snapshot(), task.url().as_url(), event);
        if interested.is_empty() {
            return;
        }
        let call = call(task, event, proxies());
        for plugin in interested {
            self.hooks().push(&plugin, call.clone());
        }
        self.call_hooks(engine);
    }

    fn hooks(&self) -> MutexGuard<'_, HookQueue<HookCall>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the calls that there is a place for.
    fn call_hooks(self: &Arc<Self>, engine: &Engine) {
        loop {
            let due = self.hooks().take();
            let Some(due) = due else { return };
            let place = Place {
                shared: Arc::clone(self),
                plugin: due.plugin.clone(),
                engine: engine.clone(),
            };
            self.spawn(async move { place.call(due).await });
        }
    }
}

/// The place of a call among those of hooks. Given back when it is dropped, however the call ends.
struct Place {
    shared: Arc<Shared>,
    plugin: Identity,
    engine: Engine,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.hooks().ended(&self.plugin);
        if !self.shared.stop.is_cancelled() {
            self.shared.call_hooks(&self.engine);
        }
    }
}

impl Place {
    async fn call(&self, due: Due<HookCall>) {
        let (shared, Due { plugin, event, dropped }) = (&self.shared, due);
        let HookCall { task, target, told } = event;
        let warn = |text: &str| {
            let log = shared.journal.of_call(plugin.clone(), shared.next_call_id());
            log.write(LogLevel::Warn, text);
        };
        if dropped > 0 {
            warn(&format!("its hooks are too slow: {dropped} events were left out"));
        }
        let is_failure = told.event == HookEvent::Error;
        let call = |guest: Arc<dyn Guest>, call| {
            let told = told.clone();
            async move { guest.hook(call, told).await }.boxed()
        };
        let called = shared
            .call(plugin.clone(), Ask::Hook(told.clone()), &target, call)
            .await;
        // What a failed call means was recorded with it.
        let wait = called.ok().and_then(|answer| answer.retry_after_ms);
        let Some(wait) = wait.filter(|_| is_failure) else {
            return;
        };
        if let Err(error) = self.engine.request_retry(task, Duration::from_millis(wait)).await {
            warn(&format!("the task is not tried again: {error}"));
        }
    }
}

/// The plugins that want to be told of an event of a task with this URL.
fn interested(snapshot: &Snapshot, url: &Url, event: manifest::HookEvent) -> Vec<Identity> {
    let mut claiming = None;
    let mut wants = |plugin: &Identity, hook: &manifest::Hook| {
        if hook.matches.is_empty() {
            claiming.get_or_insert_with(|| snapshot.claims(url)).contains(plugin)
        } else {
            hook.matches.iter().any(|pattern| pattern.claims(url))
        }
    };
    let plugins = with_hooks(snapshot).filter(|(plugin, hook)| hook.events.contains(&event) && wants(plugin, hook));
    plugins.map(|(plugin, _)| plugin.clone()).collect()
}

/// The enabled plugins that have hooks.
fn with_hooks(snapshot: &Snapshot) -> impl Iterator<Item = (&Identity, &manifest::Hook)> {
    let plugins = snapshot.plugins.iter();
    let enabled = plugins.filter(|(_, loaded)| loaded.status() == Status::Enabled);
    enabled.filter_map(|(plugin, loaded)| {
        let hook = loaded.manifest.as_ref()?.capabilities.hook.as_ref()?;
        Some((plugin, hook))
    })
}

fn call(task: &Task, event: manifest::HookEvent, proxies: Proxies) -> HookCall {
    let failure = task.failure().filter(|_| event == manifest::HookEvent::Error);
    let name = task.file_name();
    HookCall {
        task: task.id,
        target: CallTarget {
            url: task.url().as_url().clone(),
            by_user: task.options().given_by == GivenBy::User,
            request: RequestOptions::default(),
            proxies,
        },
        told: HookInput {
            event: match event {
                manifest::HookEvent::Start => HookEvent::Start,
                manifest::HookEvent::MetaProbed => HookEvent::MetaProbed,
                manifest::HookEvent::Done => HookEvent::Done,
                manifest::HookEvent::Error => HookEvent::Error,
            },
            task_id: task.id.to_string(),
            file_name: Some(name).filter(|name| !name.is_empty()),
            total_bytes: task.total_bytes,
            error_kind: failure.map(|failure| failure.kind.code().to_owned()),
            // A plugin sees names of files, not their directories.
            message: failure.map(|failure| failure.message.replace(&*task.save_dir.to_string_lossy(), "…")),
            attempts: task.attempts,
        },
    }
}
