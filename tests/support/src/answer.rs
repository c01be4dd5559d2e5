//! An HTTP response as it was read from a connection that the server closed.

use serde_json::Value;

/// A whole response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The status line and the header fields, as they came.
    pub head: String,
    /// The body, without its chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// Parses a response. `None` if it is not one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = bytes[end + 4..].to_vec();
        let mut answer = Self { status, head, body };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body)?;
        }
        Some(answer)
    }

    /// The body is as long as the head says. One of a HEAD request never is.
    pub fn is_whole(&self) -> bool {
        let promised = self.header("content-length");
        promised.is_none_or(|length| length == self.body.len().to_string())
    }

    /// The first header field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).ok()?, 16).ok()?;
        let rest = &body[end + 2..];
        if length == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..length)?);
        body = rest.get(length + 2..)?;
    }
}
