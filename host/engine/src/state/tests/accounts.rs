//! Tasks of accounts whose sites limit them.

use std::num::{NonZeroU32, NonZeroU64};

use super::{
    logins::shelf,
    resolving::{claimed, link},
    *,
};
use crate::{
    model::account::{AccountLimits, AccountUse},
    resolver::{Link, Resolved, Unresolved},
};

/// The day after that of a new world.
const TOMORROW: Timestamp = Timestamp::from_unix_millis(24 * 60 * 60 * 1000);

fn limited(slot: &str, name: &str, parallel: u32, daily_bytes: u64, daily_downloads: u32) -> AccountUse {
    AccountUse {
        account: AccountKey::new(shelf(), slot, name).unwrap(),
        limits: AccountLimits {
            parallel: NonZeroU32::new(parallel),
            daily_bytes: NonZeroU64::new(daily_bytes),
            daily_downloads: NonZeroU32::new(daily_downloads),
        },
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what `answer_for` takes")]
fn link_of(used: &AccountUse) -> Result<Resolved, Unresolved> {
    Ok(Resolved::Link(Box::new(Link {
        account: Some(used.clone()),
        ..link("http://cdn.test/f")
    })))
}

impl World {
    /// A task whose link is of this account.
    fn with_link(&mut self, n: u8, used: &AccountUse) -> TaskId {
        let task = claimed(self, n);
        self.answer_for(task, link_of(used));
        task
    }

    fn is_limited(&self, task: TaskId) -> bool {
        matches!(self.phase(task), Phase::AccountLimited(_))
    }

    fn reason(&self, task: TaskId) -> String {
        let task = self.state.task(task).unwrap();
        let failure = task.failure().expect("a task that waits for its account says so");
        assert_eq!(
            (failure.kind, task.status()),
            (FailureKind::AccountLimit, Status::Pending)
        );
        failure.message.clone()
    }

    fn receive(&mut self, task: TaskId, received_bytes: u64) {
        let progress = Progress {
            stage: Stage::Moving,
            done_bytes: received_bytes,
            received_bytes,
            ..Progress::default()
        };
        self.apply(Input::Progressed(vec![(task, self.run(task), progress)]))
            .unwrap();
    }
}

#[test]
fn as_many_downloads_of_an_account_run_as_its_site_allows_and_others_are_not_delayed() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 0, 0);
    let tasks: Vec<_> = (1..=3).map(|n| world.with_link(n, &ann)).collect();
    assert!(world.is_live(tasks[0]));
    let reason = "waiting for account limit: as many downloads of ann of shelf@us run as the site allows at once (1)";
    assert_eq!(world.reason(tasks[1]), reason);
    assert_eq!(world.state.task(tasks[1]).unwrap().continues_at(), None);
    let plain = world.create(4);
    let other = world.with_link(5, &limited("other", "ann", 1, 0, 0));
    assert!(world.is_live(plain) && world.is_live(other));

    world.end(tasks[0], finished("/downloads/1"));
    assert!(world.is_asked(tasks[1]) && !world.is_asked(tasks[2]));
    let late = world.with_link(6, &ann);
    assert!(world.is_limited(late), "the place is of the task that waited for it");
    world.answer_for(tasks[1], link_of(&ann));
    assert!(world.is_live(tasks[1]));
    world.end(tasks[1], failed(FailureKind::NotFound));
    assert!(world.is_asked(tasks[2]) && !world.is_asked(late));
}

#[test]
fn a_daily_allowance_that_is_used_up_is_renewed_at_midnight_and_survives_a_restart() {
    let mut world = World::new();
    let ann = limited("main", "ann", 0, 0, 1);
    let first = world.with_link(1, &ann);
    let second = world.with_link(2, &ann);
    assert!(world.is_live(first));
    assert_eq!(
        world.reason(second),
        "waiting for account limit: ann of shelf@us has used up what the site allows it a day; continues at 1970-01-02 \
         00:00 UTC"
    );
    assert_eq!(world.state.task(second).unwrap().continues_at(), Some(TOMORROW));
    world.end(first, finished("/downloads/1"));
    let mut world = world.killed();
    assert!(world.is_limited(second) && world.questions.is_empty());
    assert_eq!(world.state.next_renewal(), Some(TOMORROW));

    let third = claimed(&mut world, 3);
    assert_eq!(
        world.questions[0].request.full_accounts,
        std::slice::from_ref(&ann.account)
    );
    world.answer_for(third, Ok(Resolved::AccountFull(Box::new(ann.clone()))));
    assert!(world.is_limited(third), "no link was wasted");
    let other = world.with_link(4, &limited("other", "ann", 0, 0, 1));
    assert!(world.is_live(other));

    world.now = Timestamp::from_unix_millis(TOMORROW.unix_millis() - 1);
    world.clock("2026-11-21T12:00:00");
    assert!(!world.is_asked(second));
    world.now = TOMORROW;
    world.clock("2026-11-21T12:00:00");
    assert!(world.is_asked(second) && !world.is_asked(third));
    assert_eq!(world.state.next_renewal(), None);
    world.answer_for(second, link_of(&ann));
    world.resume_rest();
    assert!(world.is_live(second));
    let next = TOMORROW.after(Duration::from_hours(24));
    assert_eq!(world.state.task(third).unwrap().continues_at(), Some(next));
}

