//! Text formats: JSON-RPC, XML-RPC, and Metalink. Pure.

pub mod json;
pub(crate) mod metalink;
pub(crate) mod pieces;
mod xml;
pub mod xml_rpc;
