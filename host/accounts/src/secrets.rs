//! Secrets that plugins use but never read: the user's secret settings, values captured from responses, and cookies, of
//! the plugin itself or of one of its accounts. Each is only sent to the hosts that it is bound to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugin_package::{HostPattern, Identity};
use serde::{Deserialize, Serialize};
use store::{Store, Vault, sql};
use transfer::Secret;
use url::Url;

use crate::{
    bound::{BoundSecret, Captured},
    draft::{Draft, Drafted},
    error::{MAX_NAME_BYTES, MAX_REPLACED, MAX_SECRETS, MAX_VALUE_BYTES, MIN_VALUE_BYTES, SecretError, not_bound},
    redact::Redactor,
    rows::{self, Account, Kind, LoginId, NO_ACCOUNT},
    template::{Template, is_name_character},
};

/// Where the accounts and secrets of all plugins are kept. Clones share it.
#[derive(Clone)]
pub struct Accounts {
    store: Store,
    vault: Arc<Vault>,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts").finish_non_exhaustive()
    }
}

/// The secrets of one plugin, or of one of its accounts. Clones share them.
#[derive(Debug, Clone)]
pub struct Secrets {
    keeper: Accounts,
    plugin: Identity,
    settings: Arc<BTreeMap<String, Secret>>,
    /// Per name, the hosts that the manifest asks for and the user allowed.
    bindings: Arc<BTreeMap<String, Vec<HostPattern>>>,
    /// The slot of the account, empty for the plugin's own secrets.
    account: Arc<str>,
    /// The session of the account when this was made. Nothing is written to the account of a later login or renewal.
    login: Option<LoginId>,
    held: Arc<Mutex<Held>>,
    /// What the login of this call has captured.
    draft: Option<Draft>,
    /// Learns every used value, so that it is redacted from a recording.
    redactor: Option<Redactor>,
}

/// What is in memory only, and gone with the call or the login. Keys are slots and names.
#[derive(Debug, Default)]
struct Held {
    /// Secrets that were computed from others.
    derived: BTreeMap<HeldKey, BoundSecret>,
    /// Values that had a name before another value, or none, had it: a site that was sent one may still repeat it.
    replaced: Vec<(HeldKey, BoundSecret)>,
}

type HeldKey = (String, String);