#[test]
fn bytes_count_while_they_come_and_what_waits_says_that_they_are_used_up() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 100, 0);
    let first = world.with_link(1, &ann);
    let waiting: Vec<_> = (2..=5).map(|n| world.with_link(n, &ann)).collect();
    world.receive(first, 60);
    assert!(world.reason(waiting[0]).contains("at once (1)"));
    world.events.clear();
    world.receive(first, 100);
    let is_dated = |world: &World, task: &TaskId| world.state.task(*task).unwrap().continues_at() == Some(TOMORROW);
    let dated = |world: &World| waiting.iter().filter(|task| is_dated(world, task)).count();
    assert_eq!(dated(&world), 2, "many tasks are the work of many inputs");
    world.resume_rest();
    assert_eq!(dated(&world), 4);
    assert!(world.stopped.is_empty(), "a download that runs is finished");
    world.apply(Input::Checkpoint).unwrap();
    assert_eq!(world.saved.accounts[&ann.account].bytes, 100);
    world.receive(first, 120);
    world.end(first, finished("/downloads/1"));
    assert_eq!(
        world.saved.accounts[&ann.account].bytes, 120,
        "the end of a run saves them"
    );
    world.check_saved();

    world.now = TOMORROW;
    world.clock("2026-11-21T12:00:00");
    world.resume_rest();
    assert!(world.is_asked(waiting[0]));
    assert!(world.reason(waiting[1]).contains("at once (1)"));
}

#[test]
fn an_account_that_nothing_uses_is_forgotten_the_next_day() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 100, 0);
    let task = world.with_link(1, &ann);
    world.end(task, finished("/downloads/1"));
    assert_eq!(world.saved.accounts.len(), 1);
    world.now = TOMORROW;
    world.clock("2026-11-21T12:00:00");
    assert!(world.saved.accounts.is_empty());
}

#[test]
fn a_login_to_another_account_of_the_slot_ends_the_wait() {
    let mut world = World::new();
    let ann = limited("main", "ann", 0, 0, 1);
    world.with_link(1, &ann);
    let task = world.with_link(2, &ann);
    world.log_in("main", "ann");
    world.log_in("other", "bob");
    assert!(world.is_limited(task));
    world.log_in("main", "bob");
    assert!(world.is_asked(task));
    world.answer_for(task, link_of(&ann));
    world.resume_rest();
    assert!(world.is_limited(task), "and it waits again if it was to no avail");
    world.log_in("main", "bob");
    world.answer_for(task, link_of(&limited("main", "bob", 0, 0, 1)));
    assert!(world.is_live(task));
}

#[test]
fn new_limits_of_an_account_count_at_once() {
    let mut world = World::new();
    let task = world.with_link(1, &limited("main", "ann", 1, 0, 0));
    let waits = world.with_link(2, &limited("main", "ann", 1, 0, 0));
    let more = world.with_link(3, &limited("main", "ann", 3, 0, 0));
    assert!(world.is_live(task) && world.is_live(more) && world.is_asked(waits));
}

#[test]
fn a_user_resumes_pauses_and_deletes_a_task_that_waits_for_its_account() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 0, 0);
    let first = world.with_link(1, &ann);
    let task = world.with_link(2, &ann);
    world.command(Command::Resume(task)).unwrap();
    assert!(world.is_asked(task), "another account may have been chosen");
    world.answer_for(task, link_of(&ann));
    assert!(world.is_limited(task), "the site's limit is not the user's to lift");
    world.command(Command::Pause(task)).unwrap();
    world.end(first, finished("/downloads/1"));
    assert_eq!(world.phase(task), Phase::Paused);
    world.command(Command::Resume(task)).unwrap();
    world.answer_for(task, link_of(&ann));
    let gone = world.with_link(3, &ann);
    world.command(Command::Delete(gone, FileFate::Keep)).unwrap();
    assert!(world.state.index.limited.is_empty() && world.state.index.waiting.is_empty());
    world.command(Command::Pause(task)).unwrap();
    let next = world.with_link(4, &ann);
    assert!(world.is_limited(next), "a run keeps its place until it has ended");
    world.end(task, Outcome::Stopped);
    assert!(world.is_asked(next));
}

