//! Downloads that a browser or a paired device handed over, before they become tasks: [`request`] validates what was sent,
//! [`pending`] holds downloads until the user decides, [`kept`] stores those of devices meanwhile.

pub(crate) mod kept;
pub(crate) mod pending;
pub(crate) mod request;
