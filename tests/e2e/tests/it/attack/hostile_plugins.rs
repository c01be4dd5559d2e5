//! The table of harm that plugins could try, run whole in one service with a plugin beside it that works: every attempt
//! is made, ends as the table says, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod code;
mod computing;
mod feeds;
mod guest;
mod output;
mod package;
mod sites;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use e2e::{Home, Service, service};
use serde_json::{Value, json};
use support::Origin;

use self::guest::{MEMORY, previewer};
use super::{
    hostile,
    scripts::{agree, calls, plugin, preview},
};
use crate::service::guest::upload;

/// How long the service may take for a call of another plugin while one means harm. Measured with a debug build on two
/// busy cores: 1.4 s in `hoarded-requests`, 0.3 s otherwise.
const BEARABLE: Duration = Duration::from_secs(4);

/// How much larger the daemon may be at its largest, in MiB. Measured: 80 to 103, of which the allocator keeps most.
const MAX_GROWTH: u64 = 160;

/// The code of everything that is refused when it is installed.
const REFUSED: &str = "pluginPackageInvalid";

/// What a secret of the user's is, and the setting that has it.
const SECRET: &str = "hunter2";

/// One way to do harm.
struct Case {
    name: &'static str,
    /// What the plugin does, after "The plugin …".
    what: String,
    attempt: Attempt,
    /// The code that it ends with; `ok` if it changes nothing for anybody. On some machines one limit is reached first,
    /// on some another: `one or another`.
    ends: &'static str,
}

/// What is tried.
enum Attempt {
    /// A call.
    Call(Box<Call>),
    /// An archive that differs from one that is installed in nothing but this.
    Install(Vec<u8>),
}

/// Which function of a plugin is called.
#[derive(Debug, Clone, Copy)]
enum Function {
    Preview,
    Feed,
}

struct Call {
    guest: Vec<u8>,
    function: Function,
    /// What its manifest asks for, and its user agrees to.
    permissions: Value,
    /// Where the plugin is sent, and how many requests come there.
    site: Option<(Origin, RangeInclusive<usize>)>,
    /// Whether the attempt was made and did no harm, as far as its code does not tell.
    is_harmless: fn(&Seen) -> bool,
}

/// What is seen of a call from outside.
#[derive(Debug)]
struct Seen {
    /// The answer to the user.
    answer: Value,
    /// The call in the plugin's journal.
    call: Value,
    /// Lines that the plugin wrote.
    lines: usize,
    /// Whether the site was sent the secret.
    was_told: bool,
}

