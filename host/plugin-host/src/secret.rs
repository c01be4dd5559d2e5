//! Secrets that plugins use but never read: the user's secret settings, values captured from responses, and cookies.
//! Each is only sent to the hosts that it is bound to.

use std::{collections::BTreeMap, sync::Arc};

use market::Identity;
use serde::{Deserialize, Serialize};
use store::{
    ReadError, SealError, Store, Vault, WriteError,
    sql::{self, OptionalExtension as _},
};
use transfer::{ByteCount, Secret};
use url::Url;

use plugin_package::{HostPattern, domain};

mod redact;

pub(crate) use redact::{Redactor, placeholder};
pub use redact::{replace, spellings};

/// The longest name in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The shortest captured value: shorter ones can be guessed, and occur in pages by chance.
const MIN_VALUE_BYTES: usize = 4;

/// The most bytes of a captured value: the longest tokens of sites have some 2 KiB.
const MAX_VALUE_BYTES: usize = 4096;

/// How many captured values an account has at most.
const MAX_SECRETS: i64 = 32;

/// The longest template, and its most placeholders. Bounds the filled text.
const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
const MAX_PLACES: usize = 16;

/// The account of a plugin without a login.
const NO_ACCOUNT: &str = "";

/// The two kinds of rows.
const SECRET: &str = "secret";
const COOKIES: &str = "cookies";

/// The secrets of one plugin. Clones share them.
#[derive(Debug, Clone)]
pub struct Secrets {
    settings: Arc<BTreeMap<String, Secret>>,
    /// Per name, the hosts that the manifest asks for and the user allowed.
    bindings: Arc<BTreeMap<String, Vec<HostPattern>>>,
    store: Store,
    vault: Arc<Vault>,
    plugin: Identity,
    /// Learns every used value, so that it is redacted from a recording.
    redactor: Option<Redactor>,
}

/// Why a secret was not used or stored. No message contains a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("there is no secret {0}")]
    Unknown(String),
    #[error("the secret {name} is not bound to {host}")]
    NotBound { name: String, host: String },
    /// A name that no secret can have, or that a setting has.
    #[error(
        "a captured secret has a name of 1 to {MAX_NAME_BYTES} letters, digits, _ and -, and not that of a setting"
    )]
    Name,
    #[error("a captured secret has {MIN_VALUE_BYTES} B to {}, not {}", ByteCount(MAX_VALUE_BYTES as u64), ByteCount(*.0 as u64))]
    Value(usize),
    #[error("a template has at most {} and {MAX_PLACES} places for secrets", ByteCount(MAX_TEMPLATE_BYTES as u64))]
    Template,
    #[error("a plugin keeps at most {MAX_SECRETS} captured secrets")]
    Full,
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("a sealed secret cannot be read")]
    Content,
}

/// A secret, and the hosts that it may be sent to.
#[derive(Debug, Clone)]
pub struct BoundSecret {
    value: Secret,
    hosts: Vec<HostPattern>,
    captured: Option<Captured>,
}

/// The site of the response that a value was captured from: not only the host, because sites log in on one host and
/// serve on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Captured {
    site: String,
    is_https: bool,
}

#[derive(Serialize, Deserialize)]
struct SecretRecord {
    value: String,
    captured: Captured,
}

impl BoundSecret {
    /// A value for these hosts.
    pub fn new(value: Secret, hosts: Vec<HostPattern>) -> Self {
        Self {
            value,
            hosts,
            captured: None,
        }
    }

    /// A value captured from a response of `url`: for that site, and for these hosts.
    pub fn captured(value: Secret, url: &Url, hosts: Vec<HostPattern>) -> Self {
        Self {
            value,
            hosts,
            captured: Some(Captured::from(url)),
        }
    }

    /// The value, if it may be sent to `url`.
    pub fn for_url(&self, url: &Url) -> Option<&Secret> {
        let is_bound = self.hosts.iter().any(|host| host.covers(url))
            || self.captured.as_ref().is_some_and(|captured| captured.covers(url));
        is_bound.then_some(&self.value)
    }

    /// The value, for computations whose input stays in the host.
    pub fn value(&self) -> &Secret {
        &self.value
    }
}

impl Captured {
    fn from(url: &Url) -> Self {
        Self {
            site: site(url),
            is_https: url.scheme() == "https",
        }
    }

    /// The same site, and never over a less secure connection.
    fn covers(&self, url: &Url) -> bool {
        (url.scheme() == "https" || !self.is_https) && site(url) == self.site
    }
}

