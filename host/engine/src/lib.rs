//! Tasks and when they run.
//!
//! *Owns* tasks, their runs, queues and their schedules, groups, the settings that steer them, and site credentials:
//! a pure heart ([`state::State::apply`]) and a driver that gives it time, runs transports and saves rows.
//!
//! *Never* knows HTTP, a plugin, a feed or a wire format. Everything it needs of them comes in through
//! [`transfer::Transport`], [`Resolver`] and its own handle.
//!
//! Start reading at [`Engine`] (what can be asked), then [`state`] (what happens), then `driver` (how it is done).

mod config;
mod driver;
mod error;
mod event;
mod file;
mod group;
mod handle;
mod id;
mod proxy;
mod queue;
mod resolver;
mod runner;
mod settings;
mod site;
pub mod spec;
pub mod state;
mod store;
mod task;

pub use config::{Config, SystemProxy};
pub use error::{CommandError, StartError};
pub use event::{Event, Events, Gap, Snapshot};
pub use group::{Group, GroupSpec};
pub use handle::{Engine, ShutdownReport, TaskProgress, UrlChanged};
pub use id::{GroupId, InvalidId, QueueId, RunId, TaskId, Timestamp};
pub use proxy::Proxies;
pub use queue::{Days, Queue, QueueSpec, Schedule};
pub use resolver::{
    InvalidItem, Item, Link, List, ListedFile, Resolution, ResolveFuture, ResolveRequest, Resolved, Resolver,
    ResolverId,
};
pub use settings::{FileMissingAction, InvalidSetting, ProxyMode, ProxyType, Settings, VersionedSettings};
pub use site::Site;
pub use spec::{InvalidSpec, ProxyChoice, TaskSpec};
pub use store::MIGRATIONS;
pub use task::{After, FileFate, Phase, Retry, Run, Status, Task};
