//! Resolves the service and key of a command: from options, then the environment, then the file, then the service on
//! this machine.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent::{AccessKey, DEFAULT_PORT, DirectoryError, Holder, Stored};
use clap::builder::{StringValueParser, TypedValueParser as _};
use command::{
    Exit, UsageError, directories,
    environment::{self, Environment},
    print_json, print_lines,
};
use protocol::Method;
use rustls::ClientConfig;
use serde::Serialize;
use transfer::Secret;

use super::{
    Address, RemoteError, dial,
    file::{ClientFile, parse_timeout},
};
use crate::secret;

/// The default timeout of answers.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of slow methods, such as installing a plugin.
const SLOW_TIMEOUT: Duration = Duration::from_mins(2);

const TOKEN_HELP: &str =
    "Access key; other users can see arguments, so rather use a file or the variable [env: SVC_TOKEN]";

const TOKEN_LONG_HELP: &str = "Access key; other users of the machine can see arguments, so rather use a file or the \
variable [env: SVC_TOKEN]

Without any, a service that the same user runs on this machine knows its user by a file that nobody else can read.";

/// Options of every command that talks to a service.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// Address of the service; by default the one on this machine.
    #[arg(long, value_name = "URL", help = "Address of the service [default: the one that the same user runs on this machine]", env = environment::URL, hide_env_values = true, global = true, value_hint = clap::ValueHint::Url)]
    url: Option<String>,
    /// The access key; without one, a service that the same user runs on this machine is asked with its own.
    #[arg(help = TOKEN_HELP, long_help = TOKEN_LONG_HELP,
        long, value_name = "KEY", global = true, value_parser = StringValueParser::new().map(Secret::new), conflicts_with = "token_file")]
    token: Option<Secret>,
    /// File whose first line is the access key, - for standard input
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Give up on a service that does not answer for this many seconds [default: 30]
    #[arg(long, value_name = "SECONDS", global = true, value_parser = parse_timeout)]
    timeout: Option<Duration>,
    /// Trust these certificate authorities (PEM) instead of the usual ones
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    ca_certificate: Option<PathBuf>,
    /// The data directory of the service on this machine, for its key.
    #[arg(help = "Data directory of the service on this machine, for its key [default: $XDG_DATA_HOME/svc]", long, value_name = "DIR", env = environment::DATA_DIR, hide_env_values = true, global = true, value_hint = clap::ValueHint::DirPath)]
    pub data_dir: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long, global = true)]
    pub json: bool,
}

/// A service, and how to reach it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address to connect to.
    pub address: Address,
    pub(crate) trust: Arc<ClientConfig>,
    key: Option<Secret>,
    timeout: Duration,
    /// The timeout of slow methods.
    slow_timeout: Duration,
    /// The data directory of the service on this machine.
    data_dir: Option<PathBuf>,
}

impl ServiceArgs {
    /// The service that the options select.
    pub fn target(&self, environment: &Environment) -> anyhow::Result<Target> {
        self.target_with(self.given_key(environment)?)
    }

    /// Like [`Self::target`], with a key that was resolved before.
    pub(crate) fn target_with(&self, given: Option<Secret>) -> anyhow::Result<Target> {
        let file = ClientFile::read()?;
        let data_dir = self.data_dir.clone().or_else(directories::data);
        let own = data_dir.as_deref().and_then(|data| Some(running(data).ok()??.address));
        let by_default = || {
            let stored = || agent::stored(&directories::agent(data_dir.as_deref()?)).ok()?;
            let usual = || Address::local(stored().map_or(DEFAULT_PORT, |Stored { port, .. }| port));
            own.clone().unwrap_or_else(usual)
        };
        let in_file = file
            .url
            .as_deref()
            .map(|url| address("url in the configuration file", url))
            .transpose()?;
        let of_file = in_file.unwrap_or_else(by_default);
        let named = self.url.as_deref().filter(|url| !url.is_empty());
        let address = named.map_or(Ok(of_file.clone()), |url| address("--url", url))?;
        // The stored key belongs to the stored address and must not be sent to another one.
        let remembered = || file.token.clone().filter(|_| address == of_file).map(Secret::new);
        let key = given.or_else(remembered);
        let timeout = || {
            file.timeout
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        };
        let asked = self.timeout.or_else(timeout);
        Ok(Target {
            // Uses the exact listening address: another program may listen at the other address of the same name.
            address: own.filter(|own| own.is_meant_by(&address)).unwrap_or(address),
            trust: dial::trust(self.ca_certificate.as_deref())?,
            key: key.filter(|key| !key.is_empty()),
            timeout: asked.unwrap_or(USUAL_TIMEOUT),
            slow_timeout: asked.unwrap_or(SLOW_TIMEOUT),
            data_dir,
        })
    }

