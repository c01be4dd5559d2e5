//! Seeding: slots, limits, restarts, deletion.

use super::*;
use transfer::GivenBy;

use crate::model::seeding::Limits;

/// The end of a download of 10 bytes that can be seeded.
pub(super) fn seedable(path: &str) -> Outcome {
    match finished(path) {
        Outcome::Finished(finished) => Outcome::Finished(Finished {
            can_seed: true,
            ..finished
        }),
        other => other,
    }
}

impl World {
    pub(super) fn start_seed(&mut self, start: Start) {
        let most = self.state.settings.settings.seeding.max_active as usize;
        assert!(self.seed(start.task).is_none(), "two runs seed one task");
        assert!(!self.is_live(start.task), "a task is downloaded and seeded at once");
        self.seeds.insert(start.run, start);
        assert!(most == 0 || self.seeds.len() <= most, "over the limit of seeding");
    }

    fn seed(&self, task: TaskId) -> Option<&Start> {
        self.seeds.values().find(|start| start.task == task)
    }

    /// The run that downloads a task.
    fn start_of(&self, task: TaskId) -> &Start {
        let start = self.live.values().find(|start| start.task == task);
        start.expect("a run downloads the task")
    }

    fn state_of(&self, task: TaskId) -> SeedState {
        self.state.task(task).unwrap().seeding.clone().unwrap().state
    }

    /// `bytes` more than before.
    pub(super) fn upload(&mut self, task: TaskId, bytes: u64) {
        let Some(run) = self.seed(task).map(|start| start.run) else {
            return;
        };
        let serial = self.state.index.by_id[&task];
        let before = self.state.tasks[&serial].seeding.as_ref().unwrap().uploaded_bytes;
        let progress = Progress {
            stage: Stage::Seeding,
            uploaded_bytes: before + bytes,
            ..Progress::default()
        };
        self.apply(Input::Progressed(vec![(task, run, progress)])).unwrap();
    }

    fn end_seed(&mut self, task: TaskId, outcome: Outcome) {
        let run = self.seed(task).expect("a run seeds the task").run;
        self.seeds.remove(&run);
        self.stopped.remove(&run);
        self.apply(Input::Ended(task, run, outcome)).unwrap();
    }

    pub(super) fn end_seed_somehow(&mut self, task: TaskId, fails: bool) {
        let Some(run) = self.seed(task).map(|start| start.run) else {
            return;
        };
        if fails {
            self.end_seed(task, failed(FailureKind::DiskIo));
        } else if self.stopped.contains(&run) {
            self.end_seed(task, Outcome::Stopped);
        }
    }

    fn wait(&mut self, minutes: u64) {
        self.state.set_uptime(self.state.uptime + Duration::from_mins(minutes));
        self.clock("2026-11-21T12:00:00");
    }

    pub(super) fn check_seeds(&self) {
        let tasks = || self.state.tasks.values();
        let of_heart: BTreeSet<_> = tasks().filter_map(|task| task.seed_run()).collect();
        assert_eq!(
            of_heart,
            self.seeds.keys().copied().collect(),
            "heart and driver agree on runs that seed"
        );
        let settings = &self.state.settings.settings.seeding;
        let is_waiting = |task: &Task| {
            task.seeding
                .as_ref()
                .is_some_and(|seeding| seeding.state == SeedState::Waiting)
        };
        let waiting = tasks().filter(|task| is_waiting(task)).count();
        let has_room = settings.max_active == 0 || self.seeds.len() < settings.max_active as usize;
        assert!(waiting == 0 || !has_room, "a task waits although there is a slot");
        for task in tasks() {
            let Some(seeding) = &task.seeding else { continue };
            let is_at_rest = seeding.run().is_none();
            assert_eq!(
                seeding.since.is_none(),
                is_at_rest,
                "time passes only while a run seeds"
            );
            if matches!(seeding.state, SeedState::Seeding(_)) {
                assert!(settings.is_enabled);
                assert_eq!(task.phase, Phase::Completed);
                let limits = Limits::of(&task.options().seed_limits, settings, task.total_bytes.unwrap());
                assert_eq!(seeding.end(&limits, self.state.uptime), None, "its limits are reached");
            }
        }
    }

