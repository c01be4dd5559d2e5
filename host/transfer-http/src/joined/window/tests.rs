use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MEMORY: usize = 64;
const LIMIT: usize = 3;
/// The most bytes of a step.
const STEP: usize = 16;

/// A file of segments, fetched by workers that a test drives.
struct World {
    window: Window,
    segments: Vec<Vec<u8>>,
    /// The bytes received of each segment being fetched.
    brought: BTreeMap<usize, usize>,
    file: Vec<u8>,
    /// Where the head begins in the file.
    boundary: usize,
}

impl World {
    fn new(lengths: &[usize]) -> Self {
        let segment = |(index, length): (usize, &usize)| vec![u8::try_from(index % 251).unwrap(); *length];
        let segments: Vec<_> = lengths.iter().enumerate().map(segment).collect();
        Self {
            window: Window::new(0, segments.len(), MEMORY),
            segments,
            brought: BTreeMap::new(),
            file: Vec::new(),
            boundary: 0,
        }
    }

    fn begin(&mut self) {
        while let Some(segment) = self.window.begin(LIMIT) {
            self.restart(segment);
        }
        assert!(self.brought.len() <= LIMIT);
    }

    fn restart(&mut self, segment: usize) {
        self.window.restart(segment);
        if self.window.is_head(segment) {
            self.file.truncate(self.boundary);
        }
        self.brought.insert(segment, 0);
    }

    /// Delivers some bytes of the `n`th segment being fetched; returns whether anything happened.
    fn step(&mut self, n: usize) -> bool {
        let Some((&segment, &brought)) = self.brought.iter().nth(n % self.brought.len().max(1)) else {
            return false;
        };
        let left = self.segments[segment].len() - brought;
        let length = left.min(self.window.room(segment)).min(STEP);
        let bytes = &self.segments[segment][brought..brought + length];
        if self.window.is_head(segment) {
            self.file.extend(bytes);
        } else {
            self.window.keep(segment, bytes);
        }
        assert!(self.window.kept() <= MEMORY);
        if length == left {
            self.brought.remove(&segment);
            self.window.whole(segment);
            while let Some((_, kept)) = self.window.advance() {
                self.boundary = self.file.len();
                self.file.extend(kept);
            }
        } else {
            *self.brought.get_mut(&segment).unwrap() += length;
        }
        length > 0 || left == 0
    }

    fn fail(&mut self, n: usize, lasting: Permanence) {
        let Some(&segment) = self.brought.keys().nth(n % self.brought.len().max(1)) else {
            return;
        };
        if self.window.is_head(segment) {
            self.restart(segment);
        } else {
            self.brought.remove(&segment);
            self.window.park(segment, lasting);
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    Step(usize),
    Fail(usize, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0usize..LIMIT).prop_map(Event::Step),
        1 => (0usize..LIMIT, any::<bool>()).prop_map(|(n, lasting)| Event::Fail(n, lasting)),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_when_the_file_is_the_segments_in_order(
        lengths in prop::collection::vec(0usize..120, 0..30),
        events in prop::collection::vec(event(), 0..300),
    ) {
        let mut world = World::new(&lengths);
        for event in events {
            world.begin();
            match event {
                Event::Step(n) => _ = world.step(n),
                Event::Fail(n, lasting) => world.fail(n, if lasting { Permanence::Yes } else { Permanence::No }),
            }
        }
        // From any state on, the head alone brings the file to its end.
        while !world.window.is_complete() {
            world.begin();
            prop_assert!(world.window.is_head(*world.brought.keys().next().unwrap()));
            prop_assert!(world.step(0));
        }
        prop_assert_eq!(world.file, world.segments.concat());
    }
}

#[test]
fn nothing_is_begun_behind_a_failure_that_stays() {
    let mut window = Window::new(0, 9, MEMORY);
    assert_eq!(
        [window.begin(3), window.begin(3), window.begin(3)],
        [Some(0), Some(1), Some(2)]
    );
    assert_eq!(window.begin(3), None, "three at once");
    window.park(1, Permanence::Yes);
    assert_eq!(window.begin(3), None);
    window.whole(0);
    assert_eq!(window.advance(), Some((0, Vec::new())));
    assert_eq!(window.begin(3), Some(1), "its failure counts now");
    assert_eq!(window.begin(3), Some(3));
}

#[test]
fn small_segments_do_not_pile_up_behind_a_slow_head() {
    let mut window = Window::new(5, 1000, MEMORY);
    assert_eq!(window.begin(2), Some(5));
    while let Some(segment) = window.begin(2) {
        window.whole(segment);
    }
    assert_eq!(window.slots.len(), 2 * AHEAD);
    assert_eq!(window.advance(), None);
}
