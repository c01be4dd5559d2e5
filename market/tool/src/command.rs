//! The commands of maintainers of sources and of plugin authors: their arguments, and what they print.

use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use market::{
    Digest, Folder, Identity, Level, Link, Origin, OriginError, PublicKey, Revocation, Role, SourceState, VersionRange,
    path, record::OverrideRecord,
};
use private_files::FileError;
use semver::Version;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    Checked, Fixed, Init, Passphrases, Repository, SigningKey, ToolError, author, check,
    index::{self, Addition, Imports},
    init, mirror, pardon, publish, revoke,
    root::{self, Rotation},
    serve,
};

/// Opens the source at a URL.
pub type Origins<'a> = &'a (dyn Fn(&Url) -> Result<Arc<dyn Origin>, OriginError> + Sync);

/// What the caller supplies to commands.
pub struct ToolContext<'a> {
    /// The output of the commands.
    pub out: &'a mut (dyn Write + Send),
    /// The source of passphrases.
    pub passphrases: &'a (dyn Passphrases + Sync),
    /// Opens sources that are not local folders.
    pub origins: Origins<'a>,
    /// Computes the digest of the imports of a package.
    pub imports: Imports<'a>,
    /// The current time.
    pub now: Timestamp,
    /// Ends `serve`, which runs until this is cancelled.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl ToolContext<'_> {
    fn key(&self, path: &Path) -> Result<SigningKey, ToolError> {
        SigningKey::read(path, self.passphrases)
    }

    fn keys(&self, paths: &[PathBuf]) -> Result<Vec<SigningKey>, ToolError> {
        paths.iter().map(|path| self.key(path)).collect()
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), ToolError> {
        writeln!(self.out, "{line}").map_err(ToolError::Print)
    }

    fn new_keys(&self, unprotected: bool) -> &dyn Passphrases {
        if unprotected { &Fixed(None) } else { self.passphrases }
    }

    /// The origin at `place`, which is a URL or a folder.
    fn origin(&self, place: &str) -> Result<Arc<dyn Origin>, ToolError> {
        let Ok(url) = place.parse::<Url>() else {
            return Ok(Arc::new(Folder::new(place)));
        };
        (self.origins)(&url).map_err(|error| ToolError::Refused(error.to_string()))
    }
}

/// A command for maintainers of a source of plugins.
#[derive(Debug, clap::Subcommand)]
pub enum MarketCommand {
    /// Create a source and its keys
    Init(InitArgs),
    /// Create a key
    Key(KeyArgs),
    /// Add signed packages to the index; without packages, renew its signature
    Add(AddArgs),
    /// Withdraw a version, so that it cannot be installed any more; installed ones keep running
    Withdraw(WithdrawArgs),
    /// Revoke dangerous versions; installed ones are stopped if they are malicious
    Revoke(RevokeArgs),
    /// Remove all revocations of a plugin
    Pardon(PardonArgs),
    /// Change the keys of a role; without changes, renew the root for another year
    Rotate(RotateArgs),
    /// Set the key of an author whose previous key is lost or stolen
    Vouch(VouchArgs),
    /// Publish all signed changes; repeat at least weekly, because clients reject an older timestamp
    Publish(PublishArgs),
    /// Serve the folder over HTTP, for tests
    Serve(ServeArgs),
    /// Verify a source and copy it into a folder
    Mirror(MirrorArgs),
    /// Verify a source and all its packages as a client does
    Verify(VerifyArgs),
}

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The folder to publish from; created if it is missing
    folder: PathBuf,
    #[command(flatten)]
    source: Init,
    /// Create the keys without a passphrase
    #[arg(long)]
    unprotected: bool,
}

/// Arguments of `key` and `keygen`.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// The file for the private key; the public key is written to FILE.pub
    file: PathBuf,
    /// Create the key without a passphrase
    #[arg(long)]
    unprotected: bool,
}

