//! Tasks that wait for a login.

use super::{
    resolving::{claimed, link},
    *,
};
use crate::{
    model::{account::LoginNeed, resolution::ResolverId},
    resolver::{Resolved, Unresolved},
};

pub(super) fn shelf() -> ResolverId {
    ResolverId::new("shelf@us")
}

fn account(slot: &str, name: &str) -> AccountKey {
    AccountKey::new(shelf(), slot, name).unwrap()
}

fn refusal(need: LoginNeed) -> Result<Resolved, Unresolved> {
    Err(Unresolved {
        failure: Failure::new(FailureKind::LoginRequired, "plugin shelf@us: a login is required"),
        login: Some(need),
    })
}

fn any_of(slot: &str) -> LoginNeed {
    LoginNeed::new(shelf(), slot, None).unwrap()
}

impl World {
    /// Answers the question about `task` that is open for longest.
    pub(super) fn answer_for(&mut self, task: TaskId, outcome: Result<Resolved, Unresolved>) {
        let open = self.questions.iter().position(|question| question.task == task);
        let question = self.questions.remove(open.expect("the resolver was asked"));
        self.apply(Input::Resolved(task, question.run, outcome, vec![]))
            .unwrap();
    }

    pub(super) fn is_asked(&self, task: TaskId) -> bool {
        self.questions.iter().any(|question| question.task == task)
    }

    fn needs_login(&self, task: TaskId) -> bool {
        matches!(self.phase(task), Phase::NeedsLogin(_))
    }

    pub(super) fn log_in(&mut self, slot: &str, name: &str) {
        self.command(Command::LoggedIn(account(slot, name))).unwrap();
    }

    /// What the driver does while there are tasks to resume.
    pub(super) fn resume_rest(&mut self) {
        while self.state.has_work_left() {
            self.clock("2026-11-21T12:00:00");
        }
    }

    /// A task that waits for any login of the slot `main`.
    fn refused(&mut self, n: u8) -> TaskId {
        let task = claimed(self, n);
        self.answer_for(task, refusal(any_of("main")));
        assert!(self.needs_login(task));
        task
    }
}

#[test]
fn a_task_waits_for_the_login_that_its_plugin_names_and_for_no_other() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    let need = LoginNeed::new(shelf(), "main", Some("ann")).unwrap();
    world.answer_for(task, refusal(need.clone()));
    let waiting = world.state.task(task).unwrap();
    assert_eq!((waiting.status(), waiting.login_need()), (Status::Error, Some(&need)));
    assert_eq!(waiting.failure().unwrap().kind, FailureKind::LoginRequired);
    assert_eq!(
        (waiting.attempts, world.state.next_retry()),
        (0, None),
        "no retry is spent"
    );
    world.now = world.now.after(Duration::from_hours(48));
    world.clock("2026-11-21T12:00:00");
    world.log_in("main", "bob");
    world.log_in("other", "ann");
    world
        .command(Command::LoggedIn(
            AccountKey::new(ResolverId::new("else@us"), "main", "ann").unwrap(),
        ))
        .unwrap();
    assert!(world.needs_login(task));
    world.log_in("main", "ann");
    assert!(world.is_asked(task));
    world.answer_for(task, Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
    assert!(world.is_live(task));
}

#[test]
fn a_task_that_is_refused_again_after_a_login_waits_again() {
    let mut world = World::new();
    let task = world.refused(1);
    for _ in 0..3 {
        world.log_in("main", "ann");
        assert_eq!(world.questions.len(), 1);
        world.answer_for(task, refusal(any_of("main")));
        world.resume_rest();
        assert!(world.needs_login(task) && world.questions.is_empty());
    }
}

#[test]
fn a_login_while_the_resolver_is_asked_is_not_missed() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    world.log_in("main", "ann");
    world.answer_for(task, refusal(any_of("other")));
    assert!(world.needs_login(task), "it was another login");
    world.command(Command::Resume(task)).unwrap();
    world.log_in("main", "ann");
    world.answer_for(task, refusal(any_of("main")));
    assert!(world.is_asked(task), "the refusal was from before the login");
    world.answer_for(task, refusal(any_of("main")));
    assert!(world.needs_login(task), "and this one was not");
}

