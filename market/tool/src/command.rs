//! The commands for maintainers of a source and for authors of plugins, to be part of a command line.

use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use market::{
    Digest, Folder, Identity, Level, Link, Origin, OriginError, PublicKey, Role, SourceState, path,
    record::{OverrideRecord, RangeRecord, RevocationRecord},
};
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

/// What reaches the source at a URL.
pub type Origins<'a> = &'a (dyn Fn(&Url) -> Result<Arc<dyn Origin>, OriginError> + Sync);

/// What commands need from whoever runs them.
pub struct Surroundings<'a> {
    /// Where answers go.
    pub out: &'a mut (dyn Write + Send),
    /// Who knows passphrases.
    pub passphrases: &'a (dyn Passphrases + Sync),
    /// What reaches sources that are somewhere else.
    pub origins: Origins<'a>,
    /// What knows what the code of packages imports.
    pub imports: Imports<'a>,
    /// The time.
    pub now: Timestamp,
    /// Ends a command that goes on until it is told to stop.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Surroundings<'_> {
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

    /// A folder, or a URL.
    fn origin(&self, place: &str) -> Result<Arc<dyn Origin>, ToolError> {
        let Ok(url) = place.parse::<Url>() else {
            return Ok(Arc::new(Folder::new(place)));
        };
        (self.origins)(&url).map_err(|error| ToolError::Refused(error.to_string()))
    }
}

/// A command for whoever maintains a source of plugins.
#[derive(Debug, clap::Subcommand)]
pub enum MarketCommand {
    /// Make a source and its keys
    Init(InitArgs),
    /// Make a key
    Key(KeyArgs),
    /// Add signed packages to the index, or only sign it for longer
    Add(AddArgs),
    /// Take a version back, so that nobody installs it any more
    Withdraw(WithdrawArgs),
    /// Say that versions are dangerous; installed ones that do harm stop
    Revoke(RevokeArgs),
    /// Take the revocations of a plugin back
    Pardon(PardonArgs),
    /// Change the keys of a role, or sign the root for another year
    Rotate(RotateArgs),
    /// Name the key of an author who lost the one before
    Vouch(VouchArgs),
    /// Make visible what was signed; at least every few days
    Publish(PublishArgs),
    /// Serve the folder over HTTP, to try it
    Serve(ServeArgs),
    /// Copy a source, checked, into a folder
    Mirror(MirrorArgs),
    /// Check a source and all its packages as a client does
    Verify(VerifyArgs),
}

/// Makes a source.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The folder to publish from
    folder: PathBuf,
    /// What the source is called by programs, for ever: lower-case letters, digits, '-' and '.'
    #[arg(long)]
    id: String,
    /// What the source is called by people
    #[arg(long)]
    name: String,
    /// Where the keys are put; never in the folder
    #[arg(long, value_name = "FOLDER")]
    keys: PathBuf,
    /// Leave new keys without a passphrase
    #[arg(long)]
    unprotected: bool,
}

/// Makes a key.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// The file; the public key is put beside it, in FILE.pub
    file: PathBuf,
    /// Leave it without a passphrase
    #[arg(long)]
    unprotected: bool,
}

/// Adds packages.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The folder of the source
    folder: PathBuf,
    /// Packages, each with its signature in FILE.minisig
    packages: Vec<PathBuf>,
    /// The key of the index
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The author's statement that another key follows
    #[arg(long, value_name = "FILE")]
    handover: Option<PathBuf>,
}

/// Takes a version back.
#[derive(Debug, clap::Args)]
pub struct WithdrawArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin
    identity: Identity,
    /// Its version
    #[arg(id = "withdrawn", value_name = "VERSION")]
    version: Version,
    /// What users read
    #[arg(long)]
    reason: String,
    /// The key of the index
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Revokes versions.
#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin
    identity: Identity,
    /// From this version on
    #[arg(long, value_name = "VERSION")]
    from: Option<Version>,
    /// Up to, and without, this version
    #[arg(long, value_name = "VERSION")]
    before: Option<Version>,
    /// Only the package with this digest
    #[arg(long)]
    sha256: Option<Digest>,
    /// How bad it is
    #[arg(long, value_parser = level)]
    level: Level,
    /// What users read
    #[arg(long)]
    reason: String,
    /// The key of the revocations
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "deprecated" => Ok(Level::Deprecated),
        "vulnerable" => Ok(Level::Vulnerable),
        "malicious" => Ok(Level::Malicious),
        _ => Err("a level is deprecated, vulnerable or malicious".to_owned()),
    }
}

/// Takes revocations back.
#[derive(Debug, clap::Args)]
pub struct PardonArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin
    identity: Identity,
    /// The key of the revocations
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Changes keys.
#[derive(Debug, clap::Args)]
pub struct RotateArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The role: root, timestamp, index or revocations
    role: Role,
    /// A key file that begins to speak
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// A public key that speaks no more
    #[arg(long, value_name = "KEY")]
    remove: Vec<PublicKey>,
    /// Root keys, as many as must sign
    #[arg(long = "root-key", value_name = "FILE", required = true)]
    root_keys: Vec<PathBuf>,
}

