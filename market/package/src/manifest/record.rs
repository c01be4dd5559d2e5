//! `plugin.json` as it is written. The JSON Schema is generated from these types.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::Deserialize;
use transfer::ByteCount;

use super::{InvalidManifest, Language};
use crate::{
    Choice, HostPattern, Identity, InvalidHostPattern, UrlPattern, Widget,
    setting::ValueType,
    text::{named_values, text_in_json},
};

/// A larger file is not read: the largest honest one has a few hundred settings.
const MAX_BYTES: usize = 256 * 1024;

macro_rules! records {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident {
        $($(#[$field_attribute:meta])* $field:ident: $type:ty),* $(,)?
    })*) => {$(
        #[derive(Debug, Clone, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
        #[serde(rename_all = "camelCase")]
        $(#[$attribute])*
        $visibility struct $name { $($(#[$field_attribute])* $visibility $field: $type),* }
    )*};
}

records! {
    /// A plugin's description of itself.
    #[cfg_attr(test, schemars(title = "plugin.json"))]
    pub(super) struct ManifestRecord {
        /// Where this description of the format is, for editors.
        #[serde(rename = "$schema")]
        _schema: Option<String>,
        /// The version of this format.
        manifest_version: u32,
        /// `name@author`, of lower-case letters, digits, `_` and `-`.
        #[cfg_attr(test, schemars(regex(pattern = "^[a-z0-9_-]+@[a-z0-9_-]+$")))]
        identity: Identity,
        /// What the user reads.
        name: String,
        /// `major.minor.patch`.
        #[cfg_attr(test, schemars(with = "String"))]
        version: semver::Version,
        #[serde(default)]
        description: String,
        homepage: Option<String>,
        /// A picture in the package.
        icon: Option<String>,
        license: Option<String>,
        #[serde(default)]
        runtime: Language,
        /// The code in the package.
        entry: String,
        /// Filled by the packer: the version of the interface that the code uses.
        abi: Option<String>,
        /// Filled by the packer: the oldest host that has everything the code uses.
        #[cfg_attr(test, schemars(with = "Option<String>"))]
        min_host: Option<semver::Version>,
        capabilities: CapabilitiesRecord,
        #[serde(default)]
        permissions: PermissionsRecord,
        #[serde(default)]
        settings: Vec<SettingRecord>,
        /// Which files hold recorded exchanges.
        tests: Option<String>,
        author: Option<Author>,
    }

    /// What a plugin can do; at least one.
    pub(super) struct CapabilitiesRecord {
        resolver: Option<ResolverRecord>,
        #[serde(default)]
        preview: bool,
        feed: Option<FeedRecord>,
        login: Option<LoginRecord>,
        post: Option<Post>,
        hook: Option<Hook>,
    }

    pub(super) struct ResolverRecord {
        /// Which URLs: `https://host/path*`.
        r#match: Option<Vec<UrlPattern>>,
        /// The key of a setting that names sites, one a line: all their URLs, too. `*` is every site.
        match_setting: Option<String>,
        /// Higher goes first.
        #[serde(default)]
        priority: i32,
        wall_ms: Option<u32>,
        /// It gives lists.
        #[serde(default)]
        multi: bool,
    }

    pub(super) struct FeedRecord {
        r#match: Vec<UrlPattern>,
        /// What the user fills in for each source.
        #[serde(default)]
        config: Vec<SettingRecord>,
    }

    pub(super) struct LoginRecord {
        slots: Vec<LoginSlot>,
    }

    pub(super) struct SettingRecord {
        key: String,
        #[serde(default)]
        title: String,
        #[serde(default)]
        description: String,
        r#type: ValueType,
        /// What the user sees; the usual one for the type if it is left out.
        widget: Option<Widget>,
        #[serde(default)]
        options: Vec<Choice>,
        default: Option<serde_json::Value>,
        #[serde(default)]
        required: bool,
        /// Kept sealed and never shown; the plugin can use it and not read it.
        #[serde(default)]
        secret: bool,
        min: Option<f64>,
        max: Option<f64>,
        /// A regular expression that a text must match.
        pattern: Option<String>,
    }

    /// An account that a plugin can log in to.
    pub struct LoginSlot {
        /// The id by which the plugin refers to it.
        id: String,
        /// The name that users see.
        title: String,
        /// The ways to log in.
        modes: Vec<LoginMode>,
        /// Fields of its login whose secret values are kept for the renewal of the session; others are forgotten after the
        /// login.
        #[serde(default)]
        keeps: Vec<String>,
        /// How many files of the account can be downloaded at once.
        max_parallel: Option<u32>,
        /// How many files of the account can be downloaded in a day.
        daily_files: Option<u32>,
        /// How many bytes of the account can be downloaded in a day.
        daily_bytes: Option<u64>,
    }

    /// Work on finished files.
    pub struct Post {
        /// The tools of the host that the plugin uses.
        #[serde(default)]
        tools: Vec<Tool>,
    }

    /// The events of tasks that a plugin receives.
    pub struct Hook {
        /// The events.
        events: Vec<HookEvent>,
        /// The URLs of the tasks; without any, all that the plugin claims.
        #[serde(default, rename = "match")]
        matches: Vec<UrlPattern>,
    }

    /// The author of a plugin.
    #[derive(PartialEq, Eq)]
    pub struct Author {
        /// The name that users see.
        name: String,
        /// The public key that signs packages.
        key: Option<String>,
    }
}

/// What a plugin asks for.
#[derive(Debug, Clone, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub(super) struct PermissionsRecord {
    /// Hosts it cannot do without: `https://name` or `https://*.name`.
    pub(super) hosts: Vec<HostPattern>,
    /// Hosts that the user is asked about when they are needed; `*` is any host, each asked about by itself.
    pub(super) optional_hosts: Vec<OptionalHost>,
    /// The host of the URL that the user gives, for one call.
    pub(super) input_host: bool,
    /// Names of secrets, and the hosts they may be sent to.
    pub(super) secrets: BTreeMap<String, Vec<HostPattern>>,
    /// Digests and signatures of secrets; a script may have none without it, compiled code is known by its imports.
    pub(super) derive_secrets: bool,
    /// Having the user's `yt-dlp` look at web pages.
    pub(super) discover_media: bool,
    pub(super) cookies: CookiesRecord,
    pub(super) storage_kb: Option<u64>,
    pub(super) memory_mb: Option<u64>,
}

/// A host that the user is asked about.
#[derive(Debug, Clone)]
pub(super) enum OptionalHost {
    /// Whichever it will be.
    Any,
    Named(HostPattern),
}

impl fmt::Display for OptionalHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Named(host) => host.fmt(f),
        }
    }
}