#[test]
fn a_user_resumes_pauses_changes_and_deletes_a_task_that_waits_for_a_login() {
    let mut world = World::new();
    let task = world.refused(1);
    world.command(Command::Resume(task)).unwrap();
    assert!(world.is_asked(task), "at once");
    world.answer_for(task, refusal(any_of("main")));
    world.command(Command::ResumeAll).unwrap();
    assert!(world.needs_login(task), "nobody has asked for this one");
    world.command(Command::Pause(task)).unwrap();
    world.log_in("main", "ann");
    assert_eq!(world.phase(task), Phase::Paused, "the user does not want it to go on");
    world.command(Command::ResumeAll).unwrap();
    world.answer_for(task, refusal(any_of("main")));
    let url = SafeUrl::parse("http://other.test/x").unwrap();
    world.command(Command::ChangeUrl(task, url, None)).unwrap();
    assert!(world.is_live(task), "the login was for the other URL");

    let gone = world.refused(2);
    world.command(Command::Delete(gone, FileFate::Keep)).unwrap();
    world.log_in("main", "ann");
    assert!(world.state.task(gone).is_none() && world.questions.is_empty());
    assert!(world.state.index.waiting.is_empty());
    let raw = world.refused(3);
    world.command(Command::IgnoreResolver(raw)).unwrap();
    assert!(world.is_live(raw));
}

#[test]
fn a_boosted_task_that_needs_a_login_does_not_hold_up_the_others() {
    let mut world = World::new();
    let other = world.create(1);
    let task = claimed(&mut world, 2);
    world.command(Command::Boost(task)).unwrap();
    world.end(other, Outcome::Stopped);
    assert!(!world.is_live(other));
    world.answer_for(task, refusal(any_of("main")));
    assert!(world.is_live(other));
}

#[test]
fn a_login_resumes_a_task_of_a_stopped_queue_only_if_the_user_had() {
    for is_forced in [false, true] {
        let mut world = World::new();
        let task = world.refused(1);
        world.command(Command::MoveTask(task, Some(QueueId::Later))).unwrap();
        if is_forced {
            world.command(Command::Resume(task)).unwrap();
            world.answer_for(task, refusal(any_of("main")));
        }
        world.log_in("main", "ann");
        assert_eq!(world.is_asked(task), is_forced);
        world.command(Command::QueueStart(QueueId::Later)).unwrap();
        assert!(world.is_asked(task));
    }
}

#[test]
fn a_login_for_many_tasks_is_work_of_many_inputs_and_survives_a_crash_between_them() {
    let mut world = World::new();
    let tasks: Vec<_> = (1..=20).map(|n| world.refused(n)).collect();
    world.settings(|settings| settings.max_concurrent_tasks = 100);
    world.events.clear();
    world.log_in("main", "ann");
    let waiting = |world: &World| tasks.iter().filter(|task| world.needs_login(**task)).count();
    assert_eq!(waiting(&world), 18);
    assert!(matches!(&world.events[..], [Event::TasksChanged(tasks)] if tasks.len() == 2));
    assert!(world.state.is_resuming());
    // Refused again meanwhile: this wait is not one that the login ends.
    let again = world.questions[0].task;
    world.answer_for(again, refusal(any_of("main")));
    let mut world = world.killed();
    assert!(world.state.is_resuming());
    world.resume_rest();
    assert_eq!(waiting(&world), 1);
    assert!(world.needs_login(again));
    assert!(world.saved.logins.is_empty(), "the login is done with");
    let order = world.state.logins.last_wait;
    assert_eq!(
        world.killed().state.logins.last_wait,
        order,
        "orders grow over restarts"
    );
}