/// Arguments of `add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The folder of the source
    folder: PathBuf,
    /// Packages, each with its signature in FILE.minisig beside it
    packages: Vec<PathBuf>,
    /// The private key of the index
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The author's statement of a new key, made with "svc plugin handover"
    #[arg(long, value_name = "FILE")]
    handover: Option<PathBuf>,
}

/// Arguments of `withdraw`.
#[derive(Debug, clap::Args)]
pub struct WithdrawArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin, as name@author
    identity: Identity,
    /// The version of the plugin
    #[arg(id = "withdrawn", value_name = "VERSION")]
    version: Version,
    /// The reason, shown to users
    #[arg(long)]
    reason: String,
    /// The private key of the index
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Arguments of `revoke`.
#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin, as name@author
    identity: Identity,
    /// The first version to revoke [default: the oldest]
    #[arg(long, value_name = "VERSION")]
    from: Option<Version>,
    /// The first version that is not revoked any more [default: none]
    #[arg(long, value_name = "VERSION")]
    before: Option<Version>,
    /// Revoke only the package with this SHA-256
    #[arg(long)]
    sha256: Option<Digest>,
    /// The level: deprecated (notice), vulnerable (no installation) or malicious (no installation, stopped)
    #[arg(long)]
    level: Level,
    /// The reason, shown to users
    #[arg(long)]
    reason: String,
    /// The private key of the revocations
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Arguments of `pardon`.
#[derive(Debug, clap::Args)]
pub struct PardonArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin, as name@author
    identity: Identity,
    /// The private key of the revocations
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Arguments of `rotate`.
#[derive(Debug, clap::Args)]
pub struct RotateArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The role: root, timestamp, index or revocations
    role: Role,
    /// A private key to add to the role
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// A public key to remove from the role
    #[arg(long, value_name = "KEY")]
    remove: Vec<PublicKey>,
    /// A private root key; repeat it for as many keys as must sign
    #[arg(long = "root-key", value_name = "FILE", required = true)]
    root_keys: Vec<PathBuf>,
}

/// Arguments of `vouch`.
#[derive(Debug, clap::Args)]
pub struct VouchArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin, as name@author
    identity: Identity,
    /// The author's new public key
    key: PublicKey,
    /// The reason, shown to users
    #[arg(long)]
    reason: String,
    /// A private root key; repeat it for as many keys as must sign
    #[arg(long = "root-key", value_name = "FILE", required = true)]
    root_keys: Vec<PathBuf>,
}

/// Arguments of `publish`.
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The private key of the timestamp
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:17880")]
    address: SocketAddr,
}

/// Arguments of `mirror`.
#[derive(Debug, clap::Args)]
pub struct MirrorArgs {
    /// The URL or folder of the source
    source: String,
    /// The folder for the copy
    folder: PathBuf,
    /// A public root key of the source
    #[arg(long, value_name = "KEY")]
    key: PublicKey,
}

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// The URL or folder of the source
    source: String,
    /// A public root key of the source; a folder can be verified without, by its first root
    #[arg(long, value_name = "KEY")]
    key: Option<PublicKey>,
}

