//! What is asked about downloads, answered from the projection without the daemon.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the name of a method does not stand for it with every lifetime"
)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use protocol::{RuntimeStats, TaskRuntimeDto};
use serde_json::{json, value::RawValue};

use super::{
    board::{Board, Found, NotFound, Stopped},
    call::{Caller, Outcome, raw},
    fault::Fault,
    gid::Gid,
    params::Params,
    status::{Download, Keys, Seen},
};
use crate::{lexicon::Words, projection::Projection, shelf::Task};

/// Answers that are kept: front ends ask the same question again and again, some of them at once.
const MAX_ANSWERS: usize = 16;

/// The largest answer that is kept: ten thousand downloads with all keys.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

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
        if answer.get().len() > MAX_ANSWER_BYTES {
            return;
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (of, _)| *of == revision);
        if answers.len() < MAX_ANSWERS {
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

fn written(items: &[Item], words: &Words, keys: Keys) -> Outcome {
    let mut text = Vec::with_capacity(items.len() * 512 + 2);
    let mut space = Vec::new();
    text.push(b'[');
    for item in items {
        let before = text.len();
        if before > 1 {
            text.push(b',');
        }
        item.write(words, &mut space, |download| download.write(&mut text, keys));
    }
    text.push(b']');
    of_bytes(text)
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

    pub(super) fn tell_active(&self, params: &Params) -> Outcome {
        let keys = Keys::of(&params.optional_texts(0)?);
        let (items, words) = self.hub()?.look_at_board(|projection, board| {
            let active = self.seen(projection, board.active());
            let items: Vec<_> = active.filter_map(|place| Item::at(projection, place)).collect();
            (items, projection.words())
        });
        written(&items, &words, keys)
    }

    pub(super) fn tell_waiting(&self, params: &Params) -> Outcome {
        self.tell_list(params, true)
    }

    pub(super) fn tell_stopped(&self, params: &Params) -> Outcome {
        self.tell_list(params, false)
    }

    fn tell_list(&self, params: &Params, is_waiting: bool) -> Outcome {
        let question = Question {
            is_waiting,
            offset: params.integer(0)?,
            count: params.integer_from(1, 0)?,
            keys: Keys::of(&params.optional_texts(2)?),
        };
        let hub = self.hub()?;
        let revision = hub.look_at_board(|_, board| board.revision());
        if self.visitor.is_none()
            && let Some(answer) = self.dialect().answers.get(question, revision)
        {
            return Ok(answer);
        }
        let Question {
            offset, count, keys, ..
        } = question;
        let (revision, items, words) = hub.look_at_board(|projection, board| {
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
            (board.revision(), items, projection.words())
        });
        let answer = written(&items, &words, keys)?;
        if self.visitor.is_some() {
            return Ok(answer);
        }
        self.dialect().answers.put(question, revision, &answer);
        Ok(answer)
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
            Stopped::Task(place) => self.seen(projection, std::iter::once(*place)).next().is_some(),
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
