//! What is asked about downloads, answered from the projection without the daemon.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the name of a method does not stand for it with every lifetime"
)]

use std::{
    collections::HashMap,
    iter::once,
    sync::{Arc, Mutex, PoisonError},
};

use axum::body::Bytes;
use protocol::{RuntimeStats, TaskRuntimeDto};
use serde_json::{json, value::RawValue};

use super::{
    board::{Board, Found, NotFound, Stopped},
    call::{Caller, Outcome, Told, raw},
    fault::Fault,
    gid::Gid,
    params::Params,
    status::{Download, Keys, Seen},
};
use crate::projection::{lexicon::Words, shelf::Task, tasks::Projection};

/// Answers that are kept: front ends ask the same question again and again, some of them at once.
const MAX_ANSWERS: usize = 16;

/// The longest list that is held as text: ten thousand downloads with all keys. A longer one is written while it is sent.
pub(super) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// What all answers that are kept have together.
const MAX_KEPT_BYTES: usize = 2 * MAX_TEXT_BYTES;

/// How much of a list is written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A list that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    is_waiting: bool,
    offset: i64,
    count: i64,
    keys: Keys,
}

/// The answers to lists, each with the revision of the board that it is of. Changed for a moment by whoever asks.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<HashMap<Question, (u64, Arc<RawValue>)>>);

impl Answers {
    fn get(&self, question: Question, revision: u64) -> Option<Arc<RawValue>> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, answer) = answers.get(&question)?;
        (*of == revision).then(|| Arc::clone(answer))
    }

    fn put(&self, question: Question, revision: u64, answer: &Arc<RawValue>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (of, _)| *of == revision);
        let kept: usize = answers.values().map(|(_, answer)| answer.get().len()).sum();
        if answers.len() < MAX_ANSWERS && kept + answer.get().len() <= MAX_KEPT_BYTES {
            answers.insert(question, (revision, Arc::clone(answer)));
        }
    }
}

/// What a description is written from, as of one moment.
enum Item {
    Task(Arc<Task>, Option<Arc<str>>),
    Removed(Gid, Arc<str>),
}

impl Item {
    fn at(projection: &Projection, place: u64) -> Option<Self> {
        let task = Arc::clone(projection.at(place)?);
        let runtime = projection.runtime_of(&task.id);
        Some(Self::Task(task, runtime))
    }

    fn stopped(projection: &Projection, stopped: &Stopped) -> Option<Self> {
        match stopped {
            Stopped::Task(place) => Self::at(projection, *place),
            Stopped::Removed(removed) => Some(Self::Removed(removed.gid, Arc::clone(&removed.task))),
        }
    }

    /// Writes something of it, with `space` to unpack it in.
    fn write(&self, words: &Words, space: &mut Vec<u8>, write: impl FnOnce(&Download<'_>)) {
        space.clear();
        let (gid, runtime) = match self {
            Self::Task(task, runtime) => {
                words.unpack(&task.packed, space);
                let runtime = runtime
                    .as_ref()
                    .and_then(|text| serde_json::from_str::<TaskRuntimeDto>(text).ok());
                (Gid::of_task(&task.id), runtime)
            }
            Self::Removed(gid, text) => {
                space.extend_from_slice(text.as_bytes());
                (Some(*gid), None)
            }
        };
        let task = serde_json::from_slice::<Seen<'_>>(space);
        if let (Some(gid), Ok(task)) = (gid, task) {
            write(&Download {
                gid,
                task,
                runtime,
                is_removed: matches!(self, Self::Removed(..)),
            });
        }
    }
}

/// The range of a list that an offset and a count name, and whether it is read backwards.
fn range(length: usize, offset: i64, count: i64) -> (std::ops::Range<usize>, bool) {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let index = |number: i64| usize::try_from(number.clamp(0, length)).unwrap_or(0);
    if offset >= 0 {
        (index(offset)..index(offset.saturating_add(count)), false)
    } else {
        let end = length.saturating_add(offset).saturating_add(1);
        let start = end.saturating_sub(count);
        (index(start)..index(end).max(index(start)), true)
    }
}

fn pick<T>(all: impl DoubleEndedIterator<Item = T> + ExactSizeIterator, offset: i64, count: i64) -> Vec<T> {
    let (range, is_reversed) = range(all.len(), offset, count);
    let picked = all.skip(range.start).take(range.len());
    let mut picked: Vec<T> = picked.collect();
    if is_reversed {
        picked.reverse();
    }
    picked
}

/// A list of downloads that is written while it is sent. It is as of one moment, and holds what the downloads were then.
pub(super) struct Listing {
    items: Vec<Item>,
    words: Words,
    keys: Keys,
}

impl Listing {
    /// The list as one text, unless that is longer than `most`.
    fn written(&self, most: usize) -> Result<Option<Arc<RawValue>>, Fault> {
        let mut text = Vec::with_capacity(self.items.len().min(most / 512) * 512 + 2);
        let mut space = Vec::new();
        text.push(b'[');
        for item in &self.items {
            self.write(item, &mut text, &mut space);
            if text.len() > most {
                return Ok(None);
            }
        }
        text.push(b']');
        of_bytes(text).map(Some)
    }

