//! Archives are downloaded and then unpacked by a chain, with the step for that or by a plugin: every format, a bomb, and
//! processes that are killed in the middle.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use e2e::{Home, Service, Svc, service::wait_until, setting};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::{guest, kill_loop::Random, plugin_sites::run};

const MIB: usize = 1 << 20;

/// The plugin that unpacks.
const PLUGIN: &str = "unpack@svc";

/// From the first sight of a job that runs to its kill, at most.
const MOST_WAIT: Duration = Duration::from_millis(150);

/// From the first sight of the unpacked directory to the kill, at most: the archive is removed and the job is stored then.
const MOST_WAIT_AFTER: Duration = Duration::from_millis(5);

/// Files of the archive that is unpacked over and over.
const FILES: usize = 2000;

/// Packs what is in `source` with a program that tests/run installs.
fn pack(source: &Path, line: &[&str]) {
    let output = Command::new(line[0]).args(&line[1..]).current_dir(source).output();
    let output = output.unwrap_or_else(|error| panic!("{} (tests/run installs it): {error}", line[0]));
    assert!(output.status.success(), "{line:?}: {output:?}");
}

/// Sets the chain that follows all downloads.
pub(super) fn set_chain(service: &Service, chain: &Value) {
    let mut rpc = service.rpc();
    let now = rpc.call("daemon.config.get", &json!({})).unwrap();
    let patch = json!({"expectedRevision": now["revision"], "values": {"post_chain": chain.to_string()}});
    rpc.call("daemon.config.patch", &patch).unwrap();
}

fn jobs(service: &Service) -> Vec<Value> {
    let list = service.call("GET", "/api/v1/post", None);
    list["jobs"].as_array().unwrap().clone()
}

/// The only job of a task, if there is one.
fn job(service: &Service, task: &str) -> Option<Value> {
    let of_task: Vec<_> = jobs(service).into_iter().filter(|job| job["taskId"] == task).collect();
    assert!(of_task.len() <= 1, "{of_task:?}");
    of_task.into_iter().next()
}

fn is_over(job: &Value) -> bool {
    job["state"] != "waiting" && job["state"] != "running"
}

/// The job of a task once it has ended.
fn ended(service: &Service, task: &str) -> Value {
    let mut found = None;
    wait_until("the job has ended", || {
        found = job(service, task).filter(is_over);
        found.is_some()
    });
    found.unwrap()
}

/// What is directly in the directory of downloads.
fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.downloads()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// All files below a directory with their sizes.
fn files(root: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(root).unwrap().to_owned();
                found.insert(path, entry.metadata().unwrap().len());
            }
        }
    }
    found
}

fn shell(home: &Home, service: &Service) -> Svc {
    let deadline = Duration::from_mins(1);
    let svc = Svc::new().deadline(deadline).env("SVC_TOKEN", e2e::service::KEY);
    svc.env("HOME", home.path()).env("SVC_URL", service.url())
}