impl Held {
    /// Fails if there are too many, because to search for some of them only would show the others.
    fn replace(&mut self, key: HeldKey, secret: BoundSecret) -> Result<(), SecretError> {
        let replaced = (key, secret);
        if self.replaced.contains(&replaced) {
            return Ok(());
        }
        if self.replaced.len() >= MAX_REPLACED {
            return Err(SecretError::Replaced);
        }
        self.replaced.push(replaced);
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct SecretRecord {
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    captured: Option<Captured>,
}

impl Accounts {
    /// The accounts in `store`, whose secrets `vault` seals.
    pub fn new(store: Store, vault: Arc<Vault>) -> Self {
        Self { store, vault }
    }

    /// The accounts of a plugin, in the order of their slots.
    pub async fn list(&self, plugin: &Identity) -> Result<Vec<Account>, SecretError> {
        let plugin = plugin.to_string();
        let read = move |connection: &sql::Connection| rows::accounts(connection, &plugin);
        Ok(self.store.read(read).await?)
    }

    /// The account in a slot.
    pub async fn find(&self, plugin: &Identity, slot: &str) -> Result<Option<Account>, SecretError> {
        let (plugin, slot) = (plugin.to_string(), slot.to_owned());
        let read = move |connection: &sql::Connection| rows::account(connection, &plugin, &slot);
        Ok(self.store.read(read).await?)
    }

    /// Stores an account with everything that its login captured, instead of the account that was in its slot; what a
    /// renewal captured, beside what the account has, if `account` is what it was before, apart from what the renewal
    /// changes. Returns whether it is stored: a plugin may have been uninstalled meanwhile, and an account logged out, logged
    /// in to anew or renewed.
    pub async fn keep(&self, plugin: &Identity, account: Account, draft: &Draft) -> Result<bool, SecretError> {
        let is_replaced = !draft.is_renewal();
        let (secrets, cookies) = draft.kept()?;
        let mut plain = Vec::new();
        for (name, secret) in secrets {
            plain.push(((account.slot.clone(), Kind::Secret, name), secret.record()?));
        }
        if let Some(cookies) = cookies {
            plain.push(((account.slot.clone(), Kind::Cookies, String::new()), cookies));
        }
        let read = account.login_id();
        let account = if is_replaced { account } else { account.renewed() };
        let (plugin, vault) = (plugin.to_string(), Arc::clone(&self.vault));
        // A transaction is only rolled back by an error of the database: everything is checked before anything is written.
        let write = move |transaction: &sql::Transaction<'_>| {
            let renewed = (!is_replaced).then_some(&read);
            let is_there = rows::is_installed(transaction, &plugin)?
                && rows::is_current(transaction, &plugin, &account.slot, renewed)?;
            if !is_there {
                return Ok(Ok(false));
            }
            let keys: Vec<_> = plain.iter().map(|(key, _)| key).collect();
            if !is_replaced && !rows::has_room(transaction, &plugin, &account.slot, &keys)? {
                return Ok(Err(SecretError::Full));
            }
            let sealed = plain.iter().map(|(key, value)| seal(&vault, &plugin, key, value));
            let sealed = match sealed.collect::<Result<Vec<_>, _>>() {
                Ok(sealed) => sealed,
                Err(error) => return Ok(Err(error)),
            };
            if is_replaced {
                rows::delete_account(transaction, &plugin, &account.slot)?;
            }
            rows::save_account(transaction, &plugin, &account)?;
            for (key, sealed) in keys.into_iter().zip(&sealed) {
                rows::put(transaction, &plugin, key, sealed)?;
            }
            Ok(Ok(true))
        };
        self.store.write(write).await?
    }

    /// Notes that the site has ended the session of an account, unless another login has made another account of it. Its
    /// secrets are kept: a renewal may need them.
    pub async fn expire(&self, plugin: &Identity, account: &Account) -> Result<(), SecretError> {
        let (plugin, ended) = (plugin.to_string(), account.clone());
        let write = move |transaction: &sql::Transaction<'_>| {
            let found = rows::account(transaction, &plugin, &ended.slot)?;
            let Some(account) = found.filter(|account| account.is_of_same_login(&ended)) else {
                return Ok(());
            };
            let expired = Account {
                is_expired: true,
                ..account
            };
            rows::save_account(transaction, &plugin, &expired).map(drop)
        };
        Ok(self.store.write(write).await?)
    }

    /// Deletes an account with all its secrets; returns whether there was one. An account of a later login stays.
    pub async fn log_out(&self, plugin: &Identity, account: &Account) -> Result<bool, SecretError> {
        let (plugin, account) = (plugin.to_string(), account.clone());
        let write = move |transaction: &sql::Transaction<'_>| {
            let found = rows::account(transaction, &plugin, &account.slot)?;
            let is_same = found.is_some_and(|found| found.is_of_same_login(&account));
            Ok(is_same && rows::delete_account(transaction, &plugin, &account.slot)?)
        };
        Ok(self.store.write(write).await?)
    }

    async fn read(&self, plugin: &Identity, key: rows::Key) -> Result<Option<Vec<u8>>, SecretError> {
        let (plugin, vault) = (plugin.to_string(), Arc::clone(&self.vault));
        let read = move |connection: &sql::Connection| {
            let sealed = rows::read(connection, &plugin, &key)?;
            Ok(sealed.map(|sealed| unseal(&vault, &plugin, &key, &sealed)).transpose())
        };
        self.store.read(read).await?
    }

    async fn write(
        &self,
        plugin: &Identity,
        (key, login): (rows::Key, Option<LoginId>),
        plain: Vec<u8>,
    ) -> Result<(), SecretError> {
        let (plugin, vault) = (plugin.to_string(), Arc::clone(&self.vault));
        let write = move |transaction: &sql::Transaction<'_>| match seal(&vault, &plugin, &key, &plain) {
            Ok(sealed) => rows::save(transaction, &plugin, (&key, login.as_ref()), &sealed).map(Ok),
            Err(error) => Ok(Err(error)),
        };
        let fits = self.store.write(write).await??;
        fits.then_some(()).ok_or(SecretError::Full)
    }
}

