//! A client that sends text and shows what comes back.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use support::Origin;

/// What came back on a connection.
pub(crate) struct Heard {
    pub(crate) bytes: Vec<u8>,
    /// How the connection ended; `Ok` is an orderly close.
    pub(crate) end: io::Result<()>,
}

impl Heard {
    /// Everything before the first empty line.
    pub(crate) fn head(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        text.split("\r\n\r\n").next().unwrap_or("").to_owned()
    }

    /// Everything after the first empty line.
    pub(crate) fn body(&self) -> &[u8] {
        let end = self
            .bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .map_or(self.bytes.len(), |at| at + 4);
        &self.bytes[end..]
    }
}

/// Sends `text` and listens until the connection ends, or is silent for 300 ms (an error of kind `WouldBlock`).
pub(crate) fn say(port: u16, text: &str) -> Heard {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("300 ms are not zero");
    stream.write_all(text.as_bytes()).expect("the server reads");
    let mut heard = Heard {
        bytes: Vec::new(),
        end: Ok(()),
    };
    heard.end = stream.read_to_end(&mut heard.bytes).map(|_| ());
    heard
}

/// A GET with these header lines, on a connection of its own.
pub(crate) fn get(origin: &Origin, path: &str, headers: &str) -> Heard {
    say(
        origin.port(),
        &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"),
    )
}
