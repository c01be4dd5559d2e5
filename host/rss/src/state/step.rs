//! The inputs of the state machine and its effects.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use transfer::SafeUrl;

use crate::{
    feed::Feed,
    model::{
        item::{Item, Mark, TaskId},
        source::{Source, SourceId, SourceSpec, Validators},
    },
    rule::InvalidField,
};
use protocol::RssSourceDto;

/// Tells two fetches of one source apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// An input of the state machine.
#[derive(Debug)]
pub enum Input {
    /// A command of a caller.
    Command(Command),
    /// A fetch ended.
    Fetched(SourceId, RunId, Fetched),
    /// The answer to [`Effect::Create`].
    Created(TaskId, Created),
    /// A task was deleted, by a user or a client.
    TaskDeleted(TaskId),
    /// A task changed, and whether it has failed for good.
    TaskChanged(TaskId, bool),
    /// Only the time.
    Clock,
}

/// A command of a caller.
#[derive(Debug, Clone)]
pub enum Command {
    /// Adds a source with a new id.
    Add(SourceId, Box<RssSourceDto>),
    /// Replaces what is said of a source.
    Update(SourceId, Box<RssSourceDto>),
    /// Deletes a source with its items; their tasks stay.
    Delete(SourceId),
    /// Fetches a source now. Succeeds if it is being fetched already.
    Refresh(SourceId),
    /// Acts on the item with this identifier.
    Act(SourceId, String, Action),
    /// Marks all new items of a source as read.
    ReadAll(SourceId),
}

/// What users do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Download it, whatever became of it before.
    Download,
    /// Never download it.
    Ignore,
    /// It is not new any more.
    Read,
}

/// How a fetch ended.
#[derive(Debug)]
pub enum Fetched {
    /// A feed, and where it is if the source's URL is a web page that names it.
    Feed(Box<Feed>, Validators, Option<SafeUrl>),
    /// The feed has not changed since the last fetch.
    NotModified,
    /// Why there is none, and when the server wants to be asked again.
    Failed(String, Option<Duration>),
}

/// What became of a task that was to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It exists, from this request or an earlier one with its id.
    Exists,
    /// It existed, and was deleted.
    WasDeleted,
    /// It could not be created now, and why, for people.
    Failed(String),
}

/// Why a command was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such source.
    #[error("RSS source not found: {0}")]
    UnknownSource(SourceId),
    /// The source has no such item.
    #[error("the RSS source has no such item")]
    UnknownItem,
    /// A source with this id exists already.
    #[error("RSS source exists already: {0}")]
    SourceExists(SourceId),
    /// There is room for no more.
    #[error("there are {0} RSS sources, which is the limit: delete one first")]
    TooManySources(usize),
    /// The item has neither a file nor a page.
    #[error("the item links to nothing that can be downloaded")]
    NothingToDownload,
    /// A field cannot be used.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
}

/// What the driver does, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Save a row.
    Save(Row),
    /// Fetch a source.
    Fetch(Box<Fetch>),
    /// The result of a fetch is not needed any more.
    Cancel(RunId),
    /// Create a task, but not before all rows before it are on the disk. Answered with [`Input::Created`].
    Create(Box<Dispatch>),
    /// Publish an event.
    Emit(Event),
}

/// A row to be saved.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A source.
    Source(Arc<Source>),
    /// A deleted source, and with it its items and marks.
    SourceDeleted(SourceId),
    /// An item.
    Item(Arc<Item>),
    /// An item that is not kept any more.
    ItemDeleted(u64),
    /// The identifier of an item that is not kept any more.
    Pruned(SourceId, Mark),
    /// Such an identifier, of which there are too many.
    PrunedDeleted(SourceId, Mark),
}

/// What happened, for subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `rssSourcesChanged`.
    SourcesChanged,
    /// `rssItemsChanged`, with the titles of new downloads if the source notifies of them.
    ItemsChanged(SourceId, Vec<String>),
}

/// A fetch of a source.
#[derive(Debug)]
pub struct Fetch {
    /// The source.
    pub source: SourceId,
    /// The run.
    pub run: RunId,
    /// Where, and with which headers, proxy and plugin.
    pub spec: SourceSpec,
    /// Where the feed was last found, if not at the source's URL.
    pub feed_url: Option<SafeUrl>,
    /// For a conditional request.
    pub validators: Validators,
    /// When the feed was last read, for plugins.
    pub since: Option<Timestamp>,
}

/// What the URL of a download leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The file, or a page that a plugin may claim.
    File,
    /// What a resolver plugin must say.
    Plugin,
}

/// A task to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Its id. A task that has it already is the one.
    pub task: TaskId,
    /// The source, which the task names as its `rssSourceId`.
    pub source: SourceId,
    /// What to download. It was given by the feed and not by the user.
    pub url: SafeUrl,
    /// The feed: a URL of its host may be private if the feed's is.
    pub feed: SafeUrl,
    /// The source allows private addresses.
    pub allows_private: bool,
    /// What the URL leads to.
    pub target: Target,
    /// Directories below the save directory, safe to create.
    pub directories: Vec<String>,
    /// The queue; empty is the default one.
    pub queue: String,
    /// The save directory; empty is the queue's.
    pub save_dir: String,
    /// It is created paused.
    pub is_paused: bool,
    /// The `Referer`; empty is none.
    pub referer: String,
    /// The user agent; empty is the global one.
    pub user_agent: String,
    /// The proxy.
    pub proxy: Option<SafeUrl>,
    /// Cookies, if the file is on the feed's own origin; else empty.
    pub cookies: transfer::Secret,
    /// The login in the feed's URL, if the file is on its origin.
    pub credentials: Option<transfer::Credentials>,
}

/// What a row is about: a later row of the same key replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKey {
    /// A source.
    Source(SourceId),
    /// An item.
    Item(u64),
    /// A mark.
    Mark(SourceId, Mark),
}

impl Row {
    /// What it is about.
    pub fn key(&self) -> RowKey {
        match self {
            Self::Source(source) => RowKey::Source(source.id),
            Self::SourceDeleted(source) => RowKey::Source(*source),
            Self::Item(item) => RowKey::Item(item.serial),
            Self::ItemDeleted(serial) => RowKey::Item(*serial),
            Self::Pruned(source, mark) | Self::PrunedDeleted(source, mark) => RowKey::Mark(*source, *mark),
        }
    }
}
