//! `svc torrent create`.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, IsTerminal as _, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use command::{Exit, UsageError, amount};
use indicatif::{ProgressBar, ProgressStyle};
use metainfo::{
    MAX_FILES, Metainfo, TRACKER_SCHEMES,
    create::{CreateError, Entry, Hasher, Options, Plan},
};
use transfer::SafeUrl;

use super::show::Shown;

/// Read at once. Longer reads are no faster.
const BUFFER_BYTES: usize = 256 * 1024;

/// Directories within each other that are followed, so that a path fits into a torrent.
const MAX_DEPTH: usize = 90;

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct CreateArgs {
    /// The file or directory
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    path: PathBuf,
    /// Where to write the torrent [default: its name and .torrent, here]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Replace the torrent if it exists
    #[arg(long)]
    overwrite: bool,
    /// A tracker; each is asked, and several that are separated by commas are alternatives
    #[arg(short, long = "tracker", value_name = "URL[,URL]")]
    trackers: Vec<String>,
    /// A web server that has the files, too
    #[arg(short, long = "webseed", value_name = "URL")]
    webseeds: Vec<String>,
    /// Peers may come from its trackers only
    #[arg(short, long)]
    private: bool,
    /// What a private tracker asks for, so that the torrent is its own
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// A remark for people
    #[arg(short, long, value_name = "TEXT")]
    comment: Option<String>,
    /// Length of pieces, a power of two from 16K to 256M [default: by size]
    #[arg(long, value_name = "BYTES", value_parser = amount::parse_bytes)]
    piece_length: Option<u64>,
    /// The name in the torrent [default: that of the file or directory]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Leave out time and program, so that the same files always give the same torrent
    #[arg(long)]
    reproducible: bool,
    /// Print a JSON record
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CreateArgs) -> anyhow::Result<Exit> {
    let options = options(args)?;
    let root = fs::canonicalize(&args.path).with_context(|| format!("cannot read {}", args.path.display()))?;
    let own_name = root
        .file_name()
        .map(OsString::from)
        .and_then(|name| name.into_string().ok());
    let name = args.name.clone().or(own_name);
    let name =
        name.ok_or_else(|| UsageError::new("PATH", "its name is not UTF-8, which names in torrents are; use --name"))?;
    let is_directory = root.is_dir();
    let plan = if is_directory {
        let mut listing = Listing::default();
        listing.list(&root, &mut Vec::new())?;
        for path in &listing.passed_over {
            command::note(&format!(
                "{} is left out: it is neither a file nor a directory",
                path.display()
            ));
        }
        Plan::of_directory(&name, listing.files, options).map_err(|problem| refused(&problem))?
    } else {
        let metadata = fs::metadata(&root).with_context(|| format!("cannot read {}", root.display()))?;
        if !metadata.is_file() {
            return Err(UsageError::new("PATH", "it is neither a file nor a directory").into());
        }
        Plan::of_file(&name, metadata.len(), options).map_err(|problem| refused(&problem))?
    };
    for path in plan.changed_elsewhere() {
        command::note(&format!(
            "{path} has a name that some systems cannot store; it gets another one there"
        ));
    }
    let output = args.output.clone().unwrap_or_else(|| format!("{name}.torrent").into());
    if !args.overwrite && output.exists() {
        let problem = format!("{} exists; use --overwrite to replace it", output.display());
        return Err(UsageError::new("--output", problem).into());
    }
    let torrent = hash(plan, &root, is_directory)?;
    write(&output, &torrent.encode(), args.overwrite)?;
    command::note(&format!("wrote {}", output.display()));
    let shown = Shown::of(&torrent);
    if args.json {
        command::print_json(&shown)
    } else {
        command::print_lines(shown.lines())
    }
}

fn refused(problem: &CreateError) -> UsageError {
    UsageError::new("PATH", problem.to_string())
}

