//! The accounts that the requests of a call use: whose secrets and cookies they are, and what is removed from responses.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use accounts::{BoundSecret, LoginId, Scrubber};
use tokio::sync::OnceCell;
use transfer::Secret;
use url::Url;

use super::{FetchError, Profile, computing::Computing};
use crate::outside::Vault;

/// The shortest value of a secret that is searched for in responses and redirects: shorter ones occur by chance.
pub(crate) const MIN_SECRET_BYTES: usize = 4;

/// The shortest value of a cookie that is searched for: sites keep words in cookies, too.
pub(crate) const MIN_COOKIE_BYTES: usize = 16;

/// Up to so many bytes of values, a search is prepared at once; beyond it that takes a thread for milliseconds.
const FEW_BYTES: usize = 8 * 1024;

/// Cookies and cached responses of accounts, each with the session that they are of.
type BySlot = BTreeMap<String, (Option<LoginId>, Arc<Profile>)>;

/// The cookies and cached responses of a plugin: its own, and those of its accounts.
#[derive(Debug, Default)]
pub struct Profiles {
    own: Arc<Profile>,
    /// By slot, those of its last session. There are as many as the plugin has accounts.
    accounts: Mutex<BySlot>,
}

impl Profiles {
    /// The plugin's own.
    pub(crate) fn own(&self) -> Arc<Profile> {
        Arc::clone(&self.own)
    }

    /// That of the account in a slot. Another session has another one, so that a call never stores what is of one session as
    /// what is of the other.
    pub(crate) fn of_account(&self, slot: &str, session: Option<LoginId>) -> Arc<Profile> {
        let mut accounts = self.accounts();
        let kept = accounts.entry(slot.to_owned()).or_default();
        if kept.0 != session {
            *kept = (session, Arc::default());
        }
        Arc::clone(&kept.1)
    }

    /// Drops that of an account.
    pub(crate) fn forget(&self, slot: &str) {
        self.accounts().remove(slot);
    }

    fn accounts(&self) -> MutexGuard<'_, BySlot> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values of secrets, with their names.
pub(crate) type Known = Vec<(String, Secret)>;

/// What a request uses: the secrets and cookies of the plugin itself, or of one of its accounts.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) vault: Arc<dyn Vault>,
    pub(crate) profile: Arc<Profile>,
}

/// A search for secrets that is prepared once for all that are alike.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// What was searched for last, and what finds it. It is locked while another is prepared: each takes much memory.
    last: tokio::sync::Mutex<(Known, Arc<Scrubber>)>,
}

impl Search {
    /// Finds `known`. The last one is kept, because most requests of a call are to the same site.
    pub(crate) async fn of(&self, mut known: Known, computing: &Computing) -> Arc<Scrubber> {
        let mut distinct = HashSet::new();
        known.retain(|(name, secret)| distinct.insert((name.clone(), secret.expose().to_owned())));
        let mut last = self.last.lock().await;
        if last.0 == known {
            return Arc::clone(&last.1);
        }
        let bytes: usize = known.iter().map(|(_, secret)| secret.expose().len()).sum();
        let computing = computing.clone();
        let prepare = move || {
            let values = known.iter().map(|(name, secret)| (&**name, secret.expose()));
            let scrubber = computing.work(|| Scrubber::new(values));
            (known, Arc::new(scrubber))
        };
        *last = if bytes <= FEW_BYTES {
            prepare()
        } else {
            let prepared = tokio::task::spawn_blocking(prepare).await;
            prepared.expect("to prepare a search does not panic")
        };
        Arc::clone(&last.1)
    }
}

impl Account {
    pub(crate) fn new(vault: Arc<dyn Vault>, profile: Arc<Profile>) -> Self {
        Self { vault, profile }
    }

    /// The secrets that one of the hosts of `hops` may have, because they may be sent there, and the cookies of those
    /// sites. A host may repeat in any response what it gave out in another one. Other secrets are not searched for: whether
    /// a host's text holds one of them would tell its plugin if a guess is right.
    pub(crate) async fn known(&self, hops: &[Url]) -> Vec<(String, BoundSecret)> {
        let secrets = self.vault.all().await;
        let secrets = secrets
            .into_iter()
            .filter(|(_, secret)| secret.value().expose().len() >= MIN_SECRET_BYTES);
        let cookies = self.profile.cookie_values().into_iter();
        let cookies = cookies.filter(|cookie| cookie.value().expose().len() >= MIN_COOKIE_BYTES);
        secrets
            .chain(cookies.map(|cookie| ("cookie".to_owned(), cookie)))
            .filter(|(_, secret)| hops.iter().any(|hop| secret.for_url(hop).is_some()))
            .collect()
    }
}

