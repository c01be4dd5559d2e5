//! Sessions of pages that the service's own user opened (`svc open`): credentials for this machine's browser, in place of
//! the access key. They end with the agent.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::key::KeyDigest;

/// Beyond this the oldest ends, and its page asks for the key.
const MAX_SESSIONS: usize = 64;

/// The mutex is held for a look-up only.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<KeyDigest>>);

impl Sessions {
    /// Begins a session; returns its credential.
    pub(crate) fn begin(&self) -> Result<String, protocol::proof::NoRandom> {
        let credential = protocol::proof::nonce()?;
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(KeyDigest::of(&credential));
        Ok(credential)
    }

    pub(crate) fn has(&self, shown: KeyDigest) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_ends() {
        let sessions = Sessions::default();
        let first = KeyDigest::of(&sessions.begin().unwrap());
        assert!(sessions.has(first));
        (0..MAX_SESSIONS).for_each(|_| drop(sessions.begin().unwrap()));
        assert!(!sessions.has(first));
        assert!(!sessions.has(KeyDigest::of("")));
    }
}
