//! The public handle of the jobs. It holds channels only: all state belongs to the driver.

use std::sync::Arc;

use confined::OwnCommand;
use engine::{Engine, Milestones};
use post::job::{JobId, Step, Tool};
use protocol::PostJobs;
use store::{Store, Vault};
use tokio::sync::{oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::Secret;

use crate::driver::{self, ChainOf, Channels, Command, Error, Message, Parts, StartError, Subject};

/// What the jobs need.
pub struct Config {
    /// Opened with [`crate::MIGRATIONS`].
    pub store: Store,
    /// Seals the jobs.
    pub vault: Arc<Vault>,
    /// Has the tasks.
    pub engine: Engine,
    /// Subscribed before the engine was started.
    pub milestones: Milestones,
    /// The chain of a queue, as it is configured now.
    pub chain_of: ChainOf,
    /// This executable as unpacker; `None` if it has none.
    pub unpacker: Option<OwnCommand>,
    /// The user's programs, and plugins.
    pub tool: Arc<dyn Tool>,
    /// Owns what is spawned.
    pub tracker: TaskTracker,
    /// Cancelled to stop. Steps that run then begin again at the next start.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("unpacker", &self.unpacker)
            .finish_non_exhaustive()
    }
}

/// The jobs. Clones share them. A command resolves once what it changed is on the disk.
#[derive(Debug, Clone)]
pub struct Jobs {
    channels: Channels,
}

impl Jobs {
    /// Continues what the store holds.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let channels = driver::start(Parts {
            store: config.store,
            vault: config.vault,
            engine: config.engine,
            milestones: config.milestones,
            chain_of: config.chain_of,
            unpacker: config.unpacker,
            tool: config.tool,
            tracker: config.tracker,
            stop: config.stop,
        });
        let channels = channels.await?;
        Ok(Self { channels })
    }

    /// Changes whenever the list may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.channels.changes.clone()
    }

    /// All jobs, newest first.
    pub async fn list(&self) -> Result<PostJobs, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::List(reply)).await?;
        answer.await.map_err(|_| Error::Closed)
    }

    /// Begins a job with the files of a task or group, which has to be finished. Without steps, those of the task's queue.
    pub async fn begin(&self, of: Subject, steps: Vec<Step>, passwords: Vec<Secret>) -> Result<JobId, Error> {
        let (reply, answer) = oneshot::channel();
        let message = Message::Begin {
            of,
            steps,
            passwords,
            reply,
        };
        self.send(message).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Ends a job that waits or runs. What was unpacked of an archive so far is removed. A step that has begun to move its
    /// files goes on to its end, and no other one begins.
    pub async fn cancel(&self, job: JobId) -> Result<(), Error> {
        self.command(Command::Cancel(job)).await.map(drop)
    }

    /// Begins the failed or cancelled step of a job again.
    pub async fn retry(&self, job: JobId) -> Result<(), Error> {
        self.command(Command::Retry(job)).await.map(drop)
    }

    /// Forgets all jobs that ended; how many.
    pub async fn clear(&self) -> Result<usize, Error> {
        self.command(Command::Clear).await
    }

    /// Replaces the passwords that are tried on archives.
    pub async fn set_passwords(&self, passwords: Vec<Secret>) -> Result<(), Error> {
        self.command(Command::Passwords(passwords)).await.map(drop)
    }

    async fn send(&self, message: Message) -> Result<(), Error> {
        self.channels.messages.send(message).await.map_err(|_| Error::Closed)
    }

    async fn command(&self, command: Command) -> Result<usize, Error> {
        let (reply, answer) = oneshot::channel();
        let message = Message::Command(command, reply);
        self.send(message).await?;
        answer.await.map_err(|_| Error::Closed)?
    }
}
