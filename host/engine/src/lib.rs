//! The task engine: which downloads exist and when they run.
//!
//! *Owns* tasks, their runs, queues and their schedules, groups, the settings that steer them, and the credentials and
//! cookies of sites: a pure state machine ([`state::State::apply`]) and a driver that feeds it time, runs transports and saves rows.
//!
//! *Never* knows HTTP, a plugin, a feed or a wire format. It reaches them only through [`transfer::Transport`],
//! [`Resolver`] and its own handle.
//!
//! # Layers
//!
//! - `handle`: commands and queries
//! - `driver`: feeds time and inputs to the state, and performs its effects
//! - `mailbox`, `rows`: the channels between handle and driver, and how the state is stored
//! - `state`: what follows from each input; pure
//! - `directories`: lists of files by transports
//! - `config`, `milestone`, `event`, `resolver`, `proxies`: what the engine is configured with and what it publishes
//! - `model`: tasks, queues, groups, sites, settings
//!
//! Start reading at [`Engine`] (commands), then [`state`] (their consequences), then `driver` (their execution).

mod config;
mod directories;
mod driver;
mod event;
mod handle;
mod mailbox;
mod milestone;
mod model;
mod proxies;
mod resolver;
mod rows;
pub mod state;

pub use config::Config;
pub use event::{Event, Events, Gap, Snapshot};
pub use handle::{Engine, TaskProgress, UrlChanged};
pub use mailbox::ShutdownReport;
pub use milestone::{Milestone, MilestoneSender, Milestones, TaskMilestone};
pub use model::{
    account::{AccountKey, AccountLimits, AccountUsage, AccountUse, InvalidAccount, LoginNeed},
    error::{CommandError, StartError},
    group::{Group, GroupSpec, LeftOut, LeftOutKind},
    id::{GroupId, InvalidId, QueueId, RunId, TaskId, Timestamp},
    proxy::{ProxyChoice, SystemProxy},
    queue::{Days, Queue, QueueSpec, Schedule},
    resolution::{InvalidItem, Item, Resolution, ResolverId},
    seeding::{AfterSeeding, SeedEnd, SeedLimit, SeedLimits, SeedOperator, SeedSettings, SeedState, SeedThen, Seeding},
    settings::{FileMissingAction, InvalidSetting, ProxyMode, ProxyType, Settings, VersionedSettings},
    site::{CookieSite, CookieSummary, Site},
    spec::{self, InvalidSpec, TaskSpec},
    speed::Speeds,
    task::{AccountWait, After, FileFate, LoginWait, Phase, Retry, Run, Status, Task},
};
pub use proxies::Proxies;
pub use resolver::{Link, List, ListedFile, ResolveFuture, ResolveRequest, Resolved, Resolver, Unresolved};
pub use rows::{MIGRATIONS, SEALED};
