//! What browsers hand over.

use super::Target;
use crate::house::{House, KEY};

/// The body of a POST to `/download/batch`.
pub(super) fn batch() -> Target {
    let house = House::server();
    let headers = format!("X-Svc-Client: fuzz\r\nX-Svc-Token: {KEY}\r\n");
    Box::new(move |data| {
        let answer = house.ask("POST /download/batch", &headers, data);
        let is_accepted = answer.status == 200;
        assert!(is_accepted || answer.status == 400, "{}", answer.status);
        assert_eq!(answer.json()["success"], is_accepted);
    })
}