    /// A task whose download is complete.
    fn seeded(&mut self, n: u8) -> TaskId {
        let task = self.create(n);
        self.end(task, seedable(&format!("/downloads/{n}")));
        task
    }
}

#[test]
fn slots_are_given_in_order_and_again_when_one_is_free() {
    let mut world = World::new();
    world.settings(|settings| settings.seeding.max_active = 1);
    let tasks: Vec<_> = (1..=3).map(|n| world.seeded(n)).collect();
    assert!(world.seed(tasks[0]).is_some());
    assert_eq!(world.state_of(tasks[1]), SeedState::Waiting);
    world.command(Command::Pause(tasks[1])).unwrap();
    assert_eq!(world.state_of(tasks[1]), SeedState::Ended(SeedEnd::User));
    world.command(Command::Pause(tasks[0])).unwrap();
    assert!(
        world.seed(tasks[2]).is_none(),
        "its run has the slot until it has ended"
    );
    world.end_seed(tasks[0], Outcome::Stopped);
    assert!(world.seed(tasks[2]).is_some());
    world.command(Command::Resume(tasks[0])).unwrap();
    assert_eq!(world.state_of(tasks[0]), SeedState::Waiting);
    world.settings(|settings| settings.seeding.max_active = 0);
    assert!(world.seed(tasks[0]).is_some());
    assert!(world.command(Command::Resume(tasks[0])).is_err(), "it seeds already");
    assert_eq!(world.state.live_runs(), 0, "slots of downloads are not used");
}

#[test]
fn a_ratio_ends_it_and_the_run_may_upload_no_more() {
    let mut world = World::new();
    world.settings(|settings| settings.seeding.ratio_milli = 1500);
    let task = world.seeded(1);
    let most = Purpose::Seed {
        most_uploaded_bytes: Some(15),
    };
    assert_eq!(world.seed(task).unwrap().purpose, most);
    world.upload(task, 14);
    assert!(world.stopped.is_empty());
    world.upload(task, 1);
    assert_eq!(world.stopped.len(), 1);
    world.end_seed(task, Outcome::Stopped);
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Ratio));
    world.command(Command::Resume(task)).unwrap();
    assert_eq!(
        world.state_of(task),
        SeedState::Ended(SeedEnd::Ratio),
        "its ratio is reached"
    );
    let limits = SeedLimits {
        ratio_milli: SeedLimit::Unlimited,
        ..SeedLimits::default()
    };
    world.command(Command::SetSeedLimits(task, limits)).unwrap();
    world.command(Command::Resume(task)).unwrap();
    let start = world.seed(task).unwrap();
    assert_eq!(start.uploaded_bytes, 15);
    assert_eq!(
        start.purpose,
        Purpose::Seed {
            most_uploaded_bytes: None
        }
    );
}

#[test]
fn another_ratio_restarts_the_run_with_what_it_may_upload_now() {
    let mut world = World::new();
    world.settings(|settings| settings.seeding.ratio_milli = 2000);
    let task = world.seeded(1);
    world.upload(task, 5);
    world.settings(|settings| settings.seeding.ratio_milli = 3000);
    world.end_seed(task, Outcome::Stopped);
    let most = Purpose::Seed {
        most_uploaded_bytes: Some(30),
    };
    assert_eq!(world.seed(task).unwrap().purpose, most);
    world.settings(|settings| settings.seeding.ratio_milli = 500);
    world.end_seed(task, Outcome::Stopped);
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Ratio));
}

