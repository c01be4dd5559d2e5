//! The arguments of tools. Their published schemas are derived from these records; doc comments are descriptions that
//! clients see.

use protocol::TaskStatus;
use serde::Deserialize;
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
    #[schema(value_type = String, required = false)]
    pub(super) file_name: Option<String>,
    /// An absolute directory on the machine of the service; else the queue's or the default one.
    #[schema(value_type = String, required = false)]
    pub(super) save_dir: Option<String>,
    /// Connections to use at once; 0 is automatic.
    #[schema(value_type = usize, required = false, minimum = 0, maximum = 64)]
    pub(super) segments: Option<i64>,
    /// A proxy of http, https, socks4 or socks5; "direct" is none.
    #[schema(value_type = String, required = false)]
    pub(super) proxy_url: Option<String>,
    /// The value of a Cookie header.
    #[schema(value_type = String, required = false)]
    pub(super) cookies: Option<String>,
    /// The page that links to it.
    #[schema(value_type = String, required = false)]
    pub(super) referrer: Option<String>,
    /// The User-Agent to show.
    #[schema(value_type = String, required = false)]
    pub(super) user_agent: Option<String>,
    /// The queue; else the default one.
    #[schema(value_type = String, required = false)]
    pub(super) queue_id: Option<String>,
    /// What the file must hash to, as algorithm=hex, for example sha-256=…
    #[schema(value_type = String, required = false)]
    pub(super) checksum: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[schema(schema_with = statuses, required = false)]
    pub(super) status: Option<String>,
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
    #[schema(value_type = bool, required = false, default = false)]
    pub(super) delete_files: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Preview {
    /// What to look behind.
    #[schema(min_length = 1)]
    pub(super) url: String,
    /// The value of a Cookie header.
    #[schema(value_type = String, required = false)]
    pub(super) cookies: Option<String>,
    /// The page that links to it.
    #[schema(value_type = String, required = false)]
    pub(super) referrer: Option<String>,
    /// The User-Agent to show.
    #[schema(value_type = String, required = false)]
    pub(super) user_agent: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}
