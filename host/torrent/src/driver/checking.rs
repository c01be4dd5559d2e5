//! What a torrent begins with: the record of an earlier run, or what is on the disk.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use metainfo::Info;
use tokio_util::sync::CancellationToken;
use transfer::Failure;

use crate::{
    bitfield::Bitfield,
    storage::{
        Places, Storage, Target,
        handles::Handles,
        resume::{Doubt, ResumeFile},
    },
};

/// What there is, and which pieces have to be hashed before they are believed.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) storage: Arc<Storage>,
    pub(super) have: Bitfield,
    pub(super) doubtful: Vec<u32>,
}

/// How a torrent begins.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "as in the specification of a torrent")]
pub(super) struct Beginning {
    pub(super) target: Target,
    pub(super) uses_existing: bool,
    pub(super) is_rechecked: bool,
    pub(super) is_seed_only: bool,
}

/// Reads the record of an earlier run, or chooses a name for a new one. Blocks.
pub(super) fn open(
    info: Info,
    beginning: &Beginning,
    handles: Arc<Handles>,
    resume: &ResumeFile,
) -> Result<Opened, Failure> {
    let target = &beginning.target;
    let pieces = info.piece_count();
    let Some(record) = resume.read_for(&info, &target.directory, target.name.as_ref()) else {
        return open_new(info, beginning, handles);
    };
    let storage = Storage::new(info, target, handles, record.places.clone());
    if beginning.is_rechecked {
        // A file may have been put back under its name since the record was written.
        storage.adopt_named(&Bitfield::full(pieces));
        return Ok(Opened {
            storage: Arc::new(storage),
            have: Bitfield::new(pieces),
            doubtful: (0..pieces).collect(),
        });
    }
    let geometry = storage.geometry();
    let mut doubtful = Bitfield::new(pieces);
    let mut doubt = |file: usize| {
        let file = &storage.info.files()[file];
        for piece in geometry.pieces_of(file.offset(), file.offset() + file.length()) {
            doubtful.insert(piece);
        }
    };
    storage.adopt_named(&record.have).into_iter().for_each(&mut doubt);
    match record.doubt(&storage.stamps(), transfer::boot_id().as_deref()) {
        Doubt::Nothing => {}
        Doubt::Everything => {
            for piece in record.have.iter() {
                doubtful.insert(piece);
            }
        }
        Doubt::Files(files) => files.into_iter().for_each(doubt),
    }
    let mut have = record.have;
    for piece in doubtful.iter() {
        have.remove(piece);
    }
    // What is only uploaded may have been put back since a check found it missing.
    let is_checked = |piece: &u32| doubtful.has(*piece) || (beginning.is_seed_only && !have.has(*piece));
    let doubtful = (0..pieces).filter(is_checked).collect();
    Ok(Opened {
        storage: Arc::new(storage),
        have,
        doubtful,
    })
}

fn open_new(info: Info, beginning: &Beginning, handles: Arc<Handles>) -> Result<Opened, Failure> {
    let pieces = info.piece_count();
    let target = &beginning.target;
    let uses_existing = beginning.uses_existing || beginning.is_seed_only;
    let top = if uses_existing {
        target.name.as_ref().unwrap_or_else(|| info.name()).to_string()
    } else {
        crate::storage::free_top(&info, target)?
    };
    let mut places = Places::new(top, &info);
    places.rename(&info, &target.paths)?;
    let storage = Storage::new(info, target, handles, places);
    let doubtful = if uses_existing {
        storage.adopt();
        (0..pieces).collect()
    } else {
        Vec::new()
    };
    Ok(Opened {
        storage: Arc::new(storage),
        have: Bitfield::new(pieces),
        doubtful,
    })
}

/// Hashes pieces that are on the disk, and returns the right ones. Blocks. Stops when it is cancelled.
pub(super) fn check(
    storage: &Storage,
    pieces: &[u32],
    checked: &AtomicU32,
    stop: &CancellationToken,
) -> Result<Bitfield, Failure> {
    let mut right = Bitfield::new(storage.geometry().pieces());
    let mut buffer = Vec::new();
    for piece in pieces {
        if stop.is_cancelled() {
            break;
        }
        if storage.is_right_on_disk(*piece, &mut buffer)? {
            right.insert(*piece);
        }
        checked.fetch_add(1, Ordering::Relaxed);
    }
    Ok(right)
}
