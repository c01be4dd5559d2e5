//! Permissions: those that a manifest requests, that the code needs by its imports, and that the user granted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use engine::Proxies;
use market::Digest;
use plugin_package::{
    HostPattern, Language, Manifest,
    manifest::{Asked, Tool},
};
use serde::{Deserialize, Serialize};
use transfer::{RequestOptions, SafeUrl};
use url::Url;

use crate::{
    as_text::{TextKeys, Texts},
    policy::host::{Grants, InputHost, Others},
};

/// The exports and imports of the code: its interfaces, and every host function that it can call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// The interfaces it exports, without package and version: `resolver`, `previewer`.
    pub exports: Vec<String>,
    /// The functions it imports: `http.send`, `vault-reveal.reveal`.
    pub imports: Vec<String>,
}

/// A permission, which users grant or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    /// Send requests to hosts.
    Host(HostPattern),
    /// Send requests to the host of the call's URL.
    InputHost,
    /// Send a secret to hosts, without reading it.
    Secret {
        name: String,
        host: HostPattern,
    },
    ReadCookies,
    /// Compute digests and signatures from secrets, and encrypt them.
    DeriveSecrets,
    RevealSecrets,
    /// Have the user's `yt-dlp` look at web pages.
    DiscoverMedia,
    /// Be told of downloads whose URLs match a pattern, beside those that it resolves.
    Watch(String),
    /// Read and change the files of finished downloads.
    FinishedFiles,
    /// Run a tool of the host on these files.
    Tool(String),
}

/// A text that is no permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a permission")]
pub struct InvalidPermission;

impl Permission {
    /// Every [`code`](Self::code), for those who have words for each.
    pub const CODES: &'static [&'static str] = &[
        "host",
        "inputHost",
        "secret",
        "cookies:read",
        "secrets:derive",
        "secrets:reveal",
        "tools:discover",
        "watch",
        "finishedFiles",
        "tool",
    ];

    /// The first word of its text: what it permits, without to whom.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Host(_) => "host",
            Self::InputHost => "inputHost",
            Self::Secret { .. } => "secret",
            Self::ReadCookies => "cookies:read",
            Self::DeriveSecrets => "secrets:derive",
            Self::RevealSecrets => "secrets:reveal",
            Self::DiscoverMedia => "tools:discover",
            Self::Watch(_) => "watch",
            Self::FinishedFiles => "finishedFiles",
            Self::Tool(_) => "tool",
        }
    }

    /// A description for users: the predicate of a sentence whose subject is the plugin.
    pub fn description(&self) -> String {
        match self {
            Self::Host(host) => host.description(),
            Self::InputHost => "may contact the host of the link you paste, for that one call".to_owned(),
            Self::Secret { name, host } => format!("may send the secret \"{name}\" to {host}, without reading it"),
            Self::ReadCookies => "may read the cookies that its hosts set".to_owned(),
            Self::DeriveSecrets => {
                "may compute digests and signatures from the secrets that you give it, and send them to any host that it \
                 contacts: a short secret can be found out from its digest; may encrypt those secrets to any key, also one of \
                 its own, and send them to the hosts that they are for"
                    .to_owned()
            }
            Self::RevealSecrets => "may read the secrets that you give it".to_owned(),
            Self::DiscoverMedia => {
                "may have yt-dlp, a program of this machine, look at any public web page, and at the pages of the host of \
                 the link you paste; the program contacts any public host that these lead to"
                    .to_owned()
            }
            Self::Watch(pattern) => format!("is told of your downloads of {pattern}, with their names"),
            Self::FinishedFiles => "may see and change the files of finished downloads".to_owned(),
            Self::Tool(name) => format!("may have {name} work on the files of finished downloads"),
        }
    }

    /// Whether it weakens what protects the user from a plugin, so that it should be shown as a warning.
    pub fn is_grave(&self) -> bool {
        match self {
            Self::RevealSecrets | Self::DiscoverMedia => true,
            // Of every site.
            Self::Watch(pattern) => pattern.contains("://*/"),
            _ => false,
        }
    }

    /// Whether this permission includes `other`.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(wide), Self::Host(narrow)) => wide.covers_pattern(narrow),
            (
                Self::Secret { name, host: wide },
                Self::Secret {
                    name: other,
                    host: narrow,
                },
            ) => name == other && wide.covers_pattern(narrow),
            _ => self == other,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())?;
        match self {
            Self::Host(host) => write!(f, " {host}"),
            Self::Secret { name, host } => write!(f, " {name} {host}"),
            Self::Watch(pattern) => write!(f, " {pattern}"),
            Self::Tool(name) => write!(f, " {name}"),
            Self::InputHost
            | Self::ReadCookies
            | Self::DeriveSecrets
            | Self::RevealSecrets
            | Self::DiscoverMedia
            | Self::FinishedFiles => Ok(()),
        }
    }
}

impl FromStr for Permission {
    type Err = InvalidPermission;

