//! Opening a source: the first request is already part of the download. Its response gives size, validators and name of
//! the file, and its body is the first segment.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};

use transfer::{
    ByteRange, Claimed, Failure, FileName, Origin, Outcome, PartFile, RangeSet, SafeUrl,
    failure::FailureKind,
    part_file,
    run::{Plan, SAMPLE_BYTES, SMALL_BYTES, background::blocking, plan::USUAL_MIN_SPLIT},
};

use crate::{
    answer::{
        name,
        verdict::{self, Facts, Unusable, Verdict, judge, not_the_file},
    },
    client::{
        decode::Decoder,
        exchange::{Response, now},
        fetch::{Fetched, RangeWish},
    },
    run::{context::Run, pool::Begun, worker::is_same_as_disk},
};

/// The result of opening a source.
pub(crate) enum Opening {
    /// The first response, whose body is for the worker's lease.
    Begun(Box<Begun>),
    /// Every byte is already valid.
    Complete,
    /// The run ends without a transfer.
    Outcome(Outcome),
    /// The existing bytes are of another version of the file.
    Changed(String),
    /// Bytes of an earlier run were found; open again from their end.
    Again,
}

/// A usable response.
struct Answer {
    response: Response,
    url: SafeUrl,
    verdict: Verdict,
    /// Bytes at the body's start that are on the disk already; they are compared instead of written.
    overlap: u64,
}

/// The result of the first request.
enum FirstResponse {
    Answer(Box<Answer>),
    Opening(Opening),
}

impl Run {
    /// Opens the source; tries the next mirror if one fails, and retries while the budget allows.
    pub(crate) async fn open_with_retries(&self) -> Result<Opening, Failure> {
        let mut untried = self.source.urls.len();
        loop {
            let failure = match self.open().await {
                Ok(opening) => return Ok(opening),
                Err(failure) if failure.kind.is_disk() || failure.kind == FailureKind::InvalidSource => {
                    return Err(failure);
                }
                Err(failure) => failure,
            };
            let failure = if self.flow.received.get() == 0 {
                self.retries.count_not_found(failure)?
            } else {
                failure
            };
            untried -= 1;
            let base = self.mirrors.borrow().base();
            let next = self.mirrors.borrow().next_after(base);
            if let Some(next) = next {
                if self.retries.may_help(&failure) {
                    self.mirror_failed(base, &failure).await;
                    self.mirrors.borrow_mut().set_base(next);
                } else {
                    self.give_up_mirror(base, failure.clone(), false).await?;
                }
                if untried > 0 {
                    continue;
                }
            } else {
                self.mirror_failed(base, &failure).await;
            }
            untried = self.source.urls.len();
            self.retries.wait(failure).await?;
        }
    }

    async fn open(&self) -> Result<Opening, Failure> {
        if let Some(outcome) = self.find_begun().await? {
            return Ok(Opening::Outcome(outcome));
        }
        if self.disk.is_claimed() && self.plan.borrow().is_complete() {
            return Ok(Opening::Complete);
        }
        let answer = match self.ask_first().await? {
            FirstResponse::Answer(answer) => *answer,
            FirstResponse::Opening(opening) => return Ok(opening),
        };
        self.accept(answer).await
    }

    /// Claims the part file of an earlier run before the first request, so that the request can start where its bytes
    /// end. That needs a path: one that this task reserved before, or a name known from the task. Otherwise
    /// `claim_part` does it with the name in the response. An outcome is returned if the run ends here, because the
    /// file exists already.
    async fn find_begun(&self) -> Result<Option<Outcome>, Failure> {
        if self.disk.is_claimed() {
            return Ok(None);
        }
        match self.disk.destination.find_begun(self.base_facts().total).await? {
            None => {}
            Some(Claimed::New(part)) => drop(self.disk.adopt(part)),
            Some(Claimed::Begun(part, begun)) => self.adopt_begun(part, begun).await?,
            Some(Claimed::Exists(existing)) => return Ok(Some(Outcome::Skipped { existing })),
        }
        Ok(None)
    }

