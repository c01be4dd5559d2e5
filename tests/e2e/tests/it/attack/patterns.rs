//! Plugins that have the host search for them without end.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use e2e::{Home, service};
use serde_json::json;

use super::scripts::{archive, calls, install, manifest, preview};

/// Calls of the hostile plugin at once: as many as one plugin may make.
const ATTACKERS: usize = 8;

/// How long a call of another plugin may take meanwhile, on a machine that the attackers keep busy.
const BEARABLE: Duration = Duration::from_secs(4);

/// How long a preview may take, and what a busy machine may add.
const DEADLINE: Duration = Duration::from_secs(8);

/// A plugin that searches a text with a pattern, which a match of the other patterns reads to its end.
fn searches(pattern: &str, text: &str, again: &str) -> String {
    format!(
        "export async function resolve(call, out) {{
            const input = {text};
            {again} out.title(String(text.captures({pattern}, input).length));
            out.add('file', 'file.bin').link(new URL('/file.bin', call.url));
        }}
        export const preview = resolve;"
    )
}

/// What the hostile plugin does ends as its own limit, and others do not wait for it.
fn held_off(pattern: &str, text: &str) {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let hostile = searches(pattern, text, "for (;;)");
    install(
        &service,
        &archive(
            &home,
            "hostile",
            &manifest("hostile@test", "hostile", json!({})),
            &hostile,
        ),
    );
    let works = searches("'href=\"([^\"]+)\"'", "'<a href=\"/a.iso\">a</a>'.repeat(2000)", "");
    install(
        &service,
        &archive(&home, "works", &manifest("works@test", "works", json!({})), &works),
    );
    let warm = preview(&service, "http://site.test/works");
    assert_eq!(warm["name"], "2000", "{warm}");
    let (address, ended) = (service.address(), &AtomicUsize::new(0));
    let attack = move || {
        let asked = json!({"url": "http://site.test/hostile"});
        let answer = service::ask(address, "POST", "/api/v1/resolve/preview", Some(&asked));
        answer.expect("it answers").body
    };
    let answered_meanwhile = thread::scope(|scope| {
        for _ in 0..ATTACKERS {
            scope.spawn(move || {
                let started = Instant::now();
                let answer = attack();
                assert_eq!(answer["plugin"], "hostile@test", "{answer}");
                assert!(!answer["error"].as_str().unwrap_or_default().is_empty(), "{answer}");
                assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        let mut answered = 0;
        while ended.load(Ordering::SeqCst) < ATTACKERS {
            let started = Instant::now();
            let answer = preview(&service, "http://site.test/works");
            assert_eq!(
                (&answer["name"], &answer["error"]),
                (&json!("2000"), &json!("")),
                "{answer}"
            );
            assert!(started.elapsed() < BEARABLE, "{:?}", started.elapsed());
            answered += 1;
        }
        answered
    });
    assert!(answered_meanwhile > 0, "no call came while the attack went on");
    let calls = calls(&service, "hostile@test");
    let ends: Vec<_> = calls
        .iter()
        .map(|call| call["code"].as_str().unwrap_or_default())
        .collect();
    assert!(ends.contains(&"cpuLimit"), "{ends:?}");
    // On a machine that is busy with other things, time may go before a call has computed all that it may.
    assert!(
        ends.iter().all(|end| ["cpuLimit", "wallLimit"].contains(end)),
        "{ends:?}"
    );
}

#[test]
fn a_search_that_reads_the_rest_of_a_text_for_each_letter_ends_with_its_call_and_others_do_not_wait() {
    held_off("'.*[^A-Z]|[A-Z]'", "'A'.repeat(4 * 1024 * 1024)");
}

#[test]
fn a_search_with_a_pattern_of_ten_thousand_ways_ends_with_its_call_and_others_do_not_wait() {
    held_off("'[ab]*a[ab]{9000}c'", "'ab'.repeat(2 * 1024 * 1024)");
}
