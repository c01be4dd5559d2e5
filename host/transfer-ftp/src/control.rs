//! The control connection: login, commands and their replies.

use std::{net::IpAddr, sync::Arc, time::Duration};

use egress::{
    Reach,
    reach::is_blocked_port,
    route::{self, Leg, Stream},
};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, timeout, timeout_at},
};
use transfer::{Failure, failure::FailureKind};

use crate::{
    access::{Access, Security},
    data::{Data, broken},
    facts::{self, Facts},
    passive,
    place::is_sendable,
    reply::{Reader, Reply},
    shared::Shared,
};

/// Read size; replies are short.
const READ_BYTES: usize = 4 * 1024;

/// Preliminary replies accepted before the one that counts.
const MAX_PRELIMINARY: usize = 8;

/// How long the reply to a transfer that we broke off is waited for, so that the connection can be used again.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(3);

/// Optional commands of a server, by its reply to FEAT (RFC 2389). Without that reply none is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a command that a server has or has not"
)]
pub(crate) struct Features {
    pub(crate) is_known: bool,
    pub(crate) mlst: bool,
    pub(crate) utf8: bool,
    pub(crate) size: bool,
    pub(crate) mdtm: bool,
}

impl Features {
    fn of(reply: &Reply) -> Self {
        if reply.code != 211 {
            return Self::default();
        }
        let has = |feature: &[u8]| {
            let mut lines = reply.lines.iter().map(|line| line.trim_ascii());
            lines.any(|line| {
                let word = line.split(|byte| *byte == b' ').next().unwrap_or(line);
                word.eq_ignore_ascii_case(feature)
            })
        };
        Self {
            is_known: true,
            mlst: has(b"MLST") || has(b"MLSD"),
            utf8: has(b"UTF8"),
            size: has(b"SIZE"),
            mdtm: has(b"MDTM"),
        }
    }
}

/// Why a file is not sent from the byte that was asked for.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The server has no REST.
    NoRestart,
    /// Anything else.
    Failed(Failure),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The directory after the login.
enum Start {
    /// The server was not asked for it.
    Unasked,
    /// The server does not tell it.
    Untold,
    /// Its path.
    At(Vec<u8>),
}

/// A control connection after the login.
pub(crate) struct Control {
    stream: Stream,
    reader: Reader,
    host: String,
    /// Where it is connected; unknown behind a proxy.
    pub(crate) address: Option<IpAddr>,
    tls: Option<Arc<ClientConfig>>,
    access: Access,
    pub(crate) features: Features,
    /// The server refused EPSV, or could not be connected to after it.
    refuses_epsv: bool,
    start: Start,
}

impl Control {
    /// Connects and logs in. The addresses that `reach` allows are those of its data connections, too.
    pub(crate) async fn open(shared: &Shared, access: &Access, reach: Reach) -> Result<Self, Failure> {
        let access = Access {
            reach,
            ..access.clone()
        };
        let limit = shared.config.connect_timeout;
        let (mut stream, address) = leg(shared, &access, (&access.host, access.port)).to_target().await?;
        let tls = (access.security != Security::Clear).then(|| shared.client_tls(access.ignore_tls_errors));
        if let (Some(tls), Security::Implicit) = (&tls, access.security) {
            stream = route::within(limit, &access.host, route::secure(tls, &access.host, stream)).await?;
        }
        let mut control = Self {
            stream,
            reader: Reader::default(),
            host: access.host.clone(),
            address,
            tls,
            access,
            features: Features::default(),
            refuses_epsv: false,
            start: Start::Unasked,
        };
        let welcome = control.reply(shared).await?;
        control.expect("the connection", &welcome, welcome.code == 220)?;
        if control.access.security == Security::Explicit {
            control = control.secured(shared).await?;
        }
        control.log_in(shared).await?;
        Ok(control)
    }

    /// Makes the connection TLS. A server that refuses is not talked to in clear.
    async fn secured(mut self, shared: &Shared) -> Result<Self, Failure> {
        let reply = self.command(shared, "AUTH", Some(b"TLS")).await?;
        if reply.code != 234 {
            return Err(Failure::new(
                FailureKind::Tls,
                format!(
                    "{} refuses TLS ({}); ftps:// begins with TLS, and ftp:// sends password and file in clear",
                    self.host,
                    self.shown(&reply)
                ),
            ));
        }
        // What came in clear after that reply could be anybody's, and would be read as if it had come through TLS.
        if self.reader.has_rest() {
            return Err(Failure::new(
                FailureKind::Tls,
                format!("{} sent more in clear after it agreed to TLS", self.host),
            ));
        }
        let tls = self.tls.clone().expect("it is made for every scheme with TLS");
        let securing = route::secure(&tls, &self.host, self.stream);
        let stream = route::within(shared.config.connect_timeout, &self.host, securing).await?;
        Ok(Self { stream, ..self })
    }

