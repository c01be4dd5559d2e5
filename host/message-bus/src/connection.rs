//! A connection to a bus: calls, one after the other, each with its answer, and signals between them (D-Bus Specification
//! 0.42). Blocking, with a limit of time for each step.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    BusAddress, BusError, Method,
    wire::{self, Call, Header, Kind, MAX_MESSAGE_BYTES, Malformed, Reader, Signal, Writer},
};

/// The time for a call and its answer. Starting a key store takes a second or two.
const CALL_TIME: Duration = Duration::from_secs(8);

/// Messages of others that are read while waiting for an answer, such as signals.
const MAX_SKIPPED: usize = 1000;

/// Signals and calls that are kept until they are asked for; of more, the oldest are dropped.
const MAX_KEPT: usize = 64;

/// The longest line of the authentication.
const MAX_LINE_BYTES: usize = 512;

/// The name of the bus itself, and of its interface.
const BUS: &str = "org.freedesktop.DBus";

/// Names of errors that say that there is no such service.
const ABSENT: [&str; 5] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.TimedOut",
    "org.freedesktop.DBus.Error.Disconnected",
];

impl From<Malformed> for BusError {
    fn from(_: Malformed) -> Self {
        Self::Broken("its answer is not valid".to_owned())
    }
}

impl From<io::Error> for BusError {
    fn from(error: io::Error) -> Self {
        let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let why = if is_late {
            format!("it did not answer within {} s", CALL_TIME.as_secs())
        } else {
            error.to_string()
        };
        Self::Broken(why)
    }
}

impl BusError {
    fn refused(name: String) -> Self {
        if ABSENT.contains(&&*name) || name.contains(".Error.Spawn.") {
            Self::Absent(name)
        } else {
            Self::Refused(name)
        }
    }
}

/// Why [`Connection::wait`] returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A signal came.
    Signal(Signal),
    /// Another program calls an object of this one, and gets a [`Connection::answer`].
    Call(Call),
    /// The other descriptor can be read.
    Woken,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    serial: u32,
    kept: VecDeque<Event>,
}

/// A method of the bus itself.
const fn of_bus(member: &str) -> Method<'_> {
    Method {
        destination: BUS,
        path: "/org/freedesktop/DBus",
        interface: BUS,
        member,
    }
}

impl Connection {
    /// Connects, authenticates as the user of this process, and introduces itself to the bus.
    pub fn open(bus: &BusAddress) -> Result<Self, BusError> {
        let stream = connect(bus).map_err(|error| BusError::Absent(error.to_string()))?;
        let mut connection = Self {
            stream,
            serial: 0,
            kept: VecDeque::new(),
        };
        connection.authenticate(Instant::now() + CALL_TIME)?;
        connection.call(of_bus("Hello"), "", &Writer::default(), "s")?;
        Ok(connection)
    }