    /// Whether the options or the environment name a service, instead of the one on this machine.
    pub(crate) fn names_a_service(&self) -> bool {
        self.url.as_deref().is_some_and(|url| !url.is_empty())
    }

    /// Prints a result: as JSON, or as lines for people.
    pub(crate) fn print(&self, record: &impl Serialize, lines: impl FnOnce() -> Vec<String>) -> anyhow::Result<Exit> {
        if self.json {
            print_json(record)
        } else {
            print_lines(lines())
        }
    }

    /// Prints what was done: as JSON, or as a sentence.
    pub(crate) fn print_done(&self, record: &impl Serialize, sentence: &str) -> anyhow::Result<Exit> {
        self.print(record, || vec![sentence.to_owned()])
    }

    /// The explicitly given key.
    pub(crate) fn given_key(&self, environment: &Environment) -> Result<Option<Secret>, UsageError> {
        match (&self.token, &self.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(path)) => secret::first_line("--token-file", path).map(Some),
            (None, None) => Ok(environment.token.clone()),
        }
    }
}

fn address(field: &str, text: &str) -> Result<Address, UsageError> {
    Address::parse(text).map_err(|problem| UsageError::new(field, problem))
}

/// A running service, according to its lock file.
struct Running {
    address: Address,
    /// The credential of programs of the same user, instead of the access key.
    pass: Option<AccessKey>,
}

/// The running service of a data directory.
fn running(data_dir: &Path) -> Result<Option<Running>, DirectoryError> {
    let holder = agent::holder(&directories::agent(data_dir))?;
    Ok(holder.and_then(|Holder { pass, address, .. }| {
        let address = Address::of_listener(address?)?;
        Some(Running { address, pass })
    }))
}

impl Target {
    /// The key to send: the given one, else the credential of this user's service on this machine.
    pub fn key(&self) -> Result<Secret, RemoteError> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let missing = |detail| RemoteError::NoKey {
            address: self.address.to_string(),
            detail,
        };
        let data_dir = self.data_dir.as_deref().ok_or_else(|| missing(None))?;
        let unusable = |error: DirectoryError| missing(Some(error.to_string()));
        // The credential must not be sent to another program that listens on the port.
        let pass = match running(data_dir).map_err(unusable)? {
            Some(Running { address, pass }) if address == self.address => pass,
            _ if !self.address.is_loopback() => return Err(missing(None)),
            Some(Running { address, .. }) => {
                return Err(missing(Some(format!(
                    "the service on {} listens at {address}",
                    data_dir.display()
                ))));
            }
            None => return Err(missing(Some(format!("no service runs on {}", data_dir.display())))),
        };
        if let Some(pass) = pass.filter(|_| self.address.is_loopback()) {
            return Ok(Secret::new(pass.expose()));
        }
        let stored = agent::stored(&directories::agent(data_dir)).map_err(unusable)?;
        let key = stored.and_then(|stored| stored.key);
        let key = key.ok_or_else(|| missing(Some(format!("the service in {} has none yet", data_dir.display()))))?;
        Ok(Secret::new(key.expose()))
    }

    /// The data directory, if the target is this user's service on this machine or no service is running there.
    pub fn own_data_dir(&self) -> Option<&Path> {
        let data_dir = self.data_dir.as_deref()?;
        let is_own = match running(data_dir) {
            Ok(Some(own)) => own.address == self.address,
            _ => self.address.is_loopback(),
        };
        is_own.then_some(data_dir)
    }

    /// Limits `work` to the timeout.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        self.within(self.timeout, work).await
    }

    /// Like [`Self::in_time`], with the timeout of a method.
    pub(crate) async fn in_time_for<T>(
        &self,
        method: Method,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let limit = if method.is_slow() {
            self.slow_timeout
        } else {
            self.timeout
        };
        self.within(limit, work).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let address = || self.address.to_string();
        let in_time = tokio::time::timeout(limit, work).await;
        in_time.unwrap_or_else(|_| {
            Err(RemoteError::Silent {
                address: address(),
                limit,
            })
        })
    }
}
