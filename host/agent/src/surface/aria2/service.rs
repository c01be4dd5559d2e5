//! Implements the dialect's `Service`: reads from the projection, commands through the daemon.

use std::sync::Arc;

use aria2::{Change, CommandError, Service, Snapshot, Subscription, Task};
use futures_util::future::{BoxFuture, FutureExt as _};
use http_body_util::{BodyExt as _, Limited};
use protocol::{BlobResult, ConfigSnapshot, Method, RuntimeStats, TaskStatus};
use rest::ResultMessage;
use serde_json::value::RawValue;

use crate::{
    daemon_link::daemon::Daemon,
    projection::{
        feed::Feed,
        hub::{Hub, Taken},
        task_list, tasks,
    },
};

/// The answer to an upload is an id or a message.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

impl Task for task_list::Task {
    fn id(&self) -> &str {
        &self.id
    }

    fn queue(&self) -> &str {
        &self.queue
    }

    fn queue_order(&self) -> u32 {
        self.queue_order
    }

    fn status(&self) -> TaskStatus {
        self.status
    }

    fn seeding_status(&self) -> u8 {
        self.seeding_status
    }

    fn is_torrent(&self) -> bool {
        self.is_torrent
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn dated(&self) -> u64 {
        self.completed_at.max(self.created_at)
    }

    fn members<'t>(&'t self, show: &mut dyn FnMut(&'t str, &'t str)) {
        self.packed.members(show);
    }
}

/// Converts the projection's changes for the dialect.
#[derive(Debug)]
pub(crate) struct Changes {
    hub: Arc<Hub>,
    feed: Arc<Feed>,
}

impl Changes {
    pub(crate) fn of(hub: Arc<Hub>) -> Self {
        let feed = hub.subscribe();
        Self { hub, feed }
    }
}

impl Subscription for Changes {
    fn is_behind(&self) -> bool {
        self.feed.is_behind()
    }

    fn take(&self) -> Vec<Change> {
        match self.hub.take(&self.feed) {
            Taken::Changes(changes) => changes.into_iter().filter_map(change).collect(),
            Taken::Everything {
                tasks,
                runs,
                queues,
                is_gap,
            } => vec![Change::Everything(Snapshot {
                tasks: tasks
                    .into_iter()
                    .map(|(age, task)| (age, task as Arc<dyn Task>))
                    .collect(),
                progress: runs,
                queues,
                is_gap,
            })],
        }
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.feed.changed().boxed()
    }
}

fn change(change: tasks::Change) -> Option<Change> {
    Some(match change {
        tasks::Change::Task(age, task) => Change::Task { age, task },
        tasks::Change::Deleted(id) => Change::Deleted { id },
        tasks::Change::Progress(progress) => Change::Progress(progress),
        tasks::Change::Queues(queues) => Change::Queues(queues),
        // The caller reads everything again instead.
        tasks::Change::All => return None,
    })
}

impl Service for Daemon {
    fn check(&self) -> Result<(), CommandError> {
        self.current().map(|_| ()).map_err(CommandError::from)
    }

    fn started(&self) -> BoxFuture<'_, ()> {
        self.wait_for_start().boxed()
    }

    fn command<'s>(
        &'s self,
        method: Method,
        params: &'s RawValue,
    ) -> BoxFuture<'s, Result<Box<RawValue>, CommandError>> {
        async move { Ok(self.call_raw(method, &params).await?) }.boxed()
    }

    fn keep_torrent(&self, file: Vec<u8>) -> BoxFuture<'_, Result<String, CommandError>> {
        async move {
            let failed = || CommandError::Failed("the daemon took no upload".to_owned());
            let request = http::Request::post("/blobs/torrents")
                .body(file.into())
                .map_err(|_| failed())?;
            let answer = self.fetch(request).await?;
            let is_kept = answer.status().is_success();
            let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|_| failed())?.to_bytes();
            if is_kept {
                let kept: BlobResult = serde_json::from_slice(&body).map_err(|_| failed())?;
                return Ok(kept.blob_id);
            }
            // The daemon says why: the file is too large, or too many uploads wait.
            let refused = serde_json::from_slice::<ResultMessage>(&body);
            Err(refused.map_or_else(|_| failed(), |refused| CommandError::Failed(refused.message)))
        }
        .boxed()
    }

    fn stats(&self) -> Result<RuntimeStats, CommandError> {
        Ok(self.current()?.with_tasks(|daemon| daemon.stats().clone()))
    }

    fn config(&self) -> Result<ConfigSnapshot, CommandError> {
        let config = self
            .current()?
            .with_tasks(|daemon| serde_json::from_str(daemon.config()));
        config.map_err(|error| CommandError::Failed(error.to_string()))
    }
}
