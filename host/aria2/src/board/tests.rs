use serde_json::{Value, json};

use super::*;
use crate::service::fake;

/// A board that receives the changes that a daemon would publish.
#[derive(Default)]
struct World {
    board: Board,
    ages: HashMap<String, u64>,
}

impl World {
    fn age(&mut self, task: &Value) -> u64 {
        let next = u64::try_from(self.ages.len()).unwrap() + 1;
        *self
            .ages
            .entry(task["taskId"].as_str().unwrap().to_owned())
            .or_insert(next)
    }

    fn put(&mut self, task: &Value) {
        let age = self.age(task);
        let task = Arc::new(fake::task(task));
        self.board.apply(Change::Task { age, task });
    }

    fn task(&mut self, number: u64, status: TaskStatus, order: u32) {
        self.put(
            &json!({"taskId": id(number), "status": status, "queueOrder": order, "createdAt": "1", "queueId": "main"}),
        );
    }

    fn delete(&mut self, number: u64) {
        self.board.apply(Change::Deleted { id: id(number).into() });
    }

    fn replace(&mut self, tasks: &[Value], is_gap: bool) {
        self.ages.clear();
        let tasks = tasks.iter().map(|task| {
            let age = self.age(task);
            (age, Arc::new(fake::task(task)) as Arc<dyn Task>)
        });
        let tasks = tasks.collect();
        self.board.apply(Change::Everything(Snapshot {
            tasks,
            is_gap,
            ..Snapshot::default()
        }));
    }

    fn waiting(&self) -> Vec<u64> {
        self.board.waiting().map(number_of).collect()
    }

    fn active(&self) -> Vec<u64> {
        self.board.active().map(|download| number_of(download.gid)).collect()
    }

    fn stopped(&self) -> Vec<String> {
        let text = |download: &Download| {
            if download.is_removed {
                format!("removed {}", download.gid)
            } else {
                number_of(download.gid).to_string()
            }
        };
        self.board
            .list(false, None, |length| 0..length)
            .iter()
            .map(text)
            .collect()
    }

    fn notices(&self) -> Vec<(Kind, u64)> {
        let notices = self.board.notices_after(0, usize::MAX).unwrap();
        notices.into_iter().map(|(kind, gid)| (kind, number_of(gid))).collect()
    }
}

fn number_of(gid: Gid) -> u64 {
    u64::from_str_radix(&gid.to_string()[..8], 16).unwrap()
}

fn id(number: u64) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

#[test]
fn tasks_wait_in_the_order_of_their_turns_and_stop_in_the_order_in_which_they_did() {
    let mut world = World::default();
    for number in 1..=4 {
        world.task(number, TaskStatus::Pending, 0);
    }
    world.task(5, TaskStatus::Paused, 1);
    assert_eq!(world.waiting(), [5, 1, 2, 3, 4]);
    world.task(3, TaskStatus::Preparing, 0);
    world.task(1, TaskStatus::Downloading, 0);
    world.task(3, TaskStatus::Downloading, 0);
    assert_eq!((world.active(), world.waiting()), (vec![3, 1], vec![5, 2, 4]));
    world.task(1, TaskStatus::Completed, 0);
    world.task(3, TaskStatus::Error, 0);
    assert_eq!(world.stopped(), ["1", "3"]);
    world.task(3, TaskStatus::Pending, 0);
    assert_eq!(
        (world.stopped(), world.waiting()),
        (vec!["1".to_owned()], vec![5, 2, 3, 4])
    );
    assert_eq!(world.board.counts(), [0, 4, 1, 2]);
    world
        .board
        .apply(Change::Queues(vec!["other".to_owned(), "main".to_owned()]));
    assert_eq!(world.waiting(), [5, 2, 3, 4]);
}

#[test]
fn each_change_gives_one_notice_in_order() {
    let mut world = World::default();
    world.task(1, TaskStatus::Pending, 0);
    world.task(1, TaskStatus::Preparing, 0);
    world.task(1, TaskStatus::Downloading, 0);
    world.task(2, TaskStatus::Preparing, 0);
    world.task(1, TaskStatus::Paused, 0);
    world.task(2, TaskStatus::Completed, 0);
    world.task(2, TaskStatus::Completed, 0);
    world.task(1, TaskStatus::Pending, 0);
    world.task(1, TaskStatus::Paused, 0);
    world.task(3, TaskStatus::Paused, 0);
    world.task(4, TaskStatus::Downloading, 0);
    world.task(4, TaskStatus::Error, 0);
    let expect = [
        (Kind::Start, 1),
        (Kind::Start, 2),
        (Kind::Pause, 1),
        (Kind::Complete, 2),
        (Kind::Start, 4),
        (Kind::Error, 4),
    ];
    assert_eq!(world.notices(), expect);
}