#[test]
fn archives_of_every_format_are_unpacked_by_the_chain_of_their_queue() {
    let home = Home::new();
    let source = home.path().join("source");
    fs::create_dir_all(source.join("dir")).unwrap();
    fs::write(source.join("text.txt"), "some text\n".repeat(100)).unwrap();
    fs::write(source.join("dir/more.txt"), "more").unwrap();
    pack(&source, &["zip", "-q", "-r", "../one.zip", "text.txt", "dir"]);
    pack(&source, &["7zz", "a", "../two.7z", "text.txt", "dir"]);
    pack(&source, &["tar", "-cJf", "../three.tar.xz", "text.txt", "dir"]);
    let read = |name: &str| fs::read(home.path().join(name)).unwrap();
    let rar = include_bytes!("../../../../../host/post/tests/data/v5.rar").to_vec();
    let first = include_bytes!("../../../../../host/post/tests/data/set.part1.rar").to_vec();
    let second = include_bytes!("../../../../../host/post/tests/data/set.part2.rar").to_vec();
    let archives = [
        ("one.zip", read("one.zip")),
        ("two.7z", read("two.7z")),
        ("three.tar.xz", read("three.tar.xz")),
        ("four.rar", rar),
        ("set.part1.rar", first),
        ("set.part2.rar", second),
        ("plain.bin", vec![1; 1000]),
    ];
    let resource = |(name, bytes): &(&str, Vec<u8>)| Resource::new(&format!("/{name}"), Content::bytes(bytes.clone()));
    let origin = Origin::start(archives.iter().map(resource).collect());
    let service = home.serve();
    service.wait_until_ready();
    let chain = json!([{"kind": "unpack", "deleteArchive": true}]);
    let queue = json!({"name": "archives", "postChain": chain});
    let mut rpc = service.rpc();
    rpc.call("daemon.queue.create", &queue).unwrap();
    let queues = rpc.call("daemon.queue.list", &json!({})).unwrap();
    let queue = queues
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "archives")
        .unwrap();
    let passwords = json!({"passwords": ["wrong", "secret"]});
    service.call("PUT", "/api/v1/post/passwords", Some(&passwords));
    let tasks: Vec<_> = archives
        .iter()
        .map(|(name, _)| service.create(&json!({"url": origin.url(&format!("/{name}")), "queueId": queue["queueId"]})))
        .collect();
    let expected = ["four", "one", "plain.bin", "set", "three", "two"];
    wait_until("all jobs have ended", || {
        let jobs = jobs(&service);
        jobs.len() == 5 && jobs.iter().all(is_over)
    });
    for job in jobs(&service) {
        assert_eq!(job["state"], "done", "{job}");
    }
    wait_until("nothing else is left", || names(&home) == expected);
    for name in expected.into_iter().filter(|name| *name != "plain.bin") {
        let unpacked = home.downloads().join(name);
        assert_eq!(
            fs::read_to_string(unpacked.join("text.txt")).unwrap(),
            "some text\n".repeat(100),
            "{name}"
        );
        assert_eq!(
            fs::read_to_string(unpacked.join("dir/more.txt")).unwrap(),
            "more",
            "{name}"
        );
    }
    assert_eq!(job(&service, &tasks[6]), None, "nothing follows what is no archive");
    let listed = shell(&home, &service).arg("post").run();
    listed.assert_success();
    assert_eq!(service.call("DELETE", "/api/v1/post", None), json!({"count": 5}));
    service.terminate().assert_success();
}

#[test]
fn volumes_wait_visibly_for_one_that_failed_until_its_task_is_deleted() {
    let home = Home::new();
    let first = include_bytes!("../../../../../host/post/tests/data/set.part1.rar").to_vec();
    let origin = Origin::start(vec![Resource::new("/set.part1.rar", Content::bytes(first))]);
    let service = home.serve();
    service.wait_until_ready();
    set_chain(&service, &json!([{"kind": "unpack", "deleteArchive": true}]));
    let missing = service.create(&json!({"url": origin.url("/set.part2.rar")}));
    let task = service.create(&json!({"url": origin.url("/set.part1.rar")}));
    wait_until("it says what it waits for", || {
        let job = job(&service, &task).unwrap_or_default();
        job["state"] == "waiting" && job["message"] == "waits for set.part2.rar (failed)"
    });
    service.call("DELETE", &format!("/api/v1/tasks/{missing}"), None);
    let ended = ended(&service, &task);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert_eq!(names(&home), ["set.part1.rar"], "half of a set is kept");
    service.terminate().assert_success();
}