#[test]
fn time_counts_while_it_seeds_and_over_restarts() {
    let mut world = World::new();
    world.settings(|settings| settings.seeding.time_minutes = 60);
    let task = world.seeded(1);
    world.wait(25);
    assert_eq!(
        world.state.next_seed_end(),
        Some(Duration::from_mins(35)),
        "it is saved before its end"
    );
    world.wait(10);
    let mut world = world.killed();
    assert!(world.seed(task).is_some());
    world.wait(24);
    assert!(world.stopped.is_empty());
    world.wait(1);
    assert_eq!(world.stopped.len(), 1);
    world.end_seed(task, Outcome::Stopped);
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Time));
    let world = world.killed();
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Time));
}

#[test]
fn it_does_not_continue_after_a_restart_if_that_is_switched_off() {
    let mut world = World::new();
    world.settings(|settings| settings.seeding.continues_on_start = false);
    let task = world.seeded(1);
    assert!(world.seed(task).is_some());
    let mut world = world.killed();
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Off));
    world.command(Command::Resume(task)).unwrap();
    assert!(world.seed(task).is_some());
}

#[test]
fn what_must_not_be_seeded_is_not() {
    let mut world = World::new();
    let own = world.create_with(1, |spec| spec.is_not_seeded = true);
    world.end(own, seedable("/downloads/1"));
    assert_eq!(world.state_of(own), SeedState::Ended(SeedEnd::Off));
    let task = world.seeded(2);
    world.settings(|settings| settings.seeding.is_enabled = false);
    world.end_seed(task, Outcome::Stopped);
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Off));
    let task = world.seeded(3);
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::Off));
}

#[test]
fn a_task_that_seeds_is_deleted_once_its_run_has_ended() {
    for (fate, files) in [
        (FileFate::Keep, Vec::new()),
        (FileFate::Delete, vec![PathBuf::from("/downloads/1")]),
    ] {
        let mut world = World::new();
        let task = world.seeded(1);
        world.command(Command::Delete(task, fate)).unwrap();
        assert_eq!(world.state.task(task), None);
        assert!(world.deletions.is_empty(), "its run still uses the file");
        let killed = world.killed();
        assert_eq!(
            killed
                .deletions
                .iter()
                .flat_map(|(_, paths)| paths.clone())
                .collect::<Vec<_>>(),
            files
        );
        world.end_seed(task, Outcome::Stopped);
        assert_eq!(
            world
                .deletions
                .iter()
                .flat_map(|(_, paths)| paths.clone())
                .collect::<Vec<_>>(),
            files
        );
        assert_eq!(world.state.live_seeds(), 0);
    }
}

#[test]
fn the_end_of_seeding_may_delete_the_task() {
    let mut world = World::new();
    world.settings(|settings| {
        settings.seeding.ratio_milli = 1000;
        settings.seeding.then = SeedThen::Delete(FileFate::Delete);
    });
    let task = world.seeded(1);
    world.upload(task, 10);
    world.end_seed(task, Outcome::Stopped);
    assert_eq!(world.state.task(task), None);
    assert_eq!(world.deletions, [(1, vec![PathBuf::from("/downloads/1")])]);
    let task = world.seeded(2);
    world.command(Command::Pause(task)).unwrap();
    world.end_seed(task, Outcome::Stopped);
    assert!(world.state.task(task).is_some(), "the user stopped it, no limit");
}

#[test]
fn a_shutdown_stops_it_until_the_next_start() {
    let mut world = World::new();
    let task = world.seeded(1);
    world.apply(Input::Shutdown).unwrap();
    world.end_seed(task, Outcome::Stopped);
    assert!(world.seed(task).is_none());
    assert!(world.killed().seed(task).is_some());
}

#[test]
fn seeding_that_fails_says_why() {
    let mut world = World::new();
    let task = world.seeded(1);
    world.end_seed(task, failed(FailureKind::DiskIo));
    let SeedState::Ended(SeedEnd::Failed(failure)) = world.state_of(task) else {
        panic!("{:?}", world.state_of(task));
    };
    assert_eq!(failure.kind, FailureKind::DiskIo);
    assert_eq!(world.status(task), Status::Completed);
}

