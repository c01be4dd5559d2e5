//! The arguments and results of tools. Their published schemas are derived from these records; doc comments of arguments
//! are descriptions that clients see.

use protocol::{PluginDto, QueueDto, RssSourceDto, TaskDto, TaskStatus};
use serde::{Deserialize, Serialize};
use utoipa::{
    ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

/// The status that is no filter.
pub(super) const ALL: &str = "all";

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Add {
    /// What to download.
    #[schema(min_length = 1)]
    pub(super) url: String,
    /// The file's name; else the server's or the URL's.
    #[serde(default)]
    pub(super) file_name: String,
    /// An absolute directory on the machine of the service; else the queue's or the default one.
    #[serde(default)]
    pub(super) save_dir: String,
    /// Connections to use at once; 0 is automatic.
    #[serde(default)]
    #[schema(value_type = usize, minimum = 0, maximum = 64)]
    pub(super) segments: i64,
    /// A proxy of http, https, socks4 or socks5; "direct" is none.
    #[serde(default)]
    pub(super) proxy_url: String,
    /// The value of a Cookie header.
    #[serde(default)]
    pub(super) cookies: String,
    /// The page that links to it.
    #[serde(default)]
    pub(super) referrer: String,
    /// The User-Agent to show.
    #[serde(default)]
    pub(super) user_agent: String,
    /// The queue; else the default one.
    #[serde(default)]
    pub(super) queue_id: String,
    /// What the file must hash to, as algorithm=hex, for example sha-256=…
    #[serde(default)]
    pub(super) checksum: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(default)]
    #[schema(schema_with = statuses)]
    pub(super) status: String,
}

fn statuses() -> RefOr<Schema> {
    let names = std::iter::once(ALL).chain(TaskStatus::ALL.iter().map(|status| status.name()));
    let object = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .description(Some("Only downloads of this status."));
    object.into()
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct One {
    /// The download's id.
    pub(super) task_id: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Remove {
    /// The download's id.
    pub(super) task_id: String,
    /// Delete the finished file, too.
    #[serde(default)]
    #[schema(default = false)]
    pub(super) delete_files: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Preview {
    /// What to look behind.
    #[schema(min_length = 1)]
    pub(super) url: String,
    /// The value of a Cookie header.
    #[serde(default)]
    pub(super) cookies: String,
    /// The page that links to it.
    #[serde(default)]
    pub(super) referrer: String,
    /// The User-Agent to show.
    #[serde(default)]
    pub(super) user_agent: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Subscribe {
    /// A feed, or a web page that names one.
    #[schema(min_length = 1)]
    pub(super) url: String,
    /// Its name; else the feed's title.
    #[serde(default)]
    pub(super) name: String,
    /// Words that a title must have to be downloaded: blanks mean and, | means or.
    #[serde(default)]
    pub(super) include_pattern: String,
    /// Words that a title must not have.
    #[serde(default)]
    pub(super) exclude_pattern: String,
    /// An absolute directory on the machine of the service; else the queue's or the default one.
    #[serde(default)]
    pub(super) save_dir: String,
    /// The queue; else the default one.
    #[serde(default)]
    pub(super) queue_id: String,
    /// Minutes between two fetches; 0 is 30.
    #[serde(default)]
    #[schema(maximum = 10080)]
    pub(super) interval_minutes: u32,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Unsubscribe {
    /// The subscription's id.
    pub(super) source_id: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

macro_rules! results {
    ($($name:ident { $($member:ident: $kind:ty),+ })+) => {
        $(
            #[derive(Serialize, ToSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            pub(super) struct $name {
                $(pub(super) $member: $kind,)+
            }
        )+
    };
}

results! {
    Listed { tasks: Vec<TaskDto>, count: u64 }
    Shown { task: TaskDto }
    Paused { paused: String }
    Resumed { resumed: String }
    PausedAll { paused_all: bool }
    ResumedAll { resumed_all: bool }
    Removed { removed: String, deleted_files: bool }
    Queues { queues: Vec<QueueDto> }
    Plugins { plugins: Vec<PluginDto> }
    Subscriptions { sources: Vec<RssSourceDto> }
    Subscribed { source_id: String }
    Unsubscribed { removed: String }
}
