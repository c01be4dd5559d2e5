//! Every hostile server of SFTP against the executable: the file is identical, or the failure is named, memory is bounded, and
//! nothing that looks finished is left.

use std::{
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use e2e::{Run, Svc, setting};
use support::Content;

use crate::{place::Place, sftp::Asyncssh};

/// Cases at a time: most of them wait more than they work.
const AT_A_TIME: usize = 3;

/// A case that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(1);

const LOGIN: &str = "me:canary-password";

/// How a download ends.
enum End {
    Identical,
    Error(&'static [&'static str]),
    /// The list of a directory is refused.
    List(&'static [&'static str]),
    /// A directory's own files are there, and no others.
    Group,
}

use End::{Error, Group, Identical, List};

/// What is done otherwise than it should be: the name of the case in `sftp_server.py`, the server's deed, and the end.
const CASES: &[(&str, &str, End)] = &[
    (
        "size-too-large",
        "Says that the file has more bytes than it sends.",
        Error(&["size-mismatch"]),
    ),
    (
        "size-too-small",
        "Says that the file has fewer bytes than it sends.",
        Error(&["size-mismatch"]),
    ),
    (
        "size-huge",
        "Says that the file has 2^64 - 1 bytes.",
        Error(&["disk-full", "size-mismatch"]),
    ),
    (
        "no-size",
        "Does not say how many bytes the file has.",
        Error(&["malformed-response"]),
    ),
    ("no-mode", "Does not say what kind of file it is.", Identical),
    (
        "is-a-device",
        "Says that the file is a device.",
        Error(&["not-the-file"]),
    ),
    (
        "changes-time",
        "Says another time of change whenever it is asked.",
        Error(&["changed"]),
    ),
    (
        "changes-once",
        "Says another time of change from the fourth read on.",
        Identical,
    ),
    (
        "endless-attributes",
        "Announces 2^32 - 1 attributes.",
        Error(&["malformed-response"]),
    ),
    (
        "packet-of-4-gib",
        "Announces a packet of 4 GiB.",
        Error(&["malformed-response"]),
    ),
    (
        "packet-of-300-kib",
        "Sends a packet of 300 KiB.",
        Error(&["malformed-response"]),
    ),
    (
        "packet-of-nothing",
        "Sends a packet without a byte.",
        Error(&["malformed-response"]),
    ),
    (
        "silent-start",
        "Says nothing after SFTP was asked for.",
        Error(&["timeout"]),
    ),
    ("old-version", "Has version 2.", Error(&["malformed-response"])),
    (
        "text-before-packets",
        "Greets in words where packets have to be.",
        Error(&["malformed-response"]),
    ),
    (
        "flood",
        "Sends packets without end and without being asked.",
        Error(&["malformed-response", "network"]),
    ),
    (
        "huge-handle",
        "Gives a handle of 100,000 bytes.",
        Error(&["malformed-response"]),
    ),
    ("permission-denied", "Refuses to open the file.", Error(&["forbidden"])),
    (
        "short-reads",
        "Answers every read with a third of what was asked for.",
        Identical,
    ),
    ("reads-of-one-byte-once", "Answers a read with one byte.", Identical),
    (
        "empty-reads",
        "Answers reads with no bytes.",
        Error(&["malformed-response"]),
    ),
    (
        "longer-reads",
        "Answers reads with a byte more.",
        Error(&["malformed-response"]),
    ),
    (
        "wrong-number",
        "Answers requests that were not made.",
        Error(&["malformed-response"]),
    ),
    (
        "answers-twice",
        "Answers every read twice.",
        Error(&["malformed-response"]),
    ),
    ("out-of-order", "Answers a read only after later ones.", Identical),
    (
        "early-end",
        "Says that the file ends after 100,000 bytes.",
        Error(&["size-mismatch"]),
    ),
    ("early-end-once", "Says once that the file ends.", Identical),
    ("breaks-off", "Breaks the connection once.", Identical),
    ("stalls", "Stops answering after 100,000 bytes.", Error(&["timeout"])),
    (
        "read-fails",
        "Cannot read on after 100,000 bytes.",
        Error(&["server-error"]),
    ),
    (
        "reply-of-another-kind",
        "Answers reads with handles.",
        Error(&["malformed-response"]),
    ),
    (
        "unknown-kind",
        "Answers reads with packets of an unknown kind.",
        Error(&["malformed-response"]),
    ),
    (
        "cut-packet",
        "Ends its packets within their bytes.",
        Error(&["malformed-response"]),
    ),
    (
        "more-than-size",
        "Sends bytes behind the end.",
        Error(&["size-mismatch"]),
    ),
    (
        "grows",
        "Makes the file longer while it is read, ever again.",
        Error(&["changed", "size-mismatch"]),
    ),
    ("shrinks", "Cuts the file while it is read.", Identical),
    ("endless-names", "Lists names without end.", List(&["not-the-file"])),
    (
        "empty-lists",
        "Lists nothing without end.",
        List(&["malformed-response", "not-the-file"]),
    ),
    (
        "count-of-4-billion",
        "Announces 2^32 - 1 names.",
        List(&["malformed-response"]),
    ),
    (
        "names-that-lead-away",
        "Lists names with slashes, dots and NUL, and a directory in itself.",
        Group,
    ),
];