    /// Continues `part` with the ranges that its journal records.
    async fn adopt_begun(&self, part: PartFile, begun: part_file::Begun) -> Result<(), Failure> {
        if begun.done.is_empty() {
            part.start_over()?;
            self.disk.adopt(part);
            return Ok(());
        }
        let Origin {
            total_bytes: total,
            etag,
            last_modified,
            source: _,
            lent_bytes: _,
        } = begun.origin.clone();
        {
            let mut mirrors = self.mirrors.borrow_mut();
            let base = mirrors.base();
            mirrors.get_mut(base).facts = Facts {
                total,
                etag,
                last_modified,
            };
        }
        if self.disk.destination.target.adopt && self.source.checksum.is_none() {
            let last = begun.done.iter().last();
            self.disk
                .unconfirmed
                .set(last.map(|last| ByteRange::new(last.end - last.len().min(SAMPLE_BYTES), last.end)));
        }
        *self.plan.borrow_mut() = Plan::new(total, begun.done.clone(), self.connections.min_split_bytes);
        let part = self.disk.adopt(part);
        // The recorded ranges are synced before they are relied on, and the journal is rewritten for this boot of the
        // machine and for the present URL of the file.
        let origin = Origin {
            source: self.disk.destination.source_id.clone(),
            ..begun.origin
        };
        blocking("taking up a part file", move || {
            part.sync()?;
            part.rewrite_journal(&origin, &begun.done, &RangeSet::new())
        })
        .await
    }

    /// Sends the first request and checks its response.
    async fn ask_first(&self) -> Result<FirstResponse, Failure> {
        let (home, current, known) = {
            let mirrors = self.mirrors.borrow();
            let mirror = mirrors.get(mirrors.base());
            (mirror.home.clone(), mirror.current.clone(), mirror.facts.clone())
        };
        let is_ranged = self.fetcher.is_repeatable() && !self.server.ignores_ranges.get();
        if !is_ranged && self.plan.borrow().done_bytes() > 0 {
            // The response is the whole file, so existing bytes are useless.
            self.start_over()?;
        }
        let there = self.plan.borrow().done().contiguous_end(0);
        let if_range = known.if_range().filter(|_| there > 0);
        // Without a validator for the server to check, compare some bytes to see whether the file is still the same.
        let overlap = if if_range.is_some() { 0 } else { there.min(SAMPLE_BYTES) };
        let wish = is_ranged.then_some(RangeWish {
            start: there - overlap,
            end: None,
            if_range,
        });
        let Fetched { response, url } = match self.fetch_first(&home, &current, wish.as_ref()).await {
            Err(failure) if failure.kind.is_link_refused() && home != current => {
                self.fetcher.fetch(&home, &home, wish.as_ref()).await?
            }
            fetched => fetched?,
        };
        self.flow.delay.set(response.delay.min(Duration::from_secs(10)));
        let answer = |verdict, response, url| {
            Ok(FirstResponse::Answer(Box::new(Answer {
                response,
                url,
                verdict,
                overlap,
            })))
        };
        match judge(wish.as_ref(), &known, &response.head, now()) {
            Ok(Verdict::PastEnd { total })
                if overlap > 0 || there == 0 || total.is_some_and(|total| total != there) =>
            {
                if there > 0 {
                    self.notice("the file is shorter at the server than what is there of it: starting over".to_owned())
                        .await;
                    self.start_over()?;
                }
                self.ask_whole(&home).await
            }
            Ok(Verdict::PastEnd { .. }) => {
                self.plan.borrow_mut().settle(there);
                Ok(FirstResponse::Opening(if self.plan.borrow().is_complete() {
                    Opening::Complete
                } else {
                    Opening::Changed("it is shorter than before".to_owned())
                }))
            }
            Ok(Verdict::Whole { length }) if there > 0 => self.begin_anew(response, url, length),
            Ok(verdict) => answer(verdict, response, url),
            Err(Unusable::IgnoresRanges) => {
                self.notice("the server does not resume: starting over".to_owned())
                    .await;
                let length = verdict_length(&response)?;
                self.begin_anew(response, url, length)
            }
            Err(Unusable::Changed(why)) if response.head.status == 200 => {
                self.check_promise(&response, None)?;
                self.notice(format!("the file changed at the server ({why}): starting over"))
                    .await;
                let length = verdict_length(&response)?;
                self.begin_anew(response, url, length)
            }
            Err(Unusable::Changed(why)) => Ok(FirstResponse::Opening(Opening::Changed(why))),
            Err(Unusable::Failed(failure))
                if matches!(failure.kind, FailureKind::RangeMismatch | FailureKind::Encoding) && wish.is_some() =>
            {
                // Without reliable ranges, the file can still be fetched as a whole.
                self.server.ignores_ranges.set(true);
                response.body.drain().await;
                self.start_over()?;
                self.ask_whole(&home).await
            }
            Err(Unusable::Failed(failure)) => Err(failure),
        }
    }