fn options(args: &CreateArgs) -> anyhow::Result<Options> {
    let url = |option: &str, text: &str, schemes: &[&str]| {
        let url = SafeUrl::parse(text).ok().filter(|url| {
            let has_host = url.as_url().host_str().is_some_and(|host| !host.is_empty());
            has_host && schemes.contains(&url.scheme())
        });
        url.ok_or_else(|| UsageError::new(option, format!("it must be a URL of {}", schemes.join(", "))))
    };
    let tier = |tier: &String| {
        tier.split(',')
            .map(|text| url("--tracker", text, &TRACKER_SCHEMES))
            .collect()
    };
    let webseed = |text: &String| url("--webseed", text, &["http", "https"]);
    let length = args.piece_length.map(|length| {
        let problem = || UsageError::new("--piece-length", "it is a power of two from 16K to 256M");
        u32::try_from(length).map_err(|_| problem())
    });
    let is_dated = !args.reproducible;
    Ok(Options {
        piece_length: length.transpose()?,
        is_private: args.private,
        source: args.source.clone(),
        trackers: args.trackers.iter().map(tier).collect::<Result<_, _>>()?,
        webseeds: args.webseeds.iter().map(webseed).collect::<Result<_, _>>()?,
        comment: args.comment.clone(),
        created_by: is_dated.then(|| egress::USER_AGENT.to_owned()),
        created_at: is_dated.then(|| jiff::Timestamp::now().as_second()),
    })
}

/// The files of a directory. Links are not followed: what they lead to may be anywhere.
#[derive(Debug, Default)]
struct Listing {
    files: Vec<Entry>,
    passed_over: Vec<PathBuf>,
}

impl Listing {
    fn list(&mut self, directory: &Path, below: &mut Vec<String>) -> anyhow::Result<()> {
        let failed = || format!("cannot list {}", directory.display());
        if below.len() > MAX_DEPTH {
            return Err(UsageError::new(
                "PATH",
                format!("more than {MAX_DEPTH} directories are within each other"),
            )
            .into());
        }
        for entry in fs::read_dir(directory).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| {
                let problem = format!(
                    "the name of {} is not UTF-8, which names in torrents are; rename it",
                    path.display()
                );
                UsageError::new("PATH", problem)
            })?;
            let kind = entry.file_type().with_context(failed)?;
            below.push(name);
            if kind.is_dir() {
                self.list(&path, below)?;
            } else if kind.is_file() {
                if self.files.len() == MAX_FILES {
                    let problem = format!("it has more than {MAX_FILES} files; share an archive of them instead");
                    return Err(UsageError::new("PATH", problem).into());
                }
                let length = entry.metadata().with_context(failed)?.len();
                self.files.push((below.clone(), length));
            } else {
                self.passed_over.push(path);
            }
            below.pop();
        }
        Ok(())
    }
}

/// Reads all files in the order of the plan.
fn hash(plan: Plan, root: &Path, is_directory: bool) -> anyhow::Result<Metainfo> {
    let progress = if io::stderr().is_terminal() {
        ProgressBar::new(plan.total_length())
    } else {
        ProgressBar::hidden()
    };
    let style = "{percent:>3} % {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}";
    progress.set_style(ProgressStyle::with_template(style).expect("the template is valid"));
    let files: Vec<PathBuf> = if is_directory {
        let files = plan.files().iter();
        files
            .map(|(path, _)| path.iter().fold(root.to_owned(), |path, part| path.join(part)))
            .collect()
    } else {
        vec![root.to_owned()]
    };
    let mut hasher = plan.hasher();
    let mut buffer = vec![0; BUFFER_BYTES];
    for path in files {
        read(&path, &mut hasher, &mut buffer, &progress).with_context(|| format!("cannot read {}", path.display()))?;
    }
    progress.finish_and_clear();
    Ok(hasher.finish()?)
}

fn read(path: &Path, hasher: &mut Hasher, buffer: &mut [u8], progress: &ProgressBar) -> anyhow::Result<()> {
    let mut file = File::open(path)?;
    loop {
        let length = match file.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        hasher.update(&buffer[..length])?;
        progress.inc(length as u64);
    }
}

/// Writes the torrent whole or not at all: beside its place first, then under its name.
fn write(path: &Path, bytes: &[u8], may_replace: bool) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut staged = path.as_os_str().to_owned();
    staged.push(format!(".{}.new", std::process::id()));
    let staged = PathBuf::from(staged);
    let writing = || -> io::Result<()> {
        let mut file = File::create_new(&staged)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        if may_replace {
            fs::rename(&staged, path)
        } else {
            // A link fails if the name is taken by now; renaming would replace what is there.
            match fs::hard_link(&staged, path) {
                Ok(()) => fs::remove_file(&staged),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Not every file system has links.
                Err(_) => fs::rename(&staged, path),
            }
        }
    };
    let written = writing();
    if written.is_err() {
        // Nothing of an attempt stays.
        let _gone = fs::remove_file(&staged);
    }
    written.with_context(failed)
}
