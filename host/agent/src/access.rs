//! Identification of clients: access key, set-up code, tickets, local peer user. Used by the gate and by interfaces whose
//! calls carry a key.

pub(crate) mod area;
pub(crate) mod key;
pub(crate) mod peer_user;
pub(crate) mod session;
pub(crate) mod ticket;

use std::sync::Arc;

use admission::throttle::Source;
use axum::extract::Request;

/// The admission permit of a connection of the agent's listener; stored in the extensions of every request.
pub(crate) type ConnectionSlot = admission::ConnectionSlot<Source>;

/// The permit of the request's connection.
pub(crate) fn slot(request: &Request) -> Option<Arc<ConnectionSlot>> {
    request.extensions().get::<Arc<ConnectionSlot>>().cloned()
}
