//! The SSH connection below SFTP: key exchange, the check of the server's key, and the login.

use std::{
    borrow::Cow,
    future::Future,
    io,
    net::IpAddr,
    path::Path,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use egress::{
    Reach,
    route::{Leg, Stream},
};
use russh::{
    Preferred, cipher,
    client::{self, AuthResult, KeyboardInteractiveAuthResponse},
    kex,
    keys::{
        Algorithm, EcdsaCurve, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKeyBase64 as _,
        PublicKeyOrCertificate, agent::AgentIdentity, ssh_key::private::KeypairData,
    },
    mac,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use transfer::{Failure, Secret, failure::FailureKind, run::background::blocking};

use crate::{access::Access, agent, host_key::Expected, rsa_key::RsaKey, shared::Shared};

/// Initial window size of the SSH channel, in bytes: what a server may send before the window is adjusted. More than all
/// reads under way ask for.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// The largest packet of SSH that is asked for; a server may send up to 256 KiB.
const MAX_SSH_PACKET_BYTES: u32 = 65_535;

/// Packets of SSH that wait until they are read; then the socket waits.
const WAITING_PACKETS: usize = 32;

/// The most keys of an agent that are tried: servers close the connection after six attempts.
const MAX_AGENT_KEYS: usize = 5;

/// The largest private key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The most rounds of questions that are answered with the password.
const MAX_QUESTIONS: usize = 8;

/// A connection after the login.
pub(crate) struct Login {
    pub(crate) handle: client::Handle<Checker>,
    /// Ends the connection when it is dropped, whatever the server does.
    pub(crate) guard: DropGuard,
    /// Where it is connected; unknown behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

/// Checks the server's key.
pub(crate) struct Checker {
    expected: Expected,
    refused: Arc<OnceLock<Failure>>,
}

impl client::Handler for Checker {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        // Certificates are not asked for.
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else {
            return Ok(false);
        };
        match self.expected.check(key.algorithm().as_str(), &key.public_key_bytes()) {
            Ok(()) => Ok(true),
            Err(failure) => {
                let _first_counts = self.refused.set(failure);
                Ok(false)
            }
        }
    }
}

/// A stream that ends when its token is cancelled, so that a server cannot keep open a connection whose session was dropped.
struct Ending {
    stream: Stream,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Ending {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.ended.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Ending {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Ending {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Connects, checks the server's key and logs in.
pub(crate) async fn log_in(shared: &Shared, access: &Access, reach: Reach) -> Result<Login, Failure> {
    let (host, port, fingerprint) = (access.host.clone(), access.port, access.host_key);
    let files = shared.config.known_hosts.clone();
    let expected = blocking("reading known host keys", move || {
        Expected::read(&files, &host, port, fingerprint)
    })
    .await?;
    let leg = Leg {
        names: &shared.config.names,
        tls: &shared.tls,
        ignore_tls_errors: access.ignore_tls_errors,
        target: (&access.host, access.port),
        proxy: access.proxy.as_ref(),
        reach,
        limit: shared.config.connect_timeout,
    };
    let (stream, address) = leg.to_target().await?;
    let limit = shared.config.reply_timeout;
    let slow = || {
        let why = format!("{} did not complete the login within {limit:?}", access.host);
        Failure::new(FailureKind::Timeout, why)
    };
    let ending = CancellationToken::new();
    let guard = ending.clone().drop_guard();
    let stream = Ending {
        stream,
        ended: Box::pin(ending.cancelled_owned()),
    };
    let entering = async {
        let refused = Arc::new(OnceLock::new());
        let config = Arc::new(config(shared, &expected));
        let checker = Checker {
            expected,
            refused: Arc::clone(&refused),
        };
        let connected = client::connect_stream(config, stream, checker).await;
        let mut handle = connected.map_err(|error| match refused.get() {
            Some(failure) => failure.clone(),
            None => broken(&access.host, &error),
        })?;
        authenticate(shared, access, &mut handle).await?;
        Ok(handle)
    };
    let handle = timeout(limit, entering).await.map_err(|_| slow())??;
    Ok(Login { handle, guard, address })
}

/// The algorithms that are agreed to: none with SHA-1, CBC or keys of 1,024 bits, and no compression.
fn config(shared: &Shared, expected: &Expected) -> client::Config {
    const KEX: &[kex::Name] = &[
        kex::MLKEM768X25519_SHA256,
        kex::CURVE25519,
        kex::CURVE25519_PRE_RFC_8731,
        kex::ECDH_SHA2_NISTP256,
        kex::ECDH_SHA2_NISTP384,
        kex::DH_G16_SHA512,
        kex::DH_G14_SHA256,
        kex::EXTENSION_SUPPORT_AS_CLIENT,
        kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    ];
    const CIPHERS: &[cipher::Name] = &[
        cipher::AES_256_GCM,
        cipher::AES_128_GCM,
        cipher::CHACHA20_POLY1305,
        cipher::AES_256_CTR,
        cipher::AES_128_CTR,
    ];
    const MACS: &[mac::Name] = &[
        mac::HMAC_SHA256_ETM,
        mac::HMAC_SHA512_ETM,
        mac::HMAC_SHA256,
        mac::HMAC_SHA512,
    ];
    client::Config {
        client_id: russh::SshId::Standard(concat!("SSH-2.0-svc_", env!("CARGO_PKG_VERSION")).into()),
        window_size: WINDOW_BYTES,
        maximum_packet_size: MAX_SSH_PACKET_BYTES,
        channel_buffer_size: WAITING_PACKETS,
        preferred: Preferred {
            kex: Cow::Borrowed(KEX),
            key: host_key_algorithms(&expected.kinds()).into(),
            host_key_certificates: Cow::Borrowed(&[]),
            cipher: Cow::Borrowed(CIPHERS),
            mac: Cow::Borrowed(MACS),
            compression: Cow::Borrowed(&[russh::compression::NONE]),
        },
        inactivity_timeout: Some(shared.config.reply_timeout.max(shared.config.stall_timeout) * 2),
        keepalive_interval: Some(shared.config.stall_timeout),
        nodelay: true,
        ..client::Config::default()
    }
}

/// Algorithms of host keys, those of `known` types first. None is RSA, whose signatures russh cannot check with the
/// workspace's `rsa`.
fn host_key_algorithms(known: &[&str]) -> Vec<Algorithm> {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let mut all = vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
    ];
    all.sort_by_key(|algorithm| !known.contains(&algorithm.as_str()));
    all
}

/// A private key of the user.
enum ClientKey {
    /// One that russh signs with.
    Usual(Arc<PrivateKey>),
    Rsa(Box<RsaKey>),
}

impl ClientKey {
    fn of(key: PrivateKey) -> Option<Self> {
        match key.key_data() {
            KeypairData::Rsa(pair) => Some(Self::Rsa(Box::new(RsaKey::of_openssh(pair)?))),
            _ => Some(Self::Usual(Arc::new(key))),
        }
    }
}

/// The state of a login: what was tried, and what the server still takes.
struct Attempts<'a> {
    access: &'a Access,
    handle: &'a mut client::Handle<Checker>,
    takes: Option<russh::MethodSet>,
    tried: Vec<String>,
}

async fn authenticate(shared: &Shared, access: &Access, handle: &mut client::Handle<Checker>) -> Result<(), Failure> {
    let mut attempts = Attempts {
        access,
        handle,
        takes: None,
        tried: Vec::new(),
    };
    let config = &shared.config;
    let password = &access.login.password;
    if let Some(path) = config.key_file.as_deref().filter(|_| access.uses_keys) {
        // The user named it, so that it has to be usable.
        let key = private_key(path, password).await?;
        let key = key.ok_or_else(|| {
            let why = format!("there is no key file {}", path.display());
            Failure::new(FailureKind::InvalidSource, why)
        })?;
        if attempts.key(path, key).await? {
            return Ok(());
        }
    }
    if !password.is_empty() && attempts.password().await? {
        return Ok(());
    }
    if access.uses_keys {
        if let Some(socket) = &config.agent
            && attempts.agent(socket).await?
        {
            return Ok(());
        }
        for path in &config.usual_key_files {
            match private_key(path, password).await {
                Ok(Some(key)) => {
                    if attempts.key(path, key).await? {
                        return Ok(());
                    }
                }
                Ok(None) => {}
                Err(failure) => attempts.tried.push(failure.message),
            }
        }
    }
    Err(attempts.refused())
}

impl Attempts<'_> {
    fn takes(&self, method: russh::MethodKind) -> bool {
        self.takes.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    fn note(&mut self, what: &str, result: AuthResult) -> bool {
        match result {
            AuthResult::Success => true,
            AuthResult::Failure {
                remaining_methods,
                partial_success,
            } => {
                let outcome = if partial_success {
                    "accepted, but not enough"
                } else {
                    "refused"
                };
                self.tried.push(format!("{what}: {outcome}"));
                self.takes = Some(remaining_methods);
                false
            }
        }
    }

    async fn key(&mut self, path: &Path, key: ClientKey) -> Result<bool, Failure> {
        if !self.takes(russh::MethodKind::PublicKey) {
            return Ok(false);
        }
        let user = self.access.login.user.clone();
        let host = &self.access.host;
        let result = match key {
            ClientKey::Usual(key) => {
                let key = PrivateKeyWithHashAlg::new(key, None);
                let result = self.handle.authenticate_publickey(user, key).await;
                result.map_err(|error| broken(host, &error))?
            }
            ClientKey::Rsa(key) => {
                let hash = self.rsa_hash(true).await?;
                let public = key.public.clone();
                let mut signer = &*key;
                let signing = self.handle.authenticate_publickey_with(user, public, hash, &mut signer);
                signing.await.map_err(|error| {
                    let why = format!("the key file {} does not sign for {host}: {error}", path.display());
                    Failure::new(FailureKind::InvalidSource, why)
                })?
            }
        };
        Ok(self.note(&format!("the key {}", path.display()), result))
    }

    /// With which hash a RSA key signs: never SHA-1.
    async fn rsa_hash(&mut self, is_rsa: bool) -> Result<Option<HashAlg>, Failure> {
        if !is_rsa {
            return Ok(None);
        }
        let best = self.handle.best_supported_rsa_hash().await;
        let best = best.map_err(|error| broken(&self.access.host, &error))?;
        Ok(best.flatten().or(Some(HashAlg::Sha256)))
    }

    async fn agent(&mut self, socket: &Path) -> Result<bool, Failure> {
        if !self.takes(russh::MethodKind::PublicKey) {
            return Ok(false);
        }
        let Ok(mut agent) = agent::connect(socket).await else {
            self.tried.push(format!("no agent answers at {}", socket.display()));
            return Ok(false);
        };
        let Ok(identities) = agent.request_identities().await else {
            self.tried.push("the agent did not tell its keys".to_owned());
            return Ok(false);
        };
        let keys = identities.into_iter().filter_map(|identity| match identity {
            AgentIdentity::PublicKey { key, .. } => Some(key),
            AgentIdentity::Certificate { .. } => None,
        });
        for key in keys.take(MAX_AGENT_KEYS) {
            if !self.takes(russh::MethodKind::PublicKey) {
                break;
            }
            let what = format!("the key {} of the agent", key.fingerprint(HashAlg::Sha256));
            let hash = self.rsa_hash(key.algorithm().is_rsa()).await?;
            let user = self.access.login.user.clone();
            match self
                .handle
                .authenticate_publickey_with(user, key, hash, &mut agent)
                .await
            {
                Ok(result) => {
                    if self.note(&what, result) {
                        return Ok(true);
                    }
                }
                Err(_) if self.handle.is_closed() => return Err(self.refused()),
                Err(_) => self.tried.push(format!("{what}: the agent did not sign")),
            }
        }
        Ok(false)
    }

    async fn password(&mut self) -> Result<bool, Failure> {
        let host = &self.access.host;
        let login = &self.access.login;
        let broken = |error| broken(host, &error);
        if self.takes(russh::MethodKind::Password) {
            let (user, password) = (login.user.clone(), login.password.expose().to_owned());
            let result = self
                .handle
                .authenticate_password(user, password)
                .await
                .map_err(broken)?;
            if self.note("the password", result) {
                return Ok(true);
            }
        }
        if self.handle.is_closed() || !self.takes(russh::MethodKind::KeyboardInteractive) {
            return Ok(false);
        }
        // Servers with PAM often take a password as the answer to a question only.
        let user = login.user.clone();
        let started = self.handle.authenticate_keyboard_interactive_start(user, None).await;
        let mut response = started.map_err(broken)?;
        for _ in 0..MAX_QUESTIONS {
            let prompts = match response {
                KeyboardInteractiveAuthResponse::Success => return Ok(true),
                KeyboardInteractiveAuthResponse::Failure {
                    remaining_methods,
                    partial_success,
                } => {
                    let result = AuthResult::Failure {
                        remaining_methods,
                        partial_success,
                    };
                    return Ok(self.note("the password as an answer", result));
                }
                KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
            };
            // What is shown while it is typed is no password; a second question is another secret.
            let is_password = |prompt: &client::Prompt| !prompt.echo;
            let answers: Vec<String> = match &prompts[..] {
                [] => Vec::new(),
                [prompt] if is_password(prompt) => vec![login.password.expose().to_owned()],
                _ => {
                    let why = format!("{host} asks more than a password, which is not supported");
                    return Err(Failure::new(FailureKind::Unauthorized, why));
                }
            };
            let responded = self.handle.authenticate_keyboard_interactive_respond(answers).await;
            response = responded.map_err(broken)?;
        }
        let why = format!("{host} asks for the password again and again");
        Err(Failure::new(FailureKind::Unauthorized, why))
    }

    fn refused(&self) -> Failure {
        let (host, user) = (&self.access.host, &self.access.login.user);
        let tried = if self.tried.is_empty() {
            "there is no password, no agent and no key file to try".to_owned()
        } else {
            self.tried.join("; ")
        };
        let why = format!("{host} did not let {user} in: {tried}");
        Failure::new(FailureKind::Unauthorized, why)
    }
}

/// Reads the private key at `path`, which `password` may open; `None` if there is no such file.
async fn private_key(path: &Path, password: &Secret) -> Result<Option<ClientKey>, Failure> {
    let (path, password) = (path.to_owned(), password.clone());
    // Keys are protected by functions that take long on purpose.
    blocking("reading a key file", move || read_private_key(&path, &password)).await
}

fn read_private_key(path: &Path, password: &Secret) -> Result<Option<ClientKey>, Failure> {
    use std::io::Read as _;

    let failed = |why: &dyn std::fmt::Display| {
        let why = format!("the key file {} cannot be used: {why}", path.display());
        Failure::new(FailureKind::InvalidSource, why)
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = String::new();
    let read = file.take(MAX_KEY_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_KEY_BYTES {
        return Err(failed(&"it is larger than a key"));
    }
    let usable = |key| ClientKey::of(key).ok_or_else(|| failed(&"its numbers are no RSA key"));
    match russh::keys::decode_secret_key(&text, None) {
        Ok(key) => return usable(key).map(Some),
        Err(russh::keys::Error::KeyIsEncrypted) => {}
        Err(error) if text.contains("ENCRYPTED") => tracing::debug!(%error, "an encrypted key"),
        Err(error) => {
            let key = RsaKey::of_pem(&text).ok_or_else(|| failed(&error))?;
            return Ok(Some(ClientKey::Rsa(Box::new(key))));
        }
    }
    if password.is_empty() {
        return Err(failed(
            &"it is encrypted; add it to ssh-agent (ssh-add), or give its passphrase as the password",
        ));
    }
    let opened = russh::keys::decode_secret_key(&text, Some(password.expose()));
    let opened = opened.map_err(|_| failed(&"it is encrypted, and the password does not open it; ssh-add may"))?;
    usable(opened).map(Some)
}

/// The failure for an error of the connection. The text of a server is not part of any of them.
pub(crate) fn broken(host: &str, error: &russh::Error) -> Failure {
    use russh::Error;

    let kind = match error {
        Error::ConnectionTimeout | Error::KeepaliveTimeout | Error::InactivityTimeout | Error::Elapsed(_) => {
            FailureKind::Timeout
        }
        Error::NoCommonAlgo { .. } | Error::UnknownKey | Error::WrongServerSig | Error::UnknownAlgo => FailureKind::Tls,
        Error::NoAuthMethod | Error::NotAuthenticated | Error::UnsupportedAuthMethod => FailureKind::Unauthorized,
        Error::IO(_) | Error::Disconnect | Error::HUP | Error::SendError | Error::RecvError | Error::Join(_) => {
            FailureKind::Network
        }
        Error::ChannelOpenFailure(_) | Error::RequestDenied => FailureKind::Forbidden,
        _ => FailureKind::MalformedResponse,
    };
    let why = match error {
        Error::NoCommonAlgo {
            kind: russh::AlgorithmKind::Key,
            theirs,
            ..
        } if theirs.iter().any(|name| name.starts_with("rsa-") || name == "ssh-rsa") => format!(
            "{host} has a host key of RSA only, which this program cannot check; its owner can add one of Ed25519: \
             ssh-keygen -A"
        ),
        Error::NoCommonAlgo { kind, .. } => format!(
            "{host} and this program agree on no {kind:?} algorithm: those of the server are too old (SHA-1, CBC) or unknown"
        ),
        Error::Disconnect | Error::HUP | Error::SendError | Error::RecvError => {
            format!("{host} closed the SSH connection")
        }
        other => format!("the SSH connection to {host} failed: {other}"),
    };
    Failure::new(kind, why)
}

/// How long the end of a connection is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Login {
    /// Says goodbye and waits for the end of the connection.
    pub(crate) async fn close(self) {
        let goodbye = self.handle.disconnect(russh::Disconnect::ByApplication, "", "");
        let _said_or_broken = timeout(CLOSE_TIMEOUT, goodbye).await;
        drop(self.guard);
        let _ended = timeout(CLOSE_TIMEOUT, self.handle).await;
    }
}