#[test]
fn a_boosted_task_waits_for_places_of_its_account_that_others_free_but_not_for_the_next_day() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 0, 2);
    let first = world.with_link(1, &ann);
    let task = world.with_link(2, &ann);
    world.command(Command::Boost(task)).unwrap();
    world.answer_for(task, link_of(&ann));
    assert!(world.is_limited(task) && world.state.boost.is_some());
    world.end(first, Outcome::Stopped);
    assert!(world.is_asked(task) && !world.is_asked(first));
    world.answer_for(task, link_of(&ann));
    assert!(world.is_live(task));
    world.end(task, failed(FailureKind::NotFound));
    world.answer_for(first, link_of(&ann));
    assert!(world.is_limited(first));
    let plain = world.create(3);
    world.command(Command::Boost(first)).unwrap();
    world.answer_for(first, link_of(&ann));
    world.end(plain, Outcome::Stopped);
    assert!(world.is_live(plain), "the day is over for the boosted task");
}

#[test]
fn a_resolver_that_takes_an_account_with_room_for_full_is_asked_again_later() {
    let mut world = World::new();
    let ann = limited("main", "ann", 1, 0, 0);
    let task = claimed(&mut world, 1);
    let full = || Ok(Resolved::AccountFull(Box::new(ann.clone())));
    world.answer_for(task, full());
    assert!(world.is_asked(task), "it may have had no room when it was asked");
    assert!(world.questions[0].request.full_accounts.is_empty());
    world.answer_for(task, full());
    assert!(!world.is_asked(task));
    assert_eq!(world.state.next_retry(), Some(world.now.after(Duration::from_mins(1))));
    let other = world.with_link(2, &ann);
    assert!(world.is_live(other), "and holds no place meanwhile");
}

#[test]
fn more_accounts_than_can_be_watched_fail_by_name_until_the_next_day() {
    let mut world = World::new();
    for n in 0..256 {
        let task = world.with_link(1, &limited("main", &format!("user {n}"), 1, 0, 0));
        world.end(task, finished("/downloads/1"));
        world.command(Command::Delete(task, FileFate::Keep)).unwrap();
    }
    let ann = limited("main", "ann", 1, 0, 0);
    let task = world.with_link(1, &ann);
    let failure = world.state.task(task).unwrap().failure().cloned().unwrap();
    assert_eq!((failure.kind, world.status(task)), (FailureKind::Plugin, Status::Error));
    world.now = TOMORROW;
    world.command(Command::Resume(task)).unwrap();
    world.answer_for(task, link_of(&ann));
    assert!(world.is_live(task));
}

