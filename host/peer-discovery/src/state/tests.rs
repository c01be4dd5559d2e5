use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::tracker::Retry;

fn url(text: &str) -> SafeUrl {
    SafeUrl::parse(text).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the other answer is a failure")]
fn answer(seconds: u64) -> Result<Answer, TrackerFailure> {
    Ok(Answer {
        interval: Some(Duration::from_secs(seconds)),
        ..Answer::default()
    })
}

fn failure(retry: Retry) -> Result<Answer, TrackerFailure> {
    Err(TrackerFailure {
        message: "down".to_owned(),
        retry,
    })
}

/// What one tracker was told of one torrent.
#[derive(Default)]
struct Told {
    has_started: bool,
    completed: u32,
    last_success: Option<Instant>,
    was_stopped: bool,
}

/// A state, and the invariants of all announces that it begins.
struct World {
    state: State,
    now: Instant,
    running: BTreeMap<Run, (TorrentId, SafeUrl, Event)>,
    told: HashMap<(TorrentId, SafeUrl), Told>,
    started_complete: HashSet<TorrentId>,
    last_start: Option<Instant>,
    ended: Vec<TorrentId>,
}

impl World {
    fn new() -> Self {
        Self {
            state: State::new(7),
            now: Instant::now(),
            running: BTreeMap::new(),
            told: HashMap::new(),
            started_complete: HashSet::new(),
            last_start: None,
            ended: Vec::new(),
        }
    }

    fn apply(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.state.apply(self.now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Announce {
                    run,
                    torrent,
                    url,
                    event,
                    ..
                } => self.began(run, torrent, url, event),
                Effect::Peers(..) => {}
                Effect::Ended(id) => self.ended.push(id),
            }
        }
        assert!(self.running.len() <= MAX_RUNNING);
        if let Some(wake) = self.state.wake_at() {
            assert!(wake > self.now, "the time was passed and is wanted again");
        }
    }

    fn began(&mut self, run: Run, id: TorrentId, url: SafeUrl, event: Event) {
        let host = |url: &SafeUrl| url.as_url().host_str().unwrap().to_owned();
        let of_host = self.running.values().filter(|(_, other, _)| host(other) == host(&url));
        assert!(of_host.count() < MAX_PER_HOST);
        let told = self.told.entry((id, url.clone())).or_default();
        assert!(!told.was_stopped, "something follows `stopped`");
        match event {
            Event::Started => assert!(!told.has_started),
            Event::Completed => {
                assert!(told.has_started && told.completed == 0);
                assert!(!self.started_complete.contains(&id));
            }
            Event::Stopped => {
                assert!(told.has_started);
                told.was_stopped = true;
            }
            Event::None | Event::Paused => {
                assert!(told.has_started);
                let since = self.now - told.last_success.expect("it has started");
                assert!(since >= Duration::from_secs(30), "asked again after {since:?}");
            }
        }
        if event != Event::Stopped {
            assert!(self.last_start.is_none_or(|last| self.now >= last + GAP));
            self.last_start = Some(self.now);
        }
        self.running.insert(run, (id, url, event));
    }

    fn answer(&mut self, run: Run, answer: Result<Answer, TrackerFailure>) {
        let (id, url, event) = self.running.remove(&run).unwrap();
        if let Some(told) = self.told.get_mut(&(id, url)).filter(|_| answer.is_ok()) {
            told.last_success = Some(self.now);
            told.has_started |= event == Event::Started;
            told.completed += u32::from(event == Event::Completed);
        }
        self.apply(Input::Answered(run, answer));
    }

    /// Passes the time up to `end`, and has trackers answer at once.
    fn run_until(&mut self, end: Instant, mut answers: impl FnMut(&SafeUrl, Event) -> Result<Answer, TrackerFailure>) {
        loop {
            if let Some((run, (_, url, event))) = self.running.iter().next() {
                let (run, answered) = (*run, answers(url, *event));
                self.answer(run, answered);
                continue;
            }
            match self.state.wake_at().filter(|wake| *wake <= end) {
                Some(wake) => {
                    self.now = wake;
                    self.apply(Input::Clock);
                }
                None => break,
            }
        }
        self.now = end;
    }

    fn run_for(&mut self, time: Duration, answers: impl FnMut(&SafeUrl, Event) -> Result<Answer, TrackerFailure>) {
        self.run_until(self.now + time, answers);
    }
}