/// The accounts of one call, found when a request first uses them.
#[derive(Debug)]
pub(crate) struct CallAccounts {
    own: Arc<Account>,
    profiles: Arc<Profiles>,
    /// The slot whose login or renewal this is: it has a profile of its own until it succeeds.
    login: Option<(String, Arc<Profile>)>,
    found: Mutex<BTreeMap<String, Arc<Account>>>,
    /// The slots of all accounts of the plugin.
    slots: OnceCell<Vec<String>>,
    /// What finds secrets in responses.
    pub(crate) in_answers: Search,
    /// What finds secrets in the targets of redirects.
    pub(crate) in_targets: Search,
}

impl CallAccounts {
    pub(crate) fn new(vault: Arc<dyn Vault>, profiles: Arc<Profiles>, login: Option<(String, Arc<Profile>)>) -> Self {
        Self {
            own: Arc::new(Account::new(vault, profiles.own())),
            profiles,
            login,
            found: Mutex::default(),
            slots: OnceCell::new(),
            in_answers: Search::default(),
            in_targets: Search::default(),
        }
    }

    /// The account of a slot, or the plugin's own secrets without one.
    pub(crate) async fn of(&self, slot: Option<&str>) -> Result<Arc<Account>, FetchError> {
        let Some(slot) = slot else {
            return Ok(Arc::clone(&self.own));
        };
        let known = self.found().get(slot).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let vault = self.own.vault.of_account(slot.to_owned()).await;
        let vault = vault.ok_or_else(|| FetchError::LoginRequired(slot.to_owned()))?;
        let login = self.login.as_ref().filter(|(of, _)| of == slot);
        let profile = match login {
            Some((_, profile)) => Arc::clone(profile),
            None => self.profiles.of_account(slot, vault.session()),
        };
        profile.load(&*vault).await;
        let account = Arc::new(Account::new(vault, profile));
        self.found().insert(slot.to_owned(), Arc::clone(&account));
        Ok(account)
    }

    /// The plugin's own secrets and every account of it: what a site was sent in a request of one it may repeat in a request
    /// of another.
    pub(crate) async fn all(&self) -> Vec<Arc<Account>> {
        let slots = self.slots.get_or_init(|| self.own.vault.slots()).await;
        let mut all = vec![Arc::clone(&self.own)];
        for slot in slots {
            // One that was logged out meanwhile has no secrets.
            all.extend(self.of(Some(slot)).await.ok());
        }
        all
    }

    /// Stores the cookies that responses set.
    pub(crate) async fn save(&self) {
        let found: Vec<_> = self.found().values().cloned().collect();
        for account in found {
            account.profile.save_of_account(&*account.vault).await;
        }
        self.own.profile.save(&*self.own.vault).await;
    }

    /// The plugin's own secrets and cookies.
    pub(crate) fn own(&self) -> &Arc<Account> {
        &self.own
    }

    fn found(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Account>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn a_search_for_much_is_prepared_beside_the_thread_of_the_calls() {
        let known = |count: usize| -> Known {
            let values = (0..count).map(|number| Secret::new(format!("{number:04}{}", "x+y/".repeat(250))));
            values.map(|value| ("token".to_owned(), value)).collect()
        };
        let (search, computing) = (Search::default(), Computing::default());
        assert!(poll!(std::pin::pin!(search.of(known(1), &computing))).is_ready());
        let mut large = std::pin::pin!(search.of(known(20), &computing));
        assert!(poll!(&mut large).is_pending());
        computing.take();
        let prepared = large.await;
        assert!(!computing.take().is_zero(), "it counts");
        // The same with one twice is prepared already.
        let again = known(20).into_iter().chain(known(1)).collect();
        let again = poll!(std::pin::pin!(search.of(again, &computing)));
        let std::task::Poll::Ready(again) = again else {
            panic!("it is prepared again");
        };
        assert!(Arc::ptr_eq(&prepared, &again));
    }

    #[test]
    fn a_renewed_session_has_other_cookies_than_the_one_before() {
        let session = |renewals| {
            let account = accounts::Account {
                slot: "main".to_owned(),
                id: "7".to_owned(),
                name: "Ann".to_owned(),
                since_ms: 5,
                is_expired: false,
                expires_ms: None,
                site: None,
                renewals,
            };
            Some(account.login_id())
        };
        let profiles = Profiles::default();
        let before = profiles.of_account("main", session(0));
        assert!(Arc::ptr_eq(&before, &profiles.of_account("main", session(0))));
        let after = profiles.of_account("main", session(1));
        assert!(!Arc::ptr_eq(&before, &after));
        assert!(Arc::ptr_eq(&after, &profiles.of_account("main", session(1))));
    }
}
