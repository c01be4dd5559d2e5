//! The pattern followed along all of its ways at once, one byte after the other. It knows every kind of pattern and
//! finds the groups of a match; it is slow, and stops at any step.

use regex_automata::{
    nfa::thompson::{NFA, State},
    util::primitives::StateID,
};

use crate::{TextError, work::Work};

/// Stands for a place that a group does not have.
pub(super) const NOWHERE: u32 = u32::MAX;

/// How many places of groups are copied in the time of a step.
const SLOTS_PER_STEP: usize = 32;

/// What following a pattern needs; it is used again for each match of a text.
#[derive(Debug)]
pub(super) struct Threads {
    current: Active,
    next: Active,
    stack: Vec<Frame>,
    scratch: Vec<u32>,
    /// Where the groups of the match begin and end.
    pub(super) found: Vec<u32>,
}

/// The states that are active at a place of the text, most wanted first, and what each found on its way there.
#[derive(Debug)]
struct Active {
    states: Vec<StateID>,
    /// For each state where it may be in `states`.
    places: Vec<u32>,
    width: usize,
    slots: Vec<u32>,
}

#[derive(Debug)]
enum Frame {
    Explore(StateID),
    Restore { slot: usize, at: u32 },
}

/// The part of a text that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether a match has to begin where the part does.
    pub(super) is_anchored: bool,
}

impl Active {
    fn new(states: usize, width: usize) -> Self {
        Self {
            states: Vec::with_capacity(states),
            places: vec![0; states],
            width,
            slots: vec![NOWHERE; states * width],
        }
    }

    /// Whether the state was not yet active.
    fn insert(&mut self, state: StateID) -> bool {
        let place = self.places[state.as_usize()] as usize;
        if self.states.get(place) == Some(&state) {
            return false;
        }
        self.places[state.as_usize()] = number(self.states.len());
        self.states.push(state);
        true
    }

    fn slots(&self, state: StateID) -> &[u32] {
        &self.slots[state.as_usize() * self.width..][..self.width]
    }

    fn slots_mut(&mut self, state: StateID) -> &mut [u32] {
        &mut self.slots[state.as_usize() * self.width..][..self.width]
    }
}

/// Texts are shorter than `MAX_INPUT_BYTES`, patterns smaller still.
pub(super) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NOWHERE)
}

impl Threads {
    pub(super) fn new(nfa: &NFA) -> Self {
        let (states, width) = (nfa.states().len(), nfa.group_info().slot_len());
        Self {
            current: Active::new(states, width),
            next: Active::new(states, width),
            stack: Vec::new(),
            scratch: vec![NOWHERE; width],
            found: vec![NOWHERE; width],
        }
    }

    /// Finds the first match within a part of `text`; its groups are in `found` then.
    pub(super) fn find(&mut self, nfa: &NFA, text: &[u8], part: Part, work: &mut Work<'_>) -> Result<bool, TextError> {
        let is_anchored = part.is_anchored || nfa.is_always_start_anchored();
        let mut is_found = false;
        self.current.states.clear();
        self.next.states.clear();
        for at in part.start..=part.end {
            let may_begin = !is_found && (!is_anchored || at == part.start);
            if self.current.states.is_empty() && !may_begin {
                break;
            }
            if may_begin {
                self.scratch.fill(NOWHERE);
                follow(
                    nfa,
                    (text, at),
                    nfa.start_anchored(),
                    (&mut self.current, &mut self.scratch, &mut self.stack),
                );
            }
            work.take((1 + self.current.states.len()) * (1 + self.scratch.len() / SLOTS_PER_STEP))?;
            is_found |= self.step(nfa, text, at, part.end);
            std::mem::swap(&mut self.current, &mut self.next);
            self.next.states.clear();
        }
        Ok(is_found)
    }

    /// Goes from all active states over the byte at `at`. Whether a match ends before it; less wanted ways end then.
    fn step(&mut self, nfa: &NFA, text: &[u8], at: usize, end: usize) -> bool {
        for index in 0..self.current.states.len() {
            let state = self.current.states[index];
            let target = match nfa.state(state) {
                State::Match { .. } => {
                    self.found.copy_from_slice(self.current.slots(state));
                    return true;
                }
                _ if at >= end => None,
                State::ByteRange { trans } => trans.matches(text, at).then_some(trans.next),
                State::Sparse(transitions) => transitions.matches(text, at),
                State::Dense(transitions) => transitions.matches(text, at),
                State::Fail
                | State::Look { .. }
                | State::Union { .. }
                | State::BinaryUnion { .. }
                | State::Capture { .. } => None,
            };
            if let Some(target) = target {
                self.scratch.copy_from_slice(self.current.slots(state));
                let into = (&mut self.next, self.scratch.as_mut_slice(), &mut self.stack);
                follow(nfa, (text, at + 1), target, into);
            }
        }
        false
    }
}

/// Makes `state` active at a place of the text, and all that can be reached from there without a byte.
fn follow(
    nfa: &NFA,
    (text, at): (&[u8], usize),
    state: StateID,
    (active, slots, stack): (&mut Active, &mut [u32], &mut Vec<Frame>),
) {
    stack.push(Frame::Explore(state));
    while let Some(frame) = stack.pop() {
        match frame {
            Frame::Restore { slot, at } => slots[slot] = at,
            Frame::Explore(state) if active.insert(state) => match nfa.state(state) {
                State::Look { look, next } => {
                    if nfa.look_matcher().matches(*look, text, at) {
                        stack.push(Frame::Explore(*next));
                    }
                }
                State::Union { alternates } => stack.extend(alternates.iter().rev().map(|to| Frame::Explore(*to))),
                State::BinaryUnion { alt1, alt2 } => {
                    stack.extend([Frame::Explore(*alt2), Frame::Explore(*alt1)]);
                }
                State::Capture { next, slot, .. } => {
                    let slot = slot.as_usize();
                    stack.push(Frame::Restore { slot, at: slots[slot] });
                    slots[slot] = number(at);
                    stack.push(Frame::Explore(*next));
                }
                State::Fail | State::Match { .. } | State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    active.slots_mut(state).copy_from_slice(slots);
                }
            },
            Frame::Explore(_) => {}
        }
    }
}