impl Call {
    /// A call of `guest` that is granted nothing.
    fn of(guest: Vec<u8>) -> Self {
        Self {
            guest,
            function: Function::Preview,
            permissions: json!({}),
            site: None,
            is_harmless: |_| true,
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
fn does(name: &'static str, what: &str, ends: &'static str, (items, body): (&str, &str)) -> Case {
    let call = Call::of(previewer(items, body));
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

fn themes() -> [(&'static str, Vec<Case>); 6] {
    [
        ("Computing and memory", computing::cases()),
        ("What is handed out", output::cases()),
        ("Feeds", feeds::cases()),
        ("The network and secrets", sites::cases()),
        ("Code", code::cases()),
        ("Packages", package::cases()),
    ]
}

impl Function {
    fn capabilities(self, path: &str) -> Value {
        let urls = json!([format!("*://*/{path}*")]);
        match self {
            Self::Preview => json!({"resolver": {"match": urls, "multi": true}, "preview": true}),
            Self::Feed => json!({"feed": {"match": urls}}),
        }
    }

    /// What a user is answered who calls it.
    fn answer(self, service: &Service, identity: &str, url: &str) -> Value {
        match self {
            Self::Preview => preview(service, url),
            Self::Feed => {
                let source = json!({"url": url, "providerId": identity, "downloadAll": true});
                let asked = json!({"url": url, "source": source});
                service.call("POST", "/api/v1/rss/validate", Some(&asked))
            }
        }
    }
}

/// The manifest of a plugin that may do nothing but preview.
fn manifest(name: &str) -> Vec<u8> {
    manifest_of(name, &Function::Preview.capabilities("page"), &json!({}))
}

fn manifest_of(name: &str, capabilities: &Value, permissions: &Value) -> Vec<u8> {
    let has_secret = !permissions["secrets"].is_null();
    let settings = has_secret.then(|| json!({"key": "token", "type": "string", "secret": true}));
    let manifest = json!({
        "manifestVersion": 1, "identity": format!("{name}@test"), "name": name, "version": "1.0.0",
        "runtime": "component", "entry": "plugin.wasm", "abi": "0.1",
        "capabilities": capabilities, "permissions": permissions, "settings": settings.as_slice(),
    });
    manifest.to_string().into_bytes()
}

/// A service, and the folder in which archives for it are put.
struct Bench {
    home: Home,
    service: Service,
}

impl Bench {
    fn install(&self, archive: &[u8]) -> Value {
        let path = self.home.path().join("plugin.zip");
        fs::write(&path, archive).unwrap();
        let answer = upload(&self.service.url(), &path).expect("the answer is JSON");
        fs::remove_file(path).unwrap();
        answer
    }

    /// Installs a plugin that is accepted, for URLs of this path.
    fn install_guest(&self, name: &str, path: &str, call: &Call) {
        let permissions = &call.permissions;
        let manifest = manifest_of(name, &call.function.capabilities(path), permissions);
        let installed = self.install(&package::of(&manifest, &call.guest));
        let identity = format!("{name}@test");
        assert_eq!(installed["identity"], identity, "{installed}");
        if !permissions["secrets"].is_null() {
            let settings = format!("/api/v1/plugins/{identity}/settings");
            self.service.call("PUT", &settings, Some(&json!({"token": SECRET})));
        }
        if let Some(consent) = installed["pendingConsent"].as_str() {
            agree(&self.service, &identity, consent);
        }
        service::wait_until("the plugin is loaded", || {
            plugin(&self.service, &identity)["loadStatus"] == "Loaded"
        });
    }

    /// The names of the plugins that are installed.
    fn plugins(&self) -> Vec<String> {
        let plugins = self.service.call("GET", "/api/v1/plugins", None);
        let plugins = plugins.as_array().unwrap().iter();
        plugins.map(|plugin| plugin["identity"].to_string()).collect()
    }

    fn uninstall(&self, name: &str) {
        self.service
            .call("DELETE", &format!("/api/v1/plugins/{name}@test"), None);
    }

    /// What the case ends with, and what is wrong about it.
    fn outcome(&self, name: &str, attempt: &Attempt) -> (String, Option<String>) {
        let call = match attempt {
            Attempt::Call(call) => call,
            Attempt::Install(archive) => {
                let answer = self.install(archive);
                let code = answer["code"].as_str().unwrap_or("ok").to_owned();
                return (code, None);
            }
        };
        self.install_guest(name, "page", call);
        let url = call.site.as_ref().map(|(site, _)| site.url("/page"));
        let (identity, url) = (
            format!("{name}@test"),
            url.as_deref().unwrap_or("http://site.test/page"),
        );
        let answer = call.function.answer(&self.service, &identity, url);
        let journal = self
            .service
            .call("GET", &format!("/api/v1/plugins/{identity}/journal"), None);
        let [call_seen] = calls(&self.service, &identity)
            .try_into()
            .unwrap_or_else(|calls| panic!("{name}: {calls:?}"));
        self.uninstall(name);
        let requests = call.site.as_ref().map(|(site, _)| site.requests()).unwrap_or_default();
        let seen = Seen {
            lines: journal["lines"].as_array().map_or(0, Vec::len),
            was_told: requests.iter().any(|request| request.header("x-key") == Some(SECRET)),
            answer,
            call: call_seen,
        };
        let code = seen.call["code"].as_str().unwrap().to_owned();
        let wrong = if seen.answer.to_string().contains(SECRET) || journal.to_string().contains(SECRET) {
            Some(format!("{name} has the secret: {seen:?}"))
        } else if call
            .site
            .as_ref()
            .is_some_and(|(_, expected)| !expected.contains(&requests.len()))
        {
            Some(format!("{name}: {} requests, {seen:?}", requests.len()))
        } else {
            (!(call.is_harmless)(&seen)).then(|| format!("{name}: {seen:?}"))
        };
        (code, wrong)
    }
}

/// The slowest call of the plugin beside it, and how many there were, until it is stopped.
fn bystand(address: &str, stop: &AtomicBool) -> (Duration, usize) {
    let mut slowest = (Duration::ZERO, 0);
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let asked = json!({"url": "http://site.test/bystander"});
        let answer = service::ask(address, "POST", "/api/v1/resolve/preview", Some(&asked));
        let answer = answer.expect("the service answers").body;
        assert_eq!(answer["plugin"], "bystander@test", "{answer}");
        assert_eq!(answer["error"], "", "{answer}");
        slowest = (slowest.0.max(started.elapsed()), slowest.1 + 1);
    }
    slowest
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map_while(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.append(&mut files(&entry.path()));
        } else {
            found.insert(entry.path());
        }
    }
    found
}

#[test]
fn every_attempt_ends_as_the_table_says_and_leaves_nothing_behind() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let bench = Bench { home, service };
    let (home, address) = (&bench.home, bench.service.address());
    let good = Call::of(previewer(MEMORY, ""));
    bench.install_guest("bystander", "bystander", &good);
    // What hostile archives differ from is installed.
    bench.install_guest("hostile", "page", &good);
    bench.uninstall("hostile");
    let daemon = home.daemon().expect("a daemon runs");
    let (before, plugins) = (files(home.path()), bench.plugins());
    let (memory_before, peak_before) = hostile::memory(daemon.pid);
    let (mut wrong, mut count, stop) = (Vec::new(), 0, &AtomicBool::new(false));
    let (slowest, calls) = thread::scope(|scope| {
        let bystander = scope.spawn(move || bystand(address, stop));
        for case in themes().into_iter().flat_map(|(_, cases)| cases) {
            let started = Instant::now();
            let (ended, reason) = bench.outcome(case.name, &case.attempt);
            println!(
                "{}: {ended} after {:?}, {:?} MiB",
                case.name,
                started.elapsed(),
                hostile::memory(daemon.pid)
            );
            if !case.ends.split(" or ").any(|end| end == ended) {
                wrong.push(format!("{}: {ended}, not {}", case.name, case.ends));
            }
            wrong.extend(reason);
            count += 1;
        }
        stop.store(true, Ordering::Relaxed);
        bystander.join().expect("the bystander is answered")
    });
    let (memory_after, peak_after) = hostile::memory(daemon.pid);
    let growth = peak_after - peak_before;
    println!(
        "{count} cases; {growth} MiB more at most, {} afterwards; the slowest of {calls} other calls took {slowest:?}",
        memory_after.saturating_sub(memory_before)
    );
    let (after, cache) = (files(home.path()), home.data().join("plugins/cache"));
    let strays: Vec<_> = after
        .difference(&before)
        .filter(|path| !path.starts_with(&cache))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
    assert!(!Path::new("/etc/cron.d/evil").exists());
    assert_eq!(bench.plugins(), plugins, "what is installed");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(home.daemon(), Some(daemon), "the daemon has ended");
    assert!(growth < MAX_GROWTH, "{growth}");
    assert!(slowest < BEARABLE && calls > count, "{slowest:?} {calls}");
    assert_eq!(bench.service.terminate().code, Some(0));
}

pub(crate) fn count() -> usize {
    themes().iter().map(|(_, cases)| cases.len()).sum()
}

/// The table as a page of the documentation.
pub(crate) fn page() -> String {
    let (themes, count) = (themes(), count());
    let mut page = format!(
        "# Hostile plugins\n\n\
         <!-- Generated from the table in `tests/e2e/tests/it/attack/hostile_plugins.rs`; `UPDATE_EXPECT=1` rewrites \
         it. -->\n\n\
         {count} ways in which a plugin can try to do harm, and what each ends with. All of them are installed, called and \
         removed\none after the other in one running service, which meanwhile answers the calls of another plugin, and \
         afterwards has hardly\nmore memory than before and no file more but compiled code. The code is what the user and \
         the log are told. *ok* means\nthat the attempt changes nothing for anybody.\n\n\
         Scripts compute, hoard, recurse, list, log, wait, throw and omit without end in `harm.rs` of the same tests, and \
         search\nwith slow patterns in `patterns.rs`. What hooks see and how they are limited is in\n[security.md]\
         (security.md#hooks-and-webhooks).\n"
    );
    for (theme, cases) in themes {
        writeln!(page, "\n## {theme}\n\n| Case | The plugin … | Ends |\n|---|---|---|").unwrap();
        for Case { name, what, ends, .. } in cases {
            let ends = match ends {
                "ok" => "*ok*".to_owned(),
                _ => format!("`{}`", ends.replace(" or ", "` or `")),
            };
            writeln!(page, "| `{name}` | {what} | {ends} |").unwrap();
        }
    }
    page
}