#[derive(Debug, Clone)]
enum Step {
    Create { task: u8, is_later: bool },
    Answer(u8),
    Full(u8),
    Receive(u8),
    End(u8, bool),
    Pause(u8),
    Resume(u8),
    Delete(u8),
    Boost(u8),
    Move(u8, bool),
    StartLater,
    StopLater,
    Limit(u32),
    Login(bool),
    Kill,
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let task = 0..12_u8;
    let step = prop_oneof![
        6 => (task.clone(), any::<bool>()).prop_map(|(task, is_later)| Step::Create { task, is_later }),
        12 => task.clone().prop_map(Step::Answer),
        2 => task.clone().prop_map(Step::Full),
        4 => task.clone().prop_map(Step::Receive),
        6 => (task.clone(), any::<bool>()).prop_map(|(task, is_done)| Step::End(task, is_done)),
        2 => task.clone().prop_map(Step::Pause),
        3 => task.clone().prop_map(Step::Resume),
        1 => task.clone().prop_map(Step::Delete),
        1 => task.clone().prop_map(Step::Boost),
        1 => (task, any::<bool>()).prop_map(|(task, is_later)| Step::Move(task, is_later)),
        1 => Just(Step::StartLater),
        1 => Just(Step::StopLater),
        1 => (1..5_u32).prop_map(Step::Limit),
        1 => any::<bool>().prop_map(Step::Login),
        1 => Just(Step::Kill),
        2 => (0..30_u8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

/// What the plugin says of the task's link: two accounts, and none.
fn use_of(n: u8) -> Option<AccountUse> {
    match n % 4 {
        0 => Some(limited("main", "ann", 2, 0, 4)),
        1 => Some(limited("other", "bob", 1, 100, 0)),
        _ => None,
    }
}

/// A world, and what was used of the accounts by what is seen of it.
struct History {
    world: World,
    /// The runs that were seen to start, with what they have received.
    seen: BTreeMap<RunId, u64>,
    /// Downloads and bytes of an account in a day.
    used: BTreeMap<(AccountKey, i64), (u32, u64)>,
}

impl History {
    fn new() -> Self {
        let mut world = World::new();
        world.settings(|settings| settings.max_concurrent_tasks = 3);
        Self {
            world,
            seen: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }

    fn today(&self) -> i64 {
        self.world.now.unix_millis().div_euclid(TOMORROW.unix_millis())
    }

    fn used_today(&mut self, account: &AccountKey) -> &mut (u32, u64) {
        let day = self.today();
        self.used.entry((account.clone(), day)).or_default()
    }

    fn is_spent(&mut self, used: &AccountUse) -> bool {
        let limits = used.limits;
        let (downloads, bytes) = *self.used_today(&used.account);
        limits.daily_downloads.is_some_and(|most| downloads >= most.get())
            || limits.daily_bytes.is_some_and(|most| bytes >= most.get())
    }

    fn take(&mut self, step: &Step) {
        let queue = |is_later| if is_later { QueueId::Later } else { QueueId::Main };
        let command = match *step {
            Step::Create { task, .. } if self.world.state.index.by_id.contains_key(&id(task)) => return,
            Step::Create { task, is_later } => {
                let mut spec = spec(task);
                spec.queue = Some(queue(is_later));
                // One of four is an ordinary URL.
                let resolver = (task % 4 != 3).then(shelf);
                spec.resolution =
                    resolver.map(|resolver| crate::model::resolution::Resolution { resolver, item: None });
                Command::Create(vec![(id(task), spec)])
            }
            Step::Answer(n) => return self.answer(n, false),
            Step::Full(n) => return self.answer(n, true),
            Step::Receive(n) => return self.receive(n),
            Step::End(n, is_done) => return self.end(n, is_done),
            Step::Pause(n) => Command::Pause(id(n)),
            Step::Resume(n) => Command::Resume(id(n)),
            Step::Delete(n) => Command::Delete(id(n), FileFate::Keep),
            Step::Boost(n) => Command::Boost(id(n)),
            Step::Move(n, is_later) => Command::MoveTask(id(n), Some(queue(is_later))),
            Step::StartLater => Command::QueueStart(QueueId::Later),
            Step::StopLater => Command::QueueStop(QueueId::Later),
            Step::Limit(limit) => return self.world.settings(|settings| settings.max_concurrent_tasks = limit),
            Step::Login(is_other) => {
                let name = if is_other { "cid" } else { "ann" };
                Command::LoggedIn(AccountKey::new(shelf(), "main", name).unwrap())
            }
            Step::Kill => {
                self.world = self.world.killed();
                self.seen.clear();
                return;
            }
            Step::Wait(hours) => {
                self.world.now = self.world.now.after(Duration::from_hours(hours.into()));
                return self.world.clock("2026-11-21T12:00:00");
            }
        };
        // The invariants hold after a refusal as well.
        let _answer = self.world.command(command);
    }

    /// Answers the question about a task, or ends its run if it was stopped.
    fn answer(&mut self, n: u8, knows_full: bool) {
        let world = &mut self.world;
        let open = world.questions.iter().position(|question| question.task == id(n));
        let Some(open) = open else { return };
        let question = world.questions.remove(open);
        if world.stopped.remove(&question.run) {
            let ended = Input::Ended(id(n), question.run, Outcome::Stopped);
            world.apply(ended).unwrap();
            return;
        }
        let answer = match use_of(n) {
            Some(used) if knows_full && question.request.full_accounts.contains(&used.account) => {
                Ok(Resolved::AccountFull(Box::new(used)))
            }
            Some(used) => link_of(&used),
            None => Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))),
        };
        world
            .apply(Input::Resolved(id(n), question.run, answer, vec![]))
            .unwrap();
    }

    fn receive(&mut self, n: u8) {
        if !self.world.is_live(id(n)) {
            return;
        }
        let received = self.seen.get_mut(&self.world.run(id(n))).expect("it was seen");
        *received += 40;
        let received = *received;
        self.world.receive(id(n), received);
        self.world.apply(Input::Checkpoint).unwrap();
        if let Some(used) = use_of(n) {
            self.used_today(&used.account).1 += 40;
        }
    }

    fn end(&mut self, n: u8, is_done: bool) {
        if !self.world.is_live(id(n)) {
            return;
        }
        let run = self.world.run(id(n));
        if !is_done {
            let outcome = if self.world.stopped.contains(&run) {
                Outcome::Stopped
            } else {
                failed(FailureKind::NotFound)
            };
            return self.world.end(id(n), outcome);
        }
        // `finished` says that the run has received 10 bytes.
        let unseen = 10_u64.saturating_sub(self.seen[&run]);
        if let Some(used) = use_of(n) {
            self.used_today(&used.account).1 += unseen;
        }
        self.world.end(id(n), finished(&format!("/downloads/{}", run.0)));
    }

    /// What has started since the last look was allowed to.
    fn check_starts(&mut self) {
        let live: Vec<_> = self.world.live.values().map(|start| (start.run, start.task)).collect();
        for (run, task) in &live {
            if self.seen.contains_key(run) {
                continue;
            }
            self.seen.insert(*run, 0);
            let Some(used) = use_of(task.as_bytes()[0]) else {
                continue;
            };
            assert!(!self.is_spent(&used), "the allowance is used up: {used:?}");
            self.used_today(&used.account).0 += 1;
            let of_account = live
                .iter()
                .filter(|(_, other)| use_of(other.as_bytes()[0]).as_ref() == Some(&used));
            let most = used.limits.parallel.unwrap().get() as usize;
            assert!(of_account.count() <= most, "more than {most} at once");
        }
    }

    fn check(&mut self) {
        self.check_starts();
        let state = &self.world.state;
        let has_slot = state.index.active.len() < state.settings.settings.max_concurrent_tasks as usize;
        let mut shown = Vec::new();
        for task in state.tasks.values() {
            let may_run = (state.queue_states[&task.queue].queue.is_running || task.is_forced) && has_slot;
            let is_idle = may_run && state.boost.is_none();
            match &task.phase {
                Phase::Pending => assert!(!is_idle, "{task:?} is delayed"),
                Phase::AccountLimited(wait) => {
                    let has_room = state.accounts.has_room(&wait.account);
                    assert!(!is_idle || !has_room, "{task:?} is delayed");
                    shown.push((wait.account.clone(), wait.until));
                }
                _ => {}
            }
        }
        let accounts: usize = state.index.limited.values().map(BTreeSet::len).sum();
        assert_eq!(shown.len(), accounts);
        if state.has_work_left() {
            return;
        }
        let midnight = Timestamp::from_unix_millis((self.today() + 1) * TOMORROW.unix_millis());
        for (account, until) in shown {
            let used = [0, 1]
                .into_iter()
                .filter_map(use_of)
                .find(|used| used.account == account);
            let is_spent = self.is_spent(&used.expect("it is one of two"));
            assert_eq!(until, is_spent.then_some(midnight));
        }
    }

    /// Lets everything run, day after day.
    fn finish(&mut self) {
        if let Some(boosted) = self.world.state.boosted() {
            self.world.command(Command::Boost(boosted)).unwrap();
        }
        self.take(&Step::StartLater);
        let all: Vec<_> = self.world.state.snapshot(0).tasks.iter().map(|task| task.id).collect();
        self.world.command(Command::ResumeMany(all)).unwrap();
        for _ in 0..50 {
            for n in 0..12 {
                self.answer(n, n % 2 == 0);
                self.check();
                self.end(n, true);
                self.check();
            }
            self.world.resume_rest();
            self.check();
            if self.world.live.is_empty() && self.world.questions.is_empty() {
                self.take(&Step::Wait(24));
                self.check();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn limits_of_accounts_are_kept_delay_no_others_and_starve_nobody(history in steps()) {
        let mut world = History::new();
        for step in history {
            world.take(&step);
            world.check();
        }
        world.world.resume_rest();
        world.check();
        world.world.check_saved();
        world.finish();
        let unfinished: Vec<_> = world
            .world
            .state
            .snapshot(0)
            .tasks
            .into_iter()
            .filter(|task| task.phase != Phase::Completed)
            .collect();
        prop_assert!(unfinished.is_empty(), "{unfinished:?}");
    }
}
