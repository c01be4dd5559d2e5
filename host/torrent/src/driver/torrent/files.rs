//! Which files are wanted, and what happens when they are complete.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use transfer::{Failure, FailureKind, FileName};

use super::{Torrent, life::finish};
use crate::{
    bitfield::Bitfield,
    driver::core::Report,
    heart::{Input, Priority, Wanted},
    view::{EventKind, Status},
};

impl Torrent {
    pub(super) fn priority(&self, file: usize) -> Priority {
        self.priorities.get(file).copied().unwrap_or_default()
    }

    pub(super) fn wanted_files(&self) -> Vec<bool> {
        let files = self.info.as_ref().map_or(0, |info| info.files().len());
        (0..files).map(|file| self.priority(file) != Priority::Skip).collect()
    }

    /// The priority of each piece: the highest of its files.
    pub(super) fn wanted(&self) -> Wanted {
        let mut priorities = Vec::new();
        if let Some(storage) = &self.storage {
            let geometry = storage.geometry();
            let mut unknown = Vec::new();
            priorities = vec![(Priority::Skip, false); geometry.pieces() as usize];
            for (index, file) in storage.info.files().iter().enumerate() {
                let priority = self.priority(index);
                let pieces = geometry.pieces_of(file.offset(), file.offset() + file.length());
                let (start, end) = (file.offset(), file.offset() + file.length());
                let head = geometry.pieces_of(start, start.saturating_add(self.order.head_bytes).min(end));
                let tail = geometry.pieces_of(end.saturating_sub(self.order.tail_bytes).max(start), end);
                if self.beginning.is_seed_only && priority == Priority::Skip {
                    // The bytes of its last pieces may have gone with the parts file.
                    unknown.extend(pieces);
                    continue;
                }
                for piece in pieces {
                    let entry = &mut priorities[piece as usize];
                    entry.0 = entry.0.max(priority);
                    entry.1 |= priority != Priority::Skip && (head.contains(&piece) || tail.contains(&piece));
                }
            }
            for piece in unknown {
                priorities[piece as usize].0 = Priority::Skip;
            }
        }
        Wanted {
            priorities,
            is_sequential: self.order.is_sequential,
            lost: Vec::new(),
        }
    }

    /// Counts what is missing of each file and of all that is wanted.
    pub(super) fn count(&mut self, have: &Bitfield) {
        let Some(storage) = &self.storage else {
            return;
        };
        let geometry = storage.geometry();
        let missing = |file: &metainfo::File| {
            let pieces = geometry.pieces_of(file.offset(), file.offset() + file.length());
            let missing = pieces.filter(|piece| !have.has(*piece)).count();
            u32::try_from(missing).expect("there are fewer pieces than 2^32")
        };
        self.file_missing = storage.info.files().iter().map(missing).collect();
        (self.wanted_bytes, self.done_bytes) = (0, 0);
        for (piece, (priority, _)) in (0..).zip(self.wanted().priorities) {
            if priority != Priority::Skip {
                let length = u64::from(geometry.length(piece));
                self.wanted_bytes += length;
                self.done_bytes += if have.has(piece) { length } else { 0 };
            }
        }
    }

    /// Applies what is wanted now. `lost` are pieces that are no longer there.
    pub(super) fn apply_wanted(&mut self, lost: Vec<u32>) {
        for piece in &lost {
            self.have.remove(*piece);
        }
        let have = self.shared.with(|core| core.state.have().cloned());
        if let Some(mut have) = have {
            for piece in &lost {
                have.remove(*piece);
            }
            self.count(&have);
            let wanted = Wanted { lost, ..self.wanted() };
            self.is_finished = false;
            if self.status == Status::Seeding {
                self.status = Status::Downloading;
            }
            self.finish_files();
            self.shared.apply(Input::Wanted(wanted));
            self.dial();
        } else {
            let have = self.have.clone();
            self.count(&have);
        }
        self.publish();
    }

    /// Takes the user's choice of files.
    pub(super) async fn select(&mut self, priorities: Vec<Priority>) -> Result<(), Failure> {
        if self.beginning.is_seed_only && self.storage.is_some() {
            let message = "the torrent only uploads; add it again to choose other files";
            return Err(Failure::new(FailureKind::InUse, message));
        }
        self.priorities = priorities;
        self.is_completed = false;
        let mut lost = Vec::new();
        if let Some(storage) = self.storage.clone() {
            let have = self
                .shared
                .with(|core| core.state.have().cloned())
                .unwrap_or_else(|| self.have.clone());
            let wanted = self.wanted_files();
            let selecting = self.session.blocking(move || storage.select(&wanted, &have));
            lost = selecting.await?;
        }
        self.apply_wanted(lost);
        Ok(())
    }

