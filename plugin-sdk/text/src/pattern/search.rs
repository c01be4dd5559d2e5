//! All matches of a compiled pattern in a text, each step of the way counted: one search may read to the end of the
//! text to learn where a short match ends, and the next one does the same, so the matches together can cost the square of
//! the text. No engine says how far it read, and none can be interrupted; so the bytes are walked here.

use regex_automata::{
    Anchored, Input, MatchKind,
    hybrid::{
        LazyStateID,
        dfa::{self, Cache, DFA},
    },
    nfa::thompson::{self, NFA, WhichCaptures},
};

use super::threads::{NOWHERE, Part, Threads, number};
use crate::{TextError, work::Work};

/// How many bytes are walked before they are counted and the search may end.
const STRIDE: usize = 64;

/// The most memory that one direction of a walk may use for what it has seen of the pattern so far. It does not know
/// more than that of a pattern made to have many states, and then it gives up.
const MAX_CACHE_BYTES: usize = 1024 * 1024;

/// When a walk gives up: as often it has forgotten everything, and learnt a state in fewer bytes than this.
const MIN_CLEARS: usize = 3;
const MIN_BYTES_PER_STATE: usize = 10;

/// The most places of groups that are kept for all states of a pattern.
const MAX_SLOTS: usize = 1024 * 1024;

/// A compiled pattern. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Program {
    nfa: NFA,
    walk: Option<Walk>,
}

/// Both directions of a walk: the first finds where a match ends, the second where it begins.
#[derive(Debug, Clone)]
struct Walk {
    forward: DFA,
    backward: DFA,
}

impl Program {
    pub(super) fn new(pattern: &str, max_bytes: usize) -> Result<Self, TextError> {
        let config = thompson::Config::new().nfa_size_limit(Some(max_bytes));
        let compile = |config| {
            let nfa = thompson::Compiler::new().configure(config).build(pattern);
            nfa.map_err(|error| TextError::invalid("pattern", reason(&error)))
        };
        let nfa = compile(config.clone())?;
        if nfa.states().len().saturating_mul(nfa.group_info().slot_len()) > MAX_SLOTS {
            return Err(TextError::invalid("pattern", "it has too many groups for its size"));
        }
        let reverse = config.reverse(true).which_captures(WhichCaptures::None);
        let walk = compile(reverse).ok().and_then(|reverse| {
            Some(Walk {
                forward: walk(nfa.clone(), MatchKind::LeftmostFirst)?,
                backward: walk(reverse, MatchKind::All)?,
            })
        });
        Ok(Self { nfa, walk })
    }

    /// How many states it has.
    pub(super) fn states(&self) -> usize {
        self.nfa.states().len()
    }

    /// How many groups it has; the whole match is one.
    pub(super) fn groups(&self) -> usize {
        self.nfa.group_info().slot_len() / 2
    }
}

