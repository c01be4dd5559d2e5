//! Tasks and when they run.
//!
//! *Owns* tasks, their runs, queues and their schedules, groups, the settings that steer them, and site credentials:
//! a pure heart ([`state::State::apply`]) and a driver that gives it time, runs transports and saves rows.
//!
//! *Never* knows HTTP, a plugin, a feed or a wire format. Everything it needs of them comes in through
//! [`transfer::Transport`], [`Resolver`] and its own handle.
//!
//! # Layers
//!
//! - `handle`: what can be asked
//! - `driver`: gives the state time, and does what it answers with
//! - `mailbox`, `rows`: what handle and driver share, and how the state is stored
//! - `state`: what follows from what happens; pure
//! - `config`, `event`, `resolver`, `proxies`: what the engine is given and what it tells
//! - `model`: tasks, queues, groups, sites, settings
//!
//! Start reading at [`Engine`] (what can be asked), then [`state`] (what happens), then `driver` (how it is done).

mod config;
mod driver;
mod event;
mod handle;
mod mailbox;
mod model;
mod proxies;
mod resolver;
mod rows;
pub mod state;

pub use config::Config;
pub use event::{Event, Events, Gap, Snapshot};
pub use handle::{Engine, TaskProgress, UrlChanged};
pub use mailbox::ShutdownReport;
pub use model::{
    error::{CommandError, StartError},
    group::{Group, GroupSpec},
    id::{GroupId, InvalidId, QueueId, RunId, TaskId, Timestamp},
    proxy::{ProxyChoice, SystemProxy},
    queue::{Days, Queue, QueueSpec, Schedule},
    resolution::{InvalidItem, Item, Resolution, ResolverId},
    settings::{FileMissingAction, InvalidSetting, ProxyMode, ProxyType, Settings, VersionedSettings},
    site::Site,
    spec::{self, InvalidSpec, TaskSpec},
    task::{After, FileFate, Phase, Retry, Run, Status, Task},
};
pub use proxies::Proxies;
pub use resolver::{Link, List, ListedFile, ResolveFuture, ResolveRequest, Resolved, Resolver};
pub use rows::MIGRATIONS;