/// A complete torrent that is seeded, whose bytes are being hashed again.
fn rechecked(world: &mut World) -> TaskId {
    let task = world.seeded(1);
    world.command(Command::Recheck(task)).unwrap();
    let (run, start) = world.seeds.pop_first().unwrap();
    assert!(world.stopped.contains(&run), "it is not hashed while it is seeded");
    world.live.insert(run, start);
    world.end(task, Outcome::Stopped);
    assert_eq!(world.start_of(task).purpose, Purpose::Recheck);
    assert_eq!(
        world.killed().start_of(task).purpose,
        Purpose::Recheck,
        "what was acknowledged is done after a crash"
    );
    world.milestones.clear();
    task
}

#[test]
fn a_complete_torrent_that_is_found_damaged_is_downloaded_again() {
    let mut world = World::new();
    let task = rechecked(&mut world);
    let run = world.start_of(task).run;
    for (stage, done_bytes) in [(Stage::Verifying, 0), (Stage::Moving, 7)] {
        let progress = Progress {
            stage,
            done_bytes,
            total_bytes: Some(10),
            ..Progress::default()
        };
        world.apply(Input::Progressed(vec![(task, run, progress)])).unwrap();
    }
    let found = world.state.task(task).unwrap();
    assert_eq!((found.done_bytes, found.completed_at), (7, None));
    world.command(Command::Pause(task)).unwrap();
    world.end(task, Outcome::Stopped);
    world.command(Command::Resume(task)).unwrap();
    assert_eq!(
        world.start_of(task).purpose,
        Purpose::Download,
        "what was hashed is not hashed again"
    );
    world.end(task, seedable("/downloads/1"));
    assert!(world.seed(task).is_some());
    let completed = |milestone: &Milestone| matches!(milestone, Milestone::Task(TaskMilestone::Completed, _));
    assert!(world.milestones.iter().any(completed));
}

#[test]
fn a_complete_torrent_that_is_found_whole_is_what_it_was() {
    let mut world = World::new();
    let task = rechecked(&mut world);
    world.now = world.now.after(Duration::from_mins(1));
    world.end(task, seedable("/downloads/1"));
    assert!(world.seed(task).is_some(), "it is seeded, as before");
    let before = Timestamp::from_unix_millis(1_000_000);
    assert_eq!(world.state.task(task).unwrap().completed_at, Some(before));
    let completed = |milestone: &Milestone| matches!(milestone, Milestone::Task(TaskMilestone::Completed, _));
    assert!(!world.milestones.iter().any(completed));
    // One whose seeding was ended is not seeded.
    world.command(Command::Pause(task)).unwrap();
    world.end_seed(task, Outcome::Stopped);
    world.command(Command::Recheck(task)).unwrap();
    world = world.killed();
    world.end(task, seedable("/downloads/1"));
    assert_eq!(world.state_of(task), SeedState::Ended(SeedEnd::User));
    let plain = world.create(9);
    world.end(plain, finished("/downloads/9"));
    assert!(world.command(Command::Recheck(plain)).is_err());
}

#[test]
fn resuming_a_torrent_whose_files_are_damaged_repairs_it() {
    let mut world = World::new();
    let task = world.seeded(1);
    world.end_seed(task, failed(FailureKind::DiskIo));
    world.command(Command::Resume(task)).unwrap();
    assert_eq!(world.start_of(task).purpose, Purpose::Recheck);
    world.end(task, seedable("/downloads/1"));
    assert!(world.seed(task).is_some());
    // Another reason is not one of its files.
    world.end_seed(task, failed(FailureKind::InUse));
    world.command(Command::Resume(task)).unwrap();
    assert!(world.seed(task).is_some());
}

