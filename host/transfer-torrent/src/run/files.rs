//! Which files of a torrent are downloaded.

use metainfo::{Info, Magnet};
use torrent::Priority;
use transfer::{Failure, FailureKind, Outcome};

use super::{Run, Step};
use crate::chooser::{Choice, OfferedFile};

impl Run {
    /// The wanted files by their places, ascending; empty is all.
    pub(super) async fn choose_files(&self, info: &Info) -> Step<Box<[u32]>> {
        let count = info.files().len();
        if let Some(last) = self.options.files.last() {
            return if usize::try_from(*last).is_ok_and(|last| last < count) {
                Ok(self.options.files.clone())
            } else {
                let message = format!("file {last} was chosen, and the torrent has {count} files, the first of them 0");
                Err(Outcome::Failed(Failure::new(FailureKind::InvalidSource, message)))
            };
        }
        if !self.magnet.selected.is_empty() {
            return Ok(selected(info, &self.magnet));
        }
        let chooser = self.shared.config.chooser.as_ref();
        let Some(chooser) = chooser.filter(|_| self.options.asks_for_files && count > 1) else {
            return Ok(Box::default());
        };
        let offered = (0..).zip(info.files()).map(|(index, file)| OfferedFile {
            index,
            path: file.shown().to_owned(),
            size_bytes: file.length(),
        });
        let chosen = chooser.choose(self.torrent(), offered.collect());
        tokio::select! {
            () = self.job.stop.cancelled() => Err(Outcome::Stopped),
            chosen = chosen => match chosen {
                Choice::All => Ok(Box::default()),
                Choice::Files(files) => Ok(files),
                Choice::Cancelled => Err(Outcome::Waits),
            },
        }
    }
}

/// The priority of each file if only `wanted` are, by their places; all of them if it is empty.
pub(super) fn priorities(info: &Info, wanted: &[u32]) -> Vec<Priority> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut priorities = vec![Priority::Skip; info.files().len()];
    for file in wanted {
        if let Some(priority) = usize::try_from(*file).ok().and_then(|file| priorities.get_mut(file)) {
            *priority = Priority::Normal;
        }
    }
    priorities
}

/// The bytes of these files.
pub(super) fn wanted_bytes(info: &Info, wanted: &[u32]) -> u64 {
    let is_wanted = |index: u32| wanted.is_empty() || wanted.binary_search(&index).is_ok();
    let files = (0..).zip(info.files()).filter(|(index, _)| is_wanted(*index));
    files.map(|(_, file)| file.length()).sum()
}

/// The files that a magnet link selects, by their places. The link counts padding files as well (BEP 53).
fn selected(info: &Info, magnet: &Magnet) -> Box<[u32]> {
    let is_selected = |index: u32| magnet.selected.iter().any(|range| range.contains(&index));
    let files = (0..).zip(info.files()).filter(|(_, file)| is_selected(file.index()));
    files.map(|(place, _)| place).collect()
}
