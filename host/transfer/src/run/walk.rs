//! Listing a directory at a server, and those below it, as a group of files. Everything that a server could make endless is
//! counted. A protocol says what the names in one directory are ([`Tree`]).

use std::{collections::VecDeque, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{
    Directory, DirectoryFile, Failure, FileName, RetryBudget, RetryPolicy, SafeUrl, failure::FailureKind,
    text::decode_or_escape,
};

/// The most files of all directories together; as many as a list may have.
pub const MAX_FILES: usize = 10_000;

/// The most directories that are entered.
const MAX_DIRECTORIES: usize = 1_000;

/// The deepest directory, counted from the listed one.
const MAX_DEPTH: usize = 16;

/// The most names that are said to be left out.
const MAX_LEFT_OUT: usize = 100;

/// How long all listings together may take.
const MAX_TIME: Duration = Duration::from_mins(10);

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory below.
    Directory,
    /// Neither, such as a link or a device: it is not fetched, because where it leads is unknown.
    Other,
}

/// A file or directory in a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name at the server, one component of a path.
    pub name: Vec<u8>,
    /// The name that it gets here.
    pub on_disk: FileName,
    /// What it is.
    pub kind: Kind,
    /// Its size, if the server tells it.
    pub size: Option<u64>,
}

/// A directory at a server, over one login.
pub trait Tree {
    /// Failures of a directory below for which it is left out: one that may not be entered does not hide the others.
    const UNREADABLE: &'static [FailureKind];

    /// What is in the directory that is `components` below the listed one.
    fn entries(&mut self, components: &[Vec<u8>]) -> impl Future<Output = Result<Vec<Entry>, Failure>> + Send;

    /// The URL of the listed directory.
    fn url(&self) -> &SafeUrl;

    /// The URL of what is `components` below the listed directory.
    fn below(&self, components: &[&[u8]]) -> Result<SafeUrl, Failure>;
}

/// A directory to be listed: the components below the first one.
struct Level {
    components: Vec<Vec<u8>>,
    names: Vec<FileName>,
}

/// Lists the directory at `url` by `once`, a login each, within the time and the retries that it may take.
pub async fn list<F>(url: &SafeUrl, mut once: impl FnMut() -> F) -> Result<Directory, Failure>
where
    F: Future<Output = Result<Directory, Failure>>,
{
    let mut budget = RetryBudget::new(RetryPolicy::default());
    let listing = async {
        loop {
            let failure = match once().await {
                Ok(directory) if directory.files.is_empty() => Failure::new(
                    FailureKind::NotFound,
                    format!("there is no file in the directory {url}"),
                ),
                Ok(directory) => return Ok(directory),
                Err(failure) => failure,
            };
            match budget.take(&failure, 1.0) {
                Some(wait) => sleep(wait).await,
                None => return Err(failure),
            }
        }
    };
    timeout(MAX_TIME, listing).await.unwrap_or_else(|_| {
        let why = format!("listing {url} took over {MAX_TIME:?}; ask for a directory below it");
        Err(Failure::new(FailureKind::Timeout, why))
    })
}

/// The files of `tree`, called `name`.
pub async fn walk<T: Tree>(tree: &mut T, name: Option<FileName>) -> Result<Directory, Failure> {
    let mut found = Directory {
        name,
        ..Directory::default()
    };
    let mut waiting = VecDeque::from([Level {
        components: Vec::new(),
        names: Vec::new(),
    }]);
    let mut entered = 0;
    while let Some(level) = waiting.pop_front() {
        entered += 1;
        if entered > MAX_DIRECTORIES {
            return Err(too_many(tree.url(), format_args!("{MAX_DIRECTORIES} directories")));
        }
        let entries = match tree.entries(&level.components).await {
            Err(failure) if T::UNREADABLE.contains(&failure.kind) && !level.names.is_empty() => {
                leave_out(&mut found.unreadable, &level.components.join(&b'/'));
                continue;
            }
            entries => entries?,
        };
        for entry in entries {
            take(tree, &mut found, &mut waiting, &level, entry)?;
        }
    }
    Ok(found)
}

/// Adds one name of the directory `level`.
fn take(
    tree: &impl Tree,
    found: &mut Directory,
    waiting: &mut VecDeque<Level>,
    level: &Level,
    entry: Entry,
) -> Result<(), Failure> {
    let Entry {
        name,
        on_disk,
        kind,
        size,
    } = entry;
    match kind {
        Kind::Other => {}
        Kind::Directory if level.names.len() >= MAX_DEPTH => {
            let components: Vec<&[u8]> = level.components.iter().map(Vec::as_slice).chain([&*name]).collect();
            leave_out(&mut found.too_deep, &components.join(&b'/'));
        }
        Kind::Directory => {
            if waiting.len() >= MAX_DIRECTORIES {
                return Err(too_many(tree.url(), format_args!("{MAX_DIRECTORIES} directories")));
            }
            let mut below = Level {
                components: level.components.clone(),
                names: level.names.clone(),
            };
            below.components.push(name);
            below.names.push(on_disk);
            waiting.push_back(below);
        }
        Kind::File => {
            if found.files.len() >= MAX_FILES {
                return Err(too_many(tree.url(), format_args!("{MAX_FILES} files")));
            }
            let components: Vec<&[u8]> = level.components.iter().map(Vec::as_slice).chain([&*name]).collect();
            found.files.push(DirectoryFile {
                url: tree.below(&components)?,
                name: on_disk,
                directories: level.names.clone(),
                size_bytes: size,
            });
        }
    }
    Ok(())
}

fn leave_out(names: &mut Vec<String>, name: &[u8]) {
    if names.len() < MAX_LEFT_OUT {
        names.push(decode_or_escape(name));
    }
}

/// `what` is counted in the directory `url`, and is too much.
pub fn too_many(url: &SafeUrl, what: std::fmt::Arguments<'_>) -> Failure {
    let why = format!("{url} has more than {what} in it; ask for a directory below it");
    Failure::new(FailureKind::NotTheFile, why)
}
