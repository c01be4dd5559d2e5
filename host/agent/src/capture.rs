//! Downloads that a browser handed over, before they become tasks: [`request`] validates what was sent, [`pending`]
//! holds downloads until the user decides.

pub(crate) mod kept;
pub(crate) mod pending;
pub(crate) mod request;
