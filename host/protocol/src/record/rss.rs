//! Subscriptions to feeds, and their items.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A subscription. Runtime fields are never written by a request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the members of the record on the wire"
)]
pub struct RssSourceDto {
    /// Its id.
    pub source_id: String,
    /// The feed, or a web page that names one.
    pub url: String,
    /// Its name; empty takes the feed's title.
    pub name: String,
    /// It is fetched.
    pub enabled: bool,
    /// New items that its rules take are downloaded.
    pub auto_download: bool,
    /// Confirms that every new item of the feed is downloaded. A source with `autoDownload` and without an include pattern,
    /// of its own or of all its rules, is refused without it.
    pub download_all: bool,
    /// Tasks are created paused.
    pub start_paused: bool,
    /// The queue of its tasks; empty is the default one.
    pub queue_id: String,
    /// The directory of its tasks; empty is the queue's.
    pub save_dir: String,
    /// Directories below it, such as `{series}/Season {season}`; may name `{series}`, `{season}`, `{episode}`, `{title}` and
    /// `{source}`. A directory with a field that is not known is left out.
    pub dir_template: String,
    /// Minutes between two fetches; 0 is 30.
    pub interval_minutes: u32,
    /// What titles must match; empty is everything.
    pub include_pattern: String,
    /// What titles must not match; empty is nothing.
    pub exclude_pattern: String,
    /// Patterns are regular expressions. Else they are words: blanks mean and, `|` means or.
    pub use_regex: bool,
    /// Each episode is downloaded once.
    pub smart_episode: bool,
    /// The smallest size; 0 is none.
    pub size_min_bytes: u64,
    /// The largest size; 0 is none.
    pub size_max_bytes: u64,
    /// Accepted qualities (`1080p`, `web-dl`, `2160p bluray`), best first; empty is every one.
    pub qualities: Vec<String>,
    /// An episode is downloaded again in a better one of `qualities`.
    pub upgrade_quality: bool,
    /// Rules for what has matched the patterns and sizes above; the first that matches takes an item. Empty takes all.
    pub rules: Vec<RssRuleDto>,
    /// Downloads carry the feed's site as `Referer`.
    pub send_referer: bool,
    /// The event of changed items names the titles of new downloads, for a notification.
    pub notify_on_download: bool,
    /// The most downloads that one fetch begins; 0 is 20.
    pub max_per_fetch: u32,
    /// Cookies of the feed, and of downloads from its own origin; `***` if there are some.
    pub cookies: String,
    /// User agent of feed and downloads; empty is the global one.
    pub user_agent: String,
    /// Proxy of feed and downloads; empty is the global one.
    pub proxy_url: String,
    /// Links of the feed may lead to private addresses.
    pub allow_private: bool,
    /// The plugin's feed that is read; empty is RSS, Atom or JSON Feed.
    pub provider_id: String,
    /// The plugin's fields.
    pub provider_config: BTreeMap<String, String>,
    /// Runtime: when it was last fetched; Unix seconds, 0 is never.
    pub last_fetch_at: i64,
    /// Runtime: when that last succeeded; Unix seconds, 0 is never.
    pub last_success_at: i64,
    /// Runtime: when it is fetched next; Unix seconds, 0 is never.
    pub next_fetch_at: i64,
    /// Runtime: why the last fetch failed; empty if it succeeded.
    pub last_error: String,
    /// Runtime: how many fetches failed since the last success.
    pub fail_count: u32,
    /// Runtime: its first round is over.
    pub seeded: bool,
    /// Runtime: its place in the list.
    pub position: u32,
    /// Runtime: how many items are new.
    pub unread_count: u32,
}

impl Default for RssSourceDto {
    fn default() -> Self {
        Self {
            source_id: String::new(),
            url: String::new(),
            name: String::new(),
            enabled: true,
            auto_download: true,
            download_all: false,
            start_paused: false,
            queue_id: String::new(),
            save_dir: String::new(),
            dir_template: String::new(),
            interval_minutes: 0,
            include_pattern: String::new(),
            exclude_pattern: String::new(),
            use_regex: false,
            smart_episode: false,
            size_min_bytes: 0,
            size_max_bytes: 0,
            qualities: Vec::new(),
            upgrade_quality: false,
            rules: Vec::new(),
            send_referer: true,
            notify_on_download: true,
            max_per_fetch: 0,
            cookies: String::new(),
            user_agent: String::new(),
            proxy_url: String::new(),
            allow_private: false,
            provider_id: String::new(),
            provider_config: BTreeMap::new(),
            last_fetch_at: 0,
            last_success_at: 0,
            next_fetch_at: 0,
            last_error: String::new(),
            fail_count: 0,
            seeded: false,
            position: 0,
            unread_count: 0,
        }
    }
}

impl fmt::Debug for RssSourceDto {
    /// Without URL, cookies and a plugin's fields, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RssSourceDto({}, {})", self.source_id, self.name)
    }
}