/// Executes a maintainer's command.
pub async fn run_market(command: MarketCommand, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    match command {
        MarketCommand::Init(args) => run_init(args, cx).await,
        MarketCommand::Key(args) => keygen(&args, cx),
        MarketCommand::Add(args) => run_add(&args, cx),
        MarketCommand::Withdraw(args) => {
            let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
            index::withdraw(&repository, &key, (&args.identity, &args.version), &args.reason, cx.now)?;
            cx.say(format_args!("Withdrawn; publish to make it visible."))
        }
        MarketCommand::Revoke(args) => run_revoke(args, cx),
        MarketCommand::Pardon(args) => {
            let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
            pardon(&repository, &key, &args.identity)?;
            cx.say(format_args!("Taken back; publish to make it visible."))
        }
        MarketCommand::Rotate(args) => run_rotate(args, cx).await,
        MarketCommand::Vouch(args) => run_vouch(args, cx).await,
        MarketCommand::Publish(args) => {
            let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
            let published = publish(&repository, &key, cx.now).await?;
            let plugins = published.index.plugins().len();
            cx.say(format_args!(
                "Published index {} with {plugins} plugins.",
                published.index.seq()
            ))
        }
        MarketCommand::Serve(args) => {
            let (stop, out) = (cx.stop.clone(), &mut *cx.out);
            let ready = |address| {
                let _closed = writeln!(out, "Serving on http://{address}/");
            };
            serve(Folder::new(args.folder), args.address, &stop, ready).await
        }
        MarketCommand::Mirror(args) => {
            let origin = cx.origin(&args.source)?;
            let repository = Repository::open(&args.folder)?;
            let checked = mirror(origin.as_ref(), args.key, &repository, cx.now).await?;
            say_checked(&checked, cx)
        }
        MarketCommand::Verify(args) => {
            let origin = cx.origin(&args.source)?;
            let anchor = match args.key {
                Some(key) => SourceState::with_key(key),
                None => own_anchor(Path::new(&args.source))?,
            };
            say_checked(&check(origin.as_ref(), &anchor, cx.now).await?, cx)?;
            let url = args.source.parse::<Url>().ok();
            match url.zip(args.key).map(|(url, key)| Link::new(url, key)) {
                Some(Ok(link)) => say_link(&link, cx),
                _ => Ok(()),
            }
        }
    }
}

async fn run_init(args: InitArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let repository = Repository::open(&args.folder)?;
    let keys = init(&repository, &args.source, cx.new_keys(args.unprotected), cx.now).await?;
    cx.say(format_args!(
        "Users add the source with one of its root keys, and compare the key's fingerprint:"
    ))?;
    keys.iter()
        .try_for_each(|key| cx.say(format_args!("  {key}  {}", key.fingerprint())))?;
    cx.say(format_args!("Keep the root keys apart from each other and offline."))
}

fn keygen(args: &KeyArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let passphrase = cx.new_keys(args.unprotected).chosen().map_err(ToolError::Passphrase)?;
    let key = SigningKey::generate(&args.file, passphrase.as_deref())?;
    cx.say(format_args!("{}", key.public()))
}

fn run_add(args: &AddArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
    let mut addition = Addition {
        rotation: None,
        imports: cx.imports,
    };
    if let Some(path) = &args.handover {
        let text = std::fs::read(path).map_err(FileError::at("read", path))?;
        let rotation = serde_json::from_slice(&text).map_err(|error| ToolError::Refused(error.to_string()))?;
        addition.rotation = Some(rotation);
    }
    if args.packages.is_empty() {
        index::renew(&repository, &key, cx.now)?;
    }
    for package in &args.packages {
        let (identity, version) = index::add(&repository, &key, package, addition.clone(), cx.now)?;
        cx.say(format_args!("Added {identity} {version}."))?;
    }
    cx.say(format_args!("Signed; publish to make it visible."))
}

fn run_revoke(args: RevokeArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
    let revocation = Revocation {
        identity: args.identity,
        versions: VersionRange {
            from: args.from,
            before: args.before,
        },
        sha256: args.sha256,
        level: args.level,
        reason: args.reason,
        since: cx.now,
    };
    revoke(&repository, &key, revocation)?;
    cx.say(format_args!("Revoked; publish to make it visible."))
}

async fn run_rotate(args: RotateArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let repository = Repository::open(&args.folder)?;
    let root_keys = cx.keys(&args.root_keys)?;
    let rotation = Rotation {
        role: args.role,
        add: cx.keys(&args.add)?,
        remove: args.remove,
    };
    let seq = root::rotate(&repository, &root_keys, &rotation, cx.now).await?;
    cx.say(format_args!("Root {seq} is visible."))
}

