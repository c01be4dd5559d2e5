//! Messages as text: JSON-RPC, XML-RPC, and the documents of `addMetalink`. Pure.

pub mod json;
pub(crate) mod metalink;
pub(crate) mod pieces;
mod xml;
pub mod xml_rpc;
