//! The table of harm that plugins could try, run whole against one runtime with a plugin beside it that works: every
//! attempt ends as the table says, and leaves nothing behind.

mod code;
mod computing;
mod output;
mod package;
mod sites;

use std::{fmt::Write as _, path::Path, time::Instant};

use plugin_host::{Grants, InputHost, Listing, runtime::Language};
use plugin_package::Package;
use plugin_wasm::{CallContext, Limits, LoadError};

use crate::{
    guest::{MEMORY, previewer},
    rig::{Keys, Rig, context},
};

/// How much memory the host may have more of afterwards: what allocators keep, and some compiled code.
const MAX_GROWTH_BYTES: u64 = 160 * 1024 * 1024;

/// How much slower the slowest of a hundred calls may be afterwards, and what is fast enough anyway on a busy machine.
const MAX_SLOWDOWN: u32 = 10;
const FAST_MICROS: u32 = 50_000;

/// Calls of the plugin beside it that are timed before and after.
const TIMED_CALLS: usize = 100;

/// One way to do harm.
struct Case {
    name: &'static str,
    /// What the plugin does, after "The plugin …".
    what: String,
    attempt: Attempt,
    /// The code that it ends with; `ok` if it changes nothing for anybody.
    ends: &'static str,
}

/// What is tried.
enum Attempt {
    /// A call.
    Call(Box<Call>),
    /// Code that is loaded.
    Load(Vec<u8>),
    /// An archive that is opened.
    Package(Vec<u8>),
}

struct Call {
    guest: Vec<u8>,
    url: String,
    grants: Grants,
    limits: Limits,
    /// What its listing must be like.
    is_harmless: fn(&Listing) -> bool,
    /// A site that lives as long as the case.
    _site: Option<support::Origin>,
}

impl Call {
    /// A call of `guest` that is granted nothing.
    fn of(guest: Vec<u8>) -> Self {
        Self {
            guest,
            url: "https://example.org/".to_owned(),
            grants: Grants::default(),
            limits: Limits::preview(),
            is_harmless: |_| true,
            _site: None,
        }
    }
}

fn case(name: &'static str, what: &str, ends: &'static str, attempt: Attempt) -> Case {
    let what = what.to_owned();
    Case {
        name,
        what,
        attempt,
        ends,
    }
}

