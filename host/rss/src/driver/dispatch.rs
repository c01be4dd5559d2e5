//! From an item to its task.

use std::sync::Arc;

use engine::{CommandError, Engine, InvalidSpec, ProxyChoice, QueueId, TaskSpec};
use transfer::{GivenBy, RequestOptions, UserHost};

use crate::{
    provider::Providers,
    state::{Created, Dispatch, Target},
};

/// Creates the tasks of items.
pub(crate) struct Dispatcher {
    pub(crate) engine: Engine,
    pub(crate) providers: Arc<dyn Providers>,
}

impl Dispatcher {
    /// Creates the task of an item under the id that the item was saved with, so that a repetition finds it.
    pub(crate) async fn create(&self, dispatch: Dispatch) -> Created {
        let (task, source) = (engine::TaskId::from_bytes(*dispatch.task.0.as_bytes()), dispatch.source);
        if dispatch.target == Target::Plugin && !self.providers.resolves(&dispatch.url) {
            // It may have been created before its plugin was removed.
            if self.engine.task(task).await.is_ok() {
                return Created::Exists;
            }
            let site = dispatch.url.as_url().host_str().unwrap_or_default();
            tracing::warn!(%source, site, "an item of an RSS source waits for a plugin: none resolves its link");
            return Created::Failed(format!(
                "it waits for a plugin: none that is installed resolves links of {site}"
            ));
        }
        let mut created = self.attempt(task, &dispatch, queue(&dispatch)).await;
        if let Err(CommandError::UnknownQueue(_)) = created {
            tracing::warn!(%source, queue = dispatch.queue, "the queue of an RSS source is gone; the default one is used");
            created = self.attempt(task, &dispatch, None).await;
        }
        match created {
            // One that could not be saved yet exists in memory, and saving is tried again.
            Ok(()) | Err(CommandError::TaskExists(_) | CommandError::NotSaved(_)) => Created::Exists,
            // Another feed has it, or the user added it.
            Err(CommandError::SameTorrent(_)) => Created::Exists,
            Err(CommandError::TaskDeleted(_)) => Created::WasDeleted,
            Err(CommandError::InvalidSpec(InvalidSpec::Scheme { scheme, .. })) => {
                tracing::warn!(%source, scheme, "an item of an RSS source cannot be downloaded: no transport for its URL");
                Created::Failed(format!("{scheme} URLs cannot be downloaded"))
            }
            Err(error) => {
                tracing::warn!(%source, %error, "the download of an RSS item cannot be created; it is tried again");
                Created::Failed(error.to_string())
            }
        }
    }

    async fn attempt(
        &self,
        task: engine::TaskId,
        dispatch: &Dispatch,
        queue: Option<QueueId>,
    ) -> Result<(), CommandError> {
        let save_dir = self.save_dir(dispatch, queue).await?;
        let spec = TaskSpec {
            save_dir,
            queue,
            start_paused: dispatch.is_paused,
            request: RequestOptions {
                referrer: dispatch.referer.clone(),
                user_agent: dispatch.user_agent.clone(),
                cookies: dispatch.cookies.clone(),
                credentials: dispatch.credentials.clone(),
                ..RequestOptions::default()
            },
            proxy: dispatch
                .proxy
                .clone()
                .map_or(ProxyChoice::Settings, ProxyChoice::Through),
            given_by: if dispatch.allows_private {
                GivenBy::User
            } else {
                GivenBy::Other {
                    user_host: UserHost::typed(dispatch.feed.as_url()),
                }
            },
            // A login of the user's `.netrc` is for URLs of the user's, whatever addresses the feed may lead to.
            no_netrc: true,
            feed: Some(source_text(dispatch)),
            ..TaskSpec::new(dispatch.url.clone())
        };
        self.engine.create_as(task, spec).await.map(drop)
    }

    /// The directory of the task; `None` leaves it to the queue and the settings.
    async fn save_dir(
        &self,
        dispatch: &Dispatch,
        queue: Option<QueueId>,
    ) -> Result<Option<std::path::PathBuf>, CommandError> {
        let own = (!dispatch.save_dir.is_empty()).then(|| dispatch.save_dir.clone().into());
        if dispatch.directories.is_empty() {
            return Ok(own);
        }
        let base = match own {
            Some(own) => own,
            None => self.engine.save_dir(queue).await?,
        };
        Ok(Some(
            dispatch.directories.iter().fold(base, |path, name| path.join(name)),
        ))
    }
}

/// The queue; `None` is the default one. A text that names no queue was refused when the source was saved.
fn queue(dispatch: &Dispatch) -> Option<QueueId> {
    dispatch.queue.parse().ok()
}

fn source_text(dispatch: &Dispatch) -> Box<str> {
    dispatch.source.to_string().into()
}
