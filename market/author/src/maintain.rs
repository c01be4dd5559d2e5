//! Runs the signing tools of maintainers and authors: supplies the environment and maps results to exits.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::Path,
    pin::pin,
};

use anyhow::Context as _;
use command::{
    Exit, UsageError,
    environment::{self, Environment},
    prompt::ask_secret,
    runtime,
    stop::StopRequests,
};
use jiff::Timestamp;
use market_tool::{
    Fixed, Kind, Package, Passphrases, ToolError,
    command::{AuthorCommand, MarketCommand, ToolContext, run_author, run_market},
};
use plugin_host::imports_digest;
use tokio_util::sync::CancellationToken;

use crate::{
    Facilities,
    loader::{PluginLoader, Sandbox},
};

/// The longest passphrase in a file.
const MAX_PASSPHRASE_BYTES: u64 = 4096;

/// Executes a maintainer's command.
pub fn maintain(command: MarketCommand, facilities: Facilities<'_>) -> anyhow::Result<Exit> {
    runtime::current_thread()?.block_on(within(facilities, async |cx| {
        // Other commands keep the default behaviour of signals, even while they wait for a passphrase.
        if !matches!(command, MarketCommand::Serve(_)) {
            return Ok(run_market(command, cx).await?);
        }
        let stop = cx.stop.clone();
        let mut requests = StopRequests::listen().context("cannot listen for signals")?;
        let mut serving = pin!(run_market(command, cx));
        tokio::select! {
            ended = &mut serving => Ok(ended?),
            () = requests.next() => {
                stop.cancel();
                Ok(serving.await?)
            }
        }
    }))
}

/// Executes an author's command.
pub(super) fn sign(command: AuthorCommand, facilities: Facilities<'_>) -> anyhow::Result<Exit> {
    runtime::current_thread()?.block_on(within(facilities, async |cx| Ok(run_author(command, cx)?)))
}

/// The exit for an error of these tools.
pub fn exit(error: &ToolError) -> Exit {
    match error.kind() {
        Kind::Usage => Exit::Usage,
        Kind::Untrusted => Exit::Untrusted,
        Kind::Disk => Exit::CannotCreate,
        Kind::Network => Exit::Network,
    }
}

/// The remedy for an error.
pub fn advice(error: &ToolError) -> Option<String> {
    matches!(error, ToolError::Passphrase(_)).then(|| {
        let (text, file) = (environment::KEY_PASSPHRASE, environment::KEY_PASSPHRASE_FILE);
        format!("where there is no terminal, {text} holds the passphrase, or {file} names a file with it")
    })
}

/// Runs `work` with what the tools need.
async fn within(
    facilities: Facilities<'_>,
    act: impl AsyncFnOnce(&mut ToolContext<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let passphrases = passphrases(facilities.environment)?;
    let mut context = ToolContext {
        out: &mut io::stdout(),
        passphrases: passphrases.as_ref(),
        origins: facilities.origins,
        imports: &|package| imports(package, facilities.sandbox),
        now: Timestamp::now(),
        stop: CancellationToken::new(),
    };
    match act(&mut context).await {
        Err(error) if is_closed(&error) => Ok(Exit::Success),
        done => done.map(|()| Exit::Success),
    }
}

/// Whether the reader closed our output.
fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(ToolError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe)
}

/// Asks on the terminal.
struct Terminal;

impl Passphrases for Terminal {
    fn existing(&self, path: &Path) -> io::Result<String> {
        ask_secret(&format!("Passphrase of {}: ", path.display()))
    }

    fn chosen(&self) -> io::Result<Option<String>> {
        let passphrase = ask_secret("Passphrase for the new key: ")?;
        if passphrase.is_empty() {
            return Err(io::Error::other("a passphrase cannot be empty"));
        }
        if ask_secret("Once more: ")? != passphrase {
            return Err(io::Error::other("the two are not the same"));
        }
        Ok(Some(passphrase))
    }
}

fn passphrases(environment: &Environment) -> Result<Box<dyn Passphrases + Sync>, UsageError> {
    let text = match (&environment.key_passphrase, &environment.key_passphrase_file) {
        (Some(text), _) => text.expose().to_owned(),
        (None, Some(path)) => first_line(path).map_err(|error| {
            let problem = format!("cannot read {}: {error}", path.display());
            UsageError::new(environment::KEY_PASSPHRASE_FILE, problem)
        })?,
        (None, None) => return Ok(Box::new(Terminal)),
    };
    Ok(Box::new(Fixed(Some(text))))
}

fn first_line(path: &Path) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(File::open(path)?.take(MAX_PASSPHRASE_BYTES)).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// The digest of a package's imports, found by loading it as an installation does. The tools are synchronous, so a
/// thread waits for the async loader.
fn imports(package: &Package, sandbox: Sandbox<'_>) -> Result<market::Digest, String> {
    let load = || -> anyhow::Result<_> {
        runtime::current_thread()?.block_on(async {
            let loader = PluginLoader::open(sandbox)?;
            let name = format!("{} {}", package.identity(), package.version());
            let (candidate, _) = loader.archive(Path::new(&name), package.bytes.to_vec()).await?;
            Ok(imports_digest(candidate.interface()))
        })
    };
    let loaded = std::thread::scope(|scope| scope.spawn(load).join());
    let loaded = loaded.expect("loading a plugin does not panic");
    loaded.map_err(|error| error.to_string())
}
