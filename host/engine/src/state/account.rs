//! Limits of accounts: which tasks wait for their account, and what their runs use of it.

use std::time::Duration;

use transfer::{Failure, FailureKind};

use crate::{
    model::{
        account::{AccountKey, AccountUse},
        id::{RunId, Timestamp},
        task::{AccountWait, Phase, Retry},
    },
    state::{
        model::{State, accounts::TooManyAccounts},
        step::Row,
    },
};

/// Waiting tasks whose shown reason one input corrects when an allowance is used up or renewed; the next inputs
/// continue. As many as are resumed after a login.
const CORRECTED_AT_ONCE: usize = if cfg!(test) { 2 } else { 256 };

/// Wait before a resolver is asked again that takes an account with room for full.
const FULL_AGAIN_WAIT: Duration = Duration::from_mins(1);

impl State {
    /// When the next [`Input::Clock`](super::Input::Clock) is due because a used-up allowance is renewed.
    pub fn next_renewal(&self) -> Option<Timestamp> {
        let waited_for = self.index.limited.keys();
        waited_for.filter_map(|account| self.accounts.renewed_at(account)).min()
    }

    /// Renews the allowances if a day has begun, and forgets the accounts that nothing uses.
    pub(super) fn begin_day(&mut self, now: Timestamp) {
        if !self.accounts.begin_day(now) {
            return;
        }
        for account in self.accounts.keys() {
            if !self.forget_account(&account) {
                self.changes
                    .rows
                    .extend(self.accounts.usage(&account).map(Row::Account));
            }
        }
    }

    fn forget_account(&mut self, account: &AccountKey) -> bool {
        let is_forgotten = !self.index.limited.contains_key(account) && self.accounts.forget(account);
        if is_forgotten {
            self.changes.rows.push(Row::AccountDeleted(account.clone()));
        }
        is_forgotten
    }

    /// Whether a run may start with the link that its resolver gave for this account. If not, its task waits or has
    /// failed.
    pub(super) fn is_admitted(
        &mut self,
        now: Timestamp,
        (serial, run): (u64, RunId),
        used: Option<&AccountUse>,
    ) -> bool {
        let Some(used) = used else {
            self.leave_account(run);
            return true;
        };
        let account = &used.account;
        if self.learn(used).is_err() {
            self.failed(now, serial, too_many());
            return false;
        }
        if !self.accounts.admits(account, run) {
            self.wait_for_account(serial, account);
            return false;
        }
        if self.accounts.account_of(run) != Some(account) {
            self.leave_account(run);
            self.accounts.enter(run, account.clone());
        }
        self.accounts.count_download(run);
        self.save_account(account);
        true
    }

    /// The resolver knows that its link would be of an account without room.
    pub(super) fn account_full(&mut self, now: Timestamp, (serial, run): (u64, RunId), used: &AccountUse) {
        let account = &used.account;
        if self.learn(used).is_err() {
            return self.failed(now, serial, too_many());
        }
        self.save_account(account);
        // A run that was given a place was asked for with the account not among the full ones.
        if self.accounts.account_of(run) == Some(account) && self.accounts.admits(account, run) {
            let failure = self.limit_reached(account);
            return self.edit(serial, |task| {
                task.phase = Phase::Retrying(Box::new(Retry {
                    failure,
                    at: now.after(FULL_AGAIN_WAIT),
                }));
            });
        }
        self.wait_for_account(serial, account);
    }

    fn learn(&mut self, used: &AccountUse) -> Result<(), TooManyAccounts> {
        self.accounts.learn(used).or_else(|TooManyAccounts| {
            for account in self.accounts.keys() {
                self.forget_account(&account);
            }
            self.accounts.learn(used)
        })
    }

    fn wait_for_account(&mut self, serial: u64, account: &AccountKey) {
        self.logins.last_wait += 1;
        let wait = AccountWait {
            account: account.clone(),
            failure: self.limit_reached(account),
            until: self.accounts.renewed_at(account),
            order: self.logins.last_wait,
        };
        self.edit(serial, |task| task.phase = Phase::AccountLimited(Box::new(wait)));
    }

    /// What is shown of the wait for an account.
    fn limit_reached(&self, account: &AccountKey) -> Failure {
        let limits = self.accounts.limits(account);
        let message = match (self.accounts.renewed_at(account), limits.parallel) {
            (Some(at), _) => format!(
                "waiting for account limit: {account} has used up what the site allows it a day; continues at {}",
                shown(at)
            ),
            (None, Some(most)) => format!(
                "waiting for account limit: as many downloads of {account} run as the site allows at once ({most})"
            ),
            (None, None) => format!("waiting for account limit of {account}"),
        };
        Failure::new(FailureKind::AccountLimit, message)
    }

    /// Frees the place that a run has in its account.
    pub(super) fn leave_account(&mut self, run: RunId) {
        if let Some(account) = self.accounts.leave(run) {
            self.save_account(&account);
        }
    }

    pub(super) fn save_account(&mut self, account: &AccountKey) {
        self.changes
            .rows
            .extend(self.accounts.unsaved(account).map(Row::Account));
    }

    /// The waiting tasks that show another time than that at which their account is renewed.
    fn stale_waits(&self) -> impl Iterator<Item = (&AccountKey, u64)> {
        self.index.limited.iter().flat_map(|(account, waiting)| {
            let until = self.accounts.renewed_at(account);
            let (earlier, later) = (waiting.range(..(until, 0)), waiting.range((until, u64::MAX)..));
            earlier.chain(later).map(move |(_, serial)| (account, *serial))
        })
    }

    pub(super) fn has_stale_waits(&self) -> bool {
        self.stale_waits().next().is_some()
    }

    /// Corrects what some of the waiting tasks show.
    pub(super) fn correct_waits(&mut self) {
        let stale: Vec<_> = self
            .stale_waits()
            .take(CORRECTED_AT_ONCE)
            .map(|(account, serial)| (serial, self.limit_reached(account), self.accounts.renewed_at(account)))
            .collect();
        for (serial, failure, until) in stale {
            self.edit(serial, |task| {
                if let Phase::AccountLimited(wait) = &mut task.phase {
                    wait.failure = failure;
                    wait.until = until;
                }
            });
        }
    }
}

fn shown(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.unix_millis());
    at.map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
        .unwrap_or_default()
}

fn too_many() -> Failure {
    Failure::new(
        FailureKind::Plugin,
        "more accounts of plugins have limits today than can be watched (256)",
    )
}
