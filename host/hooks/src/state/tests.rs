//! Tests of the state machine: single cases, then random histories against the invariants.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::EventKind;

const SECRET: &str = "canary-secret";

fn endpoints(enabled: &[bool]) -> Endpoints {
    let all: Vec<_> = enabled
        .iter()
        .enumerate()
        .map(|(number, is_enabled)| {
            json!({
                "id": format!("e{number}"), "url": format!("https://host{number}.example/"), "enabled": is_enabled,
                "events": ["task.completed"], "signSecret": SECRET,
            })
        })
        .collect();
    Endpoints::check(&json!(all).to_string(), &Endpoints::default()).unwrap()
}

struct World {
    state: Deliveries,
    now: Now,
    /// Attempts that have not ended.
    alive: Vec<Attempt>,
    /// When each delivery may be attempted next, and how often it was.
    attempts: HashMap<DeliveryId, (usize, Duration)>,
    /// Every delivery's newest entry.
    entries: HashMap<String, WebhookDeliveryDto>,
    /// The deliveries of `entries` that have not ended.
    open: usize,
    /// The last delivery of each endpoint whose first attempt has begun.
    begun: HashMap<String, DeliveryId>,
}

impl World {
    fn new(count: usize) -> Self {
        Self {
            state: Deliveries::new(endpoints(&vec![true; count]), 7),
            now: Now {
                unix_ms: 1_700_000_000_000,
                elapsed: Duration::ZERO,
            },
            alive: Vec::new(),
            attempts: HashMap::new(),
            entries: HashMap::new(),
            open: 0,
            begun: HashMap::new(),
        }
    }

    fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.state.apply(self.now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Send(attempt) => self.begin(attempt),
                Effect::Changed(entry) => self.note(*entry),
                Effect::Cleared => assert!(self.state.log.is_empty()),
            }
        }
        self.check();
    }

    fn note(&mut self, entry: WebhookDeliveryDto) {
        assert!(!format!("{entry:?}").contains(SECRET));
        self.open += usize::from(!is_over(entry.status));
        if let Some(before) = self.entries.insert(entry.delivery_id.clone(), entry) {
            assert!(!is_over(before.status), "a delivery ends twice: {before:?}");
            self.open -= 1;
        }
    }

    fn begin(&mut self, attempt: Attempt) {
        let entry = &self.entries[&attempt.delivery.0.to_string()];
        assert!(!is_over(entry.status), "{entry:?}");
        let (count, due) = self.attempts.entry(attempt.delivery).or_default();
        assert!(*due <= self.now.elapsed, "a retry is early");
        *count += 1;
        assert!(*count <= 1 + RETRY_AFTER.len());
        if *count == 1 {
            let before = self.begun.insert(attempt.endpoint.id.clone(), attempt.delivery);
            assert!(before < Some(attempt.delivery), "deliveries are sent out of order");
        }
        self.alive.push(attempt);
    }

    fn happen(&mut self) {
        let occurrence = Occurrence::example(EventKind::TaskCompleted, self.now.unix_ms);
        self.input(Input::Happened(Box::new(occurrence)));
    }

    fn end(&mut self, which: usize, outcome: Outcome) {
        if self.alive.is_empty() {
            return;
        }
        let attempt = self.alive.remove(which % self.alive.len());
        let (count, due) = self.attempts.get_mut(&attempt.delivery).unwrap();
        if let Some(pause) = RETRY_AFTER.get(*count - 1) {
            *due = self.now.elapsed + *pause;
        }
        self.input(Input::Attempted(attempt.delivery, outcome));
    }

    fn wait(&mut self, seconds: u64) {
        self.now.elapsed += Duration::from_secs(seconds);
        self.input(Input::Clock);
    }

    fn check(&self) {
        assert!(self.alive.len() <= MAX_IN_FLIGHT);
        assert_eq!(self.alive.len(), self.state.in_flight.len());
        let busy: BTreeSet<_> = self.alive.iter().map(|attempt| attempt.endpoint.id.as_str()).collect();
        assert_eq!(busy.len(), self.alive.len(), "two deliveries to one endpoint at once");
        assert!(self.state.waiting.len() <= MAX_WAITING);
        assert!(self.state.log.len() <= MAX_LOGGED);
        for (_, delivery) in self.state.heads() {
            let is_idle = self.alive.len() < MAX_IN_FLIGHT && delivery.due <= self.now.elapsed;
            assert!(!is_idle, "a delivery waits although there is a place");
        }
        let open = self.state.waiting.len() + self.state.in_flight.len();
        assert_eq!(open, self.open, "a delivery was forgotten");
    }

    fn statuses(&self) -> Vec<Status> {
        self.state.log().map(|entry| entry.status).collect()
    }
}

fn is_over(status: Status) -> bool {
    matches!(status, Status::Delivered | Status::Failed | Status::Dropped)
}

fn answered(status: u16) -> Outcome {
    Outcome::Answered {
        status,
        body: format!("you said {SECRET}"),
    }
}

#[test]
fn only_what_may_help_is_tried_again_and_only_three_times() {
    for (outcome, attempts) in [
        (answered(500), 4),
        (answered(503), 4),
        (answered(408), 4),
        (answered(429), 4),
        (Outcome::NoAnswer("timed out".to_owned()), 4),
        (answered(404), 1),
        (answered(410), 1),
        (answered(302), 1),
        (Outcome::Refused("not allowed".to_owned()), 1),
    ] {
        let mut world = World::new(1);
        world.happen();
        for _ in 0..10 {
            world.end(0, outcome.clone());
            world.wait(8);
        }
        let entry = world.state.log().next().unwrap().clone();
        assert_eq!(
            (entry.status, entry.attempts),
            (Status::Failed, attempts),
            "{outcome:?}"
        );
        assert!(!entry.error.is_empty() && entry.ended_at_ms > 0, "{entry:?}");
    }
}

