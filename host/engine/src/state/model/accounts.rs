//! Accounts of plugins: what their sites allow, what was used of that today, and which runs use them.

use std::collections::BTreeMap;

use crate::model::{
    account::{AccountKey, AccountLimits, AccountUsage, AccountUse},
    id::{RunId, Timestamp},
    resolution::ResolverId,
};

/// Accounts that are known at once. All of them are looked at when the day changes, and those that tasks wait for at
/// every input.
const MAX_ACCOUNTS: usize = 256;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// The known accounts. An allowance is of a day in UTC: one count that survives a restart, a moment of renewal that a
/// user can be shown, and no history. A site whose day begins at another hour may refuse a link around that hour, which
/// is retried like any other refusal.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Today, in days since the Unix epoch.
    today: i64,
    known: BTreeMap<AccountKey, AccountState>,
    places: BTreeMap<RunId, Place>,
}

#[derive(Debug, Default)]
struct AccountState {
    limits: AccountLimits,
    /// Bytes received today.
    bytes: u64,
    /// Downloads started today.
    downloads: u32,
    /// Runs that have a place.
    live: u32,
    /// Those of them that are not among the downloads yet: their resolver is still asked.
    resolving: u32,
    /// Whether its row is older than this.
    is_unsaved: bool,
}

/// A run's place among the downloads of an account.
#[derive(Debug)]
struct Place {
    account: AccountKey,
    /// The bytes of the run that are counted.
    received: u64,
    /// Whether it is among the account's downloads.
    is_download: bool,
}

/// There are as many accounts in use as can be known.
#[derive(Debug)]
pub(crate) struct TooManyAccounts;

impl AccountState {
    /// Whether today's allowance is used up.
    fn is_spent(&self) -> bool {
        let AccountLimits {
            parallel: _,
            daily_bytes,
            daily_downloads,
        } = self.limits;
        daily_bytes.is_some_and(|most| self.bytes >= most.get())
            || daily_downloads.is_some_and(|most| self.downloads >= most.get())
    }

    /// Whether it may have one more run beside those that live, of which `resolving` are not counted as downloads.
    fn has_room(&self, live: u32, resolving: u32) -> bool {
        let AccountLimits {
            parallel,
            daily_bytes: _,
            daily_downloads,
        } = self.limits;
        let downloads = self.downloads.saturating_add(resolving);
        !self.is_spent()
            && parallel.is_none_or(|most| live < most.get())
            && daily_downloads.is_none_or(|most| downloads < most.get())
    }
}

impl Accounts {
    /// The accounts of an earlier process. The newest of their days is today until the first input says otherwise.
    pub(crate) fn load(rows: Vec<AccountUsage>) -> Self {
        let today = rows.iter().map(|usage| usage.day).max().unwrap_or(0);
        let known = rows.into_iter().map(|usage| {
            let is_today = usage.day == today;
            let state = AccountState {
                limits: usage.used.limits,
                bytes: if is_today { usage.bytes } else { 0 },
                downloads: if is_today { usage.downloads } else { 0 },
                ..AccountState::default()
            };
            (usage.used.account, state)
        });
        Self {
            today,
            known: known.collect(),
            places: BTreeMap::new(),
        }
    }

    /// Renews the allowances if the day of `now` is another one. Returns whether it is.
    pub(crate) fn begin_day(&mut self, now: Timestamp) -> bool {
        let today = now.unix_millis().div_euclid(DAY_MILLIS);
        if today == self.today {
            return false;
        }
        self.today = today;
        for state in self.known.values_mut() {
            (state.bytes, state.downloads) = (0, 0);
        }
        true
    }

    pub(crate) fn keys(&self) -> Vec<AccountKey> {
        self.known.keys().cloned().collect()
    }

    /// Forgets an account, unless a run has a place in it or something is counted today. Returns whether it has.
    pub(crate) fn forget(&mut self, account: &AccountKey) -> bool {
        let is_idle = |state: &AccountState| state.live == 0 && state.bytes == 0 && state.downloads == 0;
        self.known.get(account).is_some_and(is_idle) && self.known.remove(account).is_some()
    }

    pub(crate) fn is_at_capacity(&self) -> bool {
        self.known.len() >= MAX_ACCOUNTS
    }