fn trackers(tiers: &[&[&str]]) -> Trackers {
    Trackers {
        tiers: tiers
            .iter()
            .map(|tier| tier.iter().map(|text| url(text)).collect())
            .collect(),
        is_private: false,
        is_complete: false,
    }
}

const ONE: TorrentId = TorrentId(1);

#[test]
fn five_hundred_torrents_do_not_arrive_together() {
    let mut world = World::new();
    for id in 0..500 {
        world.apply(Input::Add(TorrentId(id), trackers(&[&["http://t.test/a"]])));
    }
    let mut at = Vec::new();
    let start = world.now;
    while at.len() < 500 {
        if let Some(run) = world.running.keys().next().copied() {
            at.push(world.now - start);
            world.answer(run, answer(1800));
        } else {
            world.now = world.state.wake_at().unwrap();
            world.apply(Input::Clock);
        }
    }
    assert!(*at.last().unwrap() >= GAP * 499);
    // And they do not come back together.
    let wakes: HashSet<_> = world.state.wakes.iter().map(|(wake, _)| *wake).collect();
    assert!(wakes.len() > 450, "{}", wakes.len());
}

#[test]
fn the_tracker_of_a_tier_that_answers_stays_first() {
    let mut world = World::new();
    world.apply(Input::Add(
        ONE,
        trackers(&[&["http://a.test/", "http://b.test/", "http://c.test/"]]),
    ));
    let mut asked = Vec::new();
    world.run_for(Duration::from_hours(5), |url, _| {
        asked.push(url.expose().to_owned());
        if url.expose() == "http://b.test/" {
            answer(1800)
        } else {
            failure(Retry::Default)
        }
    });
    let works = asked.iter().position(|url| url == "http://b.test/").unwrap();
    assert!(works <= 2 && asked.len() >= 10);
    assert!(asked[works..].iter().all(|url| url == "http://b.test/"), "{asked:?}");
}

#[test]
fn each_tier_announces_by_itself() {
    let mut world = World::new();
    world.apply(Input::Add(ONE, trackers(&[&["http://a.test/"], &["http://b.test/"]])));
    let mut asked = HashSet::new();
    world.run_for(Duration::from_secs(5), |url, event| {
        assert_eq!(event, Event::Started);
        asked.insert(url.expose().to_owned());
        answer(1800)
    });
    assert_eq!(asked.len(), 2);
}

#[test]
fn a_tracker_that_fails_is_asked_less_and_less() {
    let mut world = World::new();
    world.apply(Input::Add(ONE, trackers(&[&["http://a.test/"]])));
    let mut count = 0;
    world.run_for(Duration::from_hours(24), |_, _| {
        count += 1;
        failure(Retry::Default)
    });
    assert!((25..40).contains(&count), "{count}");
    let view = &world.state.view(ONE)[0];
    assert_eq!(
        (view.status, view.message.as_deref()),
        (TrackerStatus::Failed, Some("down"))
    );
}

#[test]
fn a_tracker_that_says_never_is_asked_only_by_the_user() {
    let mut world = World::new();
    world.apply(Input::Add(ONE, trackers(&[&["http://a.test/"]])));
    let mut count = 0;
    world.run_for(Duration::from_hours(48), |_, _| {
        count += 1;
        failure(Retry::Never)
    });
    assert_eq!((count, world.state.view(ONE)[0].status), (1, TrackerStatus::Disabled));
    world.apply(Input::AnnounceNow(ONE));
    world.run_for(Duration::from_mins(1), |_, _| answer(1800));
    assert_eq!(world.state.view(ONE)[0].status, TrackerStatus::Working);
}

