//! Downloads that a browser handed over, before they are tasks: [`request`] says what was sent, [`pending`] keeps what waits
//! for its user's decision.

pub(crate) mod pending;
pub(crate) mod request;
