//! Requests as any program sends them.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

use serde_json::Value;

use crate::service::PATIENCE;

/// An answer of the service.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body, if it is JSON; else `null`.
    pub body: Value,
    /// The answer as it came.
    pub raw: support::Answer,
}

impl Answer {
    /// The first header field of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.raw.header(name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw.body).into_owned()
    }
}

/// Sends a request on a connection of its own. `None` if no whole answer comes, as from a process that is killed.
pub fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Option<Answer> {
    ask_on(TcpStream::connect(address).ok()?, address, method, path, headers, body)
}

/// The same on a connection that is there already; `address` is what it calls the service.
pub fn ask_on(
    stream: TcpStream,
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Option<Answer> {
    let body = body.map(Value::to_string).unwrap_or_default();
    send_text(stream, address, &format!("{method} {path}"), headers, &body)
}

/// The same with any text as its body.
pub fn send_text(stream: TcpStream, address: &str, line: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
    exchange(stream, address, line, headers, body)
        .ok()
        .and_then(|bytes| read(&bytes))
}

fn exchange(
    mut stream: TcpStream,
    address: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    // Version 1.0, so that the answer ends with the connection and comes in one piece.
    let mut lines = vec![format!("{line} HTTP/1.0")];
    let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !has("host") {
        lines.push(format!("Host: {address}"));
    }
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    if !body.is_empty() {
        if !has("content-type") {
            lines.push("Content-Type: application/json".to_owned());
        }
        lines.push(format!("Content-Length: {}", body.len()));
    }
    stream.write_all(format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn read(answer: &[u8]) -> Option<Answer> {
    let raw = support::Answer::read(answer).filter(support::Answer::is_whole)?;
    Some(Answer {
        status: raw.status,
        body: serde_json::from_slice(&raw.body).unwrap_or_default(),
        raw,
    })
}