#[test]
fn every_case_ends_as_it_should() {
    let filter = setting::case_filter();
    let cases: Vec<_> = CASES.iter().filter(|(name, ..)| name.contains(&filter)).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((name, _, end)) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let faults = faults(name, end);
                    failures.lock().expect("nobody panics with it").extend(faults);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panicked with it");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What is wrong with the ends of a case over one login and over several.
fn faults(name: &str, end: &End) -> Vec<String> {
    let ways = [&[][..], &["--segments", "4", "--min-split", "64K"]];
    let told = ways.iter().filter_map(|more| {
        let fault = judge(name, end, more).err()?;
        Some(format!("{name} {more:?}: {fault}"))
    });
    told.collect()
}

fn judge(name: &str, end: &End, more: &[&str]) -> Result<(), String> {
    let content = Content::seeded(61, 900_077);
    let server = Asyncssh::start(&[("pub/f.bin", &content)], &[&format!("case={name}")]);
    let place = Place::new();
    let path = match end {
        Identical | Error(_) => "pub/f.bin",
        List(_) | Group => "pub/",
    };
    let run = Svc::get(place.path())
        .args([
            "--retries",
            "4",
            "--retry-wait",
            "0.02",
            "--timeout",
            "1",
            "--connect-timeout",
            "3",
        ])
        .args(["--ssh-host-key", &server.fingerprint])
        .args(more)
        .env("HOME", place.aside("home"))
        .env("SSH_AUTH_SOCK", "")
        .deadline(DEADLINE)
        .arg(server.url(LOGIN, path))
        .run();
    let told = || told(&run, &place);
    if !place.escaped().is_empty() {
        return Err(format!("files escaped: {:?}", place.escaped()));
    }
    if run.stdout.concat().contains('\u{1b}') || run.stderr.contains('\u{1b}') {
        return Err(format!("control characters of the server are shown: {}", told()));
    }
    match end {
        Identical | Group if run.code == Some(0) => {
            let file = place
                .path()
                .join(if matches!(end, Group) { "pub/f.bin" } else { "f.bin" });
            // What the server has in the end is the truth: some cases change it.
            let truth = std::fs::read(server.folder.path().join("root/pub/f.bin")).unwrap_or_default();
            if std::fs::read(&file).is_ok_and(|found| found == truth) {
                Ok(())
            } else {
                Err(format!("WRONG FILE; {}", told()))
            }
        }
        Error(kinds) | List(kinds) if run.code != Some(0) => {
            let kind = run.failure().unwrap_or_default();
            let finished = place.finished_names();
            if kinds.contains(&kind.as_str()) && finished.is_empty() {
                Ok(())
            } else {
                Err(format!("left {finished:?}; {}", told()))
            }
        }
        _ => Err(told()),
    }
}

/// How a run ended, in a line.
fn told(run: &Run, place: &Place) -> String {
    let end = match run.event("failed") {
        Some(event) => format!("failed with {}: {}", event["kind"], event["message"]),
        None => format!("ended with {:?}: {}", run.code, run.stderr.trim()),
    };
    let others: Vec<String> = run
        .events()
        .into_iter()
        .filter(|event| event["event"] == "retrying" || event["event"] == "notice")
        .map(|event| event["message"].as_str().unwrap_or("?").to_owned())
        .collect();
    format!("{end}; before {others:?}; files {:?}", place.names())
}

/// How many cases there are.
pub(crate) fn count() -> usize {
    CASES.len()
}

/// The table as a page of the documentation.
pub(crate) fn page() -> String {
    let count = count();
    let mut page = format!(
        "# Hostile servers of SFTP\n\n\
         <!-- Generated from the table in `tests/e2e/tests/it/hostile_sftp.rs`; `UPDATE_EXPECT=1` rewrites it. -->\n\n\
         {count} ways in which a server can misbehave after the login, and what a download then ends with. Every one is run \
         against the\nreal executable, over as many connections as it chooses and over four. *Identical* means: the file is byte \
         for byte the\nserver's. *Error* means: the download fails with one of these codes, and no file that looks finished is \
         left.\n\n| Case | The server … | Ends |\n|---|---|---|\n"
    );
    for (name, what, end) in CASES {
        let codes = |kinds: &[&str]| {
            kinds
                .iter()
                .map(|kind| format!("`{kind}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let end = match end {
            Identical => "identical".to_owned(),
            Group => "a group of the directory's own files".to_owned(),
            Error(kinds) | List(kinds) => format!("error: {}", codes(kinds)),
        };
        writeln!(page, "| `{name}` | {what} | {end} |").expect("writing to a string");
    }
    page
}
