//! Identification of clients and the cost limits that apply before and after authentication: access key, set-up code,
//! tickets, rate limit, local peer user, memory budgets. Used by the gate and by interfaces whose calls carry a key.

pub(crate) mod area;
pub(crate) mod budget;
pub(crate) mod key;
pub(crate) mod peer_user;
pub(crate) mod throttle;
pub(crate) mod ticket;

/// The admission permit of a connection of the agent's listener; stored in the extensions of every request.
pub(crate) type Seat = admission::Seat<throttle::Source>;