#[test]
fn other_files_of_a_complete_torrent_are_downloaded_once_its_run_has_ended() {
    let options = |files: &[u32]| {
        Arc::new(TorrentOptions {
            files: files.into(),
            ..TorrentOptions::default()
        })
    };
    let mut world = World::new();
    let plain = world.create(9);
    world.end(plain, finished("/downloads/9"));
    assert!(world.command(Command::ChangeTorrent(plain, options(&[0]))).is_err());
    let task = world.create_with(1, |spec| spec.torrent = Some(options(&[0])));
    world.end(task, seedable("/downloads/1"));
    world.command(Command::ChangeTorrent(task, options(&[0]))).unwrap();
    assert!(world.stopped.is_empty(), "the same files");
    world.command(Command::ChangeTorrent(task, options(&[0, 1]))).unwrap();
    let (run, start) = world.seeds.pop_first().unwrap();
    assert!(world.stopped.contains(&run));
    assert_eq!(
        world.killed().status(task),
        Status::Preparing,
        "and after a crash as well"
    );
    world.live.insert(run, start);
    world.end(task, Outcome::Stopped);
    assert!(world.is_live(task));
    assert_eq!(
        &*world
            .live
            .values()
            .next()
            .unwrap()
            .source
            .torrent
            .clone()
            .unwrap()
            .files,
        [0, 1]
    );
    world.end(task, seedable("/downloads/1"));
    assert!(world.seed(task).is_some());
}

#[test]
fn what_a_transport_says_is_deleted_with_a_task() {
    let files = || vec![PathBuf::from("/downloads/1/a"), PathBuf::from("/downloads/1/")];
    for is_live in [false, true] {
        for is_finished in [false, true] {
            let mut world = World::new();
            world.settings(|settings| settings.seeding.is_enabled = is_live);
            let task = world.create(1);
            if is_finished {
                world.end(task, seedable("/downloads/1"));
            } else if !is_live {
                world.command(Command::Pause(task)).unwrap();
                world.end(task, Outcome::Stopped);
            }
            let command = Command::Delete(task, FileFate::Delete);
            let discarded = world.state.discarded_by(&command);
            assert_eq!(discarded.len(), 1);
            assert!(discarded[0].1.deletes_finished);
            let kept = world.state.discarded_by(&Command::Delete(task, FileFate::Keep));
            assert!(!kept[0].1.deletes_finished);
            let leftovers = BTreeMap::from([(task, files())]);
            world.apply(Input::Discard(command, leftovers)).unwrap();
            let killed = world.killed();
            assert_eq!(killed.deletions, [(1, files())], "also after a crash");
            if is_live && is_finished {
                world.end_seed(task, Outcome::Stopped);
            } else if is_live {
                world.end(task, seedable("/downloads/1"));
                // Its run has finished a file since.
                assert_eq!(world.deletions, []);
                assert_eq!(world.listings, discarded);
                let more = [vec!["/downloads/1/b".into()], files()].concat();
                world.apply(Input::LeftoversListed(task, more.clone())).unwrap();
                assert_eq!(world.deletions, [(1, more)]);
                continue;
            }
            assert_eq!(world.deletions, [(1, files())]);
            assert_eq!(world.listings, []);
        }
    }
}

const MAGNET: &str = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";

#[test]
fn one_task_has_a_torrent_until_it_is_deleted() {
    let named = |name: &str| SafeUrl::parse(&format!("{MAGNET}&dn={name}")).unwrap();
    let mut world = World::new();
    let first = world.create_with(1, |spec| spec.urls = vec![named("a")]);
    let again = vec![(id(2), TaskSpec::new(named("b")))];
    assert_eq!(
        world.command(Command::Create(again.clone())).unwrap_err(),
        CommandError::SameTorrent(first)
    );
    let other = world.create(3);
    let change = Command::ChangeUrl(other, named("c"), None);
    assert_eq!(world.command(change).unwrap_err(), CommandError::SameTorrent(first));
    let twice = vec![
        (id(4), TaskSpec::new(SafeUrl::parse(&MAGNET.replace('7', "8")).unwrap())),
        (id(5), TaskSpec::new(SafeUrl::parse(&MAGNET.replace('7', "8")).unwrap())),
    ];
    assert!(world.command(Command::Create(twice)).is_err());
    world.command(Command::Delete(first, FileFate::Keep)).unwrap();
    world.end(first, Outcome::Stopped);
    world.command(Command::Create(again)).unwrap();
}

