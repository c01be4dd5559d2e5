//! `plugin.json` as it is written. The JSON Schema is generated from these types.

use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, de};
use transfer::ByteCount;

use super::{InvalidManifest, Language};
use crate::{HostPattern, Identity, InvalidHostPattern, UrlPattern};

/// A larger file is not read: the largest honest one has a few hundred settings.
const MAX_BYTES: usize = 256 * 1024;

macro_rules! records {
    ($($(#[$attribute:meta])* struct $name:ident { $($(#[$field_attribute:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(Debug, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
        #[serde(rename_all = "camelCase")]
        $(#[$attribute])*
        pub(super) struct $name { $($(#[$field_attribute])* pub(super) $field: $type),* }
    )*};
}

records! {
    /// A plugin's description of itself.
    #[cfg_attr(test, schemars(title = "plugin.json"))]
    struct ManifestRecord {
        /// Where this description of the format is, for editors.
        #[serde(rename = "$schema")]
        _schema: Option<String>,
        /// The version of this format.
        manifest_version: u32,
        /// `name@author`, of lower-case letters, digits, `_` and `-`.
        #[cfg_attr(test, schemars(regex(pattern = "^[a-z0-9_-]+@[a-z0-9_-]+$")))]
        identity: Text<Identity>,
        /// What the user reads.
        name: String,
        /// `major.minor.patch`.
        version: Text<semver::Version>,
        #[serde(default)]
        description: String,
        homepage: Option<String>,
        /// A picture in the package.
        icon: Option<String>,
        license: Option<String>,
        #[serde(default)]
        runtime: RuntimeRecord,
        /// The code in the package.
        entry: String,
        /// Filled by the packer: the version of the interface that the code uses.
        abi: Option<String>,
        /// Filled by the packer: the oldest host that has everything the code uses.
        min_host: Option<Text<semver::Version>>,
        capabilities: CapabilitiesRecord,
        #[serde(default)]
        permissions: PermissionsRecord,
        #[serde(default)]
        settings: Vec<SettingRecord>,
        /// Which files hold recorded exchanges.
        tests: Option<String>,
        author: Option<AuthorRecord>,
    }

    /// What a plugin can do; at least one.
    struct CapabilitiesRecord {
        resolver: Option<ResolverRecord>,
        #[serde(default)]
        preview: bool,
        feed: Option<FeedRecord>,
        login: Option<LoginRecord>,
        post: Option<PostRecord>,
        hook: Option<HookRecord>,
    }

    struct ResolverRecord {
        /// Which URLs: `https://host/path*`.
        r#match: Vec<Text<UrlPattern>>,
        /// Higher goes first.
        #[serde(default)]
        priority: i32,
        wall_ms: Option<u32>,
        /// It gives lists.
        #[serde(default)]
        multi: bool,
    }

    struct FeedRecord {
        r#match: Vec<Text<UrlPattern>>,
    }

    struct LoginRecord {
        slots: Vec<LoginSlotRecord>,
    }

    struct LoginSlotRecord {
        id: String,
        title: String,
        modes: Vec<LoginModeRecord>,
    }

    struct PostRecord {
        events: Vec<PostEventRecord>,
        #[serde(default)]
        tools: Vec<ToolRecord>,
    }

    struct HookRecord {
        events: Vec<HookEventRecord>,
        #[serde(default)]
        r#match: Vec<Text<UrlPattern>>,
    }

    struct AuthorRecord {
        name: String,
        key: Option<String>,
    }

    struct OptionRecord {
        value: String,
        #[serde(default)]
        label: String,
    }

    struct SettingRecord {
        key: String,
        #[serde(default)]
        title: String,
        #[serde(default)]
        description: String,
        r#type: TypeRecord,
        /// What the user sees; the usual one for the type if it is left out.
        widget: Option<WidgetRecord>,
        #[serde(default)]
        options: Vec<OptionRecord>,
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
}

/// What a plugin asks for.
#[derive(Debug, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionsRecord {
    /// Hosts it cannot do without: `https://name` or `https://*.name`.
    pub(super) hosts: Vec<Text<HostPattern>>,
    /// Hosts that the user is asked about when they are needed; `*` is any host, each asked about by itself.
    pub(super) optional_hosts: Vec<Text<OptionalHost>>,
    /// The host of the URL that the user gives, for one call.
    pub(super) input_host: bool,
    /// Names of secrets, and the hosts they may be sent to.
    pub(super) secrets: BTreeMap<String, Vec<Text<HostPattern>>>,
    /// Digests and signatures of secrets; a script may have none without it, compiled code is known by its imports.
    pub(super) derive_secrets: bool,
    pub(super) cookies: CookiesRecord,
    pub(super) storage_kb: Option<u64>,
    pub(super) memory_mb: Option<u64>,
}

/// A host that the user is asked about.
#[derive(Debug)]
pub(super) enum OptionalHost {
    /// Whichever it will be.
    Any,
    Named(HostPattern),
}

impl FromStr for OptionalHost {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        match text {
            "*" => Ok(Self::Any),
            _ => text.parse().map(Self::Named),
        }
    }
}

/// What the code is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) enum RuntimeRecord {
    #[default]
    Component,
    Js,
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

/// Closed sets of words. `text` gives a word back as it is written.
macro_rules! words {
    ($($name:ident { $($word:ident = $text:literal),* $(,)? })*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub(super) enum $name { $(#[serde(rename = $text)] $word),* }

        impl $name {
            pub(super) fn text(self) -> &'static str {
                match self { $(Self::$word => $text),* }
            }
        }
    )*};
}

words! {
    TypeRecord { String = "string", Number = "number", Boolean = "boolean" }
    LoginModeRecord { Qr = "qr", Password = "password", Cookie = "cookie", Browser = "browser" }
    WidgetRecord {
        Text = "text",
        Password = "password",
        Textarea = "textarea",
        Select = "select",
        Toggle = "toggle",
        Number = "number",
        Folder = "folder",
    }
    PostEventRecord { Done = "done" }
    ToolRecord { Unpack = "unpack", Mux = "mux" }
    HookEventRecord { Start = "start", Done = "done", Error = "error", MetaProbed = "metaProbed" }
}

/// A text that is parsed where it stands, so that an error names its place.
#[derive(Debug)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr<Err: fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Visitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor(PhantomData)).map(Self)
    }
}

#[cfg(test)]
impl<T> schemars::JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
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

impl From<RuntimeRecord> for Language {
    fn from(record: RuntimeRecord) -> Self {
        match record {
            RuntimeRecord::Component => Self::Component,
            RuntimeRecord::Js => Self::Script,
        }
    }
}
