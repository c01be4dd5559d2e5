//! A server of FTP on loopback that serves files honestly or misbehaves at a command: in clear, with `AUTH TLS`, or with TLS
//! from the first byte.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustls::ServerConfig;

use crate::{
    content::Content,
    server::{Accepted, Server, Stop, lock},
    tls::{self, Certificate},
    wire::Wire,
};

/// A client that does not open its data connection in this time never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a file that are sent at a time.
const BLOCK_BYTES: u64 = 32 * 1024;

/// The user and password of servers that want them.
pub const FTP_LOGIN: (&str, &str) = ("me", "canary-password");

/// When a command misbehaves.
#[derive(Debug, Clone, Copy)]
pub struct At {
    command: &'static str,
    first: usize,
    last: usize,
}

impl At {
    /// Always when this command comes.
    pub const fn every(command: &'static str) -> Self {
        Self::nth(command, 0, usize::MAX)
    }

    /// The first time that this command comes.
    pub const fn first(command: &'static str) -> Self {
        Self::nth(command, 0, 0)
    }

    /// From the second time on.
    pub const fn later(command: &'static str) -> Self {
        Self::nth(command, 1, usize::MAX)
    }

    /// From the `first` to the `last` time, counted from 0 over all connections.
    pub const fn nth(command: &'static str, first: usize, last: usize) -> Self {
        Self { command, first, last }
    }
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
    /// This instead of the reply; nothing is done.
    Reply(&'static [u8]),
    /// This over and over instead of the reply.
    Endless(&'static [u8]),
    /// No reply at all.
    Silent,
    /// The connection is closed.
    Close,
    /// The reply, and this at once behind it.
    Behind(&'static [u8]),
    /// EPSV and PASV: nothing listens on the port.
    ClosedPort,
    /// EPSV and PASV: connections are never accepted.
    Unaccepted,
    /// PASV: the address of another host.
    OtherHost([u8; 4]),
    /// Transfers: the file from its start, whatever REST said.
    IgnoresRestart,
    /// Transfers: this many bytes further than REST said.
    Shifted(u64),
    /// Transfers: so many bytes, and then this reply.
    Cut(u64, &'static [u8]),
    /// Transfers: so many bytes, and a connection that stays open.
    Stall(u64),
    /// Transfers: so many bytes, and a reset.
    Reset(u64),
    /// Transfers: so many bytes more than the file has.
    More(u64),
    /// Transfers: everything, and then this instead of the final reply; empty is none.
    Final(&'static [u8]),
    /// Transfers: everything, in clear although TLS was agreed on.
    ClearData,
    /// Transfers: these bytes instead of the file or listing.
    Bytes(&'static [u8]),
    /// Transfers: a line of a listing, over and over.
    EndlessLines(&'static [u8]),
    /// Transfers: at most so many bytes a second.
    Slow(u64),
    /// Transfers: TLS ends without saying so.
    CutTls,
}

/// When TLS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FtpSecurity {
    /// Never.
    Clear,
    /// After `AUTH TLS`.
    Explicit,
    /// At once.
    Implicit,
}

/// A file at a server.
#[derive(Debug, Clone)]
struct Served {
    path: Vec<u8>,
    content: Content,
    /// What MDTM says from its nth time on.
    changed: Vec<(usize, &'static str)>,
    /// What is served from the nth transfer on.
    later: Option<(usize, Content)>,
}

/// What a server has and does wrong.
#[derive(Debug, Clone)]
pub struct FtpSetting {
    files: Vec<Served>,
    directories: Vec<&'static [u8]>,
    security: FtpSecurity,
    certificate: Certificate,
    wrongs: Vec<(At, Wrong)>,
    has_login: bool,
    features: &'static [u8],
}

impl FtpSetting {
    /// A server with one file that does nothing wrong.
    pub fn new(path: &str, content: Content) -> Self {
        Self {
            files: vec![Served {
                path: path.as_bytes().to_vec(),
                content,
                changed: vec![(0, "20260102030405")],
                later: None,
            }],
            directories: Vec::new(),
            security: FtpSecurity::Clear,
            certificate: Certificate::Trusted,
            wrongs: Vec::new(),
            has_login: false,
            features: b"211-Features:\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n MLST type*;size*;\r\n UTF8\r\n211 End\r\n",
        }
    }

    /// The same with another file.
    #[must_use]
    pub fn file(mut self, path: &[u8], content: Content) -> Self {
        self.files.push(Served {
            path: path.to_vec(),
            content,
            changed: vec![(0, "20260102030405")],
            later: None,
        });
        self
    }

    /// The same with a directory.
    #[must_use]
    pub fn directory(mut self, path: &'static [u8]) -> Self {
        self.directories.push(path);
        self
    }

    /// The first file has this time from the nth question on.
    #[must_use]
    pub fn changed(mut self, nth: usize, time: &'static str) -> Self {
        self.files[0].changed.push((nth, time));
        self
    }

    /// The first file has this content from the nth transfer on.
    #[must_use]
    pub fn later(mut self, nth: usize, content: Content) -> Self {
        self.files[0].later = Some((nth, content));
        self
    }

    /// The same with TLS.
    #[must_use]
    pub fn secured(self, security: FtpSecurity, certificate: Certificate) -> Self {
        Self {
            security,
            certificate,
            ..self
        }
    }

    /// The same, doing this wrong.
    #[must_use]
    pub fn wrong(mut self, at: At, wrong: Wrong) -> Self {
        self.wrongs.push((at, wrong));
        self
    }

    /// The same, with [`FTP_LOGIN`] as the only login.
    #[must_use]
    pub fn login(self) -> Self {
        Self {
            has_login: true,
            ..self
        }
    }

    /// The same with this reply to FEAT.
    #[must_use]
    pub fn features(self, features: &'static [u8]) -> Self {
        Self { features, ..self }
    }
}

/// The server.
#[derive(Debug)]
pub struct FtpServer {
    server: Server,
    state: Arc<State>,
    authority: String,
}

#[derive(Debug)]
struct State {
    setting: FtpSetting,
    tls: Option<Arc<ServerConfig>>,
    commands: Mutex<Vec<String>>,
    /// How often each of the wrongs was met.
    met: Vec<AtomicUsize>,
    data_connections: AtomicUsize,
}

impl FtpServer {
    /// Serves `setting` on a free port of 127.0.0.1.
    pub fn start(setting: FtpSetting) -> Self {
        let (config, authority) = if setting.security == FtpSecurity::Clear {
            (None, String::new())
        } else {
            let (config, authority) = tls::config(setting.certificate);
            (Some(config), authority)
        };
        let state = Arc::new(State {
            met: setting.wrongs.iter().map(|_| AtomicUsize::new(0)).collect(),
            setting,
            tls: config,
            commands: Mutex::default(),
            data_connections: AtomicUsize::new(0),
        });
        let for_connections = Arc::clone(&state);
        let server = Server::start(move |accepted| {
            // A client that leaves early is none of the server's failures.
            let _left = serve(accepted, &for_connections);
        });
        Self {
            server,
            state,
            authority,
        }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        let scheme = match self.state.setting.security {
            FtpSecurity::Clear => "ftp",
            FtpSecurity::Explicit => "ftpes",
            FtpSecurity::Implicit => "ftps",
        };
        format!("{scheme}://{}/{path}", self.server.address())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// What a client has to trust.
    pub fn authority_pem(&self) -> &str {
        &self.authority
    }

    /// Every command so far, with its argument.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.state.commands).clone()
    }

    /// How many commands begin with `start`.
    pub fn count(&self, start: &str) -> usize {
        self.commands().iter().filter(|line| line.starts_with(start)).count()
    }

    /// The most control connections at a time.
    pub fn most_connections(&self) -> usize {
        self.server.most_open()
    }

    /// The data connections that were accepted.
    pub fn data_connections(&self) -> usize {
        self.state.data_connections.load(Ordering::SeqCst)
    }

    /// What it does wrong that no client met.
    pub fn not_met(&self) -> Vec<String> {
        let wrongs = self.state.setting.wrongs.iter().zip(&self.state.met);
        let unmet = wrongs.filter(|(_, met)| met.load(Ordering::SeqCst) == 0);
        unmet.map(|(wrong, _)| format!("{wrong:?}")).collect()
    }
}

/// One control connection.
#[expect(clippy::struct_excessive_bools, reason = "each is what a command before has set")]
struct Session<'a> {
    state: &'a State,
    wire: Option<Wire>,
    stop: &'a Stop,
    user: String,
    is_in: bool,
    is_private: bool,
    directory: Vec<u8>,
    restart: u64,
    channel: Option<TcpListener>,
    never_accepts: bool,
    received: Vec<u8>,
}

fn serve(accepted: Accepted, state: &State) -> io::Result<()> {
    let Accepted { stream, stop, .. } = accepted;
    let wire = match (&state.tls, state.setting.security) {
        (Some(config), FtpSecurity::Implicit) => Wire::tls(stream, config)?,
        _ => Wire::plain(stream),
    };
    let mut session = Session {
        state,
        wire: Some(wire),
        stop: &stop,
        user: String::new(),
        is_in: false,
        is_private: false,
        directory: Vec::new(),
        restart: 0,
        channel: None,
        never_accepts: false,
        received: Vec::new(),
    };
    session.answer("WELCOME", b"", |session| session.say(b"220 welcome\r\n"))?;
    while let Some(line) = session.line()? {
        let (verb, argument) = match line.iter().position(|byte| *byte == b' ') {
            Some(space) => (&line[..space], &line[space + 1..]),
            None => (line.as_slice(), &[][..]),
        };
        let verb = String::from_utf8_lossy(verb).to_ascii_uppercase();
        if verb == "QUIT" {
            break;
        }
        session.answer(&verb, argument, |session| session.handle(&verb, argument, None))?;
    }
    Ok(())
}

impl Session<'_> {
    fn wire(&mut self) -> &mut Wire {
        self.wire.as_mut().expect("it is only taken to be made TLS")
    }

    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.received.drain(..=end).collect();
                line.truncate(line.trim_ascii_end().len());
                return Ok(Some(line));
            }
            let mut buffer = [0; 1024];
            match self.wire().read(&mut buffer)? {
                0 => return Ok(None),
                read => self.received.extend_from_slice(&buffer[..read]),
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire().write_all(bytes)?;
        self.wire().flush()
    }

    /// Answers a command wrongly, if that is due, or as it should be.
    fn answer(
        &mut self,
        verb: &str,
        argument: &[u8],
        rightly: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let shown = if verb == "PASS" {
            "PASS".to_owned()
        } else {
            format!("{verb} {}", argument.escape_ascii()).trim_end().to_owned()
        };
        let before = {
            let mut commands = lock(&self.state.commands);
            let before = commands
                .iter()
                .filter(|line| line.split(' ').next() == Some(verb))
                .count();
            commands.push(shown);
            before
        };
        let mut wrongs = self.state.setting.wrongs.iter().enumerate();
        let due = wrongs.find(|(_, (at, _))| at.command == verb && (at.first..=at.last).contains(&before));
        let Some((index, (_, wrong))) = due else {
            return rightly(self);
        };
        self.state.met[index].fetch_add(1, Ordering::SeqCst);
        match *wrong {
            Wrong::Reply(reply) => self.say(reply),
            Wrong::Endless(line) => loop {
                self.say(line)?;
                if self.stop.is_stopped() {
                    return Err(ErrorKind::BrokenPipe.into());
                }
            },
            Wrong::Silent => {
                self.stop.pause(Duration::from_mins(1));
                Err(ErrorKind::TimedOut.into())
            }
            Wrong::Close => Err(ErrorKind::ConnectionAborted.into()),
            Wrong::ClosedPort => {
                self.listen()?;
                let listener = self.channel.take().expect("it was just opened");
                let port = listener.local_addr()?.port();
                drop(listener);
                self.name_port(verb, port, [127, 0, 0, 1])
            }
            Wrong::Unaccepted => {
                self.never_accepts = true;
                rightly(self)
            }
            Wrong::OtherHost(host) => {
                self.listen()?;
                let port = self.channel.as_ref().expect("it was just opened").local_addr()?.port();
                self.name_port(verb, port, host)
            }
            Wrong::Behind(more) => {
                if verb == "AUTH" {
                    let both = [b"234 go on\r\n", more].concat();
                    self.say(&both)?;
                    return self.secure();
                }
                rightly(self)?;
                self.say(more)
            }
            of_transfer => self.handle(verb, argument, Some(of_transfer)),
        }
    }

    fn handle(&mut self, verb: &str, argument: &[u8], wrong: Option<Wrong>) -> io::Result<()> {
        match verb {
            "AUTH" if self.state.setting.security == FtpSecurity::Explicit => {
                self.say(b"234 go on\r\n")?;
                self.secure()
            }
            "USER" => {
                self.user = String::from_utf8_lossy(argument).into_owned();
                self.say(b"331 password\r\n")
            }
            "PASS" => {
                let is_right = self.user == FTP_LOGIN.0 && argument == FTP_LOGIN.1.as_bytes();
                self.is_in = is_right || !self.state.setting.has_login;
                self.say(if self.is_in {
                    b"230 in\r\n"
                } else {
                    b"530 no such login\r\n"
                })
            }
            _ if !self.is_in => self.say(b"530 log in first\r\n"),
            "FEAT" => self.say(self.state.setting.features),
            "OPTS" | "TYPE" | "PBSZ" | "NOOP" => self.say(b"200 well\r\n"),
            "PROT" => {
                self.is_private = argument == b"P";
                self.say(b"200 well\r\n")
            }
            "PWD" => self.say(b"257 \"/\" is here\r\n"),
            "CWD" => {
                let path = self.path(argument);
                let is_there = path.is_empty() || self.state.setting.directories.contains(&path.as_slice());
                if is_there {
                    self.directory = path;
                }
                self.say(if is_there {
                    b"250 well\r\n"
                } else {
                    b"550 no such directory\r\n"
                })
            }
            "SIZE" | "MDTM" => self.fact(verb, argument),
            "REST" => {
                self.restart = std::str::from_utf8(argument)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0);
                self.say(b"350 from there\r\n")
            }
            "EPSV" | "PASV" => {
                self.listen()?;
                let port = self.channel.as_ref().expect("it was just opened").local_addr()?.port();
                self.name_port(verb, port, [127, 0, 0, 1])
            }
            "RETR" => self.retrieve(argument, wrong),
            "MLSD" | "LIST" => {
                let listing = self.listing(verb == "MLSD");
                self.transfer(&Content::bytes(listing), wrong)
            }
            _ => self.say(b"502 no such command\r\n"),
        }
    }

    fn secure(&mut self) -> io::Result<()> {
        let config = self.state.tls.as_ref().expect("only servers with TLS agree to it");
        match self.wire.take() {
            Some(Wire::Plain(stream)) => {
                self.received.clear();
                self.wire = Some(Wire::tls(stream, config)?);
                Ok(())
            }
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    fn path(&self, argument: &[u8]) -> Vec<u8> {
        let joined = match argument.strip_prefix(b"/") {
            Some(absolute) => absolute.to_vec(),
            None if self.directory.is_empty() => argument.to_vec(),
            None => [&self.directory, &b"/"[..], argument].concat(),
        };
        joined.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(joined)
    }

    fn served(&self, argument: &[u8]) -> Option<&Served> {
        let path = self.path(argument);
        self.state.setting.files.iter().find(|file| file.path == path)
    }

    /// How often a command came before this time.
    fn before(&self, verb: &str) -> usize {
        let commands = lock(&self.state.commands);
        let times = commands.iter().filter(|line| line.split(' ').next() == Some(verb));
        times.count().saturating_sub(1)
    }

    fn fact(&mut self, verb: &str, argument: &[u8]) -> io::Result<()> {
        let nth = self.before(verb);
        let Some(file) = self.served(argument) else {
            return self.say(b"550 no such file\r\n");
        };
        let value = if verb == "SIZE" {
            let transfers = self.before("RETR")
                + usize::from(lock(&self.state.commands).iter().any(|line| line.starts_with("RETR")));
            let later = file.later.as_ref().filter(|(from, _)| transfers >= *from);
            later.map_or(&file.content, |(_, content)| content).len().to_string()
        } else {
            let newest = file.changed.iter().rev().find(|(from, _)| nth >= *from);
            newest.map(|(_, time)| (*time).to_owned()).unwrap_or_default()
        };
        self.say(format!("213 {value}\r\n").as_bytes())
    }

    fn listen(&mut self) -> io::Result<()> {
        self.channel = Some(TcpListener::bind(("127.0.0.1", 0))?);
        Ok(())
    }

    fn name_port(&mut self, verb: &str, port: u16, [a, b, c, d]: [u8; 4]) -> io::Result<()> {
        let reply = if verb == "EPSV" {
            format!("229 here (|||{port}|)\r\n")
        } else {
            format!("227 here ({a},{b},{c},{d},{},{})\r\n", port / 256, port % 256)
        };
        self.say(reply.as_bytes())
    }

    fn listing(&self, is_machine: bool) -> Vec<u8> {
        let mut listing = Vec::new();
        let prefix = if self.directory.is_empty() {
            Vec::new()
        } else {
            [&self.directory, &b"/"[..]].concat()
        };
        let setting = &self.state.setting;
        let files = setting
            .files
            .iter()
            .map(|file| (file.path.as_slice(), Some(file.content.len())));
        let directories = setting.directories.iter().map(|path| (*path, None));
        for (path, size) in files.chain(directories) {
            let Some(name) = path
                .strip_prefix(prefix.as_slice())
                .filter(|name| !name.contains(&b'/'))
            else {
                continue;
            };
            let line = match (is_machine, size) {
                (true, Some(size)) => format!("type=file;size={size}; "),
                (true, None) => "type=dir; ".to_owned(),
                (false, Some(size)) => format!("-rw-r--r-- 1 ftp ftp {size} Jan  2 03:04 "),
                (false, None) => "drwxr-xr-x 2 ftp ftp 4096 Jan  2 03:04 ".to_owned(),
            };
            listing.extend_from_slice(line.as_bytes());
            listing.extend_from_slice(name);
            listing.extend_from_slice(b"\r\n");
        }
        listing
    }

    fn retrieve(&mut self, argument: &[u8], wrong: Option<Wrong>) -> io::Result<()> {
        let nth = self.before("RETR");
        let content = self.served(argument).map(|file| match &file.later {
            Some((from, later)) if nth >= *from => later.clone(),
            _ => file.content.clone(),
        });
        match content {
            Some(content) => self.transfer(&content, wrong),
            None => self.say(b"550 no such file\r\n"),
        }
    }

    fn transfer(&mut self, content: &Content, wrong: Option<Wrong>) -> io::Result<()> {
        let restart = std::mem::take(&mut self.restart);
        let start = match wrong {
            Some(Wrong::IgnoresRestart) => 0,
            Some(Wrong::Shifted(by)) if restart > 0 => restart + by,
            _ => restart,
        };
        self.say(b"150 here it comes\r\n")?;
        let Some(stream) = self.accept()? else {
            return self.say(b"425 nobody came\r\n");
        };
        self.state.data_connections.fetch_add(1, Ordering::SeqCst);
        let tls = self.state.tls.as_ref().filter(|_| self.is_private);
        let tls = tls.filter(|_| !matches!(wrong, Some(Wrong::ClearData)));
        let raw = stream.try_clone()?;
        let wire = match tls {
            Some(config) => Wire::tls(stream, config)?,
            None => Wire::plain(stream),
        };
        let left = content.len().saturating_sub(start);
        let sent = Sending {
            wire,
            raw,
            wrong,
            stop: self.stop,
        }
        .send(content, start.min(content.len()));
        match (sent, wrong) {
            (_, Some(Wrong::Cut(after, reply))) if after < left => self.say(reply),
            (_, Some(Wrong::Final(reply))) => self.say(reply),
            (Ok(()), _) => self.say(b"226 complete\r\n"),
            (Err(_), _) => self.say(b"426 broken\r\n"),
        }
    }

    /// The data connection; `None` if the client did not come.
    fn accept(&mut self) -> io::Result<Option<TcpStream>> {
        let Some(listener) = self.channel.take() else {
            return Ok(None);
        };
        if std::mem::take(&mut self.never_accepts) {
            // The system accepts it; nothing ever comes over it.
            self.stop.pause(Duration::from_mins(1));
            return Err(ErrorKind::TimedOut.into());
        }
        listener.set_nonblocking(true)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.stop.is_stopped() {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    return Ok(Some(stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stop.pause(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A transfer under way.
struct Sending<'a> {
    wire: Wire,
    raw: TcpStream,
    wrong: Option<Wrong>,
    stop: &'a Stop,
}

impl Sending<'_> {
    fn send(mut self, content: &Content, start: u64) -> io::Result<()> {
        match self.wrong {
            Some(Wrong::Bytes(bytes)) => self.wire.write_all(bytes)?,
            Some(Wrong::EndlessLines(line)) => loop {
                self.wire.write_all(&line.repeat(100))?;
            },
            Some(Wrong::Cut(after, _) | Wrong::Stall(after) | Wrong::Reset(after)) => {
                let end = start.saturating_add(after).min(content.len());
                self.send_bytes(content, start, end)?;
            }
            _ => self.send_bytes(content, start, content.len())?,
        }
        match self.wrong {
            Some(Wrong::Stall(_)) => {
                self.stop.pause(Duration::from_mins(1));
                return Err(ErrorKind::TimedOut.into());
            }
            Some(Wrong::Reset(_)) => {
                rustix::net::sockopt::set_socket_linger(&self.raw, Some(Duration::ZERO))?;
                return Err(ErrorKind::ConnectionReset.into());
            }
            Some(Wrong::More(bytes)) => {
                let more = vec![b'x'; usize::try_from(bytes).expect("it fits in memory")];
                self.wire.write_all(&more)?;
            }
            Some(Wrong::CutTls) => {
                self.wire.flush()?;
                return self.raw.shutdown(Shutdown::Write);
            }
            _ => {}
        }
        if let Wire::Tls(stream) = &mut self.wire {
            stream.conn.send_close_notify();
        }
        self.wire.flush()?;
        self.raw.shutdown(Shutdown::Write)
    }

    fn send_bytes(&mut self, content: &Content, mut at: u64, end: u64) -> io::Result<()> {
        let block = match self.wrong {
            Some(Wrong::Slow(rate)) => (rate / 20).max(1),
            _ => BLOCK_BYTES,
        };
        while at < end {
            let next = end.min(at + block);
            self.wire.write_all(&content.slice(at..next))?;
            at = next;
            if matches!(self.wrong, Some(Wrong::Slow(_))) && self.stop.pause(Duration::from_millis(50)) {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    }
}
