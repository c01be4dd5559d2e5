//! Who sends a request, and what a sender may cost before and after it has authenticated: the access key and what stands
//! for it, wrong attempts, the user of a peer, room for bodies and answers.

pub(crate) mod area;
pub(crate) mod budget;
pub(crate) mod key;
pub(crate) mod peer_user;
pub(crate) mod throttle;
pub(crate) mod ticket;

/// The seat of a connection of the agent's listener; every request carries it.
pub(crate) type Seat = admission::Seat<throttle::Source>;
