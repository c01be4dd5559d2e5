//! What a login, or the renewal of one, has captured and not stored yet. It exists in memory only, so that a crash leaves
//! the old account or the new one, and never half of one.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use transfer::Secret;
use url::Url;

use crate::{
    bound::Captured,
    error::{MAX_REPLACED, MAX_SECRETS, SecretError},
};

/// The captures of one login. Clones share them.
#[derive(Clone)]
pub struct Draft {
    slot: Arc<str>,
    /// Whether the account is there already, and what it has is used beside the captures.
    is_renewal: bool,
    /// The site of the login, if the user named it: what is typed may go there.
    site: Option<Captured>,
    content: Arc<Mutex<Content>>,
}

/// The most bytes of secret answers of a login, together with its cookies: a browser's export of one site has some
/// kilobytes.
const MAX_BYTES: usize = 512 * 1024;

#[derive(Default)]
struct Content {
    secrets: BTreeMap<String, Drafted>,
    /// What had a name before: a site that was sent it may still repeat it.
    replaced: Vec<(String, Drafted)>,
    cookies: Option<Vec<u8>>,
    /// Whether the login is over: nothing is added any more.
    is_over: bool,
}

/// Secrets by name, and cookies.
pub(crate) type Kept = (Vec<(String, Drafted)>, Option<Vec<u8>>);

/// A secret of a draft.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Drafted {
    pub(crate) value: Secret,
    /// The site that it was captured from, or of the login that it was typed for; without one it goes only where the manifest
    /// says.
    pub(crate) captured: Option<Captured>,
    /// Whether it outlives the login.
    pub(crate) is_kept: bool,
}

impl Content {
    /// Takes the name from the secret that has it, if one has.
    fn replace(&mut self, name: &str) -> Result<(), SecretError> {
        if self.secrets.contains_key(name) && self.replaced.len() >= MAX_REPLACED {
            return Err(SecretError::Replaced);
        }
        self.replaced.extend(self.secrets.remove_entry(name));
        Ok(())
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

impl Draft {
    /// An empty draft of a login to this slot.
    pub fn new(slot: &str) -> Self {
        Self {
            slot: slot.into(),
            is_renewal: false,
            site: None,
            content: Arc::default(),
        }
    }

    /// A draft that renews the session of the account in this slot.
    pub fn renewal(slot: &str) -> Self {
        Self {
            is_renewal: true,
            ..Self::new(slot)
        }
    }

    /// The same draft, of a login to the site that the user named. What is typed may go there, besides to the hosts that the
    /// manifest says.
    #[must_use]
    pub fn at_site(self, site: &Url) -> Self {
        Self {
            site: Some(Captured::from(site)),
            ..self
        }
    }

    pub(crate) fn is_renewal(&self) -> bool {
        self.is_renewal
    }

    /// The slot of the account.
    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// Adds a secret that the user typed. It is forgotten at the end of the login unless `is_kept`.
    pub fn type_in(&self, name: &str, value: Secret, is_kept: bool) -> Result<(), SecretError> {
        self.add(
            name,
            Drafted {
                value,
                captured: self.site.clone(),
                is_kept,
            },
        )
    }

    pub(crate) fn add(&self, name: &str, secret: Drafted) -> Result<(), SecretError> {
        let mut content = self.content();
        if content.is_over {
            return Err(SecretError::Over);
        }
        if content.secrets.get(name) == Some(&secret) {
            return Ok(());
        }
        let others = content.replaced.iter().map(|(_, secret)| secret);
        let others = others.chain(content.secrets.values());
        let bytes: usize = others.map(|secret| secret.value.expose().len()).sum();
        let is_new = !content.secrets.contains_key(name);
        if is_new && content.secrets.len() >= MAX_SECRETS || bytes + secret.value.expose().len() > MAX_BYTES {
            return Err(SecretError::Full);
        }
        content.replace(name)?;
        content.secrets.insert(name.to_owned(), secret);
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<Drafted> {
        self.content().secrets.get(name).cloned()
    }

    pub(crate) fn forget(&self, name: &str) -> Result<(), SecretError> {
        self.content().replace(name)
    }

    /// Its secrets, and those that others replaced or that were forgotten.
    pub(crate) fn all(&self) -> Vec<(String, Drafted)> {
        let content = self.content();
        let replaced = content.replaced.iter().map(|(name, secret)| (name, secret));
        let secrets = content.secrets.iter().chain(replaced);
        secrets.map(|(name, secret)| (name.clone(), secret.clone())).collect()
    }

    /// What outlives the login, and its cookies; an error if the login is over.
    pub(crate) fn kept(&self) -> Result<Kept, SecretError> {
        let content = self.content();
        if content.is_over {
            return Err(SecretError::Over);
        }
        let kept = content.secrets.iter().filter(|(_, secret)| secret.is_kept);
        Ok((
            kept.map(|(name, secret)| (name.clone(), secret.clone())).collect(),
            content.cookies.clone(),
        ))
    }

    /// Forgets everything, and refuses what the last step of the login may still add.
    pub fn close(&self) {
        *self.content() = Content {
            is_over: true,
            ..Content::default()
        };
    }

    /// Whether nothing was captured and no cookie was set.
    pub fn is_empty(&self) -> bool {
        let content = self.content();
        content.secrets.is_empty() && content.cookies.is_none()
    }

    /// The names of what outlives the login.
    pub fn kept_names(&self) -> Vec<String> {
        let content = self.content();
        let kept = content.secrets.iter().filter(|(_, secret)| secret.is_kept);
        kept.map(|(name, _)| name.clone()).collect()
    }

    /// The cookies, if any were set.
    pub(crate) fn cookies(&self) -> Option<Vec<u8>> {
        self.content().cookies.clone()
    }

    pub(crate) fn keep_cookies(&self, cookies: &[u8]) -> Result<(), SecretError> {
        if cookies.len() > MAX_BYTES {
            return Err(SecretError::Full);
        }
        let mut content = self.content();
        if content.is_over {
            return Err(SecretError::Over);
        }
        content.cookies = Some(cookies.to_owned());
        Ok(())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
