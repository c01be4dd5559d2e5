//! The names in directories, for the walk through a directory and those below it.

use egress::Pins;
use transfer::{
    Directory, Failure, SafeUrl, Source,
    failure::FailureKind,
    run::walk::{self, Entry, MAX_FILES, Tree},
};

use crate::{
    access::Access,
    control::Control,
    lines::{Lines, TooLong},
    listing::{self, Line, MAX_LINE_BYTES},
    place::{Place, below, file_name},
    shared::Shared,
};

/// The longest listing of one directory: its files with names of 400 bytes.
const MAX_LISTING_BYTES: u64 = 8 * 1024 * 1024;

/// Read size.
const READ_BYTES: usize = 16 * 1024;

/// Lists the directory at the first URL of `source`.
pub(crate) async fn list(shared: &Shared, source: &Source) -> Result<Directory, Failure> {
    let url = &source.urls[0];
    let place = Place::of(url)?;
    let access = Access::of(source, url)?;
    walk::list(url, || list_once(shared, &access, &place)).await
}

async fn list_once(shared: &Shared, access: &Access, place: &Place) -> Result<Directory, Failure> {
    let pins = Pins::default();
    let url = access.url.as_url();
    let control = Control::open(shared, access, pins.narrow(url, access.reach)).await?;
    let mut login = Login {
        control,
        shared,
        access,
        place,
    };
    walk::walk(&mut login, place.name()).await
}

struct Login<'a> {
    control: Control,
    shared: &'a Shared,
    access: &'a Access,
    place: &'a Place,
}

impl Tree for Login<'_> {
    const UNREADABLE: &'static [FailureKind] = &[FailureKind::NotFound];

    async fn entries(&mut self, components: &[Vec<u8>]) -> Result<Vec<Entry>, Failure> {
        entries(self.shared, &mut self.control, &path(self.place, components)).await
    }

    fn url(&self) -> &SafeUrl {
        &self.access.url
    }

    fn below(&self, components: &[&[u8]]) -> Result<SafeUrl, Failure> {
        below(&self.access.url, components, false)
    }
}

/// The names in the directory `path`.
async fn entries(shared: &Shared, control: &mut Control, path: &[u8]) -> Result<Vec<Entry>, Failure> {
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
    Ok(found.into_iter().filter_map(entry).collect())
}

/// What a line says, unless its name is not one component.
fn entry(line: Line) -> Option<Entry> {
    let Line::Entry(listing::Entry { name, kind, size }) = line else {
        return None;
    };
    let on_disk = file_name(&name)?;
    Some(Entry {
        name,
        on_disk,
        kind,
        size,
    })
}

/// The path of a directory at the server.
fn path(place: &Place, components: &[Vec<u8>]) -> Vec<u8> {
    let mut path = place.path.clone();
    for component in components {
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(component);
    }
    path
}