    /// A piece is there.
    pub(super) fn got(&mut self, piece: u32) {
        let Some(storage) = self.storage.clone() else {
            return;
        };
        let geometry = storage.geometry();
        let (offset, length) = (geometry.offset(piece), u64::from(geometry.length(piece)));
        self.done_bytes += length;
        let files: Vec<_> = storage
            .layout
            .extents(offset, length)
            .map(|extent| extent.file)
            .collect();
        for file in files {
            if let Some(missing) = self.file_missing.get_mut(file) {
                *missing = missing.saturating_sub(1);
                if *missing == 0 && self.priority(file) != Priority::Skip {
                    self.finish_file(file);
                }
            }
        }
    }

    /// Finishes every wanted file of which nothing is missing and that does not have its name.
    pub(super) fn finish_files(&mut self) {
        let Some(storage) = self.storage.clone() else {
            return;
        };
        let places = storage.places();
        for (file, place) in places.files.iter().enumerate() {
            let is_whole = self.file_missing.get(file) == Some(&0);
            if is_whole && !place.is_finished && self.priority(file) != Priority::Skip {
                self.finish_file(file);
            }
        }
    }

    fn finish_file(&mut self, file: usize) {
        let Some(disk) = self.disk() else {
            return;
        };
        self.finishing += 1;
        let shared = self.shared.clone();
        self.shared.with(|core| core.tasks.clone()).spawn_local(async move {
            let permit = Arc::clone(&disk.permits).acquire_owned().await;
            let finishing = spawn_blocking(move || {
                let _permit = permit;
                finish(&disk.storage, &disk.resume, file)
            });
            let result = finishing.await.expect("finishing a file does not panic");
            shared.report(Report::FileFinished(file, result));
        });
    }

    pub(super) async fn file_finished(&mut self, file: usize, result: Result<(), Failure>) {
        self.finishing = self.finishing.saturating_sub(1);
        match result {
            Ok(()) => {
                self.emit(EventKind::FileFinished(file));
                self.complete_if_ready().await;
            }
            Err(failure) => self.fail(failure).await,
        }
    }

    /// Announces completion once every wanted file has its name.
    pub(super) async fn complete_if_ready(&mut self) {
        if !self.is_finished || self.finishing > 0 || self.status != Status::Downloading {
            return;
        }
        let Some(storage) = self.storage.clone() else {
            return;
        };
        let wanted = self.wanted_files();
        if wanted.iter().any(|is_wanted| !is_wanted) {
            // Shared pieces lose the bytes of unwanted files with the parts file, so they are no longer served.
            let geometry = storage.geometry();
            let files = storage.info.files().iter().zip(&wanted);
            let unwanted = files.filter(|(_, is_wanted)| !**is_wanted);
            let pieces =
                unwanted.flat_map(|(file, _)| geometry.pieces_of(file.offset(), file.offset() + file.length()));
            let withheld: Vec<_> = pieces.collect();
            self.shared.apply(Input::Withheld(withheld));
        }
        if !self.beginning.is_seed_only && wanted.iter().any(|is_wanted| !is_wanted) {
            let dropping = self.session.blocking(move || storage.drop_parts(&wanted));
            if let Err(failure) = dropping.await {
                self.fail(failure).await;
                return;
            }
        }
        self.shared.with(|core| core.buffers.shrink());
        if !std::mem::replace(&mut self.is_completed, true) {
            self.emit(EventKind::Completed);
        }
        self.set_status(Status::Seeding);
    }

    pub(super) async fn rename(&mut self, file: usize, path: String) -> Result<(), Failure> {
        let Some(storage) = self.storage.clone() else {
            return Err(no_files());
        };
        let renaming = self.session.blocking(move || storage.rename(file, &path));
        renaming.await?;
        self.save_places().await
    }

    pub(super) async fn rename_top(&mut self, name: FileName) -> Result<(), Failure> {
        let Some(storage) = self.storage.clone() else {
            self.beginning.target.name = Some(name);
            return Ok(());
        };
        let renaming = self.session.blocking(move || storage.rename_top(&name));
        renaming.await?;
        self.save_places().await
    }
}

fn no_files() -> Failure {
    Failure::new(
        FailureKind::NotFound,
        "the files are not known before the torrent was started and has its metadata",
    )
}
