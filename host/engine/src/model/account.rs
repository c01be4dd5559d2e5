//! Accounts of plugins: the logins that tasks need, and what sites allow an account.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
};

use crate::model::resolution::ResolverId;

/// Limit for the name of a slot and of an account each. They are stored with every task that waits.
const MAX_NAME_BYTES: usize = 256;

/// Identifies an account that the user logged in to: of this plugin, in this slot of its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountKey {
    slot: AccountSlot,
    account: Arc<str>,
}

/// Where a plugin keeps accounts: `slot` is the id in its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AccountSlot {
    pub(crate) identity: ResolverId,
    pub(crate) slot: Arc<str>,
}

/// A login without which a plugin gives no link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginNeed {
    slot: AccountSlot,
    account: Option<Arc<str>>,
}

/// What a site allows an account, as its plugin declares it. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountLimits {
    /// Downloads at once.
    pub parallel: Option<NonZeroU32>,
    /// Bytes received in a day. Downloads that run when they are used up are not stopped.
    pub daily_bytes: Option<NonZeroU64>,
    /// Downloads in a day. Every link that a download is started with counts, because sites count these.
    pub daily_downloads: Option<NonZeroU32>,
}

/// The account that a link belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountUse {
    /// The account.
    pub account: AccountKey,
    /// What its site allows it. The newest link of an account counts.
    pub limits: AccountLimits,
}

/// What was used of an account's daily allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountUsage {
    /// The account and its limits.
    pub used: AccountUse,
    /// The day, in days since the Unix epoch.
    pub day: i64,
    /// Bytes received.
    pub bytes: u64,
    /// Downloads started.
    pub downloads: u32,
}

/// A text that cannot name a slot or an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of an account or of its slot has 1 to {MAX_NAME_BYTES} bytes and no control characters")]
pub struct InvalidAccount;

impl AccountKey {
    /// The account of this name.
    pub fn new(identity: ResolverId, slot: &str, account: &str) -> Result<Self, InvalidAccount> {
        check(slot)?;
        check(account)?;
        Ok(Self::stored(identity, slot, account))
    }

    /// What a row names. Its lengths are not checked, because another version may have had other limits.
    pub(crate) fn stored(identity: ResolverId, slot: &str, account: &str) -> Self {
        Self {
            slot: AccountSlot::stored(identity, slot),
            account: account.into(),
        }
    }

    /// The plugin.
    pub fn identity(&self) -> &ResolverId {
        &self.slot.identity
    }

    /// The id of the slot.
    pub fn slot(&self) -> &str {
        &self.slot.slot
    }

    /// The id that the plugin gave the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    pub(crate) fn account_slot(&self) -> &AccountSlot {
        &self.slot
    }
}

impl fmt::Display for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.account(), self.identity())
    }
}

impl AccountSlot {
    fn stored(identity: ResolverId, slot: &str) -> Self {
        Self {
            identity,
            slot: slot.into(),
        }
    }
}

impl LoginNeed {
    /// A login in this slot: to `account`, or to any.
    pub fn new(identity: ResolverId, slot: &str, account: Option<&str>) -> Result<Self, InvalidAccount> {
        check(slot)?;
        account.map_or(Ok(()), check)?;
        Ok(Self::stored(identity, slot, account))
    }

    /// As [`AccountKey::stored`].
    pub(crate) fn stored(identity: ResolverId, slot: &str, account: Option<&str>) -> Self {
        Self {
            slot: AccountSlot::stored(identity, slot),
            account: account.map(Into::into),
        }
    }

    /// The plugin.
    pub fn identity(&self) -> &ResolverId {
        &self.slot.identity
    }

    /// The id of the slot.
    pub fn slot(&self) -> &str {
        &self.slot.slot
    }

    /// The account; `None` if any of the slot will do.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// Whether a login to `account` is what is needed.
    pub fn is_met_by(&self, account: &AccountKey) -> bool {
        let is_the_one = self.account.as_ref().is_none_or(|wanted| *wanted == account.account);
        self.slot == account.slot && is_the_one
    }

    pub(crate) fn account_slot(&self) -> &AccountSlot {
        &self.slot
    }
}

fn check(name: &str) -> Result<(), InvalidAccount> {
    let is_valid = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
    is_valid.then_some(()).ok_or(InvalidAccount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_meets_the_needs_of_its_slot_for_any_account_or_for_its_own() {
        let shelf = || ResolverId::new("shelf@us");
        let login = AccountKey::new(shelf(), "main", "ann").unwrap();
        for (identity, slot, account, is_met) in [
            (shelf(), "main", None, true),
            (shelf(), "main", Some("ann"), true),
            (shelf(), "main", Some("bob"), false),
            (shelf(), "other", None, false),
            (ResolverId::new("other@us"), "main", None, false),
        ] {
            let need = LoginNeed::new(identity, slot, account).unwrap();
            assert_eq!(need.is_met_by(&login), is_met, "{need:?}");
        }
    }

    #[test]
    fn names_that_cannot_be_shown_in_a_line_are_refused() {
        let shelf = || ResolverId::new("shelf@us");
        for name in ["", "a\nb", &"x".repeat(257)] {
            assert_eq!(AccountKey::new(shelf(), name, "a"), Err(InvalidAccount));
            assert_eq!(AccountKey::new(shelf(), "s", name), Err(InvalidAccount));
            assert_eq!(LoginNeed::new(shelf(), name, None), Err(InvalidAccount));
            assert_eq!(LoginNeed::new(shelf(), "s", Some(name)), Err(InvalidAccount));
        }
    }
}