/// A case of a guest that needs no grants.
fn does(name: &'static str, what: &str, ends: &'static str, (imports, items, body): (&[&str], &str, &str)) -> Case {
    let call = Call::of(previewer(imports, items, body));
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

fn themes() -> [(&'static str, Vec<Case>); 5] {
    [
        ("Computing and memory", computing::cases()),
        ("What is handed out", output::cases()),
        ("The network and secrets", sites::cases()),
        ("Code", code::cases()),
        ("Packages", package::cases()),
    ]
}

async fn outcome(rig: &Rig, attempt: Attempt) -> String {
    match attempt {
        Attempt::Call(call) => {
            let loaded = rig.load(call.guest).await;
            let (base, _log) = context();
            let context = CallContext {
                grants: call.grants,
                vault: std::sync::Arc::new(Keys),
                ..base
            };
            match loaded.preview(&call.url, context, call.limits).await.result {
                Ok(listing) if (call.is_harmless)(&listing) => "ok".to_owned(),
                Ok(listing) => format!("harmful: {listing:?}"),
                Err(fault) => fault.code().to_owned(),
            }
        }
        Attempt::Load(bytes) => match rig.runtime.load(bytes, Language::Component).await {
            Ok(_) => "ok".to_owned(),
            Err(LoadError::Screen(_)) => "screen".to_owned(),
            Err(LoadError::NotComponent(_)) => "kind".to_owned(),
            Err(LoadError::Script(_)) => "script".to_owned(),
            Err(LoadError::Compile(_)) => "compiler".to_owned(),
            Err(LoadError::Abi { .. }) => "abi".to_owned(),
            Err(LoadError::TryOut(fault)) => format!("start: {}", fault.code()),
            Err(LoadError::Host(error)) => panic!("{error}"),
        },
        Attempt::Package(bytes) => match Package::open(&bytes) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.check.to_string(),
        },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_ends_as_the_table_says_and_leaves_nothing_behind() {
    let rig = Rig::new();
    let bystander = rig.load(previewer(&[], MEMORY, "")).await;
    let slowest = async || {
        let mut times = Vec::new();
        for _ in 0..TIMED_CALLS {
            let started = Instant::now();
            let called = bystander
                .preview("https://example.org/", context().0, Limits::preview())
                .await;
            called.result.unwrap();
            times.push(u32::try_from(started.elapsed().as_micros()).unwrap());
        }
        times.sort_unstable();
        times[TIMED_CALLS * 99 / 100 - 1]
    };
    slowest().await;
    let (slow_before, memory_before) = (slowest().await, resident_bytes());
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in themes().into_iter().flat_map(|(_, cases)| cases) {
        let ended = outcome(&rig, case.attempt).await;
        if ended != case.ends {
            wrong.push(format!("{}: {ended}, not {}", case.name, case.ends));
        }
        count += 1;
    }
    let (slow_after, memory_after) = (slowest().await, resident_bytes());
    let growth = memory_after.saturating_sub(memory_before);
    println!("{count} cases; {growth} bytes more; a bystander's p99: {slow_before} us before, {slow_after} us after");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count >= 40);
    assert!(growth < MAX_GROWTH_BYTES, "{growth}");
    assert!(
        slow_after < FAST_MICROS.max(slow_before * MAX_SLOWDOWN),
        "{slow_before} {slow_after}"
    );
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes * 1024
}

/// What a call may reach that the user started with `url`.
fn asked_for(url: &str, hosts: &[&str]) -> Grants {
    Grants {
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        input_host: Some(InputHost::given_by_user(url.parse().unwrap())),
        ..Grants::default()
    }
}

#[test]
fn the_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/hostile-plugins.md");
    let page = page();
    #[expect(clippy::disallowed_methods, reason = "how all golden files are rewritten")]
    if std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "{} is out of date: UPDATE_EXPECT=1 rewrites it",
        path.display()
    );
}

/// Which of the cases also run inside the service.
const IN_SERVICE: &str = "\
Inside the running service, scripts do what a script can: compute, hoard memory, recurse, list, log, wait and fail
without end, give large titles, names that climb, links to files, forged headers, digests that are none, deep folders and
endless omissions, ask addresses that are not public, also by a redirect (`harm.rs` of the end-to-end tests), and search
with slow patterns and selectors (`patterns.rs`). The other cases run in the sandbox alone.
";

fn page() -> String {
    let themes = themes();
    let count: usize = themes.iter().map(|(_, cases)| cases.len()).sum();
    let mut page = format!(
        "# Hostile plugins\n\n\
         <!-- Generated from the table in `host/plugin-wasm/tests`; `UPDATE_EXPECT=1` rewrites it. -->\n\n\
         {count} ways in which a plugin can try to do harm, and what each ends with. All of them are run one after the \
         other in one\nhost, which afterwards has hardly more memory than before and answers the calls of another plugin \
         as fast as before.\nThe code is what the user and the log are told; what a call, a package or code is refused \
         with is named as in the\ninterfaces. *ok* means that the attempt changes nothing for anybody.\n\n{IN_SERVICE}"
    );
    for (theme, cases) in themes {
        writeln!(page, "\n## {theme}\n\n| Case | The plugin … | Ends |\n|---|---|---|").unwrap();
        for Case { name, what, ends, .. } in cases {
            let ends = if ends == "ok" {
                "*ok*".to_owned()
            } else {
                format!("`{ends}`")
            };
            writeln!(page, "| `{name}` | {what} | {ends} |").unwrap();
        }
    }
    page
}