/// The registrable domain of a URL; its host, if that has none.
fn site(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let domain = url.domain().and_then(domain::registrable);
    domain.unwrap_or(host).to_owned()
}

impl Secrets {
    pub(crate) fn new(
        settings: BTreeMap<String, Secret>,
        bindings: BTreeMap<String, Vec<HostPattern>>,
        (store, vault): (Store, Arc<Vault>),
        plugin: Identity,
    ) -> Self {
        Self {
            settings: Arc::new(settings),
            bindings: Arc::new(bindings),
            store,
            vault,
            plugin,
            redactor: None,
        }
    }

    /// The same secrets, and those of a feed's source.
    pub(crate) fn with_source(
        mut self,
        secrets: BTreeMap<String, Secret>,
        bindings: BTreeMap<String, Vec<HostPattern>>,
    ) -> Self {
        Arc::make_mut(&mut self.settings).extend(secrets);
        Arc::make_mut(&mut self.bindings).extend(bindings);
        self
    }

    /// The same secrets; `redactor` learns each one that is used or captured.
    pub(crate) fn with_redactor(self, redactor: Option<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    fn tell(&self, name: &str, value: &Secret) {
        if let Some(redactor) = &self.redactor {
            redactor.learn(name, value.expose());
        }
    }

    /// Registers all secrets with the redactor of a recorded call: a site may also show secrets that are not sent.
    pub(crate) async fn register_all(&self) {
        if self.redactor.is_none() {
            return;
        }
        self.settings.iter().for_each(|(name, value)| self.tell(name, value));
        let plugin = self.plugin.to_string();
        let read = move |connection: &sql::Connection| {
            let query = "SELECT name FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3";
            let mut statement = connection.prepare_cached(query)?;
            let names = statement.query_map((plugin, NO_ACCOUNT, SECRET), |row| row.get(0))?;
            names.collect::<sql::Result<Vec<String>>>()
        };
        for name in self.store.read(read).await.unwrap_or_default() {
            // One that cannot be read now cannot be used or leaked in the call either.
            let _told = self.find(&name).await;
        }
    }

    /// The secret of this name.
    pub async fn find(&self, name: &str) -> Result<Option<BoundSecret>, SecretError> {
        let hosts = self.bindings.get(name).cloned().unwrap_or_default();
        if let Some(value) = self.settings.get(name) {
            self.tell(name, value);
            return Ok(Some(BoundSecret::new(value.clone(), hosts)));
        }
        let Some(plain) = self.read(SECRET, name).await? else {
            return Ok(None);
        };
        let record: SecretRecord = serde_json::from_slice(&plain).map_err(|_| SecretError::Content)?;
        let value = Secret::new(record.value);
        self.tell(name, &value);
        Ok(Some(BoundSecret {
            value,
            hosts,
            captured: Some(record.captured),
        }))
    }

    /// Stores a value captured from a response of `url`.
    pub async fn capture(&self, name: &str, value: &Secret, url: &Url) -> Result<(), SecretError> {
        self.tell(name, value);
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_name_character);
        if !is_name || self.settings.contains_key(name) {
            return Err(SecretError::Name);
        }
        let len = value.expose().len();
        if !(MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&len) {
            return Err(SecretError::Value(len));
        }
        let record = SecretRecord {
            value: value.expose().to_owned(),
            captured: Captured::from(url),
        };
        let plain = serde_json::to_vec(&record).map_err(|_| SecretError::Content)?;
        self.write(SECRET, name, &plain).await
    }

    /// Deletes a captured value. Secret settings are only changed by the user.
    pub async fn forget(&self, name: &str) -> Result<(), SecretError> {
        let key = (self.plugin.to_string(), NO_ACCOUNT, SECRET, name.to_owned());
        let delete = "DELETE FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3 AND name = ?4";
        let write = move |transaction: &sql::Transaction<'_>| transaction.execute(delete, key).map(drop);
        Ok(self.store.write(write).await?)
    }

    /// The stored cookies of the plugin's sites.
    pub async fn cookies(&self) -> Result<Option<Vec<u8>>, SecretError> {
        self.read(COOKIES, "").await
    }

    /// Stores the cookies of the plugin's sites.
    pub async fn keep_cookies(&self, cookies: &[u8]) -> Result<(), SecretError> {
        self.write(COOKIES, "", cookies).await
    }