    /// Sends the first request. If several segments were configured, their connections are opened meanwhile: that saves
    /// a round trip and does not use up a single-use URL.
    async fn fetch_first(&self, home: &SafeUrl, url: &SafeUrl, wish: Option<&RangeWish>) -> Result<Fetched, Failure> {
        // A larger minimum segment means fewer connections; the file may be a single segment.
        let wants_few_connections = self.connections.min_split_bytes > USUAL_MIN_SPLIT;
        let others = if self.source.urls.len() == 1 && wish.is_some() && !wants_few_connections {
            self.parts() - 1
        } else {
            0
        };
        let fetching = pin!(self.fetcher.fetch(home, url, wish));
        let preparing = pin!(self.fetcher.prepare(home, url, others.min(self.ceiling() - 1)));
        match select(fetching, preparing).await {
            Either::Left((fetched, _)) => fetched,
            Either::Right(((), fetching)) => fetching.await,
        }
    }

    /// Requests the whole file, without a range.
    async fn ask_whole(&self, home: &SafeUrl) -> Result<FirstResponse, Failure> {
        let Fetched { response, url } = self.fetcher.fetch(home, home, None).await?;
        match judge(None, &Facts::default(), &response.head, now()) {
            Ok(verdict) => Ok(FirstResponse::Answer(Box::new(Answer {
                response,
                url,
                verdict,
                overlap: 0,
            }))),
            Err(Unusable::Failed(failure)) => Err(failure),
            Err(Unusable::Changed(_) | Unusable::IgnoresRanges) => {
                unreachable!("nothing is known that a whole file could contradict")
            }
        }
    }

    /// Continues with a new whole body instead of the existing bytes.
    fn begin_anew(&self, response: Response, url: SafeUrl, length: Option<u64>) -> Result<FirstResponse, Failure> {
        self.start_over()?;
        let verdict = Verdict::Whole { length };
        Ok(FirstResponse::Answer(Box::new(Answer {
            response,
            url,
            verdict,
            overlap: 0,
        })))
    }

    fn check_promise(&self, response: &Response, total: Option<u64>) -> Result<(), Failure> {
        let name = self.disk.destination.expected_name();
        not_the_file(&self.source, name.as_ref(), &response.head, total).map_or(Ok(()), Err)
    }

    /// Determines the name, part file and lease for a response.
    async fn accept(&self, answer: Answer) -> Result<Opening, Failure> {
        let Answer {
            mut response,
            url,
            verdict,
            overlap,
        } = answer;
        let facts = Facts::of(&response.head, verdict);
        self.check_promise(&response, facts.total)?;
        *self.server.media_type.borrow_mut() = response.head.media_type();
        let expected = self.disk.destination.expected_name();
        let name = self
            .disk
            .destination
            .target
            .name
            .clone()
            .unwrap_or_else(|| name::of_response(&response.head, &self.source.urls[0], &url));
        let decoder = decoder(&response, expected.as_ref().unwrap_or(&name))?;
        let total = if decoder.is_some() {
            None
        } else {
            facts.total.or(raw_length(&response)?)
        };
        let base = {
            let mut mirrors = self.mirrors.borrow_mut();
            let base = mirrors.base();
            mirrors.set_base(base);
            let mirror = mirrors.get_mut(base);
            mirror.current = url;
            mirror.facts = Facts { total, ..facts };
            base
        };
        if !self.disk.is_claimed() {
            let wanted = self.source.checksum.as_ref();
            if let Some(outcome) = self.disk.destination.find_finished(&name, total, wanted).await? {
                return Ok(Opening::Outcome(outcome));
            }
            if let Some(opening) = self.claim_part(&name).await? {
                return Ok(opening);
            }
        }
        let done = self.plan.borrow().done();
        *self.plan.borrow_mut() = Plan::new(total, done, self.connections.min_split_bytes);
        let is_splittable = self.is_splittable(&response, verdict, decoder.is_some());
        self.prepare_disk(total, is_splittable)?;
        let start = self.plan.borrow().done().contiguous_end(0);
        if overlap > 0 {
            let range = ByteRange::new(start - overlap, start);
            if !is_same_as_disk(&self.disk.part(), &mut response.body, range, self.stall()).await? {
                return Ok(Opening::Changed("its bytes are other ones".to_owned()));
            }
            if self.disk.unconfirmed.get().is_some_and(|last| last.end == range.end) {
                self.disk.unconfirmed.set(None);
            }
        }
        self.server.is_whole.set(matches!(verdict, Verdict::Whole { .. }));
        let worker = self.active.new_worker();
        let parts = if is_splittable {
            self.connections.segments.max(1)
        } else {
            1
        };
        self.plan
            .borrow_mut()
            .take_from(worker, start, parts, self.flow.pace.get());
        Ok(Opening::Begun(Box::new(Begun {
            worker,
            mirror: base,
            body: response.body,
            decoder,
            is_splittable,
        })))
    }