    fn from_str(text: &str) -> Result<Self, InvalidPermission> {
        let host = |text: &str| text.parse().map_err(|_| InvalidPermission);
        Ok(match text.split_once(' ') {
            None => match text {
                "inputHost" => Self::InputHost,
                "cookies:read" => Self::ReadCookies,
                "secrets:derive" => Self::DeriveSecrets,
                "secrets:reveal" => Self::RevealSecrets,
                "tools:discover" => Self::DiscoverMedia,
                "finishedFiles" => Self::FinishedFiles,
                _ => return Err(InvalidPermission),
            },
            Some(("host", rest)) => Self::Host(host(rest)?),
            Some(("tool", name)) => Self::Tool(name.to_owned()),
            Some(("watch", pattern)) => Self::Watch(pattern.to_owned()),
            // A secret's name may have spaces in it, a host has none.
            Some(("secret", rest)) => {
                let (name, bound) = rest.rsplit_once(' ').ok_or(InvalidPermission)?;
                Self::Secret {
                    name: name.to_owned(),
                    host: host(bound)?,
                }
            }
            Some(_) => return Err(InvalidPermission),
        })
    }
}

/// A set of permissions, requested or granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Permissions(#[serde(with = "Texts")] BTreeSet<Permission>);

impl Permissions {
    /// The permissions that a version needs, by its imports: a plugin that imports no function to send needs no hosts, and
    /// one that imports functions to reveal secrets or to compute from them needs permission, whatever its manifest says.
    pub fn needed(manifest: &Manifest, interface: &Interface) -> Self {
        let asked = &manifest.permissions;
        let imports = |is_it: fn(&str) -> bool| interface.imports.iter().any(|import| is_it(import));
        let mut needed = BTreeSet::new();
        let sends = imports(|import| matches!(import, "http.send" | "http.send-all"));
        if sends || imports(|import| import == "listing.[method]link.secret-header") {
            needed.extend(asked.secrets.iter().flat_map(|(name, hosts)| secret(name, hosts)));
        }
        if sends {
            needed.extend(asked.hosts.iter().cloned().map(Permission::Host));
            needed.extend(asked.input_host.then_some(Permission::InputHost));
            needed.extend(asked.reads_cookies.then_some(Permission::ReadCookies));
        }
        let derives = imports(|import| matches!(import, "vault.digest" | "vault.hmac" | "vault.rsa-encrypt"));
        // All scripts import what their engine does, so it is what their manifests say.
        let is_script = manifest.language == Language::Script;
        needed.extend((derives && (asked.derives_secrets || !is_script)).then_some(Permission::DeriveSecrets));
        needed.extend(imports(|import| import.starts_with("vault-reveal.")).then_some(Permission::RevealSecrets));
        needed.extend(imports(|import| import.starts_with("tools.")).then_some(Permission::DiscoverMedia));
        if imports(|import| import.starts_with("workspace.")) {
            needed.insert(Permission::FinishedFiles);
            let tools = manifest.capabilities.post.iter().flat_map(|post| &post.tools);
            needed.extend(tools.map(|tool| Permission::Tool(tool.name().to_owned())));
        }
        let watched = manifest.capabilities.hook.iter().flat_map(|hook| &hook.matches);
        needed.extend(watched.map(|pattern| Permission::Watch(pattern.to_string())));
        Self(needed)
    }

    /// The permissions that a manifest requests, before the code is analysed.
    pub fn asked(asked: &Asked) -> Self {
        let hosts = asked.hosts.iter().cloned().map(Permission::Host);
        let secrets = asked.secrets.iter().flat_map(|(name, hosts)| secret(name, hosts));
        let others = [
            asked.input_host.then_some(Permission::InputHost),
            asked.derives_secrets.then_some(Permission::DeriveSecrets),
            asked.discovers_media.then_some(Permission::DiscoverMedia),
            asked.reads_cookies.then_some(Permission::ReadCookies),
        ];
        hosts.chain(secrets).chain(others.into_iter().flatten()).collect()
    }

    /// The permissions that `granted` does not include.
    pub fn beyond(&self, granted: &Self) -> Vec<Permission> {
        let is_granted = |permission: &&Permission| granted.0.iter().any(|have| have.covers(permission));
        self.0
            .iter()
            .filter(|permission| !is_granted(permission))
            .cloned()
            .collect()
    }

    /// Identifies this set, so that a consent covers exactly the set that the user saw.
    pub fn digest(&self) -> Digest {
        Digest::of(self.texts().join("\n").as_bytes())
    }

    /// Its permissions as texts, in order.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(Permission::to_string).collect()
    }

    /// Descriptions for users; see [`Permission::description`].
    pub fn descriptions(&self) -> Vec<String> {
        self.0.iter().map(Permission::description).collect()
    }

    /// Its permissions.
    pub fn iter(&self) -> impl Iterator<Item = &Permission> {
        self.0.iter()
    }
}