    /// Fills `template` with secrets, for requests to all of `urls`.
    pub(crate) async fn fill(&self, template: &Template, urls: &[&Url]) -> Result<Secret, SecretError> {
        let mut found = BTreeMap::new();
        for name in template.names() {
            let secret = self.find(name).await?;
            let secret = secret.ok_or_else(|| SecretError::Unknown(name.to_owned()))?;
            if let Some(url) = urls.iter().find(|url| secret.for_url(url).is_none()) {
                return Err(not_bound(name, url));
            }
            found.insert(name, secret);
        }
        template.fill(|name| found.get(name).map(BoundSecret::value))
    }

    /// The vault context of a row.
    fn context(&self, kind: &str, name: &str) -> String {
        format!("plugin.{kind}/{}/{NO_ACCOUNT}/{name}", self.plugin)
    }

    async fn read(&self, kind: &'static str, name: &str) -> Result<Option<Vec<u8>>, SecretError> {
        let key = (self.plugin.to_string(), NO_ACCOUNT, kind, name.to_owned());
        let query = "SELECT sealed FROM plugin_secret WHERE identity = ?1 AND account = ?2 AND kind = ?3 AND name = ?4";
        let read = move |connection: &sql::Connection| {
            let mut statement = connection.prepare_cached(query)?;
            statement.query_row(key, |row| row.get::<_, Vec<u8>>(0)).optional()
        };
        let sealed = self.store.read(read).await?;
        let open = |sealed: Vec<u8>| self.vault.unseal(&self.context(kind, name), &sealed);
        Ok(sealed.map(open).transpose()?)
    }

    /// A call may outlive its plugin; then nothing is written, because nothing would delete it.
    async fn write(&self, kind: &'static str, name: &str, plain: &[u8]) -> Result<(), SecretError> {
        let sealed = self.vault.seal(&self.context(kind, name), plain)?;
        let (plugin, name) = (self.plugin.to_string(), name.to_owned());
        let write = move |transaction: &sql::Transaction<'_>| {
            let others = "SELECT count(*) FROM plugin_secret
                          WHERE identity = ?1 AND account = ?2 AND kind = ?3 AND name <> ?4";
            let others: i64 = transaction
                .prepare_cached(others)?
                .query_row((&plugin, NO_ACCOUNT, kind, &name), |row| row.get(0))?;
            if others >= MAX_SECRETS {
                return Ok(false);
            }
            let insert = "INSERT OR REPLACE INTO plugin_secret (identity, account, kind, name, sealed)
                          SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM plugin WHERE identity = ?1)";
            transaction
                .prepare_cached(insert)?
                .execute((&plugin, NO_ACCOUNT, kind, &name, sealed))?;
            Ok(true)
        };
        let fits = self.store.write(write).await?;
        fits.then_some(()).ok_or(SecretError::Full)
    }
}

/// The refusal to send a secret to the host of `url`.
pub fn not_bound(name: &str, url: &Url) -> SecretError {
    SecretError::NotBound {
        name: name.to_owned(),
        host: url.host_str().unwrap_or_default().to_owned(),
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A text with placeholders for secrets: `Bearer {access}`. Braces around anything but a name are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Secret(String),
}

impl Template {
    /// Parses a template; only the length is limited.
    pub fn parse(mut text: &str) -> Result<Self, SecretError> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(SecretError::Template);
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        while let Some((before, rest)) = text.split_once('{') {
            literal.push_str(before);
            let name_ends = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_ends);
            match after.strip_prefix('}') {
                Some(after) if !name.is_empty() => {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::Secret(name.to_owned()));
                    text = after;
                }
                _ => {
                    literal.push('{');
                    text = rest;
                }
            }
        }
        literal.push_str(text);
        pieces.push(Piece::Text(literal));
        let template = Self(pieces);
        if template.names().count() > MAX_PLACES {
            return Err(SecretError::Template);
        }
        Ok(template)
    }

    /// The names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Secret(name) => Some(name.as_str()),
        })
    }

    /// The text, filled with the secrets that `find` returns.
    pub fn fill<'s>(&self, find: impl Fn(&str) -> Option<&'s Secret>) -> Result<Secret, SecretError> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Secret(name) => {
                    let secret = find(name).ok_or_else(|| SecretError::Unknown(name.clone()))?;
                    filled.push_str(secret.expose());
                }
            }
        }
        Ok(Secret::new(filled))
    }
}

#[cfg(test)]
mod tests;