#[test]
fn a_bomb_is_refused_by_name_and_kept_and_a_password_is_asked_for() {
    let home = Home::new();
    let source = home.path().join("source");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("zeros.bin"), vec![0; 96 * MIB]).unwrap();
    fs::write(source.join("text.txt"), "text").unwrap();
    pack(&source, &["zip", "-q", "-9", "../bomb.zip", "zeros.bin"]);
    pack(&source, &["7zz", "a", "-pcanary-password", "../locked.7z", "text.txt"]);
    let read = |name: &str| fs::read(home.path().join(name)).unwrap();
    let (bomb, locked) = (read("bomb.zip"), read("locked.7z"));
    let origin = Origin::start(vec![
        Resource::new("/bomb.zip", Content::bytes(bomb.clone())),
        Resource::new("/locked.7z", Content::bytes(locked)),
    ]);
    let service = home.serve();
    service.wait_until_ready();
    set_chain(&service, &json!([{"kind": "unpack", "deleteArchive": true}]));
    let task = service.create(&json!({"url": origin.url("/bomb.zip")}));
    let refused = ended(&service, &task);
    assert_eq!(refused["state"], "failed");
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("zeros.bin") && why.contains("1000"), "{why}");
    assert_eq!(names(&home), ["bomb.zip"]);
    assert_eq!(fs::read(home.downloads().join("bomb.zip")).unwrap(), bomb);
    let task = service.create(&json!({"url": origin.url("/locked.7z")}));
    let refused = ended(&service, &task);
    assert_eq!(refused["state"], "failed", "{refused}");
    let unpacked = shell(&home, &service)
        .args(["unpack", &task, "--password-file", "-", "--delete-archive"])
        .input("wrong one\ncanary-password\n")
        .run();
    unpacked.assert_success();
    assert_eq!(names(&home), ["bomb.zip", "locked"]);
    assert_eq!(
        fs::read_to_string(home.downloads().join("locked/text.txt")).unwrap(),
        "text"
    );
    let again = shell(&home, &service).args(["unpack", &task]).run();
    assert_ne!(again.code, Some(0), "the archive is gone");
    service.terminate().assert_success();
    for file in files(&home.data()).into_keys() {
        // Sockets and locks hold nothing.
        let Ok(bytes) = fs::read(home.data().join(&file)) else {
            continue;
        };
        let is_there = bytes.windows(15).any(|window| window == b"canary-password");
        assert!(!is_there, "{} holds the password", file.display());
    }
}

/// The only step of a chain that calls the plugin.
fn by_plugin() -> Value {
    json!([{"kind": "plugin", "identity": PLUGIN}])
}

#[test]
fn a_plugin_unpacks_with_the_passwords_of_its_settings_and_touches_nothing_else() {
    let home = Home::new();
    let source = home.path().join("source");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("text.txt"), "text").unwrap();
    pack(&source, &["7zz", "a", "-pright", "../locked.7z", "text.txt"]);
    pack(&source, &["zip", "-q", "../theirs.zip", "text.txt"]);
    let read = |name: &str| fs::read(home.path().join(name)).unwrap();
    let (locked, theirs) = (read("locked.7z"), read("theirs.zip"));
    let origin = Origin::start(vec![
        Resource::new("/locked.7z", Content::bytes(locked)),
        Resource::new("/plain.bin", Content::bytes(vec![1; 1000])),
    ]);
    let service = guest::with_plugin(&home, PLUGIN);
    set_chain(&service, &by_plugin());
    // An archive of the user, beside the downloads.
    fs::create_dir_all(home.downloads()).unwrap();
    fs::write(home.downloads().join("theirs.zip"), &theirs).unwrap();

    let plain = service.create(&json!({"url": origin.url("/plain.bin")}));
    assert_eq!(ended(&service, &plain)["state"], "done", "there is nothing to do");
    run(
        &service,
        &["plugin", "settings", PLUGIN, "passwords=wrong", "keepArchive=false"],
    );
    let task = service.create(&json!({"url": origin.url("/locked.7z")}));
    let refused = ended(&service, &task);
    assert_eq!(refused["state"], "failed", "{refused}");
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("locked.7z") && why.contains("passwords"), "{why}");
    assert!(!why.contains(&*home.downloads().to_string_lossy()), "{why}");
    wait_until("nothing of it is left", || {
        names(&home) == ["locked.7z", "plain.bin", "theirs.zip"]
    });

    run(&service, &["plugin", "settings", PLUGIN, "passwords=wrong\nright"]);
    let retried = shell(&home, &service)
        .args(["post", "retry", &refused["jobId"].to_string()])
        .run();
    retried.assert_success();
    let mut done = Value::Null;
    wait_until("the job is done", || {
        done = job(&service, &task).unwrap();
        done["state"] == "done"
    });
    wait_until("only the directory is left of it", || {
        names(&home) == ["locked", "plain.bin", "theirs.zip"]
    });
    assert_eq!(
        fs::read_to_string(home.downloads().join("locked/text.txt")).unwrap(),
        "text"
    );
    assert_eq!(fs::read(home.downloads().join("theirs.zip")).unwrap(), theirs);

    set_chain(&service, &json!([{"kind": "plugin", "identity": "none@svc"}]));
    let task = service.create(&json!({"url": origin.url("/plain.bin?again")}));
    let failed = ended(&service, &task);
    let why = failed["message"].as_str().unwrap();
    assert!(why.contains("none@svc") && why.contains("not installed"), "{why}");
    service.terminate().assert_success();
}

