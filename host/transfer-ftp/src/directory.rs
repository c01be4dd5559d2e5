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
    control::Control,
    lines::{Lines, TooLong},
    listing::{self, Entry, Kind, Line, MAX_LINE_BYTES},
    place::{Place, below, file_name},
    shared::Shared,
};

/// The most files of all directories together; as many as a list may have.
const MAX_FILES: usize = 10_000;

/// The most directories that are entered.
const MAX_DIRECTORIES: usize = 1_000;

/// The deepest directory, counted from the listed one.
const MAX_DEPTH: usize = 16;

/// The longest listing of one directory: its files with names of 400 bytes.
const MAX_LISTING_BYTES: u64 = 8 * 1024 * 1024;

/// The most names that are said to be left out.
const MAX_LEFT_OUT: usize = 100;

/// How long all listings together may take.
const MAX_TIME: Duration = Duration::from_mins(10);

/// Read size.
const READ_BYTES: usize = 16 * 1024;

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
    let access = Access::of(source, url)?;
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
    let mut control = Control::open(shared, access, pins.narrow(url, access.reach)).await?;
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
        let path = path(place, &level);
        let entries = match entries(shared, &mut control, &path).await {
            // One that may not be entered does not hide the others.
            Err(failure) if failure.kind == FailureKind::NotFound && !level.names.is_empty() => {
                leave_out(&mut found.unreadable, &level.components.join(&b'/'));
                continue;
            }
            entries => entries?,
        };
        for entry in entries {
            take(access, &mut found, &mut waiting, &level, entry)?;
        }
    }
    if found.files.is_empty() {
        let why = format!("there is no file in the directory {}", access.url);
        return Err(Failure::new(FailureKind::NotFound, why));
    }
    Ok(found)
}

/// Adds one name of the directory `level`.
fn take(
    access: &Access,
    found: &mut Directory,
    waiting: &mut VecDeque<Level>,
    level: &Level,
    line: Line,
) -> Result<(), Failure> {
    let Entry { name, kind, size } = match line {
        Line::Entry(entry) => entry,
        Line::Nothing | Line::Unusable => return Ok(()),
    };
    let Some(on_disk) = file_name(&name) else {
        return Ok(());
    };
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
                url: below(&access.url, &components, false)?,
                name: on_disk,
                directories: level.names.clone(),
                size_bytes: size,
            });
        }
    }
    Ok(())
}

/// The names in the directory `path`.
async fn entries(shared: &Shared, control: &mut Control, path: &[u8]) -> Result<Vec<Line>, Failure> {
    // Relative paths are relative to where the login led; so each directory is entered from there.
    let start = control.start(shared).await?;
    if let Some(start) = start {
        let back = control.enter(shared, &start).await?;
        if !back.is_positive() {
            return Err(control.refusal("the directory after the login", &back));
        }
    }
    if !path.is_empty() {
        let entered = control.enter(shared, path).await?;
        if !entered.is_positive() {
            return Err(control.refusal("to enter the directory", &entered));
        }
    }
    let (command, read): (_, fn(&[u8]) -> Line) = if control.features.mlst {
        ("MLSD", listing::machine)
    } else {
        ("LIST", listing::long)
    };
    let mut data = control.list(shared, command).await?;
    let (mut lines, mut found, mut received) = (Lines::default(), Vec::new(), 0);
    let mut buffer = vec![0; READ_BYTES];
    let malformed = |why: String| Failure::new(FailureKind::MalformedResponse, why);
    loop {
        let count = data.read(&mut buffer).await?;
        received += count as u64;
        if received > MAX_LISTING_BYTES {
            return Err(malformed(format!("a listing is longer than {MAX_LISTING_BYTES} bytes")));
        }
        // The last line may have no end.
        let bytes = if count == 0 { &b"\n"[..] } else { &buffer[..count] };
        lines.push(bytes);
        loop {
            match lines.take(MAX_LINE_BYTES) {
                Ok(Some(line)) if found.len() <= MAX_FILES => {
                    found.extend(Some(read(line)).filter(|line| *line != Line::Nothing));
                }
                Ok(Some(_)) => return Err(malformed(format!("a listing has more than {MAX_FILES} names"))),
                Ok(None) => break,
                Err(TooLong) => {
                    return Err(malformed(format!(
                        "a line of a listing is longer than {MAX_LINE_BYTES} bytes"
                    )));
                }
            }
        }
        if count == 0 {
            break;
        }
    }
    drop(data);
    control.completed(shared).await?;
    Ok(found)
}

/// The path of a directory at the server.
fn path(place: &Place, level: &Level) -> Vec<u8> {
    let mut path = place.path.clone();
    for component in &level.components {
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(component);
    }
    path
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
