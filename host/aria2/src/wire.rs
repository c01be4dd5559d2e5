//! Text formats: JSON-RPC and XML-RPC. Pure.

pub mod json;
pub(crate) mod pieces;
pub mod xml_rpc;