#[test]
fn an_interval_that_cannot_be_is_bounded() {
    for (said, least, most) in [(1, 20, 61), (1_000_000, 11, 13)] {
        let mut world = World::new();
        world.apply(Input::Add(ONE, trackers(&[&["http://a.test/"]])));
        let mut count = 0;
        let time = if said == 1 {
            Duration::from_hours(1)
        } else {
            Duration::from_hours(25)
        };
        world.run_for(time, |_, _| {
            count += 1;
            answer(said)
        });
        assert!((least..=most).contains(&count), "{said} s: {count}");
    }
}

#[test]
fn completed_is_sent_once_and_not_for_a_torrent_that_was_complete() {
    for (is_complete, expected) in [(false, 1), (true, 0)] {
        let mut world = World::new();
        world.apply(Input::Add(
            ONE,
            Trackers {
                is_complete,
                ..trackers(&[&["http://a.test/"]])
            },
        ));
        world.run_for(Duration::from_secs(5), |_, _| answer(1800));
        let mut completed = 0;
        for _ in 0..2 {
            world.apply(Input::Completed(ONE));
            world.run_for(Duration::from_hours(2), |_, event| {
                completed += u32::from(event == Event::Completed);
                answer(1800)
            });
        }
        assert_eq!(completed, expected);
    }
}

#[test]
fn additional_trackers_are_for_torrents_that_are_not_private() {
    let mut world = World::new();
    let private = Trackers {
        is_private: true,
        ..trackers(&[&["http://own.test/"]])
    };
    world.apply(Input::Add(ONE, private));
    world.apply(Input::Add(TorrentId(2), trackers(&[&["http://own.test/"]])));
    let additional = [
        ("http://own.test/", TrackerSource::Custom),
        ("http://more.test/", TrackerSource::List),
    ];
    let additional = additional.map(|(text, source)| (url(text), source));
    world.apply(Input::SetAdditional(additional.to_vec()));
    let urls = |world: &World, id| -> Vec<_> {
        let view = world.state.view(id).into_iter();
        view.map(|tracker| (tracker.url.expose().to_owned(), tracker.source))
            .collect()
    };
    let own = ("http://own.test/".to_owned(), TrackerSource::Torrent);
    let more = ("http://more.test/".to_owned(), TrackerSource::List);
    assert_eq!(urls(&world, ONE), std::slice::from_ref(&own));
    assert_eq!(urls(&world, TorrentId(2)), [own.clone(), more]);
    // A magnet link's torrent turns out to be private.
    world.apply(Input::SetPrivate(TorrentId(2)));
    assert_eq!(urls(&world, TorrentId(2)), [own]);
}

#[test]
fn replaced_trackers_keep_their_interval() {
    let mut world = World::new();
    world.apply(Input::Add(ONE, trackers(&[&["http://a.test/"]])));
    world.run_for(Duration::from_mins(1), |_, _| answer(1800));
    let tiers = trackers(&[&["http://a.test/"], &["http://b.test/"]]).tiers;
    world.apply(Input::SetTrackers(ONE, tiers));
    let mut asked = Vec::new();
    world.run_for(Duration::from_mins(1), |url, _| {
        asked.push(url.expose().to_owned());
        answer(1800)
    });
    assert_eq!(asked, ["http://b.test/"]);
}

#[derive(Debug, Clone)]
enum Step {
    Add(u64, Vec<Vec<u8>>, bool),
    Remove(u64),
    Completed(u64),
    AnnounceNow(u64),
    SetTrackers(u64, Vec<Vec<u8>>),
    Additional(Vec<u8>),
    Answer(usize, u8),
    Pass(u64),
}

fn any_tiers() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(0_u8..8, 0..4), 0..4)
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = 0_u64..6;
    prop_oneof![
        2 => (id.clone(), any_tiers(), any::<bool>()).prop_map(|(id, tiers, is)| Step::Add(id, tiers, is)),
        1 => id.clone().prop_map(Step::Remove),
        1 => id.clone().prop_map(Step::Completed),
        1 => id.clone().prop_map(Step::AnnounceNow),
        1 => (id, any_tiers()).prop_map(|(id, tiers)| Step::SetTrackers(id, tiers)),
        1 => prop::collection::vec(0_u8..8, 0..3).prop_map(Step::Additional),
        8 => (any::<usize>(), 0_u8..5).prop_map(|(at, how)| Step::Answer(at, how)),
        4 => prop_oneof![1_u64..100, 10_000_u64..8_000_000].prop_map(Step::Pass),
    ]
}

