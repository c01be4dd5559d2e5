//! How changes of tasks affect files, totals and reported events.

use super::*;
use crate::render::Recorder;

const PATH: &str = "/data/sub/x.bin";

fn change(state: TaskState<'_>) -> Change<'_> {
    Change {
        state,
        path: Some(Path::new(PATH)),
        total_bytes: Some(100),
    }
}

fn ledger_with(indexes: &[usize]) -> (Ledger, Vec<TaskId>, Recorder) {
    let mut ledger = Ledger::new(indexes.len(), PathBuf::from("/data"));
    let ids: Vec<_> = indexes.iter().map(|_| TaskId::random()).collect();
    for (id, index) in ids.iter().zip(indexes) {
        ledger.enter(*id, *index, "http://a.test/x".to_owned());
    }
    (ledger, ids, Recorder::default())
}

#[test]
fn a_file_is_reported_once_from_its_start_to_its_end() {
    let (mut ledger, ids, mut screen) = ledger_with(&[7]);
    let nameless = Change {
        path: None,
        total_bytes: None,
        ..change(TaskState::Running)
    };
    ledger.changed(
        ids[0],
        Change {
            state: TaskState::Waiting,
            ..nameless
        },
        &mut screen,
    );
    ledger.changed(ids[0], nameless, &mut screen);
    assert_eq!(ledger.active().len(), 1);
    ledger.changed(ids[0], change(TaskState::Running), &mut screen);
    ledger.changed(ids[0], change(TaskState::Running), &mut screen);
    assert_eq!(ledger.active()[0].name.as_deref(), Some("sub/x.bin"));
    // 40 of the bytes were received by an earlier run.
    let progress = Progress {
        done_bytes: 70,
        received_bytes: 30,
        ..Progress::default()
    };
    ledger.progressed(ids[0], &progress);
    assert!(ledger.changed(ids[0], change(TaskState::Completed), &mut screen));
    assert!(
        !ledger.changed(ids[0], change(TaskState::Completed), &mut screen),
        "it has ended already"
    );
    assert_eq!(
        screen.lines(),
        [
            "7 started",
            "7 named /data/sub/x.bin Some(100)",
            "7 finished /data/sub/x.bin 100 60"
        ]
    );
    let totals = ledger.totals();
    assert_eq!(
        (
            totals.finished,
            totals.received_bytes,
            totals.unfinished(),
            ledger.len()
        ),
        (1, 60, 0, 0)
    );
    assert!(ledger.active().is_empty());
}

#[test]
fn the_last_failure_counts_and_a_skipped_file_is_none() {
    let (mut ledger, ids, mut screen) = ledger_with(&[0, 1, 2, 3]);
    let [not_found, timeout, exists] =
        [FailureKind::NotFound, FailureKind::Timeout, FailureKind::Exists].map(|kind| Failure::new(kind, "why"));
    let bare = |failure| Change {
        state: TaskState::Failed(failure),
        path: None,
        total_bytes: None,
    };
    ledger.changed(ids[0], bare(&timeout), &mut screen);
    ledger.changed(ids[1], bare(&not_found), &mut screen);
    ledger.skipped(ids[2], Path::new(PATH));
    ledger.changed(
        ids[2],
        Change {
            path: Some(Path::new(PATH)),
            ..bare(&exists)
        },
        &mut screen,
    );
    let lines = screen.lines();
    let ends: Vec<_> = lines.iter().filter(|line| !line.ends_with("started")).collect();
    assert_eq!(
        ends,
        ["0 failed timeout", "1 failed not-found", "2 skipped /data/sub/x.bin"]
    );
    assert_eq!(ledger.last_failure(), Some(FailureKind::NotFound));
    let totals = ledger.totals();
    assert_eq!((totals.failed, totals.skipped, totals.unfinished()), (2, 1, 1));
    assert_eq!(ledger.ids(), [ids[3]]);
}

#[test]
fn active_files_are_in_the_order_of_the_input() {
    let (mut ledger, ids, mut screen) = ledger_with(&[9, 4, 6]);
    for id in &ids {
        ledger.changed(*id, change(TaskState::Running), &mut screen);
    }
    ledger.changed(ids[2], change(TaskState::Waiting), &mut screen);
    let active: Vec<_> = ledger.active().iter().map(|file| file.index).collect();
    assert_eq!(active, [4, 9]);
}

#[test]
fn files_of_a_directory_have_their_own_urls_and_positions_that_nothing_else_gets() {
    let (mut ledger, ids, mut screen) = ledger_with(&[0]);
    let other = TaskId::random();
    ledger.note_listed(ids[0], "ftp://a.test/pub/one".to_owned());
    ledger.note_listed(other, "ftp://a.test/pub/two".to_owned());
    assert_eq!(ledger.expect_more(2), 2..4, "those of a document that is followed");
    ledger.note_listed(other, "ftp://a.test/pub/two".to_owned());
    for id in [ids[0], other] {
        ledger.changed(id, change(TaskState::Running), &mut screen);
    }
    let active: Vec<_> = ledger
        .active()
        .iter()
        .map(|file| (file.index, file.url.clone()))
        .collect();
    assert_eq!(
        active,
        [
            (0, "ftp://a.test/pub/one".to_owned()),
            (1, "ftp://a.test/pub/two".to_owned())
        ]
    );
    assert_eq!(ledger.totals().count, 4);
}

#[test]
fn a_description_that_was_followed_gives_its_place_to_what_it_describes() {
    let (mut ledger, ids, mut screen) = ledger_with(&[0]);
    ledger.changed(ids[0], change(TaskState::Running), &mut screen);
    let became = Change {
        state: TaskState::Waiting,
        path: None,
        total_bytes: None,
    };
    ledger.changed(ids[0], became, &mut screen);
    let torrent = Change {
        path: Some(Path::new("/data/work")),
        ..change(TaskState::Running)
    };
    ledger.changed(ids[0], torrent, &mut screen);
    assert_eq!(
        screen.lines(),
        [
            "0 started",
            "0 named /data/sub/x.bin Some(100)",
            "0 named /data/work Some(100)"
        ]
    );
}
