//! Tasks that wait for a login, and which tasks a login resumes.

use transfer::Failure;

use crate::{
    model::{
        account::{AccountKey, LoginNeed},
        id::RunId,
        task::{LoginWait, Phase},
    },
    state::{
        model::{State, logins::Login},
        step::Row,
    },
};

/// Waiting tasks that one input looks at after a login; the next inputs continue. Their rows are one transaction of a
/// few milliseconds, so that a login for many thousands of tasks does not delay other commands. Two in tests, whose
/// histories have few tasks.
const LOOKED_AT_ONCE: usize = if cfg!(test) { 2 } else { 256 };

/// Logins whose tasks are still being resumed. One more waits until another one is finished.
const MAX_UNFINISHED: usize = 64;

impl State {
    /// Whether tasks are still to be resumed after a login.
    pub(super) fn is_resuming(&self) -> bool {
        !self.logins.unfinished.is_empty()
    }

    /// The resolver gives no link without a login. A login that came after the resolver was asked counts: the task is
    /// pending again. Otherwise it waits, and no retry is spent.
    pub(super) fn needs_login(&mut self, (serial, run): (u64, RunId), need: LoginNeed, failure: Failure) {
        if self.logins.during(run).any(|account| need.is_met_by(account)) {
            self.edit(serial, |task| task.phase = Phase::Pending);
            return;
        }
        self.logins.last_wait += 1;
        let order = self.logins.last_wait;
        self.edit(serial, |task| {
            task.phase = Phase::NeedsLogin(Box::new(LoginWait { need, failure, order }));
        });
    }

    pub(super) fn logged_in(&mut self, account: &AccountKey) {
        let active = self.index.active.iter().filter_map(|serial| self.tasks[serial].run());
        let oldest = active.map(|run| run.id).min();
        self.logins.remember(account, oldest, RunId(self.next_run));
        if !self.index.waiting.contains_key(account.account_slot()) {
            return;
        }
        while self.logins.unfinished.len() >= MAX_UNFINISHED && !self.logins.unfinished.contains_key(account) {
            self.resume_after_login();
        }
        let until = self.logins.last_wait;
        self.logins.unfinished.entry(account.clone()).or_default().until = until;
        // The one that comes first is looked at with this input; others have to outlive a crash before it is their turn.
        if self.logins.unfinished.keys().next() != Some(account) {
            self.save_login(account);
        }
    }

    fn save_login(&mut self, account: &AccountKey) {
        let Some(login) = self.logins.unfinished.get_mut(account) else {
            return;
        };
        if login.saved != Some(login.until) {
            login.saved = Some(login.until);
            self.changes.rows.push(Row::Login(account.clone(), login.until));
        }
    }

    /// Resumes some of the tasks that waited for a login. What remains is in a row, so that a crash loses no task.
    pub(super) fn resume_after_login(&mut self) {
        let Some((account, mut login)) = self.logins.unfinished.pop_first() else {
            return;
        };
        let waiting = self.index.waiting.get(account.account_slot());
        let rest = waiting.map(|waiting| waiting.range(login.next..=(login.until, u64::MAX)));
        let some: Vec<_> = rest.into_iter().flatten().take(LOOKED_AT_ONCE).copied().collect();
        for (_, serial) in &some {
            self.resume_if_concerned(*serial, &account);
        }
        if let Some((order, serial)) = some.get(LOOKED_AT_ONCE - 1) {
            login.next = (*order, serial + 1);
            self.logins.unfinished.insert(account.clone(), login);
            self.save_login(&account);
        } else if login.saved.is_some() {
            self.changes.rows.push(Row::LoginDone(account));
        }
    }

    /// A login concerns the tasks that need it, and those that wait for another account of its slot, which it replaces.
    fn resume_if_concerned(&mut self, serial: u64, account: &AccountKey) {
        let is_concerned = match &self.tasks[&serial].phase {
            Phase::NeedsLogin(wait) => wait.need.is_met_by(account),
            Phase::AccountLimited(wait) => wait.account != *account,
            _ => false,
        };
        if is_concerned {
            self.edit(serial, |task| {
                task.phase = Phase::Pending;
                task.renew_retries();
            });
        }
    }

    /// Continues what an earlier process did not finish.
    pub(super) fn take_logins(&mut self, logins: Vec<(AccountKey, u64)>) {
        for (account, until) in logins {
            self.logins.last_wait = self.logins.last_wait.max(until);
            let login = Login {
                until,
                saved: Some(until),
                ..Login::default()
            };
            self.logins.unfinished.insert(account, login);
        }
    }
}