    async fn log_in(&mut self, shared: &Shared) -> Result<(), Failure> {
        let login = self.access.login.clone();
        let mut reply = self.command(shared, "USER", Some(login.user.as_bytes())).await?;
        if reply.code == 331 {
            reply = self
                .command(shared, "PASS", Some(login.password.expose().as_bytes()))
                .await?;
        }
        if reply.code == 332 {
            return Err(Failure::new(
                FailureKind::Unauthorized,
                format!(
                    "{} wants an account beside user and password, which is not supported",
                    self.host
                ),
            ));
        }
        if !matches!(reply.code, 230 | 202) {
            return Err(self.login_refusal(&reply));
        }
        if self.tls.is_some() {
            let size = self.command(shared, "PBSZ", Some(b"0")).await?;
            self.expect("PBSZ 0", &size, size.is_positive())?;
            let protection = self.command(shared, "PROT", Some(b"P")).await?;
            if !protection.is_positive() {
                return Err(Failure::new(
                    FailureKind::Tls,
                    format!(
                        "{} refuses TLS for files ({}), and they are not fetched in clear",
                        self.host,
                        self.shown(&protection)
                    ),
                ));
            }
        }
        let features = self.command(shared, "FEAT", None).await?;
        self.features = Features::of(&features);
        if self.features.utf8 {
            let _names_are_bytes_either_way = self.command(shared, "OPTS", Some(b"UTF8 ON")).await?;
        }
        let binary = self.command(shared, "TYPE", Some(b"I")).await?;
        self.expect("binary transfer", &binary, binary.is_positive())
    }

    /// Size and time of the file at `path`, as far as the server tells them.
    pub(crate) async fn facts(&mut self, shared: &Shared, path: &[u8]) -> Result<Facts, Failure> {
        let mut found = Facts::default();
        if self.features.size || !self.features.is_known {
            let reply = self.command(shared, "SIZE", Some(path)).await?;
            self.check_open(&reply)?;
            found.size = facts::size(&reply);
        }
        if self.features.mdtm || !self.features.is_known {
            let reply = self.command(shared, "MDTM", Some(path)).await?;
            self.check_open(&reply)?;
            found.changed = facts::changed(&reply);
        }
        Ok(found)
    }

    /// The directory after the login, by PWD; `None` where the server does not tell it, which is asked once.
    pub(crate) async fn start(&mut self, shared: &Shared) -> Result<Option<Vec<u8>>, Failure> {
        if matches!(self.start, Start::Unasked) {
            let reply = self.command(shared, "PWD", None).await?;
            self.check_open(&reply)?;
            self.start = quoted(&reply).map_or(Start::Untold, Start::At);
        }
        Ok(match &self.start {
            Start::At(path) => Some(path.clone()),
            Start::Unasked | Start::Untold => None,
        })
    }

    /// Enters the directory `path`; the reply says whether that was possible.
    pub(crate) async fn enter(&mut self, shared: &Shared, path: &[u8]) -> Result<Reply, Failure> {
        let reply = self.command(shared, "CWD", Some(path)).await?;
        self.check_open(&reply)?;
        Ok(reply)
    }

    /// Asks for the file at `path` from byte `start` on.
    pub(crate) async fn retrieve(&mut self, shared: &Shared, path: &[u8], start: u64) -> Result<Data, Refused> {
        let channel = self.open_channel(shared).await?;
        if start > 0 {
            let reply = self.command(shared, "REST", Some(start.to_string().as_bytes())).await?;
            self.check_open(&reply)?;
            if reply.code != 350 {
                return Err(Refused::NoRestart);
            }
        }
        Ok(self.begin(shared, "RETR", Some(path), channel).await?)
    }

    /// Asks for the listing of the current directory.
    pub(crate) async fn list(&mut self, shared: &Shared, command: &str) -> Result<Data, Failure> {
        let channel = self.open_channel(shared).await?;
        self.begin(shared, command, None, channel).await
    }

