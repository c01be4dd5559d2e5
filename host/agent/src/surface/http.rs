//! What several interfaces need of HTTP: bodies that are read within bounds, answers, and the WebSocket.

pub(crate) mod answer;
pub(crate) mod extract;
pub(crate) mod socket;
