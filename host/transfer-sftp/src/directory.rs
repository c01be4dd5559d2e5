//! Lists a directory and those below it. Everything that a server could make endless is counted.

use std::{collections::VecDeque, time::Duration};

use egress::Pins;
use tokio::time::{sleep, timeout};
use transfer::{
    Directory, DirectoryFile, Failure, FileName, RetryBudget, RetryPolicy, SafeUrl, Source, failure::FailureKind,
    text::decode_or_escape,
};

use crate::{
    access::Access,
    packet::{Kind, Name},
    place::{Place, below, file_name},
    session::Session,
    shared::Shared,
};

/// The most files of all directories together; as many as a list may have.
const MAX_FILES: usize = 10_000;

/// The most directories that are entered.
const MAX_DIRECTORIES: usize = 1_000;

/// The deepest directory, counted from the listed one.
const MAX_DEPTH: usize = 16;

/// The most names of one directory, those included that are left out.
const MAX_NAMES: usize = 50_000;

/// The most names that are said to be left out.
const MAX_LEFT_OUT: usize = 100;

/// How long all listings together may take.
const MAX_TIME: Duration = Duration::from_mins(10);

/// A directory to be listed: the components below the first one.
struct Level {
    components: Vec<Vec<u8>>,
    names: Vec<FileName>,
}

/// Lists the directory at the first URL of `source`.
pub(crate) async fn list(shared: &Shared, source: &Source) -> Result<Directory, Failure> {
    let url = &source.urls[0];
    let listing = timeout(MAX_TIME, list_with_retries(shared, source, url)).await;
    listing.unwrap_or_else(|_| {
        let why = format!("listing {url} took over {MAX_TIME:?}; ask for a directory below it");
        Err(Failure::new(FailureKind::Timeout, why))
    })
}

async fn list_with_retries(shared: &Shared, source: &Source, url: &SafeUrl) -> Result<Directory, Failure> {
    let place = Place::of(url)?;
    let access = Access::of(&shared.config, source, url)?;
    let mut budget = RetryBudget::new(RetryPolicy::default());
    loop {
        let failure = match list_once(shared, &access, &place).await {
            Ok(directory) => return Ok(directory),
            Err(failure) => failure,
        };
        match budget.take(&failure, 1.0) {
            Some(wait) => sleep(wait).await,
            None => return Err(failure),
        }
    }
}

async fn list_once(shared: &Shared, access: &Access, place: &Place) -> Result<Directory, Failure> {
    let pins = Pins::default();
    let url = access.url.as_url();
    let mut session = Session::open(shared, access, pins.narrow(url, access.reach)).await?;
    let found = walk(&mut session, access, place).await?;
    session.close().await;
    if found.files.is_empty() {
        let why = format!("there is no file in the directory {}", access.url);
        return Err(Failure::new(FailureKind::NotFound, why));
    }
    Ok(found)
}

async fn walk(session: &mut Session, access: &Access, place: &Place) -> Result<Directory, Failure> {
    let mut found = Directory {
        name: place.name(),
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
            return Err(too_many(access, format_args!("{MAX_DIRECTORIES} directories")));
        }
        let path = place.below(&level.components);
        let entries = match entries(session, access, &path).await {
            // One that may not be entered does not hide the others.
            Err(failure)
                if matches!(failure.kind, FailureKind::NotFound | FailureKind::Forbidden)
                    && !level.names.is_empty() =>
            {
                leave_out(&mut found.unreadable, &level.components.join(&b'/'));
                continue;
            }
            entries => entries?,
        };
        for entry in entries {
            take(access, &mut found, &mut waiting, &level, entry)?;
        }
    }
    Ok(found)
}

/// A file or directory in a directory.
struct Entry {
    name: Vec<u8>,
    on_disk: FileName,
    kind: Kind,
    size: Option<u64>,
}

/// The files and directories in the directory `path`. Names that are not one component are left out.
async fn entries(session: &mut Session, access: &Access, path: &[u8]) -> Result<Vec<Entry>, Failure> {
    let handle = session.open_directory(path).await?;
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(names) = session.read_directory(&handle).await? {
        seen += names.len().max(1);
        if seen > MAX_NAMES {
            return Err(too_many(access, format_args!("{MAX_NAMES} names in one directory")));
        }
        for name in names {
            found.extend(entry(session, path, name).await?);
        }
    }
    session.close_handle(handle).await?;
    Ok(found)
}

async fn entry(session: &mut Session, path: &[u8], name: Name) -> Result<Option<Entry>, Failure> {
    let Some(on_disk) = file_name(&name.bytes) else {
        return Ok(None);
    };
    let mut attributes = name.attributes;
    if attributes.kind().is_none() {
        let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
        match session.link_attributes(&[path, slash, &name.bytes].concat()).await {
            Ok(found) => attributes = found,
            Err(failure) if matches!(failure.kind, FailureKind::NotFound | FailureKind::Forbidden) => return Ok(None),
            Err(failure) => return Err(failure),
        }
    }
    Ok(attributes.kind().map(|kind| Entry {
        name: name.bytes.to_vec(),
        on_disk,
        kind,
        size: attributes.size,
    }))
}

/// Adds one name of the directory `level`.
fn take(
    access: &Access,
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
                return Err(too_many(access, format_args!("{MAX_DIRECTORIES} directories")));
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
                return Err(too_many(access, format_args!("{MAX_FILES} files")));
            }
            let components: Vec<&[u8]> = level.components.iter().map(Vec::as_slice).chain([&*name]).collect();
            found.files.push(DirectoryFile {
                url: below(&access.url, &components)?,
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

fn too_many(access: &Access, what: std::fmt::Arguments<'_>) -> Failure {
    let why = format!(
        "{} has more than {what} in it; ask for a directory below it",
        access.url
    );
    Failure::new(FailureKind::NotTheFile, why)
}