/// Seals a value, in the transaction that stores it: a new key of the vault comes between transactions.
fn seal(vault: &Vault, plugin: &str, (account, kind, name): &rows::Key, plain: &[u8]) -> Result<Vec<u8>, SecretError> {
    Ok(vault.seal(&rows::context(plugin, account, kind.name(), name), plain)?)
}

fn unseal(
    vault: &Vault,
    plugin: &str,
    (account, kind, name): &rows::Key,
    sealed: &[u8],
) -> Result<Vec<u8>, SecretError> {
    Ok(vault.unseal(&rows::context(plugin, account, kind.name(), name), sealed)?)
}

impl Drafted {
    fn record(&self) -> Result<Vec<u8>, SecretError> {
        let record = SecretRecord {
            value: self.value.expose().to_owned(),
            captured: self.captured.clone(),
        };
        serde_json::to_vec(&record).map_err(|_| SecretError::Content)
    }
}

impl SecretRecord {
    fn read(plain: &[u8]) -> Result<Self, SecretError> {
        serde_json::from_slice(plain).map_err(|_| SecretError::Content)
    }
}

impl Secrets {
    /// The secrets of `plugin` itself.
    pub fn new(
        keeper: Accounts,
        plugin: Identity,
        settings: BTreeMap<String, Secret>,
        bindings: BTreeMap<String, Vec<HostPattern>>,
    ) -> Self {
        Self {
            keeper,
            plugin,
            settings: Arc::new(settings),
            bindings: Arc::new(bindings),
            account: NO_ACCOUNT.into(),
            login: None,
            held: Arc::default(),
            draft: None,
            redactor: None,
        }
    }

    /// The same secrets, and those of a feed's source.
    #[must_use]
    pub fn with_source(
        mut self,
        secrets: BTreeMap<String, Secret>,
        bindings: BTreeMap<String, Vec<HostPattern>>,
    ) -> Self {
        // A field without a value binds nothing: a captured value of its name keeps its own hosts.
        let bindings = bindings.into_iter().filter(|(name, _)| secrets.contains_key(name));
        Arc::make_mut(&mut self.bindings).extend(bindings);
        Arc::make_mut(&mut self.settings).extend(secrets);
        self
    }

    /// The same secrets; `redactor` learns each one that is used or captured.
    #[must_use]
    pub fn with_redactor(self, redactor: Option<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// The same secrets, for a login or a renewal: captures of its account go to `draft`.
    #[must_use]
    pub fn with_draft(self, draft: Draft) -> Self {
        Self {
            draft: Some(draft),
            ..self
        }
    }

    /// The secrets of the account in a slot, besides the settings. `None` if nobody is logged in there, unless this is the
    /// login.
    pub async fn of_account(&self, slot: &str) -> Result<Option<Self>, SecretError> {
        let is_logging_in = self.draft.as_ref().is_some_and(|draft| draft.slot() == slot);
        let login = if is_logging_in {
            None
        } else {
            let Some(account) = self.keeper.find(&self.plugin, slot).await? else {
                return Ok(None);
            };
            Some(account.login_id())
        };
        Ok(Some(Self {
            account: slot.into(),
            login,
            ..self.clone()
        }))
    }

    /// The slot of the account, empty for the plugin's own secrets.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The session that the account had when this was made; none for the plugin's own secrets, and for a login.
    pub fn login_id(&self) -> Option<&LoginId> {
        self.login.as_ref()
    }

    fn tell(&self, name: &str, value: &Secret) {
        if let Some(redactor) = &self.redactor {
            redactor.learn(name, value.expose());
        }
    }

    fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref().filter(|draft| draft.slot() == &*self.account)
    }

