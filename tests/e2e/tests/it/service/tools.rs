//! Programs of the user: `yt-dlp` as it is, with its generic extractor, and one that hangs.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::{
    guest,
    plugin_sites::{run, svc},
};

/// The plugin of these tests.
const PLUGIN: &str = "yt-dlp@svc";

pub(super) const PENDING: u64 = 0;
pub(super) const DONE: u64 = 3;
const FAILED: u64 = 4;

fn clip(seed: u64) -> Content {
    Content::seeded(seed, 300_000)
}

/// A site with a film in two qualities.
fn site() -> Origin {
    let page = "<!doctype html><title>A film</title><video controls>\
        <source src='/hd.mp4' type='video/mp4' label='720p' res='720'>\
        <source src='/sd.mp4' type='video/mp4' label='360p' res='360'></video>";
    Origin::start(vec![
        Resource::new("/watch", Content::bytes(page)).media_type("text/html"),
        Resource::new("/hd.mp4", clip(1)).media_type("video/mp4"),
        Resource::new("/sd.mp4", clip(2)).media_type("video/mp4"),
    ])
}

/// The real program, from its registry.
fn yt_dlp() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/python");
    let prefix = Command::new(python)
        .args(["-c", "import sys; print(sys.prefix)"])
        .output()
        .unwrap();
    let prefix = String::from_utf8(prefix.stdout).unwrap();
    Path::new(prefix.trim()).join("bin/yt-dlp")
}

/// A service with the plugin for the pages of this origin.
pub(super) fn service_for(home: &Home, origin: &Origin) -> Service {
    let service = guest::with_plugin(home, PLUGIN);
    let sites = format!("sites=127.0.0.1:{}", origin.port());
    run(&service, &["plugin", "settings", PLUGIN, &sites]);
    service
}

pub(super) fn allow(service: &Service, program: &Path) {
    let choice = format!("tool_yt_dlp={}", program.display());
    run(service, &["config", "server", "set", &choice]);
}

fn preview(service: &Service, url: &str) -> Value {
    service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})))
}

/// The line of `svc doctor` about the program.
fn diagnosis(service: &Service) -> String {
    let doctor = svc(service, &["doctor"]).run();
    let line = doctor.stdout.iter().find(|line| line.contains("yt-dlp"));
    line.unwrap_or_else(|| panic!("{doctor:?}")).clone()
}

#[track_caller]
fn assert_done(service: &Service, id: &str) {
    wait_until("the file is there", || {
        let task = service.task(id);
        assert_ne!(task["status"], FAILED, "{task}");
        task["status"] == DONE
    });
}

