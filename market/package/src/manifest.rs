//! `plugin.json`, the manifest of a plugin. Errors name their exact place in it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Definition, HostPattern, Identity, UrlPattern};

mod check;
mod record;

pub use record::{Author, Hook, HookEvent, LoginMode, LoginSlot, Post, Tool};

/// The file in a package.
pub const FILE: &str = "plugin.json";

/// The JSON Schema of [`FILE`], for editors.
pub const SCHEMA: &str = include_str!("../plugin.schema.json");

/// The newest version of the format of which this host knows every key.
pub const VERSION: u32 = 1;

/// A valid manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The identity of the plugin.
    pub identity: Identity,
    /// The name that users see.
    pub name: String,
    /// The version of the plugin.
    pub version: semver::Version,
    /// What the plugin does.
    pub description: String,
    /// A page about the plugin; an http or https URL.
    pub homepage: Option<String>,
    /// The path of an icon in the package.
    pub icon: Option<String>,
    /// The licence of the plugin.
    pub license: Option<String>,
    /// The language of `entry`.
    pub language: Language,
    /// The path of the code in the package.
    pub entry: String,
    /// The version of the plugin interface that the code uses, as `svc plugin pack` found it.
    pub abi: Option<String>,
    /// The oldest version of the service that can run it.
    pub min_host: Option<semver::Version>,
    /// The capabilities of the plugin.
    pub capabilities: Capabilities,
    /// The permissions that it asks for.
    pub permissions: Asked,
    /// The settings that users can change.
    pub settings: Vec<Definition>,
    /// A glob for the files with recorded exchanges, `fixtures/*.json`.
    pub tests: Option<String>,
    /// The author of the plugin.
    pub author: Option<Author>,
}

/// The language of a plugin's code, as far as the runtime distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Language {
    /// A WebAssembly component.
    #[default]
    #[serde(rename = "component")]
    Component,
    /// A WebAssembly core module that is made into a component when it is loaded; for plugins under development. No
    /// manifest names it: the bytes tell.
    #[serde(skip)]
    CoreModule,
    /// JavaScript, run by the shared engine.
    #[serde(rename = "js")]
    Script,
}

/// The capabilities of a plugin.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    /// Resolves URLs into downloads.
    pub resolver: Option<Resolver>,
    /// Shows the content of a URL faster than the resolver can resolve it.
    pub preview: bool,
    /// Reads feeds.
    pub feed: Option<Feed>,
    /// The accounts that it can log in to.
    pub login: Vec<LoginSlot>,
    /// Processes finished files.
    pub post: Option<Post>,
    /// Receives events of tasks.
    pub hook: Option<Hook>,
}

impl Capabilities {
    /// The names of the capabilities in manifests and interfaces.
    pub fn names(&self) -> Vec<String> {
        let all = [
            ("resolver", self.resolver.is_some()),
            ("preview", self.preview),
            ("feed", self.feed.is_some()),
            ("login", !self.login.is_empty()),
            ("post", self.post.is_some()),
            ("hook", self.hook.is_some()),
        ];
        let had = all.into_iter().filter(|(_, is_had)| *is_had);
        had.map(|(name, _)| name.to_owned()).collect()
    }
}

/// The capability to resolve URLs.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The URLs that the plugin handles.
    pub matches: Vec<UrlPattern>,
    /// The key of the setting with further sites that the plugin handles ([`UrlPattern::of_sites`]).
    pub match_setting: Option<String>,
    /// The order among plugins that handle a URL; the highest is called first.
    pub priority: i32,
    /// The longest time of a call.
    pub wall: std::time::Duration,
    /// Whether it returns lists, which are shown before anything is downloaded.
    pub gives_lists: bool,
}

/// The capability to read feeds.
#[derive(Debug, Clone)]
pub struct Feed {
    /// The URLs of the feeds that the plugin reads.
    pub matches: Vec<UrlPattern>,
    /// The fields that users fill in for each source. The plugin reads them as settings, so no setting has their keys.
    pub config: Vec<Definition>,
}

/// Hosts that a plugin works without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionalHosts {
    /// Hosts that the manifest names.
    pub named: Vec<HostPattern>,
    /// Whether the plugin may ask for any other host, one at a time, because the targets of links are not known before.
    pub any: bool,
}

impl OptionalHosts {
    /// Whether the plugin may ask for `host`.
    pub fn has(&self, host: &HostPattern) -> bool {
        self.named.contains(host) || (self.any && !host.has_wildcard())
    }
}

/// The permissions that a manifest asks for.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub struct Asked {
    /// Hosts that the plugin needs.
    pub hosts: Vec<HostPattern>,
    /// Hosts that the plugin uses if the user allows it.
    pub optional_hosts: OptionalHosts,
    /// Whether it may contact the host of the URL that the user gives, for one call.
    pub input_host: bool,
    /// The names of secrets, and the hosts that each may be sent to.
    pub secrets: BTreeMap<String, Vec<HostPattern>>,
    /// Whether it may receive digests and signatures that are computed from secrets.
    pub derives_secrets: bool,
    /// Whether it may have the user's `yt-dlp` look at web pages.
    pub discovers_media: bool,
    /// Whether it may read the cookies that its hosts set.
    pub reads_cookies: bool,
    /// The most bytes that it may store.
    pub storage_bytes: u64,
    /// The most bytes of memory of an instance.
    pub memory_bytes: u64,
}

impl Asked {
    /// Parses the `permissions` of a manifest, as an index repeats them.
    pub fn parse(text: &str) -> Result<Self, InvalidManifest> {
        let record = serde_json::from_str(text).map_err(|error| InvalidManifest::new("/permissions", error))?;
        check::permissions(record)
    }
}

/// How a reader treats keys that this host does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// An unknown key is an error: the reader is the author, or the file does not come from a market.
    Strict,
    /// A manifest of a newer format may have unknown keys: it comes from a market, which lists newer versions, too.
    Lenient,
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{FILE} {}: {reason}", if pointer.is_empty() { "/" } else { pointer })]
pub struct InvalidManifest {
    /// The place of the fault, as a JSON pointer.
    pub pointer: String,
    /// The fault.
    pub reason: String,
}

impl InvalidManifest {
    /// A fault at a place, which is a JSON pointer.
    #[expect(clippy::needless_pass_by_value, reason = "reasons are texts and errors alike")]
    pub fn new(pointer: impl Into<String>, reason: impl ToString) -> Self {
        Self {
            pointer: pointer.into(),
            reason: reason.to_string(),
        }
    }
}

impl Manifest {
    /// Everything that the code reads as a setting: the plugin's settings, and the fields of a feed's source.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        let of_feeds = self.capabilities.feed.iter().flat_map(|feed| &feed.config);
        self.settings.iter().chain(of_feeds)
    }

    /// Parses `text`. The second part of the result are the unknown keys, as JSON pointers.
    pub fn parse(text: &[u8], reading: Reading) -> Result<(Self, Vec<String>), InvalidManifest> {
        let (record, unknown) = record::read(text)?;
        let is_newer = record.manifest_version > VERSION;
        if let Some(key) = unknown.first()
            && !(is_newer && reading == Reading::Lenient)
        {
            return Err(InvalidManifest::new(key, "unknown key"));
        }
        Ok((check::check(record)?, unknown))
    }
}

#[cfg(test)]
mod tests;