    /// Writes an item behind others.
    fn write(&self, item: &Item, text: &mut Vec<u8>, space: &mut Vec<u8>) {
        item.write(&self.words, space, |download| {
            if !matches!(text.last(), None | Some(b'[')) {
                text.push(b',');
            }
            download.write(text, self.keys);
        });
    }

    /// The items, one text each.
    pub(super) fn texts(self) -> impl Iterator<Item = Vec<u8>> + Send + Sync {
        let mut place = 0;
        let mut space = Vec::new();
        std::iter::from_fn(move || {
            let mut text = Vec::new();
            while let Some(item) = self.items.get(place).filter(|_| text.is_empty()) {
                self.write(item, &mut text, &mut space);
                place += 1;
            }
            (!text.is_empty()).then_some(text)
        })
    }

    /// The list as JSON, in pieces.
    pub(super) fn pieces(self) -> impl Iterator<Item = Bytes> + Send + Sync {
        let mut is_first = true;
        let items = self.texts().map(move |mut text| {
            if !std::mem::take(&mut is_first) {
                text.insert(0, b',');
            }
            text
        });
        grouped(once(b"[".to_vec()).chain(items).chain(once(b"]".to_vec())))
    }
}

/// Short texts together, so that what is sent at once is neither one of them nor all.
pub(super) fn grouped(
    mut texts: impl Iterator<Item = Vec<u8>> + Send + Sync,
) -> impl Iterator<Item = Bytes> + Send + Sync {
    std::iter::from_fn(move || {
        let mut piece = texts.next()?;
        while piece.len() < PIECE_BYTES {
            match texts.next() {
                Some(text) => piece.extend_from_slice(&text),
                None => break,
            }
        }
        Some(piece.into())
    })
}

fn of_bytes(text: Vec<u8>) -> Outcome {
    let text = String::from_utf8(text).map_err(|_| Fault::new("A task cannot be read."))?;
    let result = RawValue::from_string(text).map_err(|_| Fault::new("A task cannot be read."))?;
    Ok(result.into())
}

/// What a call names.
pub(super) struct Named {
    pub(super) gid: Gid,
    pub(super) found: Found,
}

impl Named {
    /// The task that is meant and not its memory.
    pub(super) fn task(&self, projection: &Projection) -> Option<Arc<Task>> {
        match self.found {
            Found::Task(place) => projection.at(place).cloned(),
            Found::Removed(_) => None,
        }
    }