#[test]
fn a_page_is_seen_with_the_users_yt_dlp_and_its_bytes_are_moved_by_the_service() {
    let (origin, home) = (site(), Home::new());
    let service = service_for(&home, &origin);
    let url = origin.url("/watch");

    let refused = preview(&service, &url);
    assert!(refused.to_string().contains("tool_yt_dlp"), "it is off: {refused}");
    assert_eq!(origin.requests().len(), 0);
    let program = yt_dlp();
    allow(&service, &program);

    let seen = preview(&service, &url);
    let item = &seen["items"][0];
    assert_eq!(seen["items"].as_array().map(Vec::len), Some(1), "{seen}");
    let name = item["name"].as_str().unwrap();
    assert!(
        name.starts_with("A film") && Path::new(name).extension().is_some_and(|is| is == "mp4"),
        "{seen}"
    );
    let ids: Vec<_> = item["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| &variant["id"])
        .collect();
    assert!(ids.contains(&&json!("360p")) && ids.contains(&&json!("720p")), "{seen}");

    let chosen = json!({"resolverItem": format!("{}@360p", item["id"].as_str().unwrap()), "fileName": "small.mp4"});
    let group = json!({"sourceUrl": url, "groupName": "Film", "items": [chosen]});
    let made = service.call("POST", "/api/v1/groups", Some(&group));
    let id = made["taskIds"][0].as_str().unwrap_or_else(|| panic!("{made}"));
    assert_done(&service, id);
    let folder = service.task(id)["saveDir"].as_str().unwrap().to_owned();
    assert!(fs::read(Path::new(&folder).join("small.mp4")).unwrap() == clip(2).to_vec());

    let id = service.create(&json!({"url": url}));
    assert_done(&service, &id);
    assert!(fs::read(home.downloads().join(name)).unwrap() == clip(1).to_vec());

    let line = diagnosis(&service);
    assert!(line.contains(&program.display().to_string()), "{line}");
    assert!(line.starts_with("ok ") || line.contains("without a network"), "{line}");
    // Nothing of its runs stays.
    let left = fs::read_dir(home.data().join("tools")).unwrap().count();
    assert_eq!(left, 0);
    assert_eq!(service.terminate().code, Some(0));
}

/// Makes a program of a script. Another process writes it: while this one has it open, it cannot be started.
fn script(home: &Home, name: &str, text: &str) -> PathBuf {
    let (source, program) = (home.path().join("source"), home.path().join(name));
    fs::write(&source, format!("#!/bin/sh\n{text}")).unwrap();
    let installed = Command::new("install")
        .args(["-m", "755"])
        .args([&source, &program])
        .status();
    assert!(installed.unwrap().success());
    program
}

/// Runs a program that makes media.
fn make(program: &str, arguments: &str) {
    let ran = Command::new(program)
        .args(arguments.split_whitespace())
        .output()
        .expect("tests/run installs ffmpeg");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn picture_and_sound_of_a_page_become_one_file() {
    let home = Home::new();
    let made = |name: &str| home.path().join(name).display().to_string();
    let quiet = "-hide_banner -loglevel error -y -f lavfi -i";
    let (picture, sound) = (made("picture.mp4"), made("sound.m4a"));
    make("ffmpeg", &format!("{quiet} testsrc=d=2:s=64x48 -c:v mpeg4 {picture}"));
    make("ffmpeg", &format!("{quiet} sine=d=2 -c:a aac {sound}"));
    let content = |path: &str| Content::bytes(fs::read(path).unwrap());
    let origin = Origin::start(vec![
        Resource::new("/picture.mp4", content(&picture)),
        Resource::new("/sound.m4a", content(&sound)),
    ]);
    let service = service_for(&home, &origin);
    let found = json!({"id": "1", "title": "A film", "formats": [
        {"format_id": "a", "url": origin.url("/sound.m4a"), "ext": "m4a", "protocol": "http", "vcodec": "none", "acodec": "aac"},
        {"format_id": "v", "url": origin.url("/picture.mp4"), "ext": "mp4", "protocol": "http", "vcodec": "mpeg4", "acodec": "none"},
    ]});
    allow(
        &service,
        &script(&home, "yt-dlp", &format!("cat <<'END'\n{found}\nEND\n")),
    );
    let chain = r#"post_chain=[{"kind":"mux","container":"mp4"}]"#;
    run(&service, &["config", "server", "set", "tool_ffmpeg=auto", chain]);

    service.create(&json!({"url": origin.url("/watch")}));
    let mut joined = PathBuf::new();
    wait_until("one file is there", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().unwrap();
        assert!(tasks.iter().all(|task| task["status"] != FAILED), "{tasks:?}");
        let folder = tasks
            .first()
            .and_then(|task| task["saveDir"].as_str())
            .unwrap_or_default();
        let files = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path());
        let is_joined = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("A film")
                && !name.contains(".audio.")
                && name != "A film.video.mp4"
                && name.ends_with(".mp4")
        };
        let found = files.into_iter().find(is_joined);
        joined = found.unwrap_or_default();
        !joined.as_os_str().is_empty()
    });
    let probed = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-show_entries",
            "stream=codec_name",
            "-of",
            "default=nw=1:nk=1",
        ])
        .arg(&joined)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(probed.stdout).unwrap(),
        "mpeg4\naac\n",
        "{}",
        joined.display()
    );
    assert_eq!(service.terminate().code, Some(0));
}

/// A program that never ends and does not want to, and how its processes are found.
pub(super) struct Hanging {
    pub(super) program: PathBuf,
    mark: String,
}

impl Hanging {
    /// A program of this name whose script is made around the commands that hang.
    pub(super) fn named(home: &Home, name: &str, script_around: impl FnOnce(&str) -> String) -> Self {
        // The processes of tests that run at the same time have other names.
        let mark = format!("100000.{}{}", std::process::id(), name.len());
        let hang = format!("trap '' TERM; (trap '' TERM; exec sleep {mark}) & exec sleep {mark}");
        let program = script(home, name, &script_around(&hang));
        Self { program, mark }
    }

    /// How many processes hang; each run has two.
    fn running(&self) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let arguments = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let is_one = |arguments: &Vec<u8>| {
            let mut arguments = arguments.split(|byte| *byte == 0);
            arguments.any(|argument| argument == self.mark.as_bytes())
        };
        arguments.filter(is_one).count()
    }

    pub(super) fn is_running(&self) -> bool {
        self.running() > 0
    }
}

#[test]
fn programs_that_hang_end_with_their_tasks() {
    // More than run at once for one host.
    const TASKS: usize = 6;

    let (origin, home) = (site(), Home::new());
    let service = service_for(&home, &origin);
    let hanging = Hanging::named(&home, "yt-dlp", |hang| format!("{hang}\n"));
    allow(&service, &hanging.program);
    let stuck: Vec<_> = (0..TASKS)
        .map(|index| service.create(&json!({"url": origin.url(&format!("/watch?v={index}"))})))
        .collect();
    wait_until("programs hang", || hanging.running() == 4);
    let shown = stuck
        .iter()
        .all(|id| ![DONE, FAILED].map(Value::from).contains(&service.task(id)["status"]));
    assert!(shown, "and their tasks wait");

    // What the user gives up ends at once, and what is left ends with the service.
    for id in &stuck {
        service.call("DELETE", &format!("/api/v1/tasks/{id}"), None);
    }
    wait_until("what they started ends, too", || hanging.running() == 0);
    assert_eq!(service.terminate().code, Some(0));
}