/// A tracker of one of three hosts.
fn numbered(number: u8) -> SafeUrl {
    url(&format!("http://h{}.test/{number}", number % 3))
}

fn unique(tiers: &[Vec<u8>]) -> Vec<Vec<SafeUrl>> {
    let mut seen = HashSet::new();
    let tiers = tiers.iter();
    let tiers = tiers.map(|tier| {
        tier.iter()
            .filter(|number| seen.insert(**number))
            .map(|number| numbered(*number))
            .collect()
    });
    tiers.collect()
}

fn answer_of(how: u8) -> Result<Answer, TrackerFailure> {
    match how {
        0 => failure(Retry::Default),
        1 => failure(Retry::Never),
        2 => failure(Retry::After(Duration::from_mins(7))),
        3 => answer(60),
        _ => answer(3600),
    }
}

proptest! {
    #[test]
    fn every_history_keeps_the_invariants_and_every_torrent_ends(steps in prop::collection::vec(any_step(), 1..120)) {
        let mut world = World::new();
        // Torrents of the steps, each under a new id whenever it is added again.
        let mut present: HashMap<u64, TorrentId> = HashMap::new();
        let (mut added, mut was_replaced) = (0, HashSet::new());
        for step in steps {
            match step {
                Step::Add(name, tiers, is_complete) => {
                    if let std::collections::hash_map::Entry::Vacant(vacant) = present.entry(name) {
                        let id = *vacant.insert(TorrentId(added));
                        added += 1;
                        if is_complete {
                            world.started_complete.insert(id);
                        }
                        world.apply(Input::Add(id, Trackers { tiers: unique(&tiers), is_private: false, is_complete }));
                    }
                }
                Step::Remove(name) => {
                    if let Some(id) = present.remove(&name) {
                        world.apply(Input::Remove(id));
                    }
                }
                Step::Completed(name) => {
                    if let Some(id) = present.get(&name) {
                        world.apply(Input::Completed(*id));
                    }
                }
                Step::AnnounceNow(name) => {
                    if let Some(id) = present.get(&name) {
                        world.apply(Input::AnnounceNow(*id));
                    }
                }
                Step::SetTrackers(name, tiers) => {
                    // Once for a torrent: a tracker that leaves and returns would begin another story.
                    if let Some(id) = present.get(&name).filter(|id| !was_replaced.contains(*id)) {
                        was_replaced.insert(*id);
                        world.apply(Input::SetTrackers(*id, unique(&tiers)));
                    }
                }
                Step::Additional(numbers) if world.state.torrents.is_empty() => {
                    let additional = numbers.iter().map(|number| (url(&format!("http://more.test/{number}")), TrackerSource::List));
                    let mut additional: Vec<_> = additional.collect();
                    additional.dedup();
                    world.apply(Input::SetAdditional(additional));
                }
                Step::Additional(_) => {}
                Step::Answer(at, how) => {
                    let runs: Vec<_> = world.running.keys().copied().collect();
                    if !runs.is_empty() {
                        world.answer(runs[at % runs.len()], answer_of(how));
                    }
                }
                Step::Pass(milliseconds) => {
                    let end = world.now + Duration::from_millis(milliseconds);
                    while let Some(wake) = world.state.wake_at().filter(|wake| *wake <= end) {
                        world.now = wake;
                        world.apply(Input::Clock);
                    }
                    world.now = end;
                }
            }
        }
        for id in present.values() {
            world.apply(Input::Remove(*id));
        }
        world.run_for(Duration::from_mins(5), |_, _| answer(1800));
        prop_assert!(world.state.torrents.is_empty() && world.state.queue.is_empty());
        prop_assert!(world.state.wakes.is_empty() && world.state.hosts.values().all(|count| *count > 0));
        prop_assert_eq!(world.ended.len() as u64, added);
        for ((id, url), told) in &world.told {
            let owes = told.has_started && !told.was_stopped;
            prop_assert!(!owes, "{:?} was not told that {:?} stopped", url, id);
        }
    }
}