async fn run_vouch(args: VouchArgs, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let repository = Repository::open(&args.folder)?;
    let word = OverrideRecord {
        key: args.key,
        reason: args.reason,
    };
    let root_keys = cx.keys(&args.root_keys)?;
    let seq = root::vouch(&repository, &root_keys, args.identity, word, cx.now).await?;
    cx.say(format_args!(
        "Root {seq} is visible; add a package with the new key next."
    ))
}

/// The state of a client that trusts the first root in a local folder.
fn own_anchor(folder: &Path) -> Result<SourceState, ToolError> {
    let place = path::document(Role::Root, 1);
    let first = folder.join(&place);
    let body = std::fs::read(&first).map_err(FileError::at("read", &first))?;
    SourceState::with_root(&body).map_err(|error| ToolError::source(place, &error))
}

/// Prints what users need to add the source.
fn say_link(link: &Link, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    cx.say(format_args!("Users add it with {link}"))?;
    cx.say(format_args!("and compare the fingerprint: {}", link.key.fingerprint()))
}

fn say_checked(checked: &Checked, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    let plugins = checked.index.plugins().len();
    cx.say(format_args!(
        "{}: root {}, index {}, {plugins} plugins, {} packages, all as they should be.",
        checked.root.source(),
        checked.root.seq(),
        checked.index.seq(),
        checked.packages
    ))
}

/// A command for authors of plugins.
#[derive(Debug, clap::Subcommand)]
pub enum AuthorCommand {
    /// Create the key that signs your plugins
    Keygen(KeyArgs),
    /// Sign a package
    Sign(SignArgs),
    /// Verify the signatures of a package
    Verify(VerifyPackageArgs),
    /// Copy a signed package to the folder of a source's maintainer
    Publish(HandInArgs),
    /// Make a statement that another key signs your plugin from now on
    Handover(HandoverArgs),
}

/// Arguments of `sign`.
#[derive(Debug, clap::Args)]
pub struct SignArgs {
    /// The package; its signature is written to FILE.minisig beside it
    package: PathBuf,
    /// Your private key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyPackageArgs {
    /// The package
    package: PathBuf,
    /// The author's public key, obtained independently of the package
    #[arg(long)]
    key: Option<PublicKey>,
}

/// Arguments of `publish`.
#[derive(Debug, clap::Args)]
pub struct HandInArgs {
    /// The package
    package: PathBuf,
    /// The folder to copy it to
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
}

/// Arguments of `handover`.
#[derive(Debug, clap::Args)]
pub struct HandoverArgs {
    /// The plugin, as name@author
    identity: Identity,
    /// The private key that signed it until now
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The public key that signs it from now on
    #[arg(long, value_name = "KEY")]
    to: PublicKey,
    /// The file for the statement
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Executes an author's command.
pub fn run_author(command: AuthorCommand, cx: &mut ToolContext<'_>) -> Result<(), ToolError> {
    match command {
        AuthorCommand::Keygen(args) => keygen(&args, cx),
        AuthorCommand::Sign(args) => {
            let package = author::sign(&args.package, &cx.key(&args.key)?)?;
            cx.say(format_args!("Signed {} {}.", package.identity(), package.version()))
        }
        AuthorCommand::Verify(args) => {
            let (package, key) = author::verify(&args.package, args.key)?;
            cx.say(format_args!(
                "{} {} is signed by {key}.",
                package.identity(),
                package.version()
            ))
        }
        AuthorCommand::Publish(args) => {
            let target = author::hand_in(&args.package, &args.into)?;
            cx.say(format_args!("{}", target.display()))
        }
        AuthorCommand::Handover(args) => {
            let record = author::hand_over(&args.identity, &cx.key(&args.key)?, args.to);
            let bytes = market::record::to_bytes(&record);
            std::fs::write(&args.output, bytes).map_err(FileError::at("write", &args.output))?;
            cx.say(format_args!(
                "Give {} to the maintainer with your next package.",
                args.output.display()
            ))
        }
    }
}
