//! HTTP parts that several interfaces share: bounded bodies, common responses, and the WebSocket.

pub(crate) mod answer;
pub(crate) mod extract;
pub(crate) mod socket;
