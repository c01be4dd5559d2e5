//! The JSON inside rows. Every field has a default, so that records of earlier versions can be read.

use std::time::Duration;

use jiff::Timestamp;
use protocol::RssSourceDto;
use serde::{Deserialize, Serialize};
use transfer::SafeUrl;
use uuid::Uuid;

use crate::{
    feed::{Enclosure, Entry, Hints},
    model::{
        item::{Item, Phase, TaskId},
        source::{History, SourceId, SourceSpec, Validators},
    },
    rule::Reason,
};

/// What a stored source says. It was checked before it was stored.
pub(super) fn spec(json: &[u8]) -> Result<SourceSpec, String> {
    let settings: RssSourceDto = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    SourceSpec::stored(settings).map_err(|error| error.to_string())
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HistoryRecord {
    title: String,
    is_seeded: bool,
    last_fetch: Option<String>,
    last_success: Option<String>,
    next_fetch: Option<String>,
    fail_count: u32,
    last_error: String,
    etag: String,
    last_modified: String,
    feed_url: Option<String>,
    ttl_secs: u64,
    skip_hours: u32,
    skip_days: u8,
}

impl HistoryRecord {
    pub(super) fn of(history: &History) -> Self {
        let History {
            title,
            is_seeded,
            last_fetch,
            last_success,
            next_fetch,
            fail_count,
            last_error,
            validators: Validators { etag, last_modified },
            feed_url,
            hints: Hints {
                ttl,
                skip_hours,
                skip_days,
            },
        } = history;
        Self {
            title: title.clone(),
            is_seeded: *is_seeded,
            last_fetch: last_fetch.as_ref().map(ToString::to_string),
            last_success: last_success.as_ref().map(ToString::to_string),
            next_fetch: Some(next_fetch.to_string()),
            fail_count: *fail_count,
            last_error: last_error.clone(),
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            feed_url: feed_url.as_ref().map(|url| url.expose().to_owned()),
            ttl_secs: ttl.as_secs(),
            skip_hours: *skip_hours,
            skip_days: *skip_days,
        }
    }

    pub(super) fn into_history(self) -> Result<History, String> {
        Ok(History {
            title: self.title,
            is_seeded: self.is_seeded,
            last_fetch: time(self.last_fetch)?,
            last_success: time(self.last_success)?,
            next_fetch: time(self.next_fetch)?.unwrap_or_default(),
            fail_count: self.fail_count,
            last_error: self.last_error,
            validators: Validators {
                etag: self.etag,
                last_modified: self.last_modified,
            },
            feed_url: url(self.feed_url)?,
            hints: Hints {
                ttl: Duration::from_secs(self.ttl_secs),
                skip_hours: self.skip_hours,
                skip_days: self.skip_days,
            },
        })
    }
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PhaseRecord {
    #[default]
    New,
    Dispatching,
    Downloaded,
    Ignored,
    Missed,
    Duplicate,
    Seeded,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ItemRecord {
    guid: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    infohash: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resolve_with_plugin: bool,
    fetched: Option<String>,
    phase: PhaseRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    tasks: u32,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_failed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct FileRecord {
    url: String,
    bytes: Option<u64>,
    is_torrent: bool,
}

impl ItemRecord {
    pub(super) fn of(item: &Item) -> Self {
        let Item {
            // Stored in columns of their own.
            serial: _,
            source: _,
            entry,
            fetched,
            phase,
            reason,
            detail,
            tasks,
            failures,
            not_before,
            has_failed,
        } = item;
        let Entry {
            guid,
            title,
            link,
            enclosure,
            published,
            infohash,
            resolve_with_plugin,
        } = entry;
        let (phase, task) = match phase {
            Phase::New => (PhaseRecord::New, None),
            Phase::Dispatching(task) => (PhaseRecord::Dispatching, Some(task.0.to_string())),
            Phase::Downloaded(task) => (PhaseRecord::Downloaded, Some(task.0.to_string())),
            Phase::Ignored => (PhaseRecord::Ignored, None),
            Phase::Missed => (PhaseRecord::Missed, None),
            Phase::Duplicate => (PhaseRecord::Duplicate, None),
            Phase::Seeded => (PhaseRecord::Seeded, None),
        };
        Self {
            guid: guid.clone(),
            title: title.clone(),
            link: link.as_ref().map(|url| url.expose().to_owned()),
            file: enclosure.as_ref().map(|file| FileRecord {
                url: file.url.expose().to_owned(),
                bytes: file.bytes,
                is_torrent: file.is_torrent,
            }),
            published: published.as_ref().map(ToString::to_string),
            infohash: infohash.clone(),
            resolve_with_plugin: *resolve_with_plugin,
            fetched: Some(fetched.to_string()),
            phase,
            task,
            reason: reason.as_str().to_owned(),
            detail: detail.clone(),
            tasks: *tasks,
            failures: *failures,
            not_before: not_before.as_ref().map(ToString::to_string),
            has_failed: *has_failed,
        }
    }

    pub(super) fn into_item(self, serial: u64, source: SourceId) -> Result<Item, String> {
        let task = || {
            let id = self.task.as_deref().and_then(|text| Uuid::try_parse(text).ok());
            id.map(TaskId).ok_or("an item of this state has no task")
        };
        let phase = match self.phase {
            PhaseRecord::New => Phase::New,
            PhaseRecord::Dispatching => Phase::Dispatching(task()?),
            PhaseRecord::Downloaded => Phase::Downloaded(task()?),
            PhaseRecord::Ignored => Phase::Ignored,
            PhaseRecord::Missed => Phase::Missed,
            PhaseRecord::Duplicate => Phase::Duplicate,
            PhaseRecord::Seeded => Phase::Seeded,
        };
        let file = self.file.map(|file| {
            let url = SafeUrl::stored(&file.url).map_err(|error| error.to_string())?;
            Ok::<_, String>(Enclosure {
                url,
                bytes: file.bytes,
                is_torrent: file.is_torrent,
            })
        });
        Ok(Item {
            serial,
            source,
            entry: Entry {
                guid: self.guid,
                title: self.title,
                link: url(self.link)?,
                enclosure: file.transpose()?,
                published: time(self.published)?,
                infohash: self.infohash,
                resolve_with_plugin: self.resolve_with_plugin,
            },
            fetched: time(self.fetched)?.unwrap_or_default(),
            phase,
            reason: Reason::parse(&self.reason).ok_or_else(|| format!("there is no reason {}", self.reason))?,
            detail: self.detail,
            tasks: self.tasks,
            failures: self.failures,
            not_before: time(self.not_before)?,
            has_failed: self.has_failed,
        })
    }
}

fn time(text: Option<String>) -> Result<Option<Timestamp>, String> {
    text.map(|text| text.parse().map_err(|error: jiff::Error| error.to_string()))
        .transpose()
}

fn url(text: Option<String>) -> Result<Option<SafeUrl>, String> {
    text.map(|text| SafeUrl::stored(&text).map_err(|error| error.to_string()))
        .transpose()
}