/// A rule of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssRuleDto {
    /// Its name, which verdicts show.
    pub name: String,
    /// What titles must match; empty is everything.
    pub include_pattern: String,
    /// What titles must not match; empty is nothing.
    pub exclude_pattern: String,
    /// Patterns are regular expressions. Else they are words: blanks mean and, `|` means or.
    pub use_regex: bool,
    /// The smallest size; 0 is none.
    pub size_min_bytes: u64,
    /// The largest size; 0 is none.
    pub size_max_bytes: u64,
    /// The queue of what it takes; empty is the source's.
    pub queue_id: String,
    /// The directory of what it takes; empty is the source's.
    pub save_dir: String,
    /// Directories below it; empty is the source's.
    pub dir_template: String,
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum RssItemStatus {
    /// New.
    #[default]
    New = 0,
    /// Downloaded.
    Downloaded = 1,
    /// Ignored by the user, or its task was deleted.
    Ignored = 2,
    /// Left by the rules.
    RuleMiss = 3,
    /// Its episode was downloaded before.
    DuplicateEpisode = 4,
    /// It was in the feed when the source was added.
    Seeded = 5,
}

impl From<RssItemStatus> for u8 {
    fn from(status: RssItemStatus) -> Self {
        status as Self
    }
}

impl TryFrom<u8> for RssItemStatus {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        let all = [
            Self::New,
            Self::Downloaded,
            Self::Ignored,
            Self::RuleMiss,
            Self::DuplicateEpisode,
            Self::Seeded,
        ];
        let known = all.into_iter().find(|status| u8::from(*status) == number);
        known.ok_or_else(|| format!("there is no item status {number}"))
    }
}

/// An item of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssItemDto {
    /// Its source.
    pub source_id: String,
    /// What identifies it within its source.
    pub guid: String,
    /// Its title.
    pub title: String,
    /// The page about it.
    pub link: String,
    /// The file.
    pub enclosure_url: String,
    /// The file's size; 0 is unknown.
    pub enclosure_length: u64,
    /// When it was published; Unix seconds, 0 is unknown.
    pub pub_date: i64,
    /// When it was first seen; Unix seconds.
    pub fetched_at: i64,
    /// What became of it: 0 new, 1 its task was created, 2 ignored, 3 no rule matches, 4 downloaded before, 5 there when the
    /// source was added.
    #[schema(value_type = u8, maximum = 5)]
    pub status: RssItemStatus,
    /// The task that downloads it, or did until it was deleted; empty until the task exists.
    pub task_id: String,
    /// The series and episode that its title names.
    pub episode_key: String,
    /// Why it has its status: `included`, `upgrade`, `not_included`, `excluded`, `too_small`, `too_large`, `quality`,
    /// `dup_episode`, `dup_item`, `seed_skipped`, `nothing_to_download`, `too_many` (the source has a thousand new items),
    /// `not_started` (the task could not be created, see `detail`), `manual`, `ignored`, `read` or `task_deleted`.
    pub reason: String,
    /// Why the task could not be created, for people; it is tried again. Empty unless that is so.
    pub detail: String,
}

/// An action on an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssItemActionRequest {
    /// The item; without meaning for `readAll`.
    pub guid: String,
    /// `download`, `ignore`, `read` or `readAll`.
    pub action: String,
}

/// Params of the methods for one subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssSourceParams {
    /// The subscription.
    pub source_id: String,
}

/// Params of an action on an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssItemActionParams {
    /// The subscription.
    pub source_id: String,
    /// The item; without meaning for `readAll`.
    pub guid: String,
    /// `download`, `ignore`, `read` or `readAll`.
    pub action: String,
}

/// A new subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssCreatedSource {
    /// Its id.
    pub source_id: String,
}

/// Subscriptions from another program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssImportRequest {
    /// An OPML document.
    pub document: String,
}

/// What came of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssImportResponse {
    /// The ids of the new subscriptions, in the order of the document.
    pub source_ids: Vec<String>,
    /// How many were subscribed to already.
    pub known: usize,
    /// The ones that cannot be subscribed to.
    pub failed: Vec<RssImportFailure>,
}

/// A feed of an imported list that cannot be subscribed to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssImportFailure {
    /// Its name in the list.
    pub name: String,
    /// Its URL in the list, without a password.
    pub url: String,
    /// Why.
    pub error: String,
}

/// All subscriptions, for another program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssExportResponse {
    /// An OPML document.
    pub document: String,
}

/// A dry run of a feed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssValidateRequest {
    /// The feed.
    pub url: String,
    /// Cookies to fetch it with.
    pub cookies: String,
    /// User agent to fetch it with.
    pub user_agent: String,
    /// Proxy to fetch it through.
    pub proxy_url: String,
    /// The source whose rules are tried. Its `sourceId` lets them be tried against the stored history.
    pub source: Option<RssSourceDto>,
}

impl fmt::Debug for RssValidateRequest {
    /// Without URL and cookies, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RssValidateRequest({:?})", self.source)
    }
}

/// The result of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssValidateResponse {
    /// Where the feed was found.
    pub url: String,
    /// Its title.
    pub feed_title: String,
    /// Its items.
    pub items: Vec<RssValidatedItem>,
    /// Why there are none; empty if the feed could be read.
    pub error: String,
}

/// What the rules would do with an item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RssValidatedItem {
    /// What identifies it.
    pub guid: String,
    /// Its title.
    pub title: String,
    /// The page about it.
    pub link: String,
    /// The file.
    pub enclosure_url: String,
    /// The file's size; 0 is unknown.
    pub enclosure_length: u64,
    /// When it was published; Unix seconds, 0 is unknown.
    pub pub_date: i64,
    /// The series and episode that its title names.
    pub episode_key: String,
    /// It would be downloaded.
    pub taken: bool,
    /// The rule that decides; empty is the source itself.
    pub rule: String,
    /// Why: a stable name.
    pub reason: String,
    /// Why, for people.
    pub detail: String,
}
