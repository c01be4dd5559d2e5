//! Files of a torrent that are chosen, before the download and while it goes on.

use std::{collections::BTreeSet, fs, path::Path};

use e2e::{Home, Service};
use serde_json::{Value, json};
use support::{
    Content,
    swarm::{Libtorrent, Made, MakeTorrent},
};
use tempfile::TempDir;

use super::{COMPLETED, PAUSED, aria2, below, gid, many_files, peers, serve, wait_until, wait_until_complete};

/// As many as collections of photos have.
const FILES: u64 = 2000;

/// Longer than a file, so that a piece has parts of many.
const PIECE: u64 = 32 * 1024;

/// A torrent of many small files.
struct Many {
    files: Vec<(String, Content)>,
    source: TempDir,
    made: Made,
    libtorrent: Libtorrent,
}

impl Many {
    fn new() -> Self {
        let source = tempfile::tempdir().unwrap();
        let top = source.path().join("many");
        fs::create_dir(&top).unwrap();
        let files = many_files(&top, FILES);
        let mut libtorrent = Libtorrent::start();
        let how = MakeTorrent {
            piece: PIECE,
            ..MakeTorrent::default()
        };
        let made = libtorrent.make(&top, &how);
        Self {
            files,
            source,
            made,
            libtorrent,
        }
    }

    /// Their paths in the torrent's own order, which need not be that of names.
    fn order(service: &Service, id: &str) -> Vec<String> {
        let listed = service.rpc().call(
            "daemon.torrent.files",
            &json!({"taskId": id, "offset": 0, "limit": FILES}),
        );
        let listed = listed.unwrap();
        assert_eq!(listed["total"], FILES, "{listed}");
        let mut paths: Vec<_> = listed["files"].as_array().unwrap().iter().map(path_of).collect();
        let mut offset = paths.len();
        while (offset as u64) < FILES {
            let params = json!({"taskId": id, "offset": offset, "limit": FILES});
            let more = service.rpc().call("daemon.torrent.files", &params).unwrap();
            paths.extend(more["files"].as_array().unwrap().iter().map(path_of));
            assert!(paths.len() > offset, "{more}");
            offset = paths.len();
        }
        paths
    }

    fn content(&self, path: &str) -> &Content {
        let found = self.files.iter().find(|(name, _)| name == path);
        &found.unwrap_or_else(|| panic!("{path}")).1
    }

    /// Checks that exactly these files look finished, and are.
    #[track_caller]
    fn check(&self, downloads: &Path, expected: &BTreeSet<String>) {
        let there: BTreeSet<_> = visible(downloads);
        let wanted: BTreeSet<_> = expected.iter().map(|path| format!("many/{path}")).collect();
        assert_eq!(there.difference(&wanted).next(), None, "left behind");
        assert_eq!(wanted.difference(&there).next(), None, "missing");
        for path in expected {
            let difference = self.content(path).difference(&downloads.join("many").join(path));
            assert_eq!(difference.unwrap(), None, "{path}");
        }
    }
}

fn path_of(file: &Value) -> String {
    let path = file["path"].as_str().unwrap();
    path.strip_prefix("many/").unwrap_or(path).to_owned()
}

/// Files that look finished: not hidden.
fn visible(directory: &Path) -> BTreeSet<String> {
    let all = below(directory).into_iter();
    all.filter(|path| !path.split('/').any(|name| name.starts_with('.')))
        .collect()
}

#[test]
fn of_two_thousand_files_a_few_arrive_and_more_when_they_are_chosen() {
    let mut many = Many::new();
    let seeder = many.libtorrent.seed(&many.made.path, many.source.path(), &[]);
    let home = Home::new();
    let service = serve(&home);
    let request = json!({"url": many.made.magnet(&peers(&[seeder])), "torrent": {"files": [3, 77, 1999]}});
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    let order = Many::order(&service, &id);
    let mut chosen: BTreeSet<_> = [3, 77, 1999].map(|index: usize| order[index].clone()).into();
    many.check(&home.downloads(), &chosen);
    let few = many.libtorrent.uploaded();
    assert!(
        few <= 9 * PIECE,
        "only the pieces of those files are fetched: {few} bytes"
    );

    // While it goes on, too.
    many.libtorrent.limit_upload(400_000);
    let more: Vec<u64> = (0..FILES).filter(|index| index % 2 == 1).collect();
    let change = json!({"taskId": id, "files": more});
    service.rpc().call("daemon.torrent.change", &change).unwrap();
    wait_until("more of it arrives", || visible(&home.downloads()).len() > 20);
    let fewer: Vec<u64> = (0..FILES)
        .filter(|index| index % 4 == 1 || [3, 77, 1999].contains(index))
        .collect();
    let change = json!({"taskId": id, "files": fewer});
    service.rpc().call("daemon.torrent.change", &change).unwrap();
    many.libtorrent.limit_upload(0);
    let gid = gid(&id);
    wait_until("it has what is chosen", || {
        let status = aria2(&service, "tellStatus", &[json!(gid)]);
        service.task(&id)["status"] == COMPLETED && status["completedLength"] == status["totalLength"]
    });
    chosen.extend(
        fewer
            .iter()
            .map(|index| order[usize::try_from(*index).unwrap()].clone()),
    );
    // A file that was complete before it was deselected stays.
    let there = visible(&home.downloads());
    let more: BTreeSet<_> = more
        .iter()
        .map(|index| order[usize::try_from(*index).unwrap()].clone())
        .collect();
    for path in &there {
        let path = path.strip_prefix("many/").unwrap();
        assert!(chosen.contains(path) || more.contains(path), "{path} was never chosen");
        chosen.insert(path.to_owned());
    }
    many.check(&home.downloads(), &chosen);

    // All of them.
    let change = json!({"taskId": id, "files": []});
    service.rpc().call("daemon.torrent.change", &change).unwrap();
    let all = order.into_iter().collect();
    wait_until("everything is there", || {
        visible(&home.downloads()).len() as u64 == FILES
    });
    wait_until_complete(&service, &id);
    many.check(&home.downloads(), &all);
    let sent = many.libtorrent.uploaded();
    let total: u64 = many.files.iter().map(|(_, content)| content.len()).sum();
    // Pieces that chosen and other files share are fetched again once the others are chosen: what is not chosen is not kept.
    assert!(sent <= 2 * total + 64 * PIECE, "{sent} bytes for {total}");
}

