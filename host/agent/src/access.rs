//! Identification of clients: access key, set-up code, tickets, local peer user. Used by the gate and by interfaces whose
//! calls carry a key.

pub(crate) mod area;
pub(crate) mod key;
pub(crate) mod peer_user;
pub(crate) mod ticket;

use admission::throttle::Source;

/// The admission permit of a connection of the agent's listener; stored in the extensions of every request.
pub(crate) type ConnectionSlot = admission::ConnectionSlot<Source>;