text_in_json!(OptionalHost);

impl FromStr for OptionalHost {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        match text {
            "*" => Ok(Self::Any),
            _ => text.parse().map(Self::Named),
        }
    }
}

/// Whether cookies are kept for the plugin only, or shown to it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) enum CookiesRecord {
    #[default]
    Jar,
    Read,
}

named_values! {
    /// A way to log in.
    pub enum LoginMode {
        /// The user scans a QR code with the site's app.
        Qr = "qr",
        /// The user types name and password.
        Password = "password",
        /// The user pastes cookies of a browser.
        Cookie = "cookie",
        /// The user logs in with a browser window.
        Browser = "browser",
    }

    /// A tool of the host that works on finished files.
    pub enum Tool {
        /// Unpacks archives.
        Unpack = "unpack",
        /// Joins video and audio.
        Mux = "mux",
    }

    /// An event of a task.
    pub enum HookEvent {
        /// The task starts.
        Start = "start",
        /// The task is complete.
        Done = "done",
        /// The task failed.
        Error = "error",
        /// Size and name of the file are known.
        MetaProbed = "metaProbed",
    }
}

/// Reads a record and the pointers of the keys that it does not have.
pub(super) fn read(text: &[u8]) -> Result<(ManifestRecord, Vec<String>), InvalidManifest> {
    if text.len() > MAX_BYTES {
        let reason = format!("it is longer than {}", ByteCount(MAX_BYTES as u64));
        return Err(InvalidManifest::new("", reason));
    }
    // Editors on Windows put a byte order mark in front.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let mut unknown = Vec::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let record = serde_ignored::deserialize(tracked, |path| unknown.push(pointer_of_ignored(&path)));
    let record = record.map_err(|error| InvalidManifest::new(pointer_of(&track.path()), error))?;
    json.end().map_err(|error| InvalidManifest::new("", error))?;
    Ok((record, unknown))
}

/// One step of a JSON pointer.
fn step(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => step(key),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        })
        .collect()
}

fn pointer_of_ignored(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}/{index}", pointer_of_ignored(parent)),
        Path::Map { parent, key } => pointer_of_ignored(parent) + &step(key),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            pointer_of_ignored(parent)
        }
    }
}