/// Both processes are killed while an archive is unpacked: nothing half is ever visible, and in the end there is one
/// directory with everything, and no archive.
#[test]
fn a_directory_appears_whole_although_processes_are_killed() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    set_chain(&service, &json!([{"kind": "unpack", "deleteArchive": true}]));
    unpack_under_kills(&home, service, setting::kills());
}

/// The same if it is a plugin that has it unpacked.
#[test]
fn what_a_plugin_unpacks_appears_whole_although_processes_are_killed() {
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    run(&service, &["plugin", "settings", PLUGIN, "keepArchive=false"]);
    set_chain(&service, &by_plugin());
    unpack_under_kills(&home, service, setting::kills() / 2);
}

#[expect(clippy::disallowed_methods, reason = "the moment of a kill is random")]
#[expect(
    clippy::print_stdout,
    reason = "says how many kills came before the directory was there"
)]
fn unpack_under_kills(home: &Home, mut service: Service, kills: u64) {
    let source = home.path().join("source");
    fs::create_dir_all(&source).unwrap();
    for number in 0..FILES {
        fs::write(source.join(format!("{number}.txt")), format!("{number}").repeat(20)).unwrap();
    }
    for number in 0..8_u8 {
        fs::write(source.join(format!("large-{number}.bin")), vec![number; 4 * MIB]).unwrap();
    }
    pack(home.path(), &["tar", "-cf", "set.tar", "-C", "source", "."]);
    let archive = fs::read(home.path().join("set.tar")).unwrap();
    let origin = Origin::start(vec![Resource::new("/set.tar", Content::bytes(archive))]);
    let expected = files(&source);
    let mut random = Random::new(0x0b_0b0b);
    let (mut kill, mut rounds, mut in_the_middle) = (0, 0, 0);
    while kill < kills || rounds == 0 {
        let task = service.create(&json!({"url": origin.url("/set.tar")}));
        while kill < kills {
            let mut seen = None;
            wait_until("the job runs or has ended", || {
                seen = job(&service, &task).filter(|job| job["state"] != "waiting");
                seen.is_some()
            });
            if seen.is_some_and(|job| is_over(&job)) {
                break;
            }
            let set = home.downloads().join("set");
            // Every second kill comes after the directory appeared: at random, almost none would.
            let most = if kill % 2 == 0 {
                MOST_WAIT
            } else {
                wait_until("the directory appears", || set.exists());
                MOST_WAIT_AFTER
            };
            thread::sleep(most.mul_f64(random.fraction()));
            kill += 1;
            let daemon = home.daemon().unwrap();
            service.signal(Signal::KILL);
            daemon.kill();
            drop(service);
            if set.exists() {
                assert_eq!(files(&set), expected, "it appears whole");
            } else {
                assert!(
                    home.downloads().join("set.tar").exists(),
                    "the archive is kept until then"
                );
                in_the_middle += 1;
            }
            service = home.serve();
            service.wait_until_ready();
        }
        let done = ended(&service, &task);
        assert_eq!(done["state"], "done", "{done}");
        rounds += 1;
        // What was swept last may take a moment.
        wait_until("only the directory is left", || names(home) == ["set"]);
        assert_eq!(files(&home.downloads().join("set")), expected);
        fs::remove_dir_all(home.downloads().join("set")).unwrap();
        service.call("DELETE", &format!("/api/v1/tasks/{task}"), None);
    }
    println!("{kill} kills in {rounds} rounds, {in_the_middle} of them before the directory was there");
    assert!(
        in_the_middle > 0 && (kill < 2 || in_the_middle < kill),
        "kills come on both sides"
    );
    service.terminate().assert_success();
}
