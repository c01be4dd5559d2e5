//! Which names a directory has, whatever their case: two names that differ only in case are one file on many systems,
//! and a download must replace neither.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use unicode_normalization::UnicodeNormalization as _;

/// How long a listing is used. Within that time another process could add a name that differs from ours in case only;
/// an equal name is never missed, because files are created anew or not at all.
const LISTING_AGE: Duration = Duration::from_secs(5);

/// Directories whose listing is kept; past that all are forgotten.
const MAX_LISTINGS: usize = 64;

struct Listing {
    read_at: Instant,
    names: HashSet<String>,
}

static LISTINGS: LazyLock<Mutex<HashMap<PathBuf, Listing>>> = LazyLock::new(Mutex::default);

/// Whether `directory` has `name` in any case.
pub(crate) fn is_taken(directory: &Path, name: &str) -> bool {
    let folded = fold(name);
    let mut listings = LISTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let listing = listings
        .get(directory)
        .filter(|listing| listing.read_at.elapsed() < LISTING_AGE);
    if listing.is_some_and(|listing| !listing.names.contains(&folded)) {
        return false;
    }
    // The name may have gone since, so a hit is looked up anew.
    if listings.len() >= MAX_LISTINGS {
        listings.clear();
    }
    let names: HashSet<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| fold(&entry.file_name().to_string_lossy()))
        .collect();
    let is_taken = names.contains(&folded);
    listings.insert(
        directory.to_owned(),
        Listing {
            read_at: Instant::now(),
            names,
        },
    );
    is_taken
}

/// Notes that `directory` now has `name`, so that the next claim sees it without reading the directory.
pub(crate) fn add(directory: &Path, name: &str) {
    let mut listings = LISTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(listing) = listings.get_mut(directory) {
        listing.names.insert(fold(name));
    }
}

fn fold(name: &str) -> String {
    name.nfc().collect::<String>().to_lowercase()
}