    /// The task as the daemon wrote it, or as it was.
    pub(super) fn text(&self, projection: &Projection) -> String {
        match &self.found {
            Found::Task(place) => projection
                .at(*place)
                .map(|task| projection.text_of(task))
                .unwrap_or_default(),
            Found::Removed(removed) => removed.task.to_string(),
        }
    }
}

/// Finds the download that a parameter names.
pub(super) fn named(board: &Board, text: &str) -> Result<Named, Fault> {
    let found = board.find(text);
    let (gid, found) = found.map_err(|why| {
        Fault::new(match why {
            NotFound::Invalid => format!("Invalid GID {text}"),
            NotFound::Unknown => format!("GID {text} is not found"),
            NotFound::Ambiguous => format!("GID {text} is not unique"),
        })
    })?;
    Ok(Named { gid, found })
}

impl Caller {
    /// Writes something of one download. `allows` says what it must be, else how the refusal begins.
    fn about(
        &self,
        params: &Params,
        refusal: &str,
        allows: impl FnOnce(&Download<'_>) -> bool,
        write: impl FnOnce(&Download<'_>, &mut Vec<u8>),
    ) -> Outcome {
        let text = params.text(0)?;
        let (gid, item, words) = self.hub()?.look_at_board(|projection, board| {
            let named = named(board, text).map_err(|fault| self.not_seen(fault))?;
            if self.visitor.is_some() && !self.may_see(named.text(projection).as_bytes()) {
                return Err(self.not_seen(Fault::unauthorized()));
            }
            let Named { gid, found } = named;
            let item = match found {
                Found::Task(place) => Item::at(projection, place),
                Found::Removed(removed) => Some(Item::Removed(removed.gid, removed.task)),
            };
            Ok::<_, Fault>((gid, item, projection.words()))
        })?;
        let mut answer = Vec::new();
        if let Some(item) = item {
            item.write(&words, &mut Vec::new(), |download| {
                if allows(download) {
                    write(download, &mut answer);
                }
            });
        }
        if answer.is_empty() {
            return Err(Fault::new(format!("{refusal} GID#{gid}")));
        }
        of_bytes(answer)
    }

    pub(super) fn tell_status(&self, params: &Params) -> Outcome {
        let keys = Keys::of(&params.optional_texts(1)?);
        self.about(
            params,
            "No such download for",
            |_| true,
            |download, text| download.write(text, keys),
        )
    }

    pub(super) fn get_files(&self, params: &Params) -> Outcome {
        self.about(
            params,
            "No file data is available for",
            |_| true,
            |download, text| download.write_files(text),
        )
    }

    pub(super) fn get_uris(&self, params: &Params) -> Outcome {
        self.about(
            params,
            "No URI data is available for",
            |download| !download.is_stopped(),
            |download, text| download.write_uris(text),
        )
    }

    pub(super) fn get_servers(&self, params: &Params) -> Outcome {
        self.about(
            params,
            "No active download for",
            |download| download.is_active(),
            |download, text| download.write_servers(text),
        )
    }

    pub(super) fn get_peers(&self, params: &Params) -> Outcome {
        let refusal = "No peer data is available for";
        self.about(
            params,
            refusal,
            |download| !download.is_stopped(),
            |_, text| text.extend_from_slice(b"[]"),
        )
    }

    /// `tellActive`, `tellWaiting` or `tellStopped`. Text that is longer than `most` is not made.
    pub(super) fn tell_list(&self, method: &str, params: &Params, most: usize) -> Result<Told, Fault> {
        if method == "aria2.tellActive" {
            let keys = Keys::of(&params.optional_texts(0)?);
            let (items, words) = self.hub()?.look_at_board(|projection, board| {
                let active = self.seen(projection, board.active());
                let items = active.filter_map(|place| Item::at(projection, place)).collect();
                (items, projection.words())
            });
            let list = Listing { items, words, keys };
            return Ok(match list.written(most)? {
                Some(text) => Told::Whole(text),
                None => Told::List(list),
            });
        }
        let question = Question {
            is_waiting: method == "aria2.tellWaiting",
            offset: params.integer(0)?,
            count: params.integer_from(1, 0)?,
            keys: Keys::of(&params.optional_texts(2)?),
        };
        let hub = self.hub()?;
        let revision = hub.look_at_board(|_, board| board.revision());
        let kept = match self.visitor {
            Some(_) => None,
            None => self.dialect().answers.get(question, revision),
        };
        if let Some(answer) = kept.filter(|answer| answer.get().len() <= most) {
            return Ok(Told::Whole(answer));
        }
        let Question {
            is_waiting,
            offset,
            count,
            keys,
        } = question;
        let (revision, list) = hub.look_at_board(|projection, board| {
            let items: Vec<_> = if self.visitor.is_some() {
                self.seen_list(projection, board, question)
            } else if is_waiting {
                let places = pick(board.waiting(), offset, count).into_iter();
                places.filter_map(|place| Item::at(projection, place)).collect()
            } else {
                let stopped = pick(board.stopped(), offset, count).into_iter();
                stopped
                    .filter_map(|stopped| Item::stopped(projection, stopped))
                    .collect()
            };
            let words = projection.words();
            (board.revision(), Listing { items, words, keys })
        });
        match list.written(most)? {
            Some(answer) => {
                if self.visitor.is_none() {
                    self.dialect().answers.put(question, revision, &answer);
                }
                Ok(Told::Whole(answer))
            }
            None => Ok(Told::List(list)),
        }
    }

    /// The places among these of tasks that this call may see.
    fn seen(&self, projection: &Projection, places: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        places.filter(move |place| {
            let text = || projection.at(*place).map(|task| projection.text_of(task));
            self.visitor.is_none() || text().is_some_and(|text| self.may_see(text.as_bytes()))
        })
    }

    /// The answer to a question about a visitor's own downloads.
    fn seen_list(&self, projection: &Projection, board: &Board, question: Question) -> Vec<Item> {
        let Question { offset, count, .. } = question;
        if question.is_waiting {
            let waiting: Vec<u64> = self.seen(projection, board.waiting()).collect();
            let places = pick(waiting.into_iter(), offset, count).into_iter();
            return places.filter_map(|place| Item::at(projection, place)).collect();
        }
        let is_seen = |stopped: &&Stopped| match stopped {
            Stopped::Task(place) => self.seen(projection, once(*place)).next().is_some(),
            Stopped::Removed(removed) => self.may_see(removed.task.as_bytes()),
        };
        let stopped: Vec<&Stopped> = board.stopped().filter(is_seen).collect();
        let stopped = pick(stopped.into_iter(), offset, count).into_iter();
        stopped
            .filter_map(|stopped| Item::stopped(projection, stopped))
            .collect()
    }

    pub(super) fn get_global_stat(&self) -> Outcome {
        let (counts, stats) = self.hub()?.look_at_board(|projection, board| {
            let stats: RuntimeStats = serde_json::from_str(projection.stats()).unwrap_or_default();
            (board.counts(), stats)
        });
        let [active, waiting, stopped, stopped_in_all] = counts.map(|count| count.to_string());
        raw(&json!({
            "downloadSpeed": stats.total_download_bps.to_string(),
            "numActive": active,
            "numStopped": stopped,
            "numStoppedTotal": stopped_in_all,
            "numWaiting": waiting,
            "uploadSpeed": stats.total_upload_bps.to_string(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_negative_offset_counts_from_the_end_and_backwards() {
        let check = |offset: i64, count: i64, expect: &str| {
            let picked: String = pick("ABC".chars().collect::<Vec<_>>().into_iter(), offset, count)
                .into_iter()
                .collect();
            assert_eq!(picked, expect, "{offset} {count}");
        };
        check(0, 1, "A");
        check(1, 2, "BC");
        check(1, 9, "BC");
        check(3, 1, "");
        check(0, 0, "");
        check(-1, 2, "CB");
        check(-2, 2, "BA");
        check(-2, 9, "BA");
        check(-3, 1, "A");
        check(-4, 2, "");
        check(i64::MIN, i64::MAX, "");
        check(i64::MAX, i64::MAX, "");
    }

    proptest! {
        #[test]
        fn no_range_is_outside_of_its_list(length in 0_usize..50, offset: i64, count in 0_i64..) {
            let (range, _) = range(length, offset, count);
            prop_assert!(range.start <= range.end && range.end <= length);
        }
    }
}