#[test]
fn a_torrent_is_complete_once_and_stops_when_it_is_not_seeded_any_more() {
    let check = |states: &[(u64, u64)], expect: &[Kind]| {
        let mut world = World::default();
        for (status, seeding) in states {
            world.put(&json!({"taskId": id(1), "status": status, "seedingStatus": seeding, "infoHash": "aa"}));
        }
        let kinds: Vec<Kind> = world.notices().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, expect, "{states:?}");
        world.board.counts()
    };
    let whole = [Kind::Start, Kind::BtComplete];
    let ended = [Kind::Start, Kind::BtComplete, Kind::Complete];
    assert_eq!(check(&[(1, 0), (3, 1), (3, 1)], &whole), [1, 0, 0, 0]);
    // It waits for a slot of seeding, and then for its limits.
    assert_eq!(check(&[(1, 0), (3, 8)], &whole), [0, 1, 0, 0]);
    assert_eq!(check(&[(1, 0), (3, 1), (3, 2)], &ended), [0, 0, 1, 1]);
    check(&[(1, 0), (3, 1), (3, 7)], &ended);
    // It is not seeded at all.
    check(&[(1, 0), (3, 6)], &ended);
    // A user pauses the seeding, and resumes it.
    let paused = [Kind::Start, Kind::BtComplete, Kind::Pause];
    assert_eq!(check(&[(1, 0), (3, 1), (3, 4)], &paused), [0, 1, 0, 0]);
    check(
        &[(1, 0), (3, 1), (3, 4), (3, 1)],
        &[&paused[..], &[Kind::Start]].concat(),
    );
    // More of its files are wanted: it downloads again.
    check(
        &[(1, 0), (3, 1), (1, 0), (3, 1)],
        &[&whole[..], &[Kind::BtComplete]].concat(),
    );
}

#[test]
fn the_first_task_of_a_group_is_followed_by_the_others() {
    let mut world = World::default();
    let kin = |world: &World, number: u64| world.board.find(&format!("{number:08x}")).unwrap().kin;
    let gid = |number: u64| Gid::of_task(&id(number)).unwrap();
    world.put(&json!({"taskId": id(9), "status": 1}));
    assert_eq!(kin(&world, 9), Kin::None);
    // Its directory was listed.
    world.put(&json!({"taskId": id(9), "status": 1, "groupId": "g"}));
    assert_eq!(kin(&world, 9), Kin::None);
    for number in [3, 5] {
        world.put(&json!({"taskId": id(number), "status": 0, "groupId": "g"}));
    }
    assert_eq!(kin(&world, 9), Kin::First(vec![gid(3), gid(5)]));
    assert_eq!(kin(&world, 5), Kin::Other(gid(9)));
    world.delete(3);
    assert_eq!(kin(&world, 9), Kin::First(vec![gid(5)]));
    world.replace(&[json!({"taskId": id(5), "groupId": "g"})], false);
    assert_eq!(kin(&world, 5), Kin::None);
}

#[test]
fn what_is_removed_while_it_is_active_is_remembered_and_other_things_are_not() {
    let mut world = World::default();
    for (number, status) in [
        (1, TaskStatus::Downloading),
        (2, TaskStatus::Paused),
        (3, TaskStatus::Completed),
    ] {
        world.task(number, status, 0);
    }
    for number in 1..=3 {
        world.delete(number);
    }
    assert_eq!(world.notices().last(), Some(&(Kind::Stop, 1)));
    assert_eq!(world.stopped(), ["removed 0000000100004000"]);
    let Download {
        gid, task, is_removed, ..
    } = world.board.find("00000001").unwrap();
    assert!(is_removed && task.id() == id(1));
    assert_eq!(world.board.find("00000002").unwrap_err(), NotFound::Unknown);
    assert!(world.board.forget(gid) && !world.board.forget(gid));
    assert_eq!(world.stopped(), Vec::<String>::new());
    // The oldest removed downloads are dropped first.
    for number in 0..1500 {
        world.task(number, TaskStatus::Downloading, 0);
        world.delete(number);
    }
    assert_eq!(world.stopped().len(), MAX_REMOVED);
    assert_eq!(world.stopped()[0], format!("removed {:08x}00004000", 500));
    world.board.forget_all();
    assert_eq!(world.stopped().len(), 0);
}

