//! What AI clients send.

use super::Target;
use crate::house::{House, KEY};

/// The body of a POST to `/mcp`.
pub(super) fn message() -> Target {
    let house = House::server();
    let headers = format!(
        "Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         MCP-Protocol-Version: 2025-11-25\r\n"
    );
    Box::new(move |data| {
        let answer = house.ask("POST /mcp", &headers, data);
        match answer.status {
            // A notification, or a reply to nothing that was asked.
            202 => assert!(answer.body.is_empty()),
            200 | 400 | 404 => {
                let message = answer.json();
                assert_eq!(message["jsonrpc"], "2.0", "{message}");
                let is_result = message["result"].is_object();
                let is_error = message["error"]["code"].is_i64() && message["error"]["message"].is_string();
                assert!(is_result != is_error, "{message}");
            }
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    })
}
