//! `svc` in the place of `aria2c`: the same command lines end with the same exit codes, files and messages as Debian's, but
//! for the differences that `aria2c/differences.txt` lists; and what was begun goes on.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod each;
mod options;
mod torrents;
mod transcript;

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use e2e::{binary, python, service::signal, setting};
use rustix::process::Signal;
use support::{
    Content, End, Origin, Resource,
    behaviour::{self, basic_auth},
};

use self::transcript::{difference, transcript};
use crate::place::Place;

const MIB: u64 = 1 << 20;

/// Bytes a second of a slow line.
const CRAWL: u64 = 100_000;

/// The reference.
fn reference() -> &'static Path {
    let path = Path::new("/usr/bin/aria2c");
    assert!(path.exists(), "there is no {}: tests/run installs it", path.display());
    path
}

fn content() -> Content {
    Content::seeded(71, 3 * MIB + 5)
}

/// `svc` under the name that front ends look for, in a directory of its own.
fn with_our_name(place: &Place) -> PathBuf {
    let directory = place.aside("bin");
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join("aria2c");
    if !program.exists() {
        symlink(binary::path(), &program).unwrap();
    }
    program
}

fn command(program: &Path, place: &Place, line: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", place.aside("home"))
        .current_dir(place.path());
    command
        .args(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn ours(place: &Place, line: &[&str]) -> Command {
    command(&with_our_name(place), place, line)
}

/// The exit code, and both outputs.
fn run(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = [stdout, stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    (status.code(), said)
}

fn origin() -> Origin {
    let served = |path: &str| Resource::new(path, content());
    Origin::start(vec![
        served("/f.bin"),
        served("/auth").with(basic_auth("u", "p")),
        served("/busy").with(behaviour::status(503)),
        served("/broken").with(behaviour::status(500)),
        served("/gone").with(behaviour::status(410)),
        served("/loop").with(behaviour::redirect(302, "/loop")),
        served("/silent").with(behaviour::silent(End::Stall)),
        served("/slow").with(behaviour::paced(MIB)),
        served("/crawl").with(behaviour::paced(CRAWL)),
    ])
}

/// What is there before a command line is tried.
fn prepare(place: &Place, base: &str) {
    fs::write(place.path().join("there"), "old").unwrap();
    fs::write(
        place.path().join("list"),
        format!("{base}/f.bin\n out=one\n{base}/f.bin\t{base}/f.bin\n  out=two\n"),
    )
    .unwrap();
    fs::write(place.path().join("bad-list"), format!("{base}/f.bin\n split=0\n")).unwrap();
    fs::write(place.path().join("bad.conf"), "split=0\n").unwrap();
    fs::write(place.path().join("odd.conf"), "nope=1\nout=by-conf\n").unwrap();
}

/// Command lines, the exit code they end with, and the files that they leave. `{}` is the server.
const LINES: &[(&[&str], i32, &[&str])] = &[
    (&["{}/f.bin"], 0, &["f.bin"]),
    (&["-x16", "-s16", "-k1M", "-o", "name", "{}/f.bin"], 0, &["name"]),
    (&["-i", "list", "-j5"], 0, &["one", "two"]),
    (
        &["-Z", "{}/f.bin?1", "{}/f.bin?2", "-d", "sub/dir"],
        0,
        &["sub/dir/f.bin"],
    ),
    (&["-P", "{}/f.{bin,nope}", "-o", "name"], 0, &["name"]),
    (&["--conf-path=odd.conf", "{}/f.bin"], 0, &["by-conf"]),
    (&["--http-user=u", "--http-passwd=p", "{}/auth"], 0, &["auth"]),
    (&["--allow-overwrite=true", "-o", "there", "{}/f.bin"], 0, &["there"]),
    (&["--quiet", "{}/f.bin"], 0, &["f.bin"]),
    (&["--download-result=hide", "{}/f.bin"], 0, &["f.bin"]),
    (&["-Z", "-o", "name", "{}/f.bin"], 0, &["f.bin"]),
    (&["{}/nope"], 3, &[]),
    (&["{}/gone"], 22, &[]),
    (&["-Z", "{}/nope", "{}/f.bin"], 3, &["f.bin"]),
    (&["--max-tries=1", "{}/auth"], 24, &[]),
    (&["--max-tries=1", "{}/busy"], 29, &[]),
    (&["--max-tries=1", "{}/broken"], 22, &[]),
    (&["{}/loop"], 23, &[]),
    (&["--timeout=1", "--max-tries=1", "{}/silent"], 2, &[]),
    (&["--auto-file-renaming=false", "-o", "there", "{}/f.bin"], 13, &[]),
    (
        &["--checksum=md5=00000000000000000000000000000000", "{}/f.bin"],
        32,
        &[],
    ),
    (&["-d", "there", "{}/f.bin"], 18, &[]),
    (&["--nope", "{}/f.bin"], 28, &[]),
    (&["-W"], 28, &[]),
    (&["-x99", "{}/f.bin"], 28, &[]),
    (&["-cx2", "{}/f.bin"], 28, &[]),
    (&["--con", "{}/f.bin"], 28, &[]),
    (&["--dir"], 28, &[]),
    (&["--conf-path=bad.conf", "{}/f.bin"], 28, &[]),
    (&["--conf-path=missing.conf", "{}/f.bin"], 1, &[]),
    (&["-i", "missing"], 1, &[]),
    (&["-i", "bad-list"], 28, &[]),
    (&[], 1, &[]),
    (&["--enable-rpc", "--rpc-listen-port=17899", "--stop=1"], 0, &[]),
    (&["--version"], 0, &[]),
];

/// Where the two differ, as last agreed.
const AGREED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/aria2c/differences.txt");

const AGREED_HEAD: &str = "\
# What `svc aria2c` does and says otherwise than Debian's aria2c, for each command line that tests/it/aria2c.rs tries.
# `-` is aria2c's line and `+` ours; what stands in neither is the same. `UPDATE_EXPECT=1` writes this file: look at what
# changed before you agree.
";

#[test]
fn the_same_lines_end_with_the_same_codes_files_and_messages() {
    let origin = origin();
    let base = origin.url("");
    let base = base.trim_end_matches('/');
    let mut page = AGREED_HEAD.to_owned();
    for (line, code, files) in LINES {
        let words: Vec<_> = line.iter().map(|word| word.replace("{}", base)).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let [ours, theirs] = [with_our_name, |_: &Place| reference().to_owned()].map(|program| {
            let place = Place::new();
            prepare(&place, base);
            let program = program(&place);
            let output = command(&program, &place, &words).output().unwrap();
            let transcript = transcript(&output, &place, base);
            assert_eq!(output.status.code(), Some(*code), "{line:?}: {transcript:#?}");
            for file in *files {
                place.assert_file(file, &content());
            }
            transcript
        });
        // Versions are each program's own.
        if *line != ["--version"] {
            let differs = difference(&theirs, &ours);
            write!(page, "\n$ aria2c {}\n{differs}", line.join(" ")).unwrap();
        }
    }
    if setting::updates_expected() {
        fs::write(AGREED, &page).unwrap();
    }
    let agreed = fs::read_to_string(AGREED).unwrap_or_default();
    let news = difference(&lines(&agreed), &lines(&page));
    assert!(
        news.is_empty(),
        "not as agreed; UPDATE_EXPECT=1 rewrites {AGREED}:\n{news}"
    );
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn begin(place: &Place, origin: &Origin, line: &[&str]) -> Child {
    let before = origin.bytes_sent();
    let child = ours(place, line).spawn().unwrap();
    assert!(origin.wait_for_bytes(before + MIB, Duration::from_secs(30)));
    child
}

fn pid(child: &Child) -> i32 {
    child.id().try_into().unwrap()
}

#[test]
fn what_was_killed_goes_on_where_it_was() {
    let (origin, place) = (origin(), Place::new());
    let url = origin.url("/slow");
    let mut child = begin(&place, &origin, &[&url]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.finished_names(), Vec::<String>::new());
    let (code, said) = run(ours(&place, &["-c", &url]));
    assert_eq!(code, Some(0), "{said}");
    place.assert_file("slow", &content());
    assert_eq!(place.names(), ["slow"]);
    assert!(
        origin.bytes_sent() < content().len() + content().len() / 2,
        "it started over"
    );
}

#[test]
fn a_kill_on_a_slow_line_loses_what_came_in_the_last_seconds_and_no_more() {
    let (origin, place) = (origin(), Place::new());
    let url = origin.url("/crawl");
    let mut child = ours(&place, &[&url]).spawn().unwrap();
    let (sent, lost) = (CRAWL * 9 / 2, CRAWL * 3);
    assert!(origin.wait_for_bytes(sent, Duration::from_mins(1)));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = origin.requests().len();
    let mut child = ours(&place, &[&url]).spawn().unwrap();
    let asked = origin.wait_for_requests(before + 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let range = asked[before].header("range").unwrap();
    let start: u64 = range
        .trim_start_matches("bytes=")
        .trim_end_matches('-')
        .parse()
        .unwrap();
    assert!(start >= sent - lost, "of {sent} bytes, {start} were recorded");
}

#[test]
fn what_another_program_began_goes_on() {
    let (origin, place) = (origin(), Place::new());
    let target = place.path().join("f.bin");
    let url = origin.url("/f.bin");
    for begun in [content().len() - MIB, content().len()] {
        let before = origin.bytes_sent();
        fs::write(&target, content().slice(0..begun)).unwrap();
        let (code, said) = run(ours(&place, &["-c", &url]));
        assert_eq!(code, Some(0), "{said}");
        place.assert_file("f.bin", &content());
        assert_eq!(place.names(), ["f.bin"]);
        assert!(origin.bytes_sent() - before < 2 * MIB, "it started over");
    }
    // Nobody answers: the file stays what it was.
    let (code, _) = run(ours(&place, &["-c", "--max-tries=1", "http://127.0.0.1:1/f.bin"]));
    assert_eq!((code, place.names()), (Some(1), vec!["f.bin".to_owned()]));
}

#[test]
fn a_file_that_is_not_the_beginning_of_the_download_is_kept() {
    let origin = origin();
    let longer = [&content().slice(0..content().len())[..], b"and more"].concat();
    let other = vec![b'x'; 1 << 20];
    for mine in [&longer, &other] {
        let file = |place: &Place, name: &str| fs::read(place.path().join(name)).unwrap();
        for (options, ends, names) in [
            (&["-c"][..], Some(0), &["f (1).bin", "f.bin"][..]),
            (&["-c", "--auto-file-renaming=false"], Some(13), &["f.bin"]),
        ] {
            let place = Place::new();
            fs::write(place.path().join("f.bin"), mine).unwrap();
            let url = origin.url("/f.bin");
            let (code, said) = run(ours(&place, &[options, &[&url]].concat()));
            assert_eq!(
                (code, &place.names()[..]),
                (
                    ends,
                    &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]
                ),
                "{said}"
            );
            assert!(file(&place, "f.bin") == *mine, "the file of the user changed");
            if ends == Some(0) {
                place.assert_file("f (1).bin", &content());
            }
        }
        let place = Place::new();
        fs::write(place.path().join("f.bin"), mine).unwrap();
        let url = origin.url("/f.bin");
        let (code, said) = run(ours(&place, &["-c", "--allow-overwrite=true", &url]));
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(place.names(), ["f.bin"]);
        place.assert_file("f.bin", &content());
    }
}

#[test]
fn what_aria2_itself_began_goes_on() {
    let (origin, place) = (origin(), Place::new());
    let url = origin.url("/slow");
    let line = [
        "-x2",
        "-s2",
        "-k1M",
        "--auto-save-interval=1",
        // It writes once a second, and shall do so between its first piece and its last.
        "--max-download-limit=600K",
        "--file-allocation=none",
        &url,
    ];
    let mut child = command(reference(), &place, &line).spawn().unwrap();
    let control = place.path().join("slow.aria2");
    e2e::service::wait_until("it has written a piece down", || {
        fs::read(&control).is_ok_and(|bytes| bytes.get(34..35).is_some_and(|field| field != [0]))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let before = origin.bytes_sent();
    let (code, said) = run(ours(&place, &[&url]));
    assert_eq!(code, Some(0), "{said}");
    place.assert_file("slow", &content());
    assert_eq!(place.names(), ["slow"]);
    assert!(origin.bytes_sent() - before < content().len(), "it started over");
}

#[test]
fn what_was_interrupted_is_in_the_session_and_goes_on_from_it() {
    let (origin, place) = (origin(), Place::new());
    let url = origin.url("/slow");
    let line = ["--save-session=s", "--header=A: secret", "-o", "out", "-x2", &url];
    let child = begin(&place, &origin, &line);
    signal(pid(&child), Signal::INT);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(
        said.contains("|INPR|") && said.contains("Serialized session to"),
        "{said}"
    );
    let session = fs::read_to_string(place.path().join("s")).unwrap();
    assert!(session.starts_with(&format!("{url}\t\n gid=")), "{session}");
    assert!(
        session.contains("\n header=A: secret\n") && session.contains("\n out=out\n"),
        "{session}"
    );
    // The next start does not say it again.
    assert!(session.contains("\n max-connection-per-server=2\n"), "{session}");
    assert!(!session.contains("retry-wait"), "{session}");
    let (code, said) = run(ours(&place, &["-i", "s", "--save-session=s"]));
    assert_eq!(code, Some(0), "{said}");
    place.assert_file("out", &content());
    assert_eq!(fs::read_to_string(place.path().join("s")).unwrap(), "");
    assert_eq!(place.names(), ["out", "s"]);
}

#[test]
fn commands_are_called_with_the_gid_the_number_of_files_and_the_path() {
    use std::os::unix::fs::PermissionsExt as _;
    let (origin, place) = (origin(), Place::new());
    let hook = place.aside("hook");
    fs::write(&hook, "#!/bin/sh\necho \"$#|$1|$2|$3\" >> told\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let hook = format!("--on-download-complete={}", hook.display());
    let (code, said) = run(ours(&place, &[&hook, "--gid=00000000000000a1", &origin.url("/f.bin")]));
    assert_eq!(code, Some(0), "{said}");
    e2e::service::wait_until("the command has run", || {
        fs::read_to_string(place.path().join("told")).is_ok_and(|told| told.ends_with('\n'))
    });
    let told = fs::read_to_string(place.path().join("told")).unwrap();
    let path = place.path().join("f.bin");
    assert_eq!(told, format!("3|00000000000000a1|1|{}\n", path.display()));
}

#[test]
fn a_front_end_that_starts_aria2c_finds_what_it_needs() {
    let place = Place::new();
    let program = with_our_name(&place);
    let directory = program.parent().unwrap();
    let arguments = [directory.to_str().unwrap(), place.path().to_str().unwrap()];
    println!("{}", python::run("clients/aria2c_front_end.py", &arguments));
}