    /// Sends a command that is answered over `channel`.
    async fn begin(
        &mut self,
        shared: &Shared,
        command: &str,
        argument: Option<&[u8]>,
        channel: Stream,
    ) -> Result<Data, Failure> {
        self.send(shared, command, argument).await?;
        let reply = self.any_reply(shared).await?;
        if reply.code / 100 != 1 {
            if reply.is_positive() {
                let why = format!(
                    "{} ended a transfer ({}) before it began it",
                    self.host,
                    self.shown(&reply)
                );
                return Err(Failure::new(FailureKind::MalformedResponse, why));
            }
            return Err(self.refusal(command, &reply));
        }
        let stream = match &self.tls {
            None => channel,
            Some(tls) => {
                let securing = route::secure(tls, &self.host, channel);
                route::within(shared.config.connect_timeout, &self.host, securing).await?
            }
        };
        Ok(Data::new(stream, self.host.clone(), shared.config.stall_timeout))
    }

    /// Waits for the server's word that a transfer is complete, after its last byte came.
    pub(crate) async fn completed(&mut self, shared: &Shared) -> Result<(), Failure> {
        let reply = self.reply(shared).await?;
        self.expect("the transfer", &reply, matches!(reply.code, 226 | 250))
    }

    /// Breaks a transfer off. Returns whether the connection can be used for another one.
    pub(crate) async fn abandon(&mut self, shared: &Shared, data: Data) -> bool {
        drop(data);
        let ended = timeout(ABANDON_TIMEOUT, self.reply(shared)).await;
        ended.is_ok_and(|reply| reply.is_ok_and(|reply| reply.code != 421))
    }

    /// Opens a data connection: by EPSV, or PASV where that is refused. It leads to the address of this connection, whatever
    /// address the server names.
    async fn open_channel(&mut self, shared: &Shared) -> Result<Stream, Failure> {
        if !self.refuses_epsv {
            let reply = self.command(shared, "EPSV", None).await?;
            self.check_open(&reply)?;
            if reply.code == 229 {
                let port = passive::extended(&reply);
                let opened = self.connect_channel(shared, port, &reply).await;
                match opened {
                    // Some firewalls understand PASV only.
                    Err(failure) if matches!(failure.kind, FailureKind::Connect | FailureKind::Timeout) => {}
                    opened => return opened,
                }
            }
            self.refuses_epsv = true;
        }
        let reply = self.command(shared, "PASV", None).await?;
        if reply.code != 227 {
            return Err(self.refusal("PASV", &reply));
        }
        let port = passive::plain(&reply);
        self.connect_channel(shared, port, &reply).await
    }