#[test]
fn a_login_that_has_to_wait_for_the_tasks_of_another_one_survives_a_crash() {
    let mut world = World::new();
    for n in [2, 4] {
        let task = claimed(&mut world, n);
        let bob = LoginNeed::new(shelf(), "main", Some("bob")).unwrap();
        world.answer_for(task, refusal(bob));
    }
    // It comes first, looks at two tasks, and there could be more.
    world.log_in("main", "ann");
    world.log_in("main", "bob");
    let mut world = world.killed();
    world.resume_rest();
    assert!(world.state.index.waiting.is_empty());
    assert!(world.saved.logins.is_empty());
}

#[test]
fn a_row_of_a_login_that_could_not_be_saved_is_saved_as_it_is_by_then() {
    let mut world = World::new();
    let tasks: Vec<_> = (1..=4).map(|n| world.refused(n)).collect();
    world.log_in("main", "ann");
    let row = Row::Login(account("main", "ann"), world.saved.logins[&account("main", "ann")]);
    world.apply(Input::NotSaved(vec![row.clone()])).unwrap();
    world.resume_rest();
    assert!(!tasks.iter().any(|task| world.needs_login(*task)));
    world.saved.save(row);
    world.apply(Input::SaveAgain).unwrap();
    assert!(world.saved.logins.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Login(u8, u8),
    Refuse(u8),
    Link(u8),
    Finish(u8),
    Pause(u8),
    Resume(u8),
    Delete(u8),
    PauseAll,
    ResumeAll,
    Kill,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let task = 0..10_u8;
    let step = prop_oneof![
        6 => task.clone().prop_map(Step::Create),
        4 => (0..2_u8, 0..2_u8).prop_map(|(slot, name)| Step::Login(slot, name)),
        12 => task.clone().prop_map(Step::Refuse),
        2 => task.clone().prop_map(Step::Link),
        2 => task.clone().prop_map(Step::Finish),
        2 => task.clone().prop_map(Step::Pause),
        2 => task.clone().prop_map(Step::Resume),
        1 => task.prop_map(Step::Delete),
        1 => Just(Step::PauseAll),
        1 => Just(Step::ResumeAll),
        1 => Just(Step::Kill),
        4 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

const NAMES: [&str; 2] = ["ann", "bob"];
const SLOTS: [&str; 2] = ["main", "other"];

/// What the plugin asks for the task: each slot, for any account or one.
fn need(n: u8) -> LoginNeed {
    let wanted = [None, Some(NAMES[0]), Some(NAMES[1])][usize::from(n) % 3];
    LoginNeed::new(shelf(), SLOTS[usize::from(n) % 2], wanted).unwrap()
}

/// A world, and when what happened in it: by the number of the step.
struct History {
    world: World,
    step: usize,
    /// When the resolver was asked in each run.
    asked: BTreeMap<RunId, usize>,
    /// Since when each task waits for a login.
    waits: BTreeMap<TaskId, usize>,
    logins: Vec<(AccountKey, usize)>,
    /// The tasks that the user's command of this step names.
    touched: BTreeSet<TaskId>,
}

impl History {
    fn new() -> Self {
        let mut world = World::new();
        world.settings(|settings| settings.max_concurrent_tasks = 3);
        Self {
            world,
            step: 0,
            asked: BTreeMap::new(),
            waits: BTreeMap::new(),
            logins: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    fn is_met_after(&self, need: &LoginNeed, step: usize) -> bool {
        let mut later = self.logins.iter().filter(|(_, at)| *at > step);
        later.any(|(account, _)| need.is_met_by(account))
    }

    fn take(&mut self, step: &Step) {
        self.step += 1;
        self.touched.clear();
        let world = &mut self.world;
        match *step {
            Step::Create(n) if world.state.index.by_id.contains_key(&id(n)) => {}
            Step::Create(n) => drop(claimed(world, n)),
            Step::Login(slot, name) => {
                let account = account(SLOTS[usize::from(slot)], NAMES[usize::from(name)]);
                self.logins.push((account.clone(), self.step));
                world.command(Command::LoggedIn(account)).unwrap();
            }
            Step::Refuse(n) => self.answer(n, |n| refusal(need(n))),
            Step::Link(n) => self.answer(n, |_| Ok(Resolved::Link(Box::new(link("http://cdn.test/f"))))),
            Step::Finish(n) if world.is_live(id(n)) => {
                world.end(id(n), finished(&format!("/downloads/{n}")));
            }
            Step::Finish(_) => {}
            Step::Pause(n) => self.command(n, Command::Pause(id(n))),
            Step::Resume(n) => self.command(n, Command::Resume(id(n))),
            Step::Delete(n) => self.command(n, Command::Delete(id(n), FileFate::Keep)),
            Step::PauseAll => {
                self.touched = world.state.snapshot(0).tasks.iter().map(|task| task.id).collect();
                world.command(Command::PauseAll).unwrap();
            }
            Step::ResumeAll => drop(world.command(Command::ResumeAll)),
            Step::Kill => {
                *world = world.killed();
                self.asked.clear();
            }
            Step::Wait => world.clock("2026-11-21T12:00:00"),
        }
    }

    fn command(&mut self, n: u8, command: Command) {
        self.touched.insert(id(n));
        // The invariants hold after a refusal as well.
        let _answer = self.world.command(command);
    }

    /// Answers the question about a task, or ends its run if it was stopped.
    fn answer(&mut self, n: u8, outcome: impl FnOnce(u8) -> Result<Resolved, Unresolved>) {
        let open = self.world.questions.iter().position(|question| question.task == id(n));
        let Some(open) = open else { return };
        let question = self.world.questions.remove(open);
        let asked = self.asked.remove(&question.run).expect("it was seen");
        if self.world.stopped.remove(&question.run) {
            let ended = Input::Ended(id(n), question.run, Outcome::Stopped);
            self.world.apply(ended).unwrap();
            return;
        }
        let outcome = outcome(n);
        let is_refused = outcome.is_err();
        self.world
            .apply(Input::Resolved(id(n), question.run, outcome, vec![]))
            .unwrap();
        if is_refused {
            let waits = self.world.needs_login(id(n));
            assert_eq!(waits, !self.is_met_after(&need(n), asked), "a login while it was asked");
        }
    }

    fn check(&mut self) {
        for question in &self.world.questions {
            self.asked.entry(question.run).or_insert(self.step);
        }
        let tasks = self.world.state.snapshot(0).tasks;
        self.waits
            .retain(|waiting, _| tasks.iter().any(|task| task.id == *waiting));
        for task in tasks {
            let Some(need) = task.login_need() else {
                let since = self.waits.remove(&task.id);
                let has_cause = |since| {
                    let n = task.id.as_bytes()[0];
                    self.touched.contains(&task.id) || self.is_met_after(&need(n), since)
                };
                assert!(since.is_none_or(has_cause), "it goes on without a cause: {task:?}");
                continue;
            };
            let since = *self.waits.entry(task.id).or_insert(self.step);
            assert!(
                self.world.state.is_resuming() || !self.is_met_after(need, since),
                "a login left it waiting: {task:?}"
            );
        }
        let waiting = self.world.state.tasks.values().filter(|task| task.wait().is_some());
        let listed: usize = self.world.state.index.waiting.values().map(BTreeSet::len).sum();
        assert_eq!(waiting.count(), listed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_task_misses_a_login_and_none_goes_on_without_one(history in steps()) {
        let mut world = History::new();
        for step in history {
            world.take(&step);
            world.check();
        }
        world.touched.clear();
        world.step += 1;
        world.world.resume_rest();
        world.check();
        prop_assert!(world.world.saved.logins.is_empty());
        world.world.check_saved();
        // Whatever still waits goes on with the logins that it needs.
        for account in SLOTS.iter().flat_map(|slot| NAMES.map(|name| account(slot, name))) {
            world.world.command(Command::LoggedIn(account)).unwrap();
        }
        world.world.resume_rest();
        prop_assert!(world.world.state.index.waiting.is_empty());
    }
}
