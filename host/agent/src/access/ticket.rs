//! Tickets: URLs that let a browser fetch one file without the access key, once and within a minute.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Long enough from the user's click to the browser's request.
pub(crate) const TICKET_TIME: Duration = Duration::from_mins(1);

/// Beyond this the oldest is dropped.
const MAX_TICKETS: usize = 1024;

#[derive(Debug)]
struct Ticket {
    path: String,
    made: Instant,
}

/// The mutex is held for a look-up only.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<String, Ticket>>);

impl Tickets {
    /// Issues a ticket for one `GET` of the path.
    pub(crate) fn make(&self, path: &str) -> Result<String, protocol::proof::NoRandom> {
        let name = protocol::proof::nonce()?;
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, ticket| ticket.made.elapsed() < TICKET_TIME);
        if tickets.len() >= MAX_TICKETS {
            let oldest = tickets.iter().min_by_key(|(_, ticket)| ticket.made);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                tickets.remove(&oldest);
            }
        }
        let ticket = Ticket {
            path: path.to_owned(),
            made: Instant::now(),
        };
        tickets.insert(name.clone(), ticket);
        Ok(name)
    }

    /// Consumes a ticket; returns whether it was valid for the path.
    pub(crate) fn take(&self, name: &str, path: &str) -> bool {
        self.take_any(name).is_some_and(|issued_for| issued_for == path)
    }

    /// Consumes a ticket; returns what it was valid for.
    pub(crate) fn take_any(&self, name: &str) -> Option<String> {
        let ticket = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name)?;
        (ticket.made.elapsed() < TICKET_TIME).then_some(ticket.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_and_for_its_path() {
        let tickets = Tickets::default();
        let ticket = tickets.make("/a").unwrap();
        assert!(tickets.take(&ticket, "/a"));
        assert!(!tickets.take(&ticket, "/a"));
        let ticket = tickets.make("/a").unwrap();
        assert!(!tickets.take(&ticket, "/b"));
        assert!(!tickets.take("", "/a"));
    }

    #[test]
    fn tickets_are_bounded() {
        let tickets = Tickets::default();
        let first = tickets.make("/a").unwrap();
        (0..MAX_TICKETS).for_each(|_| drop(tickets.make("/a").unwrap()));
        assert!(!tickets.take(&first, "/a"));
    }
}
