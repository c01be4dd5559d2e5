//! Items of sources, and by what two of them are the same.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use transfer::SafeUrl;
use uuid::Uuid;

use crate::{feed::Entry, model::source::SourceId, rule::Reason, title::Release};

/// Identifies a task: the id that it is created with, which makes its creation idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub Uuid);

/// What two entries have in common that are one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark(pub [u8; 16]);

impl Mark {
    /// The mark of `texts`.
    pub fn of(texts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for text in texts {
            digest.update(text.len().to_le_bytes());
            digest.update(text.as_bytes());
        }
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest.finalize()[..16]);
        Self(mark)
    }

    /// The mark of an identifier within a source.
    pub fn of_guid(source: SourceId, guid: &str) -> Self {
        Self::of(&["guid", &source.to_string(), guid])
    }
}

/// What became of an item.
///
/// `New → Dispatching → Downloaded → Ignored` (its task was deleted), and from every other state to `Dispatching` when
/// the user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Taken by the rules; downloaded in the next round if its source downloads by itself.
    New,
    /// The task is being created. Saved before it is, so that after a crash it is created again with the same id.
    Dispatching(TaskId),
    /// The task exists, or did.
    Downloaded(TaskId),
    /// By the user, or because its task was deleted.
    Ignored,
    /// Left by the rules.
    Missed,
    /// Downloaded before, as this episode or as the same item.
    Duplicate,
    /// There when the source was added.
    Seeded,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its number: items that were seen later have higher ones.
    pub serial: u64,
    /// Its source.
    pub source: SourceId,
    /// What the feed said of it.
    pub entry: Entry,
    /// When it was first seen.
    pub fetched: Timestamp,
    /// What became of it.
    pub phase: Phase,
    /// Why.
    pub reason: Reason,
    /// Why its task could not be created, for people; empty unless that is so.
    pub detail: String,
    /// How many tasks were made of it.
    pub tasks: u32,
    /// How many attempts to create its task failed in a row.
    pub failures: u32,
    /// Until when the next attempt waits.
    pub not_before: Option<Timestamp>,
    /// Its task failed for good.
    pub has_failed: bool,
}

impl Item {
    /// What its title says.
    pub fn release(&self) -> Release {
        Release::parse(&self.entry.title)
    }

    /// When it was published, or else seen.
    pub fn time(&self) -> Timestamp {
        self.entry.published.unwrap_or(self.fetched)
    }

    /// The id of its next task: the same for as long as that task was not created. Numbers are used again after items
    /// were deleted, so the number alone does not make it.
    pub fn next_task(&self) -> TaskId {
        let (source, seen) = (self.source.to_string(), self.fetched.to_string());
        let of = [&*source, &*seen, &*self.serial.to_string(), &*self.tasks.to_string()];
        TaskId(uuid::Builder::from_custom_bytes(Mark::of(&of).0).into_uuid())
    }

    /// Its task, while there is one.
    pub fn task(&self) -> Option<TaskId> {
        match self.phase {
            Phase::Dispatching(task) | Phase::Downloaded(task) => Some(task),
            Phase::New | Phase::Ignored | Phase::Missed | Phase::Duplicate | Phase::Seeded => None,
        }
    }

    /// Whether it was downloaded, even if its task was deleted: then it is not downloaded again.
    pub fn is_settled(&self) -> bool {
        self.task().is_some() || self.tasks > 0 || self.reason == Reason::TaskDeleted
    }
}

/// By what an entry is found again, in any source: the torrent, or where it leads together with its title. A link alone
/// says nothing: it may be the site's, and the file behind it may be replaced by newer ones.
pub fn marks(entry: &Entry) -> Vec<Mark> {
    let torrent = entry.infohash.as_deref().map(|hash| Mark::of(&["infohash", hash]));
    let target = entry
        .target()
        .map(|url| Mark::of(&["target", &url_identity(url), &entry.title]));
    torrent.into_iter().chain(target).collect()
}

/// By what an entry whose identifier and links changed is found again within its source.
pub fn title_and_time(source: SourceId, entry: &Entry) -> Option<Mark> {
    let published = entry.published?.to_string();
    (!entry.title.is_empty()).then(|| Mark::of(&["title and time", &source.to_string(), &entry.title, &published]))
}

/// A URL without what may change while it leads to the same: scheme, login, fragment.
fn url_identity(url: &SafeUrl) -> String {
    let url = url.as_url();
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    let query = url.query().unwrap_or("");
    format!("{}{port}{}?{query}", url.host_str().unwrap_or(""), url.path())
}

/// Adds to what is known of an item what the feed left out before. Returns whether it did.
pub fn complete(known: &mut Entry, entry: &Entry) -> bool {
    let mut changed = false;
    if known.published.is_none() && entry.published.is_some() {
        known.published = entry.published;
        changed = true;
    }
    if known.enclosure.is_none() && entry.enclosure.is_some() {
        known.enclosure.clone_from(&entry.enclosure);
        changed = true;
    }
    if known.infohash.is_none() && entry.infohash.is_some() {
        known.infohash.clone_from(&entry.infohash);
        changed = true;
    }
    changed
}
