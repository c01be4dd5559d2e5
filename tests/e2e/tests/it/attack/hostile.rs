//! What hostile clients have in common: raw connections, bodies that are never finished, answers that are never read, and
//! a look at what the process pays for them.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

use e2e::service::PATIENCE;
use support::Answer;

/// The largest body that the service reads.
pub(super) const MAX_BODY: usize = 4 * 1024 * 1024;

/// A list of so many bytes in which every value costs two of them.
pub(super) fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat((bytes - 3) / 2))
}

/// An XML-RPC call of so many bytes in which every value costs eight of them.
pub(super) fn many_values(bytes: usize) -> String {
    let begin = "<methodCall><methodName>a</methodName><params><param><value><array><data>";
    let end = "</data></array></value></param></params></methodCall>";
    let value = "<value/>";
    let count = (bytes - begin.len() - end.len()) / value.len();
    [begin, &value.repeat(count), end].concat()
}

fn lines(headers: &[(&str, &str)]) -> String {
    let lines = headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]);
    lines.collect()
}

/// The head of a POST.
pub(super) fn post(address: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let lines = lines(headers);
    format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n{lines}Content-Length: {length}\r\n\r\n")
}

/// A connection to the service.
pub(super) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has time-outs");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("a socket has time-outs");
    stream
}

/// Sends a POST and reads the status and the whole body. The service may answer and close before it has everything.
pub(super) fn exchange(address: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let headers = [headers, &[("Connection", "close")]].concat();
    let mut stream = connect(address);
    let head = post(address, path, &headers, body.len());
    let mut writer = stream.try_clone().expect("a socket can be shared");
    let text = [head.as_str(), body].concat();
    let sending = std::thread::spawn(move || drop(writer.write_all(text.as_bytes())));
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    // A reset after the answer is no failure: it was refused before it was read.
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        answer.extend_from_slice(&piece[..count]);
    }
    sending.join().expect("it only writes");
    let answer = Answer::read(&answer).unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&answer)));
    (answer.status, String::from_utf8(answer.body).expect("answers are text"))
}

/// Asks for a WebSocket and reads the answer to that, nothing more.
pub(super) fn upgrade(address: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let lines = lines(headers);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{lines}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    if answer.starts_with(b"HTTP/1.1 101 ") {
        Ok(stream)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()))
    }
}

/// A text frame of a client.
pub(super) fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81];
    match text.len() {
        length @ 0..126 => frame.push(0x80 | u8::try_from(length).expect("it is small")),
        length @ 126..0x1_0000 => {
            frame.push(0xfe);
            frame.extend(u16::try_from(length).expect("it is small").to_be_bytes());
        }
        length => {
            frame.push(0xff);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    // A mask of zeros leaves the text as it is.
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

/// Reads frames of the service until it closes: the code and the reason.
pub(super) fn close_reason(stream: &mut TcpStream) -> io::Result<(u16, String)> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head)?;
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                stream.read_exact(&mut length)?;
                u64::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                stream.read_exact(&mut length)?;
                u64::from_be_bytes(length)
            }
            length => length.into(),
        };
        let mut payload = vec![0; usize::try_from(length).expect("it fits into memory")];
        stream.read_exact(&mut payload)?;
        if head[0] == 0x88 {
            let (code, reason) = payload.split_at(2);
            let code = u16::from_be_bytes([code[0], code[1]]);
            return Ok((code, String::from_utf8_lossy(reason).into_owned()));
        }
    }
}

/// What a process has in memory: now, and at most since it was started, in MiB.
///
/// Growth is the difference between two peaks: a service that has started gives pages of its code back, and the next
/// request reads some of them again.
pub(super) fn memory(pid: i32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let field = |name: &str| {
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("it has this field");
        let number = line
            .split_whitespace()
            .nth(1)
            .and_then(|number| number.parse::<u64>().ok());
        number.expect("it is a number") / 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Descriptors that a process has open.
pub(super) fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the process is there")
        .count()
}

/// The soft and the hard limit of descriptors of a process.
pub(super) fn limit(pid: i32) -> [String; 2] {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("the process is there");
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let mut words = line.expect("it has this limit").split_whitespace().skip(3);
    std::array::from_fn(|_| words.next().expect("two numbers").to_owned())
}

/// Lets this process open as many connections as it may.
pub(super) fn take_all_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a soft limit can be raised");
}
