//! Methods that query downloads, answered from the board without a command to the service, except for torrents.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the name of a method does not stand for it with every lifetime"
)]

use std::iter::once;

use bytes::Bytes;
use serde_json::json;

use super::outcome::{Answered, Outcome, json as outcome_json};
use crate::{
    board::{Admits, Download},
    caller::Caller,
    dialect::{Answers, Question},
    service::Task,
    status::{Keys, Status},
    torrent::Parts,
    vocabulary::{fault::Fault, method::Method, params::Params},
    wire::pieces::grouped,
};

/// The range that an offset and a count select in a list, and whether it is reversed.
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

/// A list of downloads that is serialized while it is sent; a snapshot of one moment.
pub(crate) struct Listing {
    downloads: Vec<Download>,
    keys: Keys,
}

impl Listing {
    /// The list as one text; none if that is longer than `most`.
    fn written(&self, most: usize) -> Option<Bytes> {
        let mut text = Vec::with_capacity(self.downloads.len().min(most / 512) * 512 + 2);
        text.push(b'[');
        for (number, download) in self.downloads.iter().enumerate() {
            if number > 0 {
                text.push(b',');
            }
            Status::of(download).write(&mut text, self.keys);
            if text.len() > most {
                return None;
            }
        }
        text.push(b']');
        // The text may be cached.
        text.shrink_to_fit();
        Some(text.into())
    }

    /// One text per item.
    pub(crate) fn texts(self) -> impl Iterator<Item = Vec<u8>> + Send + Sync {
        self.downloads.into_iter().map(move |download| {
            let mut text = Vec::new();
            Status::of(&download).write(&mut text, self.keys);
            text
        })
    }

    /// The list as JSON, in pieces.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Bytes> + Send + Sync {
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

/// What a method needs to know of a download, and of which ones it tells.
struct Asked {
    refusal: &'static str,
    parts: Option<Parts>,
    allows: fn(&Download) -> bool,
}

impl Caller {
    /// Writes something of one download. `allows` checks its state; otherwise the fault begins with `refusal`.
    async fn about(
        &self,
        params: &Params,
        Asked { refusal, parts, allows }: Asked,
        write: impl FnOnce(&Status<'_>, &mut Vec<u8>),
    ) -> Outcome {
        let download = self.named(params.text(0)?)?;
        if !allows(&download) {
            return Err(Fault::new(format!("{refusal} GID#{}", download.gid)));
        }
        let download = self.described(download, parts).await?;
        let mut answer = Vec::with_capacity(1024);
        write(&Status::of(&download), &mut answer);
        Ok(answer.into())
    }

    pub(super) async fn tell_status(&self, params: &Params) -> Outcome {
        let keys = Keys::of(&params.optional_texts(1)?);
        let asked = Asked {
            refusal: "No such download for",
            parts: keys.parts(),
            allows: |_| true,
        };
        self.about(params, asked, |status, text| status.write(text, keys)).await
    }

    pub(super) async fn get_files(&self, params: &Params) -> Outcome {
        let asked = Asked {
            refusal: "No file data is available for",
            parts: Some(Parts::FILES),
            allows: |_| true,
        };
        self.about(params, asked, |status, text| status.write_files(text)).await
    }

    pub(super) async fn get_uris(&self, params: &Params) -> Outcome {
        let asked = Asked {
            refusal: "No URI data is available for",
            parts: Some(Parts::FILES),
            allows: |download| !download.is_stopped(),
        };
        self.about(params, asked, |status, text| status.write_uris(text)).await
    }

    pub(super) async fn get_servers(&self, params: &Params) -> Outcome {
        let asked = Asked {
            refusal: "No active download for",
            parts: Some(Parts::FILES),
            allows: Download::is_active,
        };
        self.about(params, asked, |status, text| status.write_servers(text))
            .await
    }

    /// `tellActive`, `tellWaiting` or `tellStopped`. A list longer than `most` bytes is returned instead of serialized.
    pub(super) async fn tell_list(
        &self,
        method: Method,
        params: &Params,
        most: usize,
    ) -> Result<Answered<Listing>, Fault> {
        if method == Method::TellActive {
            let keys = Keys::of(&params.optional_texts(0)?);
            let mut downloads = self.active()?;
            self.describe(&mut downloads, keys.parts()).await?;
            let list = Listing { downloads, keys };
            return Ok(match list.written(most) {
                Some(text) => Answered::Text(text),
                None => Answered::List(list),
            });
        }
        let question = Question {
            is_waiting: method == Method::TellWaiting,
            offset: params.integer(0)?,
            count: params.integer_from(1, 0)?,
            keys: Keys::of(&params.optional_texts(2)?),
        };
        // Callers without restrictions share cached answers.
        let answers = self.visitor.is_none().then_some(&self.dialect.answers);
        let (revision, mut downloads) = match self.listed(question, answers, most)? {
            Ok(answer) => return Ok(Answered::Text(answer)),
            Err(listed) => listed,
        };
        self.describe(&mut downloads, question.keys.parts()).await?;
        let has_torrents = downloads.iter().any(|download| download.torrent.is_some());
        let list = Listing {
            downloads,
            keys: question.keys,
        };
        let Some(answer) = list.written(most) else {
            return Ok(Answered::List(list));
        };
        // What is known of torrents may change without a change of the lists.
        if let Some(answers) = answers.filter(|_| !has_torrents) {
            answers.put(question, revision, &answer);
        }
        Ok(Answered::Text(answer))
    }

    fn active(&self) -> Result<Vec<Download>, Fault> {
        let board = self.board()?;
        let own = board.active().filter(|download| self.may_see(&*download.task));
        Ok(own.collect())
    }

    /// The answer of the last time if nothing changed since, else the downloads that a question selects and the revision
    /// that they are of.
    fn listed(
        &self,
        question: Question,
        answers: Option<&Answers>,
        most: usize,
    ) -> Result<Result<Bytes, (u64, Vec<Download>)>, Fault> {
        let board = self.board()?;
        let revision = board.revision();
        let kept = answers.and_then(|answers| answers.get(question, revision));
        if let Some(answer) = kept.filter(|answer| answer.len() <= most) {
            return Ok(Ok(answer));
        }
        let mut is_reversed = false;
        let admits = |task: &dyn Task| self.may_see(task);
        let admits = self.visitor.is_some().then_some(&admits as &Admits<'_>);
        let mut downloads = board.list(question.is_waiting, admits, |length| {
            let (range, backwards) = range(length, question.offset, question.count);
            is_reversed = backwards;
            range
        });
        drop(board);
        if is_reversed {
            downloads.reverse();
        }
        Ok(Err((revision, downloads)))
    }

    pub(super) fn get_global_stat(&self) -> Outcome {
        let counts = self.board()?.counts();
        let stats = self.dialect.service.stats()?;
        let [active, waiting, stopped, stopped_in_all] = counts.map(|count| count.to_string());
        outcome_json(&json!({
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
            let (range, is_reversed) = range(3, offset, count);
            let mut picked: Vec<char> = "ABC".chars().skip(range.start).take(range.len()).collect();
            if is_reversed {
                picked.reverse();
            }
            assert_eq!(String::from_iter(picked), expect, "{offset} {count}");
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
