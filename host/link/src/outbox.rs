//! Downloads that wait for their device. Pure; its rows are stored before a download is acknowledged.

use std::collections::BTreeMap;

use protocol::LinkOutboxEntry;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    constants::{MAX_OUTBOX, OUTBOX_SECS},
    crypto::identity::Fingerprint,
    message::Task,
};

/// One download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The device, as text.
    pub(crate) fingerprint: String,
    /// What is sent. Its id is that of the entry.
    pub(crate) task: Task,
    /// In Unix seconds.
    pub(crate) created_at: i64,
    /// Attempts that the device did not answer.
    pub(crate) attempts: u32,
    /// Why the device refused it; empty: it waits.
    pub(crate) error: String,
    /// Why the last attempt failed; unknown of those that an earlier version stored.
    #[serde(default)]
    pub(crate) last_error: String,
    /// Orders entries of the same second.
    #[serde(default)]
    pub(crate) sequence: u64,
}

impl Entry {
    /// When it is given up.
    pub(crate) fn expires_at(&self) -> i64 {
        self.created_at + OUTBOX_SECS
    }
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the outbox is full: {MAX_OUTBOX} downloads wait already; remove some, or switch the other device on")]
pub struct Full;

/// The entries, by id.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    entries: BTreeMap<String, Entry>,
}

impl Outbox {
    /// Whether another one fits, after those that are too old were given up.
    pub(crate) fn check_room(&mut self, now: i64) -> Result<(), Full> {
        self.expire(now);
        if self.entries.len() < MAX_OUTBOX {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// The sequence number of an entry that is added now.
    pub(crate) fn next_sequence(&self) -> u64 {
        let last = self.entries.values().map(|entry| entry.sequence).max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Adds or replaces one that was stored.
    pub(crate) fn put(&mut self, id: String, entry: Entry) {
        self.entries.insert(id, entry);
    }

    /// Removes one.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Entry> {
        self.entries.remove(id)
    }

    /// One of them.
    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Gives up what is too old.
    pub(crate) fn expire(&mut self, now: i64) {
        self.entries.retain(|_, entry| now < entry.expires_at());
    }

    /// The ids that are for a device, oldest first.
    pub(crate) fn of_device(&self, device: &Fingerprint) -> Vec<String> {
        self.sorted(|entry| entry.fingerprint == device.as_str())
    }

    /// The ids that wait for a device, oldest first.
    pub(crate) fn waiting(&self, device: &Fingerprint) -> Vec<String> {
        self.sorted(|entry| entry.fingerprint == device.as_str() && entry.error.is_empty())
    }

    fn sorted(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<String> {
        let mut ids: Vec<_> = self.entries.iter().filter(|(_, entry)| is_meant(entry)).collect();
        ids.sort_by_key(|(_, entry)| (entry.created_at, entry.sequence));
        ids.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// As their owner sees them, oldest first. `name` gives the name of a device.
    pub(crate) fn view(&self, name: impl Fn(&str) -> String) -> Vec<LinkOutboxEntry> {
        let show = |id: String| {
            let entry = self.entries.get(&id)?;
            Some(LinkOutboxEntry {
                id,
                fingerprint: entry.fingerprint.clone(),
                device_name: name(&entry.fingerprint),
                url: without_login(&entry.task.url),
                file_name: entry.task.file_name.clone(),
                created_at: entry.created_at,
                expires_at: entry.expires_at(),
                attempts: entry.attempts,
                last_error: entry.last_error.clone(),
                error: entry.error.clone(),
            })
        };
        self.sorted(|_| true).into_iter().filter_map(show).collect()
    }
}

/// A URL without user name and password.
fn without_login(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return String::new();
    };
    let is_bare = url.set_username("").is_ok() & url.set_password(None).is_ok();
    if is_bare || url.username().is_empty() {
        url.into()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(created_at: i64) -> Entry {
        Entry {
            fingerprint: "0".repeat(64),
            task: Task {
                url: "https://user:secret@h/f".to_owned(),
                cookies: "secret".to_owned(),
                ..Task::default()
            },
            created_at,
            attempts: 0,
            error: String::new(),
            last_error: String::new(),
            sequence: 0,
        }
    }

    #[test]
    fn a_hundred_wait_at_most_a_week() {
        let mut outbox = Outbox::default();
        for id in 0..MAX_OUTBOX {
            outbox.check_room(0).unwrap();
            outbox.put(id.to_string(), entry(0));
        }
        assert_eq!(outbox.check_room(OUTBOX_SECS - 1), Err(Full));
        outbox.check_room(OUTBOX_SECS).unwrap();
        assert!(outbox.view(|_| String::new()).is_empty());
    }

    #[test]
    fn those_of_one_second_are_in_the_order_in_which_they_were_added() {
        let mut outbox = Outbox::default();
        for id in ["c", "a", "b"] {
            let sequence = outbox.next_sequence();
            outbox.put(id.to_owned(), Entry { sequence, ..entry(5) });
        }
        let ids = |outbox: &Outbox| outbox.sorted(|_| true).concat();
        assert_eq!(ids(&outbox), "cab");
        // An attempt at one, and a restart, change nothing.
        let text = serde_json::to_string(&outbox.remove("a").unwrap()).unwrap();
        outbox.put("a".to_owned(), serde_json::from_str(&text).unwrap());
        assert_eq!(ids(&outbox), "cab");
    }

    #[test]
    fn no_secret_is_shown() {
        let mut outbox = Outbox::default();
        outbox.put("a".to_owned(), entry(0));
        let shown = serde_json::to_string(&outbox.view(|_| "phone".to_owned())).unwrap();
        assert!(shown.contains("https://h/f") && !shown.contains("secret"), "{shown}");
    }

    proptest! {
        #[test]
        fn it_never_holds_more_than_a_hundred_and_gives_them_in_order(steps in prop::collection::vec((0_i64..200_000, prop::bool::ANY), 1..400)) {
            let mut outbox = Outbox::default();
            let mut now = 0;
            for (number, (passed, removes)) in steps.into_iter().enumerate() {
                now += passed;
                if removes {
                    outbox.remove(&(number / 2).to_string());
                } else if outbox.check_room(now).is_ok() {
                    outbox.put(number.to_string(), entry(now));
                }
                let shown = outbox.view(|_| String::new());
                prop_assert!(shown.len() <= MAX_OUTBOX);
                prop_assert!(shown.is_sorted_by_key(|entry| entry.created_at));
            }
        }
    }
}
