//! The committed description of MCP's tools, as the service sends it. It is made from the records, but by a test and not by
//! the service, because what makes it is much code.

/// `mcp-tools.json`.
pub(crate) fn mcp_tools() -> Vec<u8> {
    rest::unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/mcp-tools.json.gz")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_sent_is_what_the_handlers_are() {
        assert!(super::mcp_tools() == crate::mcp_tools().into_bytes(), "build again");
    }
}