#[test]
fn a_choice_is_kept_over_a_restart_and_nothing_unchosen_is_left_after_deleting() {
    let mut many = Many::new();
    let seeder = many.libtorrent.seed(&many.made.path, many.source.path(), &[]);
    many.libtorrent.limit_upload(100_000);
    let home = Home::new();
    let service = serve(&home);
    let files: Vec<u64> = (0..FILES).step_by(10).collect();
    let id = service.create(&json!({"url": many.made.magnet(&peers(&[seeder])), "torrent": {"files": files}}));
    wait_until("some of it is there", || visible(&home.downloads()).len() > 5);
    service.terminate();
    let service = home.serve();
    service.wait_until_ready();
    service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
    many.libtorrent.limit_upload(0);
    wait_until_complete(&service, &id);
    let order = Many::order(&service, &id);
    let chosen = files
        .iter()
        .map(|index| order[usize::try_from(*index).unwrap()].clone());
    many.check(&home.downloads(), &chosen.collect());
    service.call("DELETE", &format!("/api/v1/tasks/{id}?deleteFiles=true"), None);
    wait_until("nothing is left, no directory either", || {
        fs::read_dir(home.downloads()).unwrap().count() == 0
    });
}

#[test]
fn finished_files_of_a_torrent_that_is_not_complete_stay_unless_they_are_to_be_deleted() {
    let mut many = Many::new();
    let seeder = many.libtorrent.seed(&many.made.path, many.source.path(), &[]);
    let home = Home::new();
    let service = serve(&home);
    for deletes in [false, true] {
        many.libtorrent.limit_upload(100_000);
        let id = service.create(&json!({"url": many.made.magnet(&peers(&[seeder]))}));
        let has_finished = || {
            visible(&home.downloads())
                .iter()
                .any(|path| !path.ends_with(".svcpart"))
        };
        wait_until("some files are finished", has_finished);
        service.call("PUT", &format!("/api/v1/tasks/{id}/pause"), None);
        wait_until("it is paused", || service.task(&id)["status"] == PAUSED);
        let is_part = |path: &String| path.ends_with(".svcpart");
        let finished: Vec<_> = visible(&home.downloads())
            .into_iter()
            .filter(|path| !is_part(path))
            .collect();
        assert!(
            !finished.is_empty() && (finished.len() as u64) < FILES,
            "{}",
            finished.len()
        );
        service.call("DELETE", &format!("/api/v1/tasks/{id}?deleteFiles={deletes}"), None);
        if deletes {
            wait_until("nothing is left", || {
                fs::read_dir(home.downloads()).unwrap().count() == 0
            });
        } else {
            wait_until("only finished files are left", || {
                let left = visible(&home.downloads());
                // Those of the last piece may have been finished after the task was shown as paused.
                !left.iter().any(is_part) && finished.iter().all(|path| left.contains(path))
            });
            fs::remove_dir_all(home.downloads().join("many")).unwrap();
        }
    }
}

#[test]
fn a_torrent_that_is_deleted_while_its_files_arrive_leaves_none_behind() {
    let mut many = Many::new();
    let seeder = many.libtorrent.seed(&many.made.path, many.source.path(), &[]);
    // Near a thousand files a second: others are finished between the command and the end of the run.
    many.libtorrent.limit_upload(2_000_000);
    let home = Home::new();
    let service = serve(&home);
    let is_part = |path: &String| path.ends_with(".svcpart");
    for deletes in [true, true, true, true, false] {
        let id = service.create(&json!({"url": many.made.magnet(&peers(&[seeder]))}));
        // Beyond what libtorrent sends at once, it sends evenly.
        wait_until("some files are finished", || {
            let there = visible(&home.downloads());
            there.iter().filter(|path| !is_part(path)).count() > 700
        });
        service.call("DELETE", &format!("/api/v1/tasks/{id}?deleteFiles={deletes}"), None);
        if deletes {
            wait_until("nothing is left", || {
                fs::read_dir(home.downloads()).unwrap().count() == 0
            });
        } else {
            wait_until("only finished files are left", || {
                !below(&home.downloads())
                    .iter()
                    .any(|path| is_part(path) || path.starts_with('.'))
            });
            assert!((visible(&home.downloads()).len() as u64) < FILES);
        }
    }
}