    fn authenticate(&mut self, until: Instant) -> io::Result<()> {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let uid = data_encoding::HEXLOWER.encode(uid.as_bytes());
        self.send(format!("\0AUTH EXTERNAL {uid}\r\n").as_bytes(), until)?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() >= MAX_LINE_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut byte = [0];
            self.receive(&mut byte, until)?;
            line.push(byte[0]);
        }
        if !line.starts_with(b"OK ") {
            return Err(io::Error::other("the bus does not accept this user"));
        }
        self.send(b"BEGIN\r\n", until)
    }

    /// Calls a method whose arguments have the type `signature`; returns the answer's body, whose type is `expected`.
    pub fn call(
        &mut self,
        method: Method<'_>,
        signature: &str,
        arguments: &Writer,
        expected: &str,
    ) -> Result<Reader, BusError> {
        let until = Instant::now() + CALL_TIME;
        self.serial += 1;
        let serial = self.serial;
        self.send(&wire::call(serial, method, signature, arguments), until)?;
        for _ in 0..MAX_SKIPPED {
            let (header, body) = self.receive_message(until)?;
            if matches!(header.kind, Kind::Signal | Kind::Call) {
                self.keep(header, body);
                continue;
            }
            if header.reply_serial != Some(serial) {
                continue;
            }
            return match header.kind {
                Kind::Return if header.signature == expected => Ok(body),
                Kind::Error => Err(BusError::refused(header.error_name)),
                Kind::Return | Kind::Signal | Kind::Call | Kind::Other => Err(Malformed.into()),
            };
        }
        Err(BusError::Broken(
            "the bus sends other messages without an end".to_owned(),
        ))
    }

    /// Asks the bus for signals that match `rule` (D-Bus Specification, "Match Rules").
    pub fn subscribe(&mut self, rule: &str) -> Result<(), BusError> {
        let mut arguments = Writer::default();
        arguments.text(rule);
        self.call(of_bus("AddMatch"), "s", &arguments, "").map(drop)
    }

    /// Asks the bus for a name under which other programs find this one. Returns whether it has the name now.
    pub fn request_name(&mut self, name: &str) -> Result<bool, BusError> {
        /// Do not wait for a name that another program has.
        const DO_NOT_QUEUE: u32 = 4;
        let mut arguments = Writer::default();
        arguments.text(name).number(DO_NOT_QUEUE);
        let mut reply = self.call(of_bus("RequestName"), "su", &arguments, "u")?;
        // Primary owner, or owner already.
        Ok(matches!(reply.number()?, 1 | 4))
    }

    /// Gives a name back to the bus.
    pub fn release_name(&mut self, name: &str) -> Result<(), BusError> {
        let mut arguments = Writer::default();
        arguments.text(name);
        self.call(of_bus("ReleaseName"), "s", &arguments, "u").map(drop)
    }

    /// Answers a call: with a body and its type, or with the name of an error and a message.
    pub fn answer(&mut self, call: &Call, answer: Result<(&str, &Writer), (&str, &str)>) -> Result<(), BusError> {
        if !call.wants_answer {
            return Ok(());
        }
        self.serial += 1;
        let message = wire::answer(self.serial, call, answer);
        Ok(self.send(&message, Instant::now() + CALL_TIME)?)
    }

    /// Sends a signal of an object of this program.
    pub fn emit(
        &mut self,
        path: &str,
        interface: &str,
        member: &str,
        (signature, body): (&str, &Writer),
    ) -> Result<(), BusError> {
        self.serial += 1;
        let message = wire::signal(self.serial, path, interface, member, signature, body);
        Ok(self.send(&message, Instant::now() + CALL_TIME)?)
    }

    /// Waits for the next signal or call, or until `other` can be read.
    pub fn wait(&mut self, other: BorrowedFd<'_>) -> Result<Event, BusError> {
        loop {
            if let Some(event) = self.kept.pop_front() {
                return Ok(event);
            }
            let mut ready = [
                PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(other, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let [bus, other] = ready.map(|descriptor| !descriptor.revents().is_empty());
            if other {
                return Ok(Event::Woken);
            }
            if bus {
                let (header, body) = self.receive_message(Instant::now() + CALL_TIME)?;
                if matches!(header.kind, Kind::Signal | Kind::Call) {
                    self.keep(header, body);
                }
            }
        }
    }

    fn keep(&mut self, header: Header, body: Reader) {
        if self.kept.len() >= MAX_KEPT {
            self.kept.pop_front();
        }
        let (interface, member, signature) = (header.interface, header.member, header.signature);
        self.kept.push_back(if header.kind == Kind::Call {
            Event::Call(Call {
                path: header.path,
                interface,
                member,
                signature,
                body,
                sender: header.sender,
                serial: header.serial,
                wants_answer: header.wants_answer,
            })
        } else {
            Event::Signal(Signal {
                interface,
                member,
                signature,
                body,
            })
        });
    }

    fn receive_message(&mut self, until: Instant) -> Result<(Header, Reader), BusError> {
        let mut fixed = [0; wire::FIXED_BYTES];
        self.receive(&mut fixed, until)?;
        let (rest, is_little) = wire::length(&fixed)?;
        if rest > MAX_MESSAGE_BYTES {
            return Err(Malformed.into());
        }
        let mut bytes = fixed.to_vec();
        bytes.resize(wire::FIXED_BYTES + rest, 0);
        self.receive(&mut bytes[wire::FIXED_BYTES..], until)?;
        Ok(wire::message(bytes, is_little)?)
    }

    fn send(&mut self, bytes: &[u8], until: Instant) -> io::Result<()> {
        self.stream.set_write_timeout(Some(left(until)?))?;
        self.stream.write_all(bytes)
    }

    fn receive(&mut self, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_read_timeout(Some(left(until)?))?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(io::ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}

/// Connects to the first address that can be reached. Addresses over TCP are not used: secrets would cross a network.
fn connect(bus: &BusAddress) -> io::Result<UnixStream> {
    let mut last = io::Error::other("there is no bus");
    for address in bus.address.iter().flat_map(|list| list.split(';')) {
        match connect_to(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    match &bus.runtime_dir {
        Some(dir) if bus.address.is_none() => UnixStream::connect(dir.join("bus")),
        _ => Err(last),
    }
}

/// Connects to `unix:path=…` or `unix:abstract=…`.
fn connect_to(address: &str) -> io::Result<UnixStream> {
    let options = address
        .strip_prefix("unix:")
        .ok_or_else(|| io::Error::other("its address is not one of a socket of this machine"))?;
    for option in options.split(',') {
        if let Some(path) = option.strip_prefix("path=") {
            return UnixStream::connect(unescape(path));
        }
        #[cfg(target_os = "linux")]
        if let Some(name) = option.strip_prefix("abstract=") {
            use std::os::{linux::net::SocketAddrExt as _, unix::net::SocketAddr};
            return UnixStream::connect_addr(&SocketAddr::from_abstract_name(unescape(name))?);
        }
    }
    Err(io::Error::other("its address has no path"))
}

/// Decodes `%2d` in values of addresses.
fn unescape(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        if let Some(byte) = hex.and_then(|hex| data_encoding::HEXLOWER_PERMISSIVE.decode(hex).ok()) {
            bytes.extend(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unescaped_and_only_sockets_of_this_machine_are_used() {
        assert_eq!(unescape("/run/a%2db%"), "/run/a-b%");
        for address in ["tcp:host=127.0.0.1,port=1", "unix:guid=1", ""] {
            let bus = BusAddress {
                address: Some(address.to_owned()),
                runtime_dir: None,
            };
            assert!(matches!(Connection::open(&bus), Err(BusError::Absent(_))), "{address}");
        }
        let nowhere = Connection::open(&BusAddress::default()).unwrap_err();
        assert!(nowhere.to_string().contains("there is no bus"), "{nowhere}");
    }
}