/// Names the key of an author.
#[derive(Debug, clap::Args)]
pub struct VouchArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The plugin
    identity: Identity,
    /// The author's new public key
    key: PublicKey,
    /// What users read
    #[arg(long)]
    reason: String,
    /// Root keys, as many as must sign
    #[arg(long = "root-key", value_name = "FILE", required = true)]
    root_keys: Vec<PathBuf>,
}

/// Makes visible what was signed.
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    /// The folder of the source
    folder: PathBuf,
    /// The key of the timestamp
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Serves the folder.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The folder of the source
    folder: PathBuf,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:17880")]
    address: SocketAddr,
}

/// Copies a source.
#[derive(Debug, clap::Args)]
pub struct MirrorArgs {
    /// The URL or folder of the source
    source: String,
    /// Where the copy is put
    folder: PathBuf,
    /// A root key of the source
    #[arg(long, value_name = "KEY")]
    key: PublicKey,
}

/// Checks a source.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// The URL or folder of the source
    source: String,
    /// A root key of the source; a folder's own first root is believed without
    #[arg(long, value_name = "KEY")]
    key: Option<PublicKey>,
}

/// Carries out a maintainer's command.
pub async fn run_market(command: MarketCommand, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
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

async fn run_init(args: InitArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
    let repository = Repository::open(&args.folder)?;
    let spec = Init {
        id: args.id,
        name: args.name,
        keys: args.keys,
    };
    let keys = init(&repository, &spec, cx.new_keys(args.unprotected), cx.now).await?;
    cx.say(format_args!(
        "Users add the source with one of its root keys, and compare the key's fingerprint:"
    ))?;
    keys.iter()
        .try_for_each(|key| cx.say(format_args!("  {key}  {}", key.fingerprint())))?;
    cx.say(format_args!("Keep the root keys apart from each other and offline."))
}

fn keygen(args: &KeyArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
    let passphrase = cx.new_keys(args.unprotected).chosen().map_err(ToolError::Passphrase)?;
    let key = SigningKey::generate(&args.file, passphrase.as_deref())?;
    cx.say(format_args!("{}", key.public()))
}

fn run_add(args: &AddArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
    let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
    let mut addition = Addition {
        rotation: None,
        imports: cx.imports,
    };
    if let Some(path) = &args.handover {
        let text = std::fs::read(path).map_err(ToolError::io("read", path))?;
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

fn run_revoke(args: RevokeArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
    let (repository, key) = (Repository::open(&args.folder)?, cx.key(&args.key)?);
    let revocation = RevocationRecord {
        identity: args.identity,
        versions: RangeRecord {
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

async fn run_rotate(args: RotateArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
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

async fn run_vouch(args: VouchArgs, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
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

/// The first root of one's own folder.
fn own_anchor(folder: &Path) -> Result<SourceState, ToolError> {
    let place = path::document(Role::Root, 1);
    let first = folder.join(&place);
    let body = std::fs::read(&first).map_err(ToolError::io("read", &first))?;
    SourceState::with_root(&body).map_err(|error| ToolError::source(place, &error))
}

/// What a maintainer tells users.
fn say_link(link: &Link, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
    cx.say(format_args!("Users add it with {link}"))?;
    cx.say(format_args!("and compare the fingerprint: {}", link.key.fingerprint()))
}

fn say_checked(checked: &Checked, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
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
    /// Make the key that signs your plugins
    Keygen(KeyArgs),
    /// Sign a package
    Sign(SignArgs),
    /// Check the signatures of a package
    Verify(VerifyPackageArgs),
    /// Hand a signed package in, to the folder of a source's maintainer
    Publish(HandInArgs),
    /// Say that another key of yours follows
    Handover(HandoverArgs),
}

/// Signs a package.
#[derive(Debug, clap::Args)]
pub struct SignArgs {
    /// The package; its signature is put beside it, in FILE.minisig
    package: PathBuf,
    /// Your key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

/// Checks a package.
#[derive(Debug, clap::Args)]
pub struct VerifyPackageArgs {
    /// The package
    package: PathBuf,
    /// The author's public key, from somewhere else than the package
    #[arg(long)]
    key: Option<PublicKey>,
}

/// Hands a package in.
#[derive(Debug, clap::Args)]
pub struct HandInArgs {
    /// The package
    package: PathBuf,
    /// The folder
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
}

/// Hands over to another key.
#[derive(Debug, clap::Args)]
pub struct HandoverArgs {
    /// The plugin
    identity: Identity,
    /// The key that signed it until now
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The public key that follows
    #[arg(long, value_name = "KEY")]
    to: PublicKey,
    /// Where the statement is put
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Carries out an author's command.
pub fn run_author(command: AuthorCommand, cx: &mut Surroundings<'_>) -> Result<(), ToolError> {
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
            std::fs::write(&args.output, bytes).map_err(ToolError::io("write", &args.output))?;
            cx.say(format_args!(
                "Give {} to the maintainer with your next package.",
                args.output.display()
            ))
        }
    }
}
