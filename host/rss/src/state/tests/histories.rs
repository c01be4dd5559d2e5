//! Random histories: feeds that change, engines that fail, users who delete, and processes that end at any moment.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const SOURCES: [SourceId; 3] = [A, B, SourceId(Uuid::from_u128(3))];

#[derive(Debug, Clone)]
enum Step {
    /// A feed publishes these of the contents, with identifiers of a generation, and is fetched.
    Round(usize, BTreeSet<u8>, u8, Crash),
    Fail(usize),
    NotModified(usize),
    Tick(u16),
    /// The engine answers what was asked: how, each in turn.
    Answer(Vec<bool>),
    DeleteTask(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let contents = proptest::collection::btree_set(0_u8..12, 0..8);
    let crash = prop_oneof![
        4 => Just(Crash::Never),
        1 => Just(Crash::BeforeRows),
        2 => (0_usize..3).prop_map(Crash::AfterTasks),
    ];
    prop_oneof![
        6 => (0..SOURCES.len(), contents, 0_u8..3, crash).prop_map(|(s, c, g, k)| Step::Round(s, c, g, k)),
        1 => (0..SOURCES.len()).prop_map(Step::Fail),
        1 => (0..SOURCES.len()).prop_map(Step::NotModified),
        1 => (0_u16..5000).prop_map(Step::Tick),
        4 => proptest::collection::vec(any::<bool>(), 4).prop_map(Step::Answer),
        1 => (0_usize..8).prop_map(Step::DeleteTask),
        1 => Just(Step::Restart),
    ]
}

/// Content 0 to 5 are episodes, the others are films.
fn content(number: u8, generation: u8) -> Entry {
    let title = if number < 6 {
        format!("Show S01E0{number} 720p")
    } else {
        format!("Film {number}")
    };
    entry(&format!("{number}-{generation}"), &title)
}

/// The content of a task.
fn of(dispatch: &Dispatch) -> String {
    dispatch.url.expose().to_owned()
}

struct History {
    world: World,
    /// What was in each feed at its first round that was saved.
    seeded: BTreeMap<SourceId, BTreeSet<u8>>,
    published: BTreeSet<u8>,
}

impl History {
    fn new() -> Self {
        let mut world = World::new();
        for (number, id) in SOURCES.iter().enumerate() {
            // Two of them share a host.
            let settings = settings(&format!("https://host{}.example/{number}", number % 2));
            world.command(Command::Add(*id, Box::new(settings)));
        }
        Self {
            world,
            seeded: BTreeMap::new(),
            published: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let world = &mut self.world;
        match step {
            Step::Round(source, contents, generation, crash) => {
                let id = SOURCES[source];
                let entries = contents
                    .iter()
                    .rev()
                    .map(|number| content(*number, generation))
                    .collect();
                world.end(
                    id,
                    Fetched::Feed(Box::new(feed(entries)), Validators::default(), None),
                    crash,
                );
                if !matches!(crash, Crash::BeforeRows) {
                    self.seeded.entry(id).or_insert_with(|| contents.clone());
                    self.published.extend(contents);
                }
            }
            Step::Fail(source) => world.end(SOURCES[source], Fetched::Failed("down".to_owned(), None), Crash::Never),
            Step::NotModified(source) if self.seeded.contains_key(&SOURCES[source]) => {
                world.end(SOURCES[source], Fetched::NotModified, Crash::Never);
            }
            Step::NotModified(_) => {}
            Step::Tick(minutes) => world.tick(Duration::from_mins(u64::from(minutes))),
            Step::Answer(how) => {
                for succeeds in how {
                    let Some(dispatch) = world.asked.pop() else { break };
                    let task = dispatch.task;
                    let created = if succeeds {
                        world.engine_creates(dispatch)
                    } else {
                        Created::Failed("later".to_owned())
                    };
                    world.input(Input::Created(task, created), Crash::Never).unwrap();
                }
            }
            Step::DeleteTask(which) => {
                let task = world.tasks.keys().nth(which).copied();
                if let Some(task) = task {
                    world.delete_task(task, Crash::Never);
                }
            }
            Step::Restart => world.restart(),
        }
    }

    fn check(&self) {
        let mut contents = BTreeSet::new();
        for (dispatch, _) in self.world.tasks.values() {
            assert!(contents.insert(of(dispatch)), "{} was downloaded twice", of(dispatch));
            let seeded = self.seeded.get(&dispatch.source);
            let was_there = seeded.is_some_and(|seeded| seeded.iter().any(|n| of_content(*n) == of(dispatch)));
            assert!(!was_there, "{} was there at the first round", of(dispatch));
        }
        self.check_rows();
    }

    /// The saved rows, loaded again, give an equal state.
    fn check_rows(&self) {
        let state = &self.world.state;
        let loaded = State::load(self.world.saved.loaded(), 7, Timestamp::UNIX_EPOCH, &mut Vec::new());
        assert_eq!(loaded.sources, state.sources);
        assert_eq!(loaded.items, state.items);
        assert_eq!(loaded.index, state.index);
        assert_eq!(loaded.pruned, state.pruned);
        assert_eq!(loaded.polling.due, state.polling.due);
    }

    /// When everything works again for long enough, everything that is new to one of its feeds was downloaded.
    fn settle(&mut self) {
        let all: BTreeSet<u8> = (0..12).collect();
        for _ in 0..3 {
            for source in 0..SOURCES.len() {
                self.step(Step::Round(source, all.clone(), 0, Crash::Never));
                self.world.confirm_all();
                // Longer than an item waits after its task could not be created.
                self.world.tick(Duration::from_hours(25));
            }
        }
        self.check();
        for number in all {
            let is_old = SOURCES.iter().all(|id| self.seeded[id].contains(&number));
            let is_done = self
                .world
                .tasks
                .values()
                .any(|(dispatch, _)| of(dispatch) == of_content(number));
            assert!(
                is_done != is_old,
                "content {number}: downloaded {is_done}, old everywhere {is_old}"
            );
        }
    }
}

fn of_content(number: u8) -> String {
    content(number, 0).target().unwrap().expose().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_downloaded_exactly_once(steps in proptest::collection::vec(step(), 0..30)) {
        let mut history = History::new();
        for step in steps {
            history.step(step);
            history.check();
        }
        history.settle();
    }
}
