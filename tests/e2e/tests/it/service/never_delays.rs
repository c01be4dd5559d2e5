//! What hooks of plugins and programs of the user do delays no download that does not need them. The times are printed:
//! `cargo nextest run -p e2e never_delays --no-capture`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    time::{Duration, Instant},
};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, End, Origin, Resource, behaviour};

use super::{
    hooks,
    plugin_sites::run,
    tools::{self, Hanging},
};

/// Downloads of a round.
const FILES: usize = 30;

/// Rounds of which the slowest counts: hooks pause after the first of them, and programs go on.
const ROUNDS: usize = 3;

/// Pages for which `yt-dlp` never answers; more than there are places for.
const HANGING_PAGES: usize = 4;

/// Pages for which it floods its output until it is killed.
const FLOODING_PAGES: usize = 10;

/// What hooks of a misbehaving plugin do at each event, and the code with which each of these calls ends.
const HOOKS: [(&str, &str, &str); 4] = [
    (
        "hangs",
        "await http.get(new URL('/hang', event.url)).send()",
        "wallLimit",
    ),
    ("loops", "for (;;) {}", "cpuLimit"),
    (
        "traps",
        "const all = []; for (;;) all.push(new Uint8Array(1 << 20))",
        "memoryLimit",
    ),
    (
        "floods",
        "await Promise.allSettled(Array.from({ length: 200 }, (_, n) => \
         http.get(new URL(`/file?${n}`, event.url)).send())); for (;;) log.info('x'.repeat(4000))",
        "cpuLimit",
    ),
];

fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/file", Content::seeded(1, 50_000)),
        Resource::new("/hang", Content::bytes("")).with(behaviour::silent(End::Stall)),
    ])
}

/// Downloads some files at once, again and again; the longest time until the last of them was complete.
fn round(service: &Service, origin: &Origin, query: &str) -> Duration {
    let once = |round: usize| {
        let begun = Instant::now();
        let url = |n: usize| origin.url(&format!("/file?{query}{round}-{n}"));
        let tasks: Vec<_> = (0..FILES).map(|n| service.create(&json!({"url": url(n)}))).collect();
        for task in &tasks {
            wait_until("the file is complete", || service.task(task)["status"] == tools::DONE);
        }
        begun.elapsed()
    };
    (0..ROUNDS).map(once).max().unwrap()
}

/// Has the programs that hang and flood look at pages, and convert what they found there; the tasks of the pages that hang.
fn occupy(service: &Service, pages: &Origin) -> Vec<String> {
    let create = |path: &str| service.create(&json!({"url": pages.url(path)}));
    // Each film has a picture and a sound, which `ffmpeg` never joins.
    for film in 0..2 {
        create(&format!("/film?{film}"));
    }
    let hanging = (0..HANGING_PAGES).map(|n| create(&format!("/hang?{n}"))).collect();
    for n in 0..FLOODING_PAGES {
        create(&format!("/flood?{n}"));
    }
    hanging
}

/// `yt-dlp` does what its page says. `ffmpeg` hangs when it is first started to join, and floods its output later.
fn programs(home: &Home, pages: &Origin) -> [Hanging; 2] {
    let film = json!({"id": "1", "title": "A film", "formats": [
        {"format_id": "a", "url": pages.url("/sound.m4a"), "ext": "m4a", "protocol": "http", "vcodec": "none", "acodec": "aac"},
        {"format_id": "v", "url": pages.url("/picture.mp4"), "ext": "mp4", "protocol": "http", "vcodec": "mpeg4", "acodec": "none"},
    ]});
    let find = Hanging::named(home, "yt-dlp", |hang| {
        format!(
            "for last; do :; done\ncase $(cat \"$last\") in\n*/film*) cat <<'END'\n{film}\nEND\n;;\n\
             */flood*) yes & exec yes >&2;;\n*) {hang};;\nesac\n"
        )
    });
    let once = home.path().join("joined");
    let join = Hanging::named(home, "ffmpeg", |hang| {
        format!(
            "if mkdir {} 2>/dev/null; then {hang}; fi\nyes & exec yes >&2\n",
            once.display()
        )
    });
    [find, join]
}

#[test]
fn hooks_and_programs_that_hang_trap_or_flood_delay_no_download() {
    let (origin, home) = (origin(), Home::new());
    let pages = Origin::start(vec![
        Resource::new("/sound.m4a", Content::seeded(2, 50_000)),
        Resource::new("/picture.mp4", Content::seeded(3, 50_000)),
    ]);
    let service = tools::service_for(&home, &pages);
    // Tasks that look at their pages count as active, as those do that wait for a server.
    run(&service, &["config", "server", "set", "max_concurrent_tasks=200"]);
    let mut times = vec![("nothing else", round(&service, &origin, "first"))];

    for (name, body, _) in HOOKS {
        hooks::install(&home, &service, name, &hooks::always(body));
    }
    times.push(("hooks", round(&service, &origin, "watched")));
    for (name, _, code) in HOOKS {
        wait_until("its calls are paused", || paused_by(&service, name, code));
    }

    let [find, join] = programs(&home, &pages);
    tools::allow(&service, &find.program);
    let ffmpeg = format!("tool_ffmpeg={}", join.program.display());
    let chain = r#"post_chain=[{"kind":"mux","container":"mp4"}]"#;
    run(&service, &["config", "server", "set", &ffmpeg, chain]);
    let hanging = occupy(&service, &pages);
    wait_until("programs hang", || find.is_running() && join.is_running());
    times.push(("programs", round(&service, &origin, "second")));

    // Other plugins: the calls of the first ones are paused.
    for (name, body, _) in HOOKS {
        hooks::install(&home, &service, &format!("{name}-too"), &hooks::always(body));
    }
    times.push(("both", round(&service, &origin, "watched-too")));
    assert!(find.is_running() && join.is_running(), "they hang all the time");

    println!("{FILES} downloads at once, the slowest of {ROUNDS} rounds, beside what hangs, traps and floods:");
    for (beside, time) in &times {
        println!("{beside:>14} {:>6} ms", time.as_millis());
    }
    // Each event would take seconds if anybody waited for it, and each page minutes.
    let most = times[0].1 * 3 + Duration::from_secs(2);
    for (beside, time) in times {
        assert!(time < most, "beside {beside}: {time:?}, more than {most:?}");
    }

    // A page for which there is no place is tried again later, and not taken for a page without films.
    wait_until("a page waits for its turn", || {
        let mut tasks = hanging.iter().map(|id| service.task(id));
        tasks.any(|task| task["errorKind"] == "busy" && task["status"] == tools::PENDING)
    });
    let begun = Instant::now();
    service.terminate();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    wait_until("no program is left", || !find.is_running() && !join.is_running());
    assert!(fs::read_dir(home.data().join("tools")).unwrap().next().is_none());
}

/// Whether the calls of a plugin failed by its own fault until they were paused, and that shows.
fn paused_by(service: &Service, name: &str, code: &str) -> bool {
    let identity = format!("{name}@test");
    let journal = service.call("GET", &format!("/api/v1/plugins/{identity}/journal"), None);
    let events = journal["events"].as_array().unwrap().iter();
    let calls = events.filter_map(|event| event.get("call"));
    let codes: Vec<_> = calls
        .map(|call| call["code"].as_str().unwrap_or_default().to_owned())
        .collect();
    let plugins = service.call("GET", "/api/v1/plugins", None);
    let mut plugins = plugins.as_array().unwrap().iter();
    let plugin: &Value = plugins.find(|plugin| plugin["identity"] == *identity).unwrap();
    codes == [code; 3] && plugin["health"]["state"] == "degraded"
}