    async fn connect_channel(&self, shared: &Shared, port: Option<u16>, reply: &Reply) -> Result<Stream, Failure> {
        let Some(port) = port else {
            let why = format!("{} names no port for the file ({})", self.host, self.shown(reply));
            return Err(Failure::new(FailureKind::MalformedResponse, why));
        };
        if self.access.reach != Reach::Anywhere && is_blocked_port(port) {
            let why = format!(
                "{} names port {port} for the file, which is that of another protocol",
                self.host
            );
            return Err(Failure::new(FailureKind::MalformedResponse, why));
        }
        let address = self.address.map(|address| address.to_string());
        let host = address.as_deref().unwrap_or(&self.host);
        let (stream, _) = leg(shared, &self.access, (host, port)).to_target().await?;
        Ok(stream)
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn command(
        &mut self,
        shared: &Shared,
        verb: &str,
        argument: Option<&[u8]>,
    ) -> Result<Reply, Failure> {
        self.send(shared, verb, argument).await?;
        self.reply(shared).await
    }

    async fn send(&mut self, shared: &Shared, verb: &str, argument: Option<&[u8]>) -> Result<(), Failure> {
        let argument = argument.unwrap_or(&[]);
        // Checked where URLs and logins are read; what a server named is checked there, too.
        if !is_sendable(argument) {
            let why = format!("an argument of {verb} has a line end or a NUL character");
            return Err(Failure::new(FailureKind::InvalidSource, why));
        }
        let space: &[u8] = if argument.is_empty() { b"" } else { b" " };
        let line = [verb.as_bytes(), space, argument, b"\r\n"].concat();
        let sending = async {
            self.stream.write_all(&line).await?;
            self.stream.flush().await
        };
        match timeout(shared.config.reply_timeout, sending).await {
            Ok(sent) => sent.map_err(|error| broken(&self.host, &error)),
            Err(_) => Err(slow(&self.host, shared.config.reply_timeout)),
        }
    }

    /// The next reply that is not preliminary.
    async fn reply(&mut self, shared: &Shared) -> Result<Reply, Failure> {
        let until = Instant::now() + shared.config.reply_timeout;
        for _ in 0..MAX_PRELIMINARY {
            let reply = self.reply_until(until, shared.config.reply_timeout).await?;
            if reply.code / 100 != 1 {
                return Ok(reply);
            }
        }
        let why = format!("{} sends preliminary replies without an end", self.host);
        Err(Failure::new(FailureKind::MalformedResponse, why))
    }

    /// The next reply.
    async fn any_reply(&mut self, shared: &Shared) -> Result<Reply, Failure> {
        let limit = shared.config.reply_timeout;
        self.reply_until(Instant::now() + limit, limit).await
    }

    async fn reply_until(&mut self, until: Instant, limit: Duration) -> Result<Reply, Failure> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let reply = self.reader.take();
            if let Some(reply) = reply.map_err(|malformed| {
                let why = format!("{} does not speak FTP: {malformed}", self.host);
                Failure::new(FailureKind::MalformedResponse, why)
            })? {
                return Ok(reply);
            }
            let read = match timeout_at(until, self.stream.read(&mut buffer)).await {
                Ok(read) => read.map_err(|error| broken(&self.host, &error))?,
                Err(_) => return Err(slow(&self.host, limit)),
            };
            if read == 0 {
                let why = format!("{} closed the connection", self.host);
                return Err(Failure::new(FailureKind::Network, why));
            }
            self.reader.push(&buffer[..read]);
        }
    }

    /// Fails unless `is_expected`.
    fn expect(&self, what: &str, reply: &Reply, is_expected: bool) -> Result<(), Failure> {
        if is_expected {
            Ok(())
        } else {
            Err(self.refusal(what, reply))
        }
    }

    /// Fails if the server is closing the connection.
    fn check_open(&self, reply: &Reply) -> Result<(), Failure> {
        self.expect("the command", reply, reply.code != 421)
    }

    /// The failure for a reply that refuses `what`.
    pub(crate) fn refusal(&self, what: &str, reply: &Reply) -> Failure {
        let message = format!("{} refuses {what} ({})", self.host, self.shown(reply));
        Failure::new(kind_of(reply.code), message)
    }

    /// The failure for a reply that refuses the login. Before a login no reply can be about a file, whatever its code says,
    /// and many servers refuse every login in clear.
    fn login_refusal(&self, reply: &Reply) -> Failure {
        let mut failure = self.refusal("the login", reply);
        if matches!(
            failure.kind,
            FailureKind::NotFound | FailureKind::Forbidden | FailureKind::UnexpectedStatus
        ) {
            failure.kind = FailureKind::Unauthorized;
        }
        if self.access.security == Security::Clear && reply.code / 100 == 5 {
            failure.message +=
                "; check user and password, or try ftpes:// or ftps://, since the server may require TLS";
        }
        failure
    }

    /// A reply for a message. Servers that repeat what they were sent do not bring the password into it.
    fn shown(&self, reply: &Reply) -> String {
        let text = reply.shown();
        let password = self.access.login.password.expose();
        if password.is_empty() {
            return text;
        }
        text.replace(password, "***")
    }
}

/// The path in a reply to PWD: between quotes, a quote in it doubled (RFC 959, appendix II).
fn quoted(reply: &Reply) -> Option<Vec<u8>> {
    let line = reply.lines.first().filter(|_| reply.code == 257)?;
    let mut rest = line.strip_prefix(b"\"")?.iter().peekable();
    let mut path = Vec::new();
    while let Some(byte) = rest.next() {
        if *byte == b'"' && rest.next_if(|next| **next == b'"').is_none() {
            return Some(path).filter(|path| !path.is_empty() && is_sendable(path));
        }
        path.push(*byte);
    }
    None
}

fn leg<'a>(shared: &'a Shared, access: &'a Access, target: (&'a str, u16)) -> Leg<'a> {
    Leg {
        names: &shared.config.names,
        tls: &shared.tls,
        ignore_tls_errors: access.ignore_tls_errors,
        target,
        proxy: access.proxy.as_ref(),
        reach: access.reach,
        limit: shared.config.connect_timeout,
    }
}

/// What a refusal means (RFC 959, section 4.2, and RFC 4217). Codes that make no sense where they come are malformed.
fn kind_of(code: u16) -> FailureKind {
    match code {
        421 | 450 => FailureKind::Busy,
        425 | 426 => FailureKind::Network,
        430 | 530 | 532 => FailureKind::Unauthorized,
        431 | 522 | 533 | 534 | 535 | 536 => FailureKind::Tls,
        451 | 452 => FailureKind::ServerError,
        550 => FailureKind::NotFound,
        551 | 553 => FailureKind::Forbidden,
        400..=499 => FailureKind::ServerError,
        500..=599 => FailureKind::UnexpectedStatus,
        _ => FailureKind::MalformedResponse,
    }
}

fn slow(host: &str, limit: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("{host} did not reply within {limit:?}"))
}
