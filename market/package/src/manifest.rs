//! What a plugin says about itself: `plugin.json`, read with the exact place of whatever is wrong in it.

use std::collections::BTreeMap;

use crate::{Definition, HostPattern, Identity, UrlPattern};

mod check;
mod record;

/// The file in a package.
pub const FILE: &str = "plugin.json";

/// The JSON Schema of [`FILE`], for editors.
pub const SCHEMA: &str = include_str!("../plugin.schema.json");

/// The version of the format that this host knows whole.
pub const VERSION: u32 = 1;

/// What `plugin.json` says, checked.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Who it is.
    pub identity: Identity,
    /// What the user reads.
    pub name: String,
    /// Its version.
    pub version: semver::Version,
    /// What it is for.
    pub description: String,
    /// Where to read more; an http(s) URL.
    pub homepage: Option<String>,
    /// A picture in the package.
    pub icon: Option<String>,
    /// The licence.
    pub license: Option<String>,
    /// What `entry` is written in.
    pub language: Language,
    /// The code in the package.
    pub entry: String,
    /// The version of the interface that the code uses, as the packer saw it.
    pub abi: Option<String>,
    /// The oldest host that it runs on.
    pub min_host: Option<semver::Version>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What it asks for.
    pub permissions: Asked,
    /// What the user may set.
    pub settings: Vec<Definition>,
    /// Which files of the package hold recorded exchanges, `fixtures/*.json`.
    pub tests: Option<String>,
    /// Who made it.
    pub author: Option<Author>,
}

/// What a plugin's code is written in, as far as the runtime cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// A WebAssembly component.
    Component,
    /// A WebAssembly core module that is made into a component when it is loaded; for plugins under development.
    CoreModule,
    /// JavaScript, run by the shared engine.
    Script,
}

/// What a plugin can do.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    /// Makes downloads of URLs.
    pub resolver: Option<Resolver>,
    /// Shows what a URL holds without the work of a resolver.
    pub preview: bool,
    /// Reads feeds of these URLs.
    pub feed: Option<Vec<UrlPattern>>,
    /// Logs in.
    pub login: Vec<LoginSlot>,
    /// Works on finished files.
    pub post: Option<Post>,
    /// Hears of a task's events.
    pub hook: Option<Hook>,
}

impl Capabilities {
    /// Their names in manifests and interfaces.
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

/// How a plugin resolves URLs.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// Which URLs.
    pub matches: Vec<UrlPattern>,
    /// Before which other plugins; higher is earlier.
    pub priority: i32,
    /// How long a call may take.
    pub wall: std::time::Duration,
    /// It gives lists, which are worth showing before anything is downloaded.
    pub gives_lists: bool,
}

/// An account that a plugin can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSlot {
    /// Names it to the plugin.
    pub id: String,
    /// What the user reads.
    pub title: String,
    /// The ways: `qr`, `password`, `cookie`, `browser`.
    pub modes: Vec<String>,
}

/// Work on finished files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// After which events.
    pub events: Vec<String>,
    /// With which tools of the host.
    pub tools: Vec<String>,
}

/// What a plugin hears of tasks.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Which events.
    pub events: Vec<String>,
    /// Of which URLs; of all that the plugin claims if none are named.
    pub matches: Vec<UrlPattern>,
}

/// Hosts that a plugin can do without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionalHosts {
    /// Those that its author knows.
    pub named: Vec<HostPattern>,
    /// Any other, too, one by one: what links lead to is not known before.
    pub any: bool,
}

impl OptionalHosts {
    /// Whether the user can be asked about `host`.
    pub fn has(&self, host: &HostPattern) -> bool {
        self.named.contains(host) || (self.any && !host.has_wildcard())
    }
}

/// What a manifest asks for.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct Asked {
    /// Hosts it cannot do without.
    pub hosts: Vec<HostPattern>,
    /// Hosts it can use if the user allows them.
    pub optional_hosts: OptionalHosts,
    /// The host of whatever URL the user gives.
    pub input_host: bool,
    /// Secrets, and the hosts they may go to.
    pub secrets: BTreeMap<String, Vec<HostPattern>>,
    /// Whether it may be told what is computed from secrets.
    pub derives_secrets: bool,
    /// Whether it may read the cookies that its hosts set.
    pub reads_cookies: bool,
    /// How much it may remember.
    pub storage_bytes: u64,
    /// How much memory it may use.
    pub memory_bytes: u64,
}

impl Asked {
    /// Reads the `permissions` of a manifest.
    pub fn parse(text: &str) -> Result<Self, InvalidManifest> {
        let record = serde_json::from_str(text).map_err(|error| InvalidManifest::new("/permissions", error))?;
        check::permissions(record)
    }
}

/// Who made a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The public key that signs packages.
    pub key: Option<String>,
}

/// Who reads a manifest, which decides what an unknown key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Its author, or somebody with a file from nowhere: an unknown key is an error.
    Strict,
    /// A user of a market: a manifest of a newer format may have keys that this host does not know.
    Lenient,
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{FILE} {}: {reason}", if pointer.is_empty() { "/" } else { pointer })]
pub struct InvalidManifest {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What.
    pub reason: String,
}

impl InvalidManifest {
    #[expect(clippy::needless_pass_by_value, reason = "reasons are texts and errors alike")]
    /// Names the place of a fault, as a JSON pointer.
    pub fn new(pointer: impl Into<String>, reason: impl ToString) -> Self {
        Self {
            pointer: pointer.into(),
            reason: reason.to_string(),
        }
    }
}

impl Manifest {
    /// Reads `text`. The second part are the keys that were not understood, as JSON pointers.
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