    /// Registers all secrets with the redactor of a recorded call: a site may also show secrets that are not sent.
    pub async fn register_all(&self) {
        if self.redactor.is_some() {
            // One that cannot be read now cannot be used or leaked in the call either.
            for (name, secret) in self.all().await.unwrap_or_default() {
                self.tell(&name, secret.value());
            }
        }
    }

    /// The slots of all accounts of the plugin, and that of the login. An error if they cannot be read.
    pub async fn slots(&self) -> Result<Vec<String>, SecretError> {
        let accounts = self.keeper.list(&self.plugin).await?;
        let mut slots: BTreeSet<_> = accounts.into_iter().map(|account| account.slot).collect();
        slots.extend(self.draft.as_ref().map(|draft| draft.slot().to_owned()));
        Ok(slots.into_iter().collect())
    }

    /// Every secret that a response could repeat: settings, captured values (also of the account that a login replaces),
    /// what a login has captured, what was computed from those, and what this call or login has replaced or forgotten.
    pub async fn all(&self) -> Result<Vec<(String, BoundSecret)>, SecretError> {
        let settings = self.settings.iter();
        let bound = |name: &String, value: &Secret| BoundSecret::new(value.clone(), self.hosts(name));
        let mut all: Vec<_> = settings
            .map(|(name, value)| (name.clone(), bound(name, value)))
            .collect();
        let held: Vec<_> = {
            let held = self.held();
            let replaced = held.replaced.iter().map(|(key, secret)| (key, secret));
            let own = held
                .derived
                .iter()
                .chain(replaced)
                .filter(|((account, _), _)| *account == *self.account);
            own.map(|((_, name), secret)| (name.clone(), secret.clone())).collect()
        };
        all.extend(held);
        let drafted = self.draft().into_iter().flat_map(Draft::all);
        all.extend(drafted.map(|(name, secret)| {
            let hosts = self.hosts(&name);
            (name, BoundSecret::of(secret.value, hosts, secret.captured))
        }));
        let (plugin, account) = (self.plugin.to_string(), self.account.to_string());
        let vault = Arc::clone(&self.keeper.vault);
        let read = move |connection: &sql::Connection| {
            let rows = rows::read_all(connection, &plugin, &account)?;
            let opened = rows.into_iter().map(|(name, sealed)| {
                let key = (account.clone(), Kind::Secret, name);
                let plain = unseal(&vault, &plugin, &key, &sealed)?;
                Ok((key.2, SecretRecord::read(&plain)?))
            });
            Ok(opened.collect::<Result<Vec<_>, SecretError>>())
        };
        let stored = self.keeper.store.read(read).await??;
        all.extend(stored.into_iter().map(|(name, record)| {
            let hosts = self.hosts(&name);
            (name, BoundSecret::of(Secret::new(record.value), hosts, record.captured))
        }));
        Ok(all)
    }

    /// The secret of this name.
    pub async fn find(&self, name: &str) -> Result<Option<BoundSecret>, SecretError> {
        let derived = self.held().derived.get(&self.held_key(name)).cloned();
        if let Some(derived) = derived {
            self.tell(name, derived.value());
            return Ok(Some(derived));
        }
        if let Some(value) = self.settings.get(name) {
            self.tell(name, value);
            return Ok(Some(BoundSecret::new(value.clone(), self.hosts(name))));
        }
        let found = match self.draft().and_then(|draft| draft.find(name)) {
            Some(drafted) => Some(BoundSecret::of(drafted.value, self.hosts(name), drafted.captured)),
            None => self.stored_secret(name).await?,
        };
        if let Some(found) = &found {
            self.tell(name, found.value());
        }
        Ok(found)
    }

    async fn stored_secret(&self, name: &str) -> Result<Option<BoundSecret>, SecretError> {
        let Some(plain) = self.stored(Kind::Secret, name).await? else {
            return Ok(None);
        };
        let record = SecretRecord::read(&plain)?;
        let value = Secret::new(record.value);
        Ok(Some(BoundSecret::of(value, self.hosts(name), record.captured)))
    }

