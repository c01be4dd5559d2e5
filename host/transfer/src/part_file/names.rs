//! A cache of the names in a directory, compared without case: two names that differ only in case are one file on many
//! systems, and a download must replace neither.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::file_name::{FileName, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX, PART_SUFFIX, fold};

/// How long a listing is used. Within that time another process could add a name that differs from ours in case only;
/// an equal name is never missed, because files are created anew or not at all.
const LISTING_AGE: Duration = Duration::from_secs(5);

/// Bounds the cache; beyond this it is cleared.
const MAX_LISTINGS: usize = 64;

struct Listing {
    read_at: Instant,
    /// Whether the directory exists.
    exists: bool,
    names: HashSet<String>,
    /// The names of part files and journals among them; mostly there are none.
    leftovers: HashSet<String>,
}

impl Listing {
    fn read(directory: &Path) -> Self {
        let entries = std::fs::read_dir(directory);
        let exists = entries.is_ok();
        let names: HashSet<String> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| fold(&entry.file_name().to_string_lossy()))
            .collect();
        let is_leftover = |name: &&String| {
            let suffixes = [PART_SUFFIX, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX];
            suffixes.iter().any(|suffix| name.ends_with(suffix))
        };
        Self {
            read_at: Instant::now(),
            exists,
            leftovers: names.iter().filter(is_leftover).cloned().collect(),
            names,
        }
    }

    fn has_leftovers_of(&self, name: &FileName) -> bool {
        let has = |suffix| self.leftovers.contains(&fold(&name.with_suffix(suffix)));
        !self.leftovers.is_empty() && (has(PART_SUFFIX) || has(JOURNAL_SUFFIX) || has(NEW_JOURNAL_SUFFIX))
    }
}

static LISTINGS: LazyLock<Mutex<HashMap<PathBuf, Listing>>> = LazyLock::new(Mutex::default);

/// Queries the cached listing of `directory` if it is recent and `is_good_enough`, else a new one.
fn ask<T>(directory: &Path, is_good_enough: impl Fn(&Listing) -> bool, question: impl Fn(&Listing) -> T) -> T {
    let listings = LISTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let listing = listings
        .get(directory)
        .filter(|listing| listing.read_at.elapsed() < LISTING_AGE && is_good_enough(listing));
    if let Some(listing) = listing {
        return question(listing);
    }
    drop(listings);
    // Not under the lock: a disk that does not answer would hold up the claims on all others.
    let listing = Listing::read(directory);
    let answer = question(&listing);
    let mut listings = LISTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if listings.len() >= MAX_LISTINGS {
        listings.clear();
    }
    listings.insert(directory.to_owned(), listing);
    answer
}

/// Whether `directory` has `name` in any case.
pub(super) fn is_taken(directory: &Path, name: &str) -> bool {
    let folded = fold(name);
    let has = |listing: &Listing| listing.names.contains(&folded);
    if !ask(directory, |_| true, has) {
        return false;
    }
    // The file may have been deleted since. Only if it is not there as it is written, the directory is read again:
    // thousands of files of one name would each read it for every number that is taken.
    std::fs::symlink_metadata(directory.join(name)).is_ok() || ask(directory, |listing| !has(listing), has)
}

/// Whether `directory` may have a part file or a journal of `name`. One that another process created in the last
/// seconds is missed; creating the part file exclusively detects it.
pub(super) fn may_have_leftovers(directory: &Path, name: &FileName) -> bool {
    ask(directory, |_| true, |listing| listing.has_leftovers_of(name))
}

/// Whether `directory` may have a file of `name`, a part file of it or a journal.
pub(super) fn may_have(directory: &Path, name: &FileName) -> bool {
    let folded = fold(name.as_str());
    ask(
        directory,
        |_| true,
        |listing| listing.names.contains(&folded) || listing.has_leftovers_of(name),
    )
}

/// Whether `directory` existed within the last seconds.
pub(super) fn exists(directory: &Path) -> bool {
    ask(directory, |listing| listing.exists, |listing| listing.exists)
}

/// Adds `name` to the cached listing, so that the next claim sees it without reading the directory.
pub(super) fn add(directory: &Path, name: &str) {
    let mut listings = LISTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(listing) = listings.get_mut(directory) {
        listing.names.insert(fold(name));
    }
}