#[test]
fn a_beginning_of_a_gid_names_its_download_unless_there_are_two() {
    let mut world = World::default();
    world.task(0x12, TaskStatus::Pending, 0);
    world.task(0x13, TaskStatus::Pending, 0);
    let found = world.board.find("00000012").unwrap();
    assert_eq!(found.gid.to_string(), "0000001200004000");
    assert_eq!(world.board.find("0000001").unwrap_err(), NotFound::Ambiguous);
    assert_eq!(world.board.find("ff").unwrap_err(), NotFound::Unknown);
    assert_eq!(world.board.find("x").unwrap_err(), NotFound::Invalid);
}

#[test]
fn a_new_snapshot_gives_notices_for_changes_and_keeps_the_orders() {
    let mut world = World::default();
    world.replace(&[], false);
    for (number, status) in [
        (1, TaskStatus::Downloading),
        (2, TaskStatus::Downloading),
        (3, TaskStatus::Pending),
        (4, TaskStatus::Error),
        (5, TaskStatus::Downloading),
        (6, TaskStatus::Completed),
    ] {
        world.task(number, status, 0);
    }
    let seen = world.notices().len();
    let task = |number: u64, status: TaskStatus| json!({"taskId": id(number), "status": status, "queueId": "main"});
    let tasks = [
        task(6, TaskStatus::Completed),
        task(2, TaskStatus::Completed),
        task(3, TaskStatus::Preparing),
        task(4, TaskStatus::Error),
        task(5, TaskStatus::Downloading),
        task(7, TaskStatus::Downloading),
    ];
    world.replace(&tasks, false);
    let mut notices = world.notices().split_off(seen);
    notices.sort_by_key(|(_, number)| *number);
    assert_eq!(
        notices,
        [(Kind::Stop, 1), (Kind::Complete, 2), (Kind::Start, 3), (Kind::Start, 7)]
    );
    assert_eq!(world.active()[0], 5);
    assert_eq!(world.stopped()[1..], ["4", "6"]);
}

#[test]
fn the_first_snapshot_gives_no_notices_and_orders_stopped_tasks_by_time() {
    let mut world = World::default();
    let task = |number: u64, at: &str| json!({"taskId": id(number), "status": 3, "completedAt": at});
    world.replace(&[task(1, "30"), task(2, "10"), task(3, "20")], false);
    assert_eq!(
        (world.notices(), world.stopped()),
        (vec![], vec!["2".into(), "3".into(), "1".into()])
    );
}

#[test]
fn a_reader_that_is_too_far_behind_learns_that_it_missed_something() {
    let mut world = World::default();
    for number in 0..u64::try_from(MAX_NOTICES / 2 + 1).unwrap() {
        world.task(number, TaskStatus::Downloading, 0);
        world.task(number, TaskStatus::Completed, 0);
    }
    assert_eq!(world.board.notices_after(0, 1), Err(Missed));
    assert_eq!(world.board.notices_after(2, 1).unwrap()[0].0, Kind::Start);
    assert_eq!(world.board.notices_after(world.board.newest_notice(), 9), Ok(vec![]));
}

#[test]
fn after_a_gap_every_reader_learns_that_it_missed_something() {
    let mut world = World::default();
    world.task(1, TaskStatus::Downloading, 0);
    let cursor = world.board.newest_notice();
    let task = json!({"taskId": id(1), "status": TaskStatus::Downloading});
    world.replace(&[task], true);
    assert_eq!(world.board.notices_after(cursor, 9), Err(Missed));
}

#[test]
fn what_a_run_said_last_is_known_as_long_as_it_runs() {
    let mut world = World::default();
    let progress = |number: u64| {
        Change::Progress(Arc::new(TaskRuntimeDto {
            task_id: id(number),
            downloaded_bytes: 7,
            ..TaskRuntimeDto::default()
        }))
    };
    world.task(1, TaskStatus::Downloading, 0);
    world.board.apply(progress(1));
    world.board.apply(progress(2));
    let known = |world: &World| world.board.find("00000001").unwrap().progress.is_some();
    assert!(known(&world) && world.board.progress.len() == 1);
    world.task(1, TaskStatus::Paused, 0);
    assert!(!known(&world));
}