/// The words of an error of the compiler, whose own say only that it is one of the syntax.
fn reason(error: &thompson::BuildError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// `None` if the pattern is not one for this.
fn walk(nfa: NFA, kind: MatchKind) -> Option<DFA> {
    let config = dfa::Config::new()
        .match_kind(kind)
        .unicode_word_boundary(true)
        .cache_capacity(MAX_CACHE_BYTES)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(MIN_CLEARS))
        .minimum_bytes_per_state(Some(MIN_BYTES_PER_STATE));
    dfa::Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// The matches of a pattern in a text, one after the other.
#[derive(Debug)]
pub(super) struct Search<'p, 't> {
    program: &'p Program,
    text: &'t str,
    /// What the walk has seen so far, unless it gave up.
    walked: Option<(&'p Walk, Cache, Cache)>,
    threads: Option<Threads>,
    /// Where the next match may begin.
    at: usize,
    /// Where the last one ended.
    last_end: Option<usize>,
}

/// Why a walk did not answer.
enum NoAnswer {
    /// It cannot follow the pattern over this text.
    Unable,
    /// It saw more of the pattern than it can keep, too fast.
    GivesUp,
    Ended(TextError),
}

impl From<TextError> for NoAnswer {
    fn from(error: TextError) -> Self {
        Self::Ended(error)
    }
}

impl<'p, 't> Search<'p, 't> {
    pub(super) fn new(program: &'p Program, text: &'t str) -> Self {
        let walk = program.walk.as_ref();
        Self {
            program,
            text,
            walked: walk.map(|walk| (walk, walk.forward.create_cache(), walk.backward.create_cache())),
            threads: None,
            at: 0,
            last_end: None,
        }
    }

    /// The groups of the next match.
    pub(super) fn next(&mut self, work: &mut Work<'_>) -> Result<Option<Groups<'t>>, TextError> {
        while self.at <= self.text.len() {
            let Some((start, end, slots)) = self.find(work)? else {
                self.at = self.text.len() + 1;
                break;
            };
            // Nothing is found between the bytes of a character, nor right behind what was found.
            if start == end && (self.last_end == Some(end) || !self.text.is_char_boundary(end)) {
                self.at = end + 1;
                continue;
            }
            self.at = end;
            self.last_end = Some(end);
            return Ok(Some(Groups { text: self.text, slots }));
        }
        Ok(None)
    }

    fn find(&mut self, work: &mut Work<'_>) -> Result<Option<(usize, usize, Vec<u32>)>, TextError> {
        let text = self.text.as_bytes();
        let all = Part {
            start: self.at,
            end: text.len(),
            is_anchored: false,
        };
        let part = match self.walk(work) {
            Ok(None) => return Ok(None),
            Ok(Some((start, end))) if self.program.groups() == 1 => {
                return Ok(Some((start, end, vec![number(start), number(end)])));
            }
            Ok(Some((start, end))) => Part {
                start,
                end,
                is_anchored: true,
            },
            Err(NoAnswer::Unable) => all,
            Err(NoAnswer::GivesUp) => {
                self.walked = None;
                all
            }
            Err(NoAnswer::Ended(error)) => return Err(error),
        };
        let nfa = &self.program.nfa;
        let threads = self.threads.get_or_insert_with(|| Threads::new(nfa));
        let is_found = threads.find(nfa, text, part, work)?;
        Ok(is_found.then(|| {
            let slots = threads.found.clone();
            (slots[0] as usize, slots[1] as usize, slots)
        }))
    }

    /// Where the next match begins and ends.
    fn walk(&mut self, work: &mut Work<'_>) -> Result<Option<(usize, usize)>, NoAnswer> {
        let (walk, ahead, back) = self.walked.as_mut().ok_or(NoAnswer::Unable)?;
        let text = self.text.as_bytes();
        let Some(end) = forward((&walk.forward, ahead), text, self.at, work)? else {
            return Ok(None);
        };
        let start = backward((&walk.backward, back), text, (self.at, end), work)?;
        Ok(Some((start.ok_or(NoAnswer::Unable)?, end)))
    }
}

/// Takes the steps of what a walk has learnt of its pattern since it was `before`: learning a state takes as long as the
/// state is large.
fn learnt(cache: &Cache, before: &mut usize, work: &mut Work<'_>) -> Result<(), TextError> {
    let now = cache.memory_usage();
    let steps = now.abs_diff(std::mem::replace(before, now));
    work.take(steps)
}

/// One byte further, or one past the end of the text.
fn step((dfa, cache): (&DFA, &mut Cache), state: LazyStateID, byte: Option<u8>) -> Result<LazyStateID, NoAnswer> {
    let next = match byte {
        Some(byte) => dfa.next_state(cache, state, byte),
        None => dfa.next_eoi_state(cache, state),
    };
    let next = next.map_err(|_| NoAnswer::GivesUp)?;
    if next.is_quit() {
        return Err(NoAnswer::Unable);
    }
    Ok(next)
}

/// Where the first match at or behind `start` ends.
fn forward(
    (dfa, cache): (&DFA, &mut Cache),
    text: &[u8],
    start: usize,
    work: &mut Work<'_>,
) -> Result<Option<usize>, NoAnswer> {
    let input = Input::new(text).range(start..);
    let mut state = dfa.start_state_forward(cache, &input).map_err(|_| NoAnswer::Unable)?;
    let (mut end, mut known) = (None, cache.memory_usage());
    cache.search_start(start);
    for from in (start..text.len()).step_by(STRIDE) {
        let stride = &text[from..text.len().min(from + STRIDE)];
        work.take(stride.len())?;
        learnt(cache, &mut known, work)?;
        cache.search_update(from);
        for (at, byte) in (from..).zip(stride) {
            state = step((dfa, cache), state, Some(*byte))?;
            // What a state says is about what is before the byte that led to it.
            if state.is_match() {
                end = Some(at);
            } else if state.is_dead() {
                cache.search_finish(at);
                return Ok(end);
            }
        }
    }
    cache.search_finish(text.len());
    state = step((dfa, cache), state, None)?;
    Ok(if state.is_match() { Some(text.len()) } else { end })
}

/// Where the longest match begins that ends at `end`, not before `start`.
fn backward(
    (dfa, cache): (&DFA, &mut Cache),
    text: &[u8],
    (start, end): (usize, usize),
    work: &mut Work<'_>,
) -> Result<Option<usize>, NoAnswer> {
    let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
    let mut state = dfa.start_state_reverse(cache, &input).map_err(|_| NoAnswer::Unable)?;
    let (mut found, mut known) = (None, cache.memory_usage());
    cache.search_start(end);
    for until in (start + 1..=end).rev().step_by(STRIDE) {
        let from = start.max(until.saturating_sub(STRIDE));
        work.take(until - from)?;
        learnt(cache, &mut known, work)?;
        cache.search_update(until);
        for at in (from..until).rev() {
            state = step((dfa, cache), state, Some(text[at]))?;
            if state.is_match() {
                found = Some(at + 1);
            } else if state.is_dead() {
                cache.search_finish(at);
                return Ok(found);
            }
        }
    }
    cache.search_finish(start);
    let before = start.checked_sub(1).map(|before| text[before]);
    state = step((dfa, cache), state, before)?;
    Ok(if state.is_match() { Some(start) } else { found })
}

/// What the groups of a match hold.
#[derive(Debug)]
pub(super) struct Groups<'t> {
    text: &'t str,
    slots: Vec<u32>,
}

impl<'t> Groups<'t> {
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&'t str>> {
        self.slots.chunks_exact(2).map(|pair| self.part(pair))
    }

    pub(super) fn get(&self, group: usize) -> Option<&'t str> {
        self.slots.chunks_exact(2).nth(group).and_then(|pair| self.part(pair))
    }

    fn part(&self, pair: &[u32]) -> Option<&'t str> {
        let is_there = !pair.contains(&NOWHERE);
        is_there
            .then(|| self.text.get(pair[0] as usize..pair[1] as usize))
            .flatten()
    }
}
