//! Sessions of pages that the service's own user opened (`svc open`): credentials for this machine's browser, in place of
//! the access key. They end with the agent.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use tokio::sync::watch;

use super::key::KeyDigest;

/// Beyond this the oldest ends, and its page asks for the key.
const MAX_SESSIONS: usize = 64;

/// What a page was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Everything.
    Page,
    /// A small window with the downloads that wait for confirmation. It may do what any page may; only its connections are
    /// counted, so that the desktop knows whether the user sees the question.
    Confirmation,
}

/// The mutex is held for a look-up only.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    sessions: Mutex<VecDeque<(KeyDigest, Purpose)>>,
    confirmation_windows: watch::Sender<Windows>,
}

/// Connections of confirmation windows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Those that are open.
    pub(crate) open: usize,
    /// All since the start, so that one that opens and closes between two looks is seen.
    pub(crate) total: u64,
}

/// A connected confirmation window; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct ConfirmationWindow(watch::Sender<Windows>);

impl Drop for ConfirmationWindow {
    fn drop(&mut self) {
        self.0.send_modify(|windows| windows.open -= 1);
    }
}

impl Sessions {
    /// Begins a session; returns its credential.
    pub(crate) fn begin(&self, purpose: Purpose) -> Result<String, protocol::proof::NoRandom> {
        let credential = protocol::proof::nonce()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back((KeyDigest::of(&credential), purpose));
        Ok(credential)
    }

    /// What the session of this credential is for; none if there is no such session.
    pub(crate) fn purpose(&self, shown: KeyDigest) -> Option<Purpose> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.iter().find(|(credential, _)| *credential == shown);
        found.map(|(_, purpose)| *purpose)
    }

    /// Counts a connection of a confirmation window.
    pub(crate) fn connect_window(&self) -> ConfirmationWindow {
        self.confirmation_windows.send_modify(|windows| {
            windows.open += 1;
            windows.total += 1;
        });
        ConfirmationWindow(self.confirmation_windows.clone())
    }

    pub(crate) fn confirmation_windows(&self) -> watch::Receiver<Windows> {
        self.confirmation_windows.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_ends() {
        let sessions = Sessions::default();
        let first = KeyDigest::of(&sessions.begin(Purpose::Confirmation).unwrap());
        assert_eq!(sessions.purpose(first), Some(Purpose::Confirmation));
        (0..MAX_SESSIONS).for_each(|_| drop(sessions.begin(Purpose::Page).unwrap()));
        assert_eq!(sessions.purpose(first), None);
        assert_eq!(sessions.purpose(KeyDigest::of("")), None);
    }

    #[test]
    fn windows_are_counted_while_they_are_connected() {
        let sessions = Sessions::default();
        let windows = sessions.confirmation_windows();
        let (first, second) = (sessions.connect_window(), sessions.connect_window());
        assert_eq!(*windows.borrow(), Windows { open: 2, total: 2 });
        drop((first, second));
        assert_eq!(*windows.borrow(), Windows { open: 0, total: 2 });
    }
}