    /// Takes the name from what has it, except in a draft, which does so itself. The value is still among
    /// [`Secrets::all`].
    async fn replace(&self, name: &str) -> Result<(), SecretError> {
        let stored = match self.draft() {
            Some(_) => None,
            None => self.stored_secret(name).await?,
        };
        let (mut held, key) = (self.held(), self.held_key(name));
        for secret in stored.into_iter().chain(held.derived.get(&key).cloned()) {
            held.replace(key.clone(), secret)?;
        }
        held.derived.remove(&key);
        Ok(())
    }

    /// Stores a value captured from a response of `url`; a login stores its captures when it succeeds. Fails without a
    /// change if the name or the value cannot be one of a secret, or if there are too many secrets or replaced values.
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
        self.replace(name).await?;
        let captured = Drafted {
            value: value.clone(),
            captured: Some(Captured::from(url)),
            is_kept: true,
        };
        if let Some(draft) = self.draft() {
            return draft.add(name, captured);
        }
        let key = self.key(Kind::Secret, name);
        let target = (key, self.login.clone());
        self.keeper.write(&self.plugin, target, captured.record()?).await
    }

    /// Keeps a secret that was computed from another one, for this call or login. Fails if there are too many of them, or
    /// too many that others replaced.
    pub fn keep_derived(&self, name: &str, secret: BoundSecret) -> Result<(), SecretError> {
        self.tell(name, secret.value());
        let (mut held, key) = (self.held(), self.held_key(name));
        match held.derived.get(&key).cloned() {
            Some(before) => held.replace(key.clone(), before)?,
            None if held.derived.len() >= MAX_SECRETS => return Err(SecretError::Derived),
            None => {}
        }
        held.derived.insert(key, secret);
        Ok(())
    }

    /// Deletes a captured value. Secret settings are only changed by the user. Fails without a change if this call or login
    /// has replaced or forgotten too many values.
    pub async fn forget(&self, name: &str) -> Result<(), SecretError> {
        self.replace(name).await?;
        if let Some(draft) = self.draft() {
            return draft.forget(name);
        }
        let (plugin, key) = (self.plugin.to_string(), self.key(Kind::Secret, name));
        let login = self.login.clone();
        let write = move |transaction: &sql::Transaction<'_>| {
            if rows::is_current(transaction, &plugin, &key.0, login.as_ref())? {
                rows::delete(transaction, &plugin, &key)?;
            }
            Ok(())
        };
        Ok(self.keeper.store.write(write).await?)
    }

    /// The stored cookies.
    pub async fn cookies(&self) -> Result<Option<Vec<u8>>, SecretError> {
        match self.draft().and_then(Draft::cookies) {
            Some(cookies) => Ok(Some(cookies)),
            None => self.stored(Kind::Cookies, "").await,
        }
    }

    /// Stores the cookies; those of a login when it succeeds.
    pub async fn keep_cookies(&self, cookies: &[u8]) -> Result<(), SecretError> {
        if let Some(draft) = self.draft() {
            return draft.keep_cookies(cookies);
        }
        let target = (self.key(Kind::Cookies, ""), self.login.clone());
        self.keeper.write(&self.plugin, target, cookies.to_owned()).await
    }

    /// Fills `template` with secrets, for requests to all of `urls`.
    pub async fn fill(&self, template: &Template, urls: &[&Url]) -> Result<Secret, SecretError> {
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

    /// A stored value. A login does not see those of the account that it replaces.
    async fn stored(&self, kind: Kind, name: &str) -> Result<Option<Vec<u8>>, SecretError> {
        if self.is_replacing() {
            return Ok(None);
        }
        self.keeper.read(&self.plugin, self.key(kind, name)).await
    }

    fn is_replacing(&self) -> bool {
        self.draft().is_some_and(|draft| !draft.is_renewal())
    }

    fn hosts(&self, name: &str) -> Vec<HostPattern> {
        self.bindings.get(name).cloned().unwrap_or_default()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_key(&self, name: &str) -> HeldKey {
        (self.account.to_string(), name.to_owned())
    }

    fn key(&self, kind: Kind, name: &str) -> rows::Key {
        (self.account.to_string(), kind, name.to_owned())
    }
}

#[cfg(test)]
mod tests;