    /// Learns the limits of an account.
    pub(crate) fn learn(&mut self, used: &AccountUse) -> Result<(), TooManyAccounts> {
        if !self.known.contains_key(&used.account) {
            if self.is_at_capacity() {
                return Err(TooManyAccounts);
            }
            self.known.insert(used.account.clone(), AccountState::default());
        }
        if let Some(state) = self.known.get_mut(&used.account) {
            state.is_unsaved |= state.limits != used.limits;
            state.limits = used.limits;
        }
        Ok(())
    }

    pub(crate) fn limits(&self, account: &AccountKey) -> AccountLimits {
        self.known.get(account).map(|state| state.limits).unwrap_or_default()
    }

    /// Whether another run of the account may start.
    pub(crate) fn has_room(&self, account: &AccountKey) -> bool {
        let state = self.known.get(account);
        state.is_none_or(|state| state.has_room(state.live, state.resolving))
    }

    /// Whether `run` may download with the account; a place that it has is not counted against it.
    pub(crate) fn admits(&self, account: &AccountKey, run: RunId) -> bool {
        let own = self.places.get(&run).filter(|place| place.account == *account);
        let live = u32::from(own.is_some());
        let resolving = u32::from(own.is_some_and(|place| !place.is_download));
        let state = self.known.get(account);
        state.is_none_or(|state| state.has_room(state.live - live, state.resolving - resolving))
    }

    /// The accounts of a plugin with which `run` may not download.
    pub(crate) fn full_for(&self, identity: &ResolverId, run: RunId) -> Vec<AccountKey> {
        let own = self.known.keys().filter(|account| account.identity() == identity);
        own.filter(|account| !self.admits(account, run)).cloned().collect()
    }

    /// When the allowance of an account is renewed; `None` if it is not used up.
    pub(crate) fn renewed_at(&self, account: &AccountKey) -> Option<Timestamp> {
        let is_spent = self.known.get(account)?.is_spent();
        is_spent.then(|| Timestamp::from_unix_millis((self.today + 1).saturating_mul(DAY_MILLIS)))
    }

    /// In which account a run has its place.
    pub(crate) fn account_of(&self, run: RunId) -> Option<&AccountKey> {
        self.places.get(&run).map(|place| &place.account)
    }

    /// Gives a run a place.
    pub(crate) fn enter(&mut self, run: RunId, account: AccountKey) {
        if let Some(state) = self.known.get_mut(&account) {
            state.live += 1;
            state.resolving += 1;
            let place = Place {
                account,
                received: 0,
                is_download: false,
            };
            self.places.insert(run, place);
        }
    }

    /// Frees the place of a run.
    pub(crate) fn leave(&mut self, run: RunId) -> Option<AccountKey> {
        let place = self.places.remove(&run)?;
        if let Some(state) = self.known.get_mut(&place.account) {
            state.live -= 1;
            state.resolving -= u32::from(!place.is_download);
        }
        Some(place.account)
    }

    /// Counts the run as a download of its account.
    pub(crate) fn count_download(&mut self, run: RunId) {
        let Some(place) = self.places.get_mut(&run).filter(|place| !place.is_download) else {
            return;
        };
        place.is_download = true;
        if let Some(state) = self.known.get_mut(&place.account) {
            state.resolving -= 1;
            state.downloads = state.downloads.saturating_add(1);
            state.is_unsaved = true;
        }
    }

    /// Counts what a run has received since it was last counted.
    pub(crate) fn count_received(&mut self, run: RunId, received: u64) {
        let Some(place) = self.places.get_mut(&run) else { return };
        let new = received.saturating_sub(place.received);
        if new == 0 {
            return;
        }
        place.received = received;
        if let Some(state) = self.known.get_mut(&place.account) {
            state.bytes = state.bytes.saturating_add(new);
            state.is_unsaved = true;
        }
    }

    /// What a row of the account holds.
    pub(crate) fn usage(&self, account: &AccountKey) -> Option<AccountUsage> {
        let state = self.known.get(account)?;
        Some(AccountUsage {
            used: AccountUse {
                account: account.clone(),
                limits: state.limits,
            },
            day: self.today,
            bytes: state.bytes,
            downloads: state.downloads,
        })
    }

    /// [`Accounts::usage`] if the row does not hold it; the caller saves it.
    pub(crate) fn unsaved(&mut self, account: &AccountKey) -> Option<AccountUsage> {
        let state = self.known.get_mut(account)?;
        std::mem::take(&mut state.is_unsaved)
            .then(|| self.usage(account))
            .flatten()
    }
}