    /// Claims the part file under `name`. Returns an `Opening` if the present response cannot be continued with.
    async fn claim_part(&self, name: &FileName) -> Result<Option<Opening>, Failure> {
        match self.disk.destination.claim(name, self.base_facts().total).await? {
            Claimed::New(part) => {
                self.disk.adopt(part);
                Ok(None)
            }
            Claimed::Begun(part, begun) => {
                let facts = self.base_facts();
                let is_same = begun.origin.total_bytes == facts.total && !begun.done.is_empty();
                self.adopt_begun(part, begun).await?;
                // A request from the end of the existing bytes shows whether they are still valid.
                if is_same {
                    Ok(Some(Opening::Again))
                } else {
                    self.start_over_with(facts)
                }
            }
            Claimed::Exists(existing) => Ok(Some(Opening::Outcome(Outcome::Skipped { existing }))),
        }
    }

    fn start_over_with(&self, facts: Facts) -> Result<Option<Opening>, Failure> {
        self.start_over()?;
        let mut mirrors = self.mirrors.borrow_mut();
        let base = mirrors.base();
        mirrors.get_mut(base).facts = facts;
        Ok(None)
    }

    /// Whether other connections may fetch ranges beside this response.
    fn is_splittable(&self, response: &Response, verdict: Verdict, is_decoded: bool) -> bool {
        let sends_parts = match verdict {
            Verdict::Part { total, .. } => total.is_some(),
            Verdict::Whole { length } => {
                length.is_some()
                    && response
                        .head
                        .text("accept-ranges")
                        .is_some_and(|unit| unit.eq_ignore_ascii_case("bytes"))
            }
            Verdict::PastEnd { .. } => false,
        };
        sends_parts && !is_decoded && self.fetcher.is_repeatable() && !self.server.ignores_ranges.get()
    }

    /// Checks and reserves disk space, and starts the journal if a later run could resume.
    fn prepare_disk(&self, total: Option<u64>, is_splittable: bool) -> Result<(), Failure> {
        let part = self.disk.part();
        if let Some(total) = total {
            part.check_space(total)?;
            if total >= SMALL_BYTES && self.plan.borrow().done_bytes() == 0 {
                self.disk.start_reserving(total);
            }
        }
        let is_worth = !self.disk.destination.target.adopt || total.is_none_or(|total| total >= SMALL_BYTES);
        if is_splittable && is_worth {
            let Facts {
                total,
                etag,
                last_modified,
            } = self.base_facts();
            let source = self.disk.destination.source_id.clone();
            part.begin_journal(&Origin {
                source,
                total_bytes: total,
                etag,
                last_modified,
                lent_bytes: None,
            })?;
        }
        Ok(())
    }
}

/// The size of a whole file, for a response with that verdict.
fn verdict_length(response: &Response) -> Result<Option<u64>, Failure> {
    match judge(None, &Facts::default(), &response.head, now()) {
        Ok(Verdict::Whole { length }) => Ok(length),
        Ok(_) => Ok(None),
        Err(Unusable::Failed(failure)) => Err(failure),
        Err(Unusable::Changed(_) | Unusable::IgnoresRanges) => Ok(None),
    }
}

/// A decoder if the body is encoded, unless the name shows that the encoding is the file itself: servers label
/// `.tar.gz` files so, and browsers do not decode those.
fn decoder(response: &Response, name: &FileName) -> Result<Option<Decoder>, Failure> {
    let Some(coding) = verdict::encoding(&response.head) else {
        return Ok(None);
    };
    if is_compressed_itself(&coding, name) {
        Ok(None)
    } else {
        Decoder::new(&coding).map(Some)
    }
}

fn is_compressed_itself(coding: &str, name: &FileName) -> bool {
    let lower = name.as_str().to_ascii_lowercase();
    matches!(coding, "gzip" | "x-gzip") && [".gz", ".tgz", ".svgz"].iter().any(|ending| lower.ends_with(ending))
}

/// The size of an encoded body that is saved as it is.
fn raw_length(response: &Response) -> Result<Option<u64>, Failure> {
    if response.head.get("transfer-encoding").is_some() {
        Ok(None)
    } else {
        response.head.content_length()
    }
}