fn secret(name: &str, hosts: &[HostPattern]) -> impl Iterator<Item = Permission> {
    hosts.iter().map(|host| Permission::Secret {
        name: name.to_owned(),
        host: host.clone(),
    })
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().collect())
    }
}

/// The user's choice about an optional host of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostChoice {
    /// For the next call.
    Once,
    /// From now on.
    Always,
    /// Denied, without asking again.
    Never,
}

impl HostChoice {
    /// Its name in interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// The choice of this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Once, Self::Always, Self::Never];
        all.into_iter().find(|choice| choice.name() == name)
    }
}

/// What the user granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grant {
    /// The granted permissions.
    pub allowed: Permissions,
    /// Optional hosts: `true` for always, `false` for never.
    #[serde(with = "TextKeys")]
    pub optional: BTreeMap<HostPattern, bool>,
}

/// The URL of a call, who supplied it, and the user's request options for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTarget {
    pub url: Url,
    /// Whether the user supplied it, and not a feed, a page or another plugin.
    pub by_user: bool,
    /// The user's cookies, headers and credentials for the URL's own site.
    pub request: RequestOptions,
    /// The proxies for all requests of the call.
    pub proxies: Proxies,
}

impl CallTarget {
    /// A URL from the user, without request options.
    pub fn by_user(url: Url) -> Self {
        Self {
            url,
            by_user: true,
            request: RequestOptions::default(),
            proxies: Proxies::none(),
        }
    }

    /// Moves a login in the URL to the request options, because plugins see the URL and must not see a login.
    #[must_use]
    pub(crate) fn with_login_apart(mut self) -> Self {
        let in_url = SafeUrl::parse(self.url.as_str()).ok().and_then(|url| url.credentials());
        self.request.credentials = self.request.credentials.or(in_url);
        // A URL that cannot have a login has none.
        let _none_to_remove = self.url.set_username("").and_then(|()| self.url.set_password(None));
        self
    }
}

impl Grant {
    /// The hosts that each secret may be sent to: those of `asked` that the user granted.
    pub fn bindings(&self, asked: &BTreeMap<String, Vec<HostPattern>>) -> BTreeMap<String, Vec<HostPattern>> {
        let is_allowed = |name: &String, host: &&HostPattern| {
            let host = (*host).clone();
            let name = name.clone();
            self.allows(Permission::Secret { name, host })
        };
        let allowed = asked.iter().map(|(name, hosts)| {
            let hosts = hosts.iter().filter(|host| is_allowed(name, host));
            (name.clone(), hosts.cloned().collect())
        });
        allowed.collect()
    }

    /// The hosts that the user chose always, or never.
    fn chosen(&self, always: bool) -> impl Iterator<Item = &HostPattern> {
        let chosen = self.optional.iter().filter(move |(_, choice)| **choice == always);
        chosen.map(|(host, _)| host)
    }

    fn allows(&self, permission: Permission) -> bool {
        Permissions([permission].into()).beyond(&self.allowed).is_empty()
    }

    /// Whether calls may use programs of the user.
    pub(crate) fn allows_tools(&self) -> bool {
        self.allows(Permission::DiscoverMedia)
    }

    /// The tools that calls may have work on finished files.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let is_allowed = |tool: &Tool| self.allows(Permission::Tool(tool.name().to_owned()));
        Tool::ALL.iter().copied().filter(is_allowed).collect()
    }

    /// What a call may reach: the hosts that the manifest requests and the user granted, those of `once`, and the host of
    /// the URL.
    pub fn for_call(&self, asked: &Asked, once: &[HostPattern], given: &CallTarget) -> Grants {
        let is_allowed = |host: &HostPattern| self.allows(Permission::Host(host.clone()));
        let always = self
            .chosen(true)
            .chain(once)
            .filter(|host| asked.optional_hosts.has(host));
        let never: Vec<_> = self.chosen(false).cloned().collect();
        let mut hosts: Vec<_> = asked.hosts.iter().filter(|host| is_allowed(host)).cloned().collect();
        hosts.extend(always.cloned());
        let may_reach_input = asked.input_host && self.allowed.0.contains(&Permission::InputHost);
        let input_host = may_reach_input.then(|| {
            if given.by_user {
                InputHost::given_by_user(given.url.clone())
            } else {
                InputHost::found(given.url.clone())
            }
        });
        let named = asked.optional_hosts.named.iter();
        let is_open = |host: &&HostPattern| !hosts.contains(host) && !never.contains(host);
        Grants {
            grantable: named.filter(is_open).cloned().collect(),
            hosts,
            others: if asked.optional_hosts.any {
                Others::Grantable { but: never }
            } else {
                Others::Refused
            },
            input_host,
            reads_cookies: asked.reads_cookies && self.allows(Permission::ReadCookies),
            derives_secrets: self.allows(Permission::DeriveSecrets),
            reveals_secrets: self.allows(Permission::RevealSecrets),
        }
    }
}

#[cfg(test)]
mod tests;
