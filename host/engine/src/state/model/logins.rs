//! Logins that tasks waited for.

use std::collections::BTreeMap;

use crate::model::{account::AccountKey, id::RunId};

/// Logins that are kept for runs that began before them. A plugin host keeps a few accounts a plugin, so these are the
/// logins of all of them while one run lasts; the run of a login that is forgotten waits for the next one.
const MAX_RECENT: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Logins {
    /// The order of the newest wait.
    pub(crate) last_wait: u64,
    /// Logins whose tasks have not all been resumed.
    pub(crate) unfinished: BTreeMap<AccountKey, Login>,
    /// Logins during runs that still live, with the newest run that began before.
    recent: BTreeMap<AccountKey, RunId>,
}

/// A login on the way to the tasks that wait for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Login {
    /// The order of the newest wait that it ends. Later waits began after it: the plugin has refused it.
    pub(crate) until: u64,
    /// The first wait, by order and serial, that was not looked at.
    pub(crate) next: (u64, u64),
    /// The `until` of its row.
    pub(crate) saved: Option<u64>,
}

impl Logins {
    /// Remembers a login for the runs from `oldest` to `newest`, which began before it.
    pub(crate) fn remember(&mut self, account: &AccountKey, oldest: Option<RunId>, newest: RunId) {
        self.recent
            .retain(|_, before| oldest.is_some_and(|oldest| oldest <= *before));
        if oldest.is_none() {
            return;
        }
        if self.recent.len() >= MAX_RECENT && !self.recent.contains_key(account) {
            let first = self.recent.iter().min_by_key(|(_, before)| **before);
            if let Some(first) = first.map(|(account, _)| account.clone()) {
                self.recent.remove(&first);
            }
        }
        self.recent.insert(account.clone(), newest);
    }

    /// The accounts that were logged in to while `run` lived.
    pub(crate) fn during(&self, run: RunId) -> impl Iterator<Item = &AccountKey> {
        let during = self.recent.iter().filter(move |(_, before)| run <= **before);
        during.map(|(account, _)| account)
    }
}