#[test]
fn a_retry_waits_longer_each_time_and_holds_up_only_its_own_endpoint() {
    let mut world = World::new(2);
    world.happen();
    world.happen();
    for pause in [2, 4, 8] {
        let first = world
            .alive
            .iter()
            .position(|attempt| attempt.endpoint.id == "e0")
            .unwrap();
        world.end(first, answered(500));
        world.wait(pause - 1);
        assert!(world.alive.iter().all(|attempt| attempt.endpoint.id == "e1"));
        world.wait(1);
    }
    let first = world
        .alive
        .iter()
        .position(|attempt| attempt.endpoint.id == "e0")
        .unwrap();
    world.end(first, answered(204));
    for _ in 0..3 {
        world.end(0, answered(200));
    }
    assert_eq!(world.statuses(), [Status::Delivered; 4]);
    let log = world.state.log().map(|entry| entry.attempts).max();
    assert_eq!(log, Some(4));
}

#[test]
fn the_oldest_is_dropped_and_counted_when_too_many_wait() {
    let mut world = World::new(1);
    for _ in 0..MAX_WAITING + 3 {
        world.happen();
    }
    assert_eq!(world.state.dropped(), 2);
    let dropped = world.state.log().filter(|entry| entry.status == Status::Dropped);
    let dropped: Vec<_> = dropped.map(|entry| entry.error.clone()).collect();
    assert_eq!(dropped, vec!["256 deliveries wait already; the oldest is dropped"; 2]);
}

#[test]
fn what_waits_for_a_removed_endpoint_is_dropped() {
    let mut world = World::new(2);
    for _ in 0..3 {
        world.happen();
    }
    world.input(Input::Configured(endpoints(&[true, false])));
    assert_eq!(world.state.waiting.len(), 2);
    let second = world
        .alive
        .iter()
        .position(|attempt| attempt.endpoint.id == "e1")
        .unwrap();
    world.end(second, answered(500));
    let entries = world.state.log().filter(|entry| entry.endpoint_id == "e1");
    let statuses: Vec<_> = entries.map(|entry| entry.status).collect();
    assert_eq!(statuses, [Status::Dropped, Status::Dropped, Status::Failed]);
}

#[test]
fn responses_are_cut_and_show_no_secret() {
    let mut world = World::new(1);
    world.happen();
    world.end(
        0,
        Outcome::Answered {
            status: 400,
            body: format!("{SECRET} {}", "x".repeat(4000)),
        },
    );
    let entry = world.state.log().next().unwrap();
    assert_eq!(entry.response_body.chars().count(), 2000);
    assert!(entry.response_body.starts_with("*** xxx"));
    assert_eq!(entry.error, "HTTP 400");
    assert!(entry.request_body.contains("\"event\":\"task.completed\""));
}

#[test]
fn ids_differ_also_between_starts() {
    let id = |seed, serial| Deliveries::new(Endpoints::default(), seed).id_of(serial);
    let ids: BTreeSet<_> = [(1, 1), (1, 2), (2, 1), (2, 2)]
        .map(|(seed, serial)| id(seed, serial))
        .into();
    assert_eq!(ids.len(), 4);
}

#[derive(Debug, Clone)]
enum Step {
    Happen,
    Burst(u16),
    End(usize, u8),
    Wait(u8),
    Configure(Vec<bool>),
    Clear,
    Late,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Happen),
        1 => (0_u16..200).prop_map(Step::Burst),
        8 => (any::<usize>(), 0_u8..5).prop_map(|(which, how)| Step::End(which, how)),
        3 => (0_u8..10).prop_map(Step::Wait),
        1 => prop::collection::vec(any::<bool>(), 0..7).prop_map(Step::Configure),
        1 => Just(Step::Clear),
        1 => Just(Step::Late),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_history_breaks_an_invariant(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = World::new(6);
        for step in steps {
            match step {
                Step::Happen => world.happen(),
                Step::Burst(count) => (0..count).for_each(|_| world.happen()),
                Step::End(which, how) => world.end(which, match how {
                    0 | 1 => answered(200),
                    2 => answered(500),
                    3 => Outcome::NoAnswer("reset".to_owned()),
                    _ => answered(404),
                }),
                Step::Wait(seconds) => world.wait(seconds.into()),
                Step::Configure(enabled) => world.input(Input::Configured(endpoints(&enabled))),
                Step::Clear => world.input(Input::Clear),
                // Of a delivery that is not being sent.
                Step::Late => world.input(Input::Attempted(DeliveryId(Uuid::nil()), answered(200))),
            }
        }
        // When every endpoint answers, everything ends.
        world.input(Input::Configured(endpoints(&[true; 6])));
        for _ in 0..10_000 {
            if world.alive.is_empty() {
                let Some(at) = world.state.wake_at() else { break };
                world.now.elapsed = world.now.elapsed.max(at);
                world.input(Input::Clock);
            }
            world.end(0, answered(200));
        }
        prop_assert!(world.state.waiting.is_empty() && world.alive.is_empty());
        prop_assert!(world.entries.values().all(|entry| is_over(entry.status)));
    }
}
