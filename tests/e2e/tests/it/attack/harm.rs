//! Plugins that mean harm, in the service: each call ends with its own limit, the daemon is hardly larger afterwards, and
//! another plugin answers as fast as before.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::time::{Duration, Instant};

use e2e::{Home, Service};
use serde_json::json;

use super::scripts::{archive, calls, install, manifest, preview};

/// How often each harm is done: after more failures, the plugin is not called for a minute.
const ROUNDS: usize = 3;

/// How much more memory the daemon may have afterwards. Measured: 33 MiB, of which 31 are what the allocator keeps of
/// titles of 16 MiB.
const MAX_GROWTH_BYTES: u64 = 48 << 20;

/// Calls of the other plugin that are timed before and after.
const TIMED: usize = 40;

/// How long one of its calls may take. Measured: 1 ms for most of them, 5 to 20 for the slowest, before and after.
const FAST: Duration = Duration::from_millis(250);

/// The name of a plugin, what it does, and the code that its call ends with.
const HARMS: &[(&str, &str, &str)] = &[
    ("computes", "for (;;);", "cpuLimit"),
    (
        "hoards",
        "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));",
        "memoryLimit",
    ),
    ("recurses", "const deeper = () => deeper() + 1; deeper();", "internal"),
    (
        "lists",
        "const long = 'x'.repeat(200); for (let i = 0; ; i++) out.add(long + i, long + i);",
        "memoryLimit",
    ),
    ("titles", "out.title('x'.repeat(16 << 20));", "outputLimit"),
    ("logs", "for (;;) console.log('x'.repeat(4096));", "cpuLimit"),
    ("waits", "await new Promise(() => {});", "internal"),
    ("throws", "throw new Error('x'.repeat(1 << 20));", "internal"),
    (
        "climbs",
        "out.add('file', '../../escaped.bin').link(new URL('/file.bin', call.url));",
        "ok",
    ),
    (
        "omits",
        "for (let i = 0; i < 2000; i++) out.leftOut('unreadable', 'x'.repeat(500), 1);",
        "ok",
    ),
];

fn script(body: &str) -> String {
    format!(
        "export async function resolve(call, out) {{
            {body}
            out.title('answered');
            out.add('other', 'file.bin').link(new URL('/file.bin', call.url));
        }}
        export const preview = resolve;"
    )
}

/// The slowest of some calls of the plugin that works.
fn slowest(service: &Service) -> Duration {
    let times = (0..TIMED).map(|_| {
        let started = Instant::now();
        let answer = preview(service, "http://site.test/works/well");
        assert_eq!(answer["name"], "answered", "{answer}");
        started.elapsed()
    });
    times.max().unwrap()
}

fn resident_bytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn what_a_plugin_does_ends_with_its_call_and_nothing_is_left_of_it() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let works = [("works", "", "ok")];
    for (name, body, _) in HARMS.iter().chain(&works) {
        let manifest = manifest(&format!("{name}@test"), name, json!({}));
        install(&service, &archive(&home, name, &manifest, &script(body)));
    }
    let daemon = home.daemon().expect("a daemon runs");
    slowest(&service);
    let (slow_before, memory_before) = (slowest(&service), resident_bytes(daemon.pid));
    let mut wrong = Vec::new();
    for round in 1..=ROUNDS {
        for (name, _, code) in HARMS {
            let answer = preview(&service, &format!("http://site.test/{name}/page"));
            let calls = calls(&service, &format!("{name}@test"));
            assert_eq!(calls.len(), round, "{name} was not called: {answer}");
            if calls.iter().any(|call| call["code"] != *code) {
                wrong.push(format!("{name}: {calls:?}, not {code}: {}", answer["error"]));
            }
            let names = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
            if names
                .iter()
                .any(|item| item["name"].as_str().is_none_or(|name| name.contains('/')))
            {
                wrong.push(format!("{name}: {answer}"));
            }
            let left_out = answer["leftOut"].as_array().map_or(0, Vec::len);
            if left_out != if *name == "omits" { 51 } else { 0 } {
                wrong.push(format!("{name} leaves out {left_out}"));
            }
        }
    }
    let (slow_after, memory_after) = (slowest(&service), resident_bytes(daemon.pid));
    let growth = memory_after.saturating_sub(memory_before);
    println!(
        "{} KiB more; the slowest call took {slow_before:?} before and {slow_after:?} after",
        growth / 1024
    );
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(home.daemon(), Some(daemon), "the daemon has ended");
    assert!(growth < MAX_GROWTH_BYTES, "{growth}");
    assert!(
        slow_after < FAST.max(slow_before * 2),
        "{slow_before:?}, {slow_after:?}"
    );
    assert_eq!(service.terminate().code, Some(0));
}