#[test]
fn a_link_that_led_to_a_torrent_goes_on_as_that_torrent_without_the_secrets_of_the_link() {
    let magnet = SafeUrl::parse(MAGNET).unwrap();
    let mut world = World::new();
    let task = world.create_with(1, |spec| {
        spec.request.headers = vec![("Authorization".to_owned(), Secret::new("secret"))];
        spec.checksum = Some("md5=d41d8cd98f00b204e9800998ecf8427e".parse().unwrap());
        spec.file_name = FileName::sanitise_or_none("a.torrent");
    });
    let given_by = GivenBy::Other { user_host: None };
    let became = || Outcome::Became {
        url: magnet.clone(),
        given_by: given_by.clone(),
    };
    world.end(task, became());
    let now = world.state.task(task).unwrap();
    assert_eq!(now.url(), &magnet);
    let expected = TaskSpec {
        given_by: given_by.clone(),
        ..TaskSpec::new(magnet.clone())
    };
    assert_eq!(
        TaskSpec {
            save_dir: None,
            queue: None,
            ..now.spec()
        },
        expected
    );
    assert!(world.is_live(task), "it runs at once");
    let second = world.create(2);
    world.end(second, became());
    assert_eq!(
        world.state.task(second).unwrap().failure().unwrap().kind,
        FailureKind::Exists
    );
}

#[test]
fn a_task_of_which_only_the_metadata_is_wanted_is_complete_and_owns_no_torrent() {
    let mut world = World::new();
    let only = |is_metadata_only| {
        let mut spec = TaskSpec::new(SafeUrl::parse(MAGNET).unwrap());
        spec.torrent = Some(Arc::new(TorrentOptions {
            is_metadata_only,
            ..TorrentOptions::default()
        }));
        spec
    };
    let (first, second) = (id(1), id(2));
    world.command(Command::Create(vec![(first, only(true))])).unwrap();
    let again = Command::Create(vec![(second, only(false))]);
    assert!(world.command(again.clone()).is_err(), "it is being fetched");
    world.end(first, Outcome::Described { size_bytes: 70 });
    let task = world.state.task(first).unwrap();
    assert_eq!(task.phase, Phase::Completed);
    assert_eq!((task.done_bytes, task.total_bytes, &task.path), (70, Some(70), &None));
    assert!(task.completed_at.is_some());
    let mut world = world.killed();
    world.command(again).unwrap();
    world.end(second, seedable("/downloads/2"));
    // What is stored of the torrent is the second one's.
    let discarded = |world: &World, task| world.state.discarded_by(&Command::Delete(task, FileFate::Delete)).len();
    assert_eq!((discarded(&world, first), discarded(&world, second)), (0, 1));
    world.command(Command::Delete(first, FileFate::Delete)).unwrap();
    assert!(world.seed(second).is_some());
}

#[test]
fn a_run_that_waits_for_the_user_pauses_its_task() {
    let mut world = World::new();
    let task = world.create(1);
    world.end(task, Outcome::Waits);
    assert_eq!(world.status(task), Status::Paused);
    world.command(Command::Resume(task)).unwrap();
    assert!(world.is_live(task));
}

#[test]
fn files_that_were_chosen_are_noted_and_the_run_goes_on() {
    let asks = TorrentOptions {
        asks_for_files: true,
        is_sequential: true,
        ..TorrentOptions::default()
    };
    let mut world = World::new();
    let task = world.create_with(1, |spec| spec.torrent = Some(Arc::new(asks.clone())));
    world.command(Command::NoteFiles(task, Box::new([2]))).unwrap();
    assert!(world.is_live(task) && world.stopped.is_empty());
    let chosen = TorrentOptions {
        files: Box::new([2]),
        asks_for_files: false,
        ..asks
    };
    let noted = |world: &World| world.state.task(task).unwrap().spec().torrent;
    assert_eq!(noted(&world).as_deref(), Some(&chosen));
    assert_eq!(noted(&world.killed()).as_deref(), Some(&chosen));
}
