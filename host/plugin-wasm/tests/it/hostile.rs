//! Guests that mean harm. Each ends with the limit it ran into, and the host goes on.

use std::time::{Duration, Instant};

use plugin_host::{Exceeded, PluginFault};
use plugin_wasm::Limits;

use crate::{
    guest::{MEMORY, previewer},
    rig::{Rig, context},
};

/// What happens to a guest that does this.
async fn fault(imports: &[&str], items: &str, body: &str) -> PluginFault {
    let guest = previewer(imports, items, body);
    let loaded = Rig::new().load(guest).await;
    let called = loaded
        .preview("https://example.org/", context().0, Limits::preview())
        .await;
    called.result.unwrap_err()
}

#[tokio::test]
async fn an_endless_loop_ends_with_its_time_and_others_go_on_meanwhile() {
    let rig = Rig::new();
    let hangs = rig.load(previewer(&[], MEMORY, "(loop $l (br $l))")).await;
    let works = rig.load(previewer(&[], MEMORY, "")).await;
    let limits = Limits {
        cpu: Duration::from_millis(200),
        ..Limits::preview()
    };
    let started = Instant::now();
    let hanging = hangs.preview("https://example.org/", context().0, limits);
    let working = async {
        for _ in 0..20 {
            works
                .preview("https://example.org/", context().0, Limits::preview())
                .await
                .result
                .unwrap();
        }
        started.elapsed()
    };
    let (hung, worked) = tokio::join!(hanging, working);
    assert_eq!(
        hung.result.unwrap_err(),
        PluginFault::Limit(Exceeded::Cpu(Duration::from_millis(200)))
    );
    assert!(worked < hung.report.wall, "{worked:?} {:?}", hung.report);
    assert!(hung.report.cpu >= Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_that_take_long_take_turns_with_short_ones_and_end() {
    let items = r#"
        (import "svc:plugin/text@0.1.0" "regex-find" (func $regex (param i32 i32 i32 i32 i32)))
        (memory (export "memory") 80)
        (data (i32.const 100) ".*[^A-Z]|[A-Z]")"#;
    let search = |bytes: u32, pattern: u32, then: &str| {
        let body = format!(
            "(memory.fill (i32.const 65536) (i32.const 65) (i32.const 4194304))
            (loop $l (call $regex (i32.const 100) (i32.const {pattern}) (i32.const 65536) (i32.const {bytes})
                (i32.const 400)) {then})"
        );
        previewer(&["text"], items, &body)
    };
    let rig = Rig::new();
    let hostile = rig.load(search(4_194_304, 14, "(br $l)")).await;
    let works = rig.load(search(20_000, 8, "")).await;
    let started = Instant::now();
    let hostile = (0..8).map(|_| hostile.preview("https://example.org/", context().0, Limits::preview()));
    let hostile = futures_util::future::join_all(hostile);
    let working = async {
        for _ in 0..5 {
            let limits = Limits {
                cpu: Duration::from_secs(5),
                ..Limits::preview()
            };
            let called = works.preview("https://example.org/", context().0, limits).await;
            called.result.unwrap();
        }
        started.elapsed()
    };
    let (hostile, worked) = tokio::join!(hostile, working);
    let budget = Limits::preview().cpu;
    for called in &hostile {
        let fault = called.result.as_ref().unwrap_err();
        assert_eq!(*fault, PluginFault::Limit(Exceeded::Cpu(budget)), "{:?}", called.report);
        assert!(called.report.cpu < budget * 2, "{:?}", called.report);
    }
    let last = hostile.iter().map(|called| called.report.wall).max().unwrap();
    assert!(worked < last, "{worked:?} {last:?}");
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let body = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    let limit = Limits::preview().memory_bytes;
    assert_eq!(
        fault(&[], MEMORY, body).await,
        PluginFault::Limit(Exceeded::Memory(limit))
    );
}

#[tokio::test]
async fn tables_end_at_their_limit() {
    let items = format!("{MEMORY} (table $t 1 funcref)");
    let body =
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable";
    let limit = Limits::preview().table_elements;
    assert_eq!(
        fault(&[], &items, body).await,
        PluginFault::Limit(Exceeded::Table(limit))
    );
}

#[tokio::test]
async fn recursion_ends_with_the_stack() {
    let items = format!("{MEMORY} (func $f (param i64) (result i64) (i64.add (call $f (local.get 0)) (local.get 0)))");
    assert_eq!(
        fault(&[], &items, "(drop (call $f (i64.const 1)))").await,
        PluginFault::Limit(Exceeded::Stack)
    );
}

#[tokio::test]
async fn a_crash_is_told_apart_from_limits_and_names_its_function() {
    let items = format!("{MEMORY} (func $crashing unreachable)");
    match fault(&[], &items, "(call $crashing)").await {
        PluginFault::Trap { kind, frames } => {
            assert!(kind.contains("unreachable"), "{kind}");
            assert_eq!(frames[0], "crashing");
        }
        other => panic!("{other:?}"),
    }
}

const ADD: &str = r#"
    (import "svc:plugin/listing@0.1.0" "[method]listing.add" (func $add (param i32 i32 i32 i32 i32) (result i32)))
    (import "svc:plugin/listing@0.1.0" "[resource-drop]entry" (func $drop_entry (param i32)))
    (memory (export "memory") 1)
    (global $n (mut i32) (i32.const 0))"#;

/// Makes another id of three bytes at 0, and [`ADD_ONE`] an entry of it.
const COUNT: &str = "(global.set $n (i32.add (global.get $n) (i32.const 1)))
    (i32.store8 (i32.const 0) (i32.and (global.get $n) (i32.const 127)))
    (i32.store8 (i32.const 1) (i32.and (i32.shr_u (global.get $n) (i32.const 7)) (i32.const 127)))
    (i32.store8 (i32.const 2) (i32.and (i32.shr_u (global.get $n) (i32.const 14)) (i32.const 127)))";
const ADD_ONE: &str = "(call $add (local.get $listing) (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 1))";

#[tokio::test]
async fn a_listing_without_end_ends_with_its_entries() {
    let body = format!("(loop $l {COUNT} (call $drop_entry {ADD_ONE}) (br $l))");
    let limit = Limits::preview().output.entries;
    assert_eq!(
        fault(&[], ADD, &body).await,
        PluginFault::Limit(Exceeded::Output("entries", limit))
    );
}

#[tokio::test]
async fn host_objects_that_are_never_given_back_end_with_the_handles() {
    let body = format!("(loop $l {COUNT} (drop {ADD_ONE}) (br $l))");
    let limit = Limits::preview().handles;
    assert_eq!(
        fault(&[], ADD, &body).await,
        PluginFault::Limit(Exceeded::Handles(limit))
    );
}

#[tokio::test]
async fn a_guest_cannot_make_the_host_allocate_what_it_likes() {
    // 40 MiB in one message.
    let items =
        r#"(import "svc:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32))) (memory (export "memory") 700)"#;
    let body = "(call $write (i32.const 0) (i32.const 0) (i32.const 41943040))";
    match fault(&["log"], items, body).await {
        PluginFault::Trap { kind, .. } => assert!(kind.contains("too much data"), "{kind}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_flood_of_messages_is_cut_and_counted() {
    let items = format!(
        r#"(import "svc:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32))) (global $i (mut i32) (i32.const 1000)) {MEMORY}"#
    );
    let body = "(loop $l (call $write (i32.const 0) (i32.const 0) (i32.const 1))
        (global.set $i (i32.sub (global.get $i) (i32.const 1))) (br_if $l (global.get $i)))";
    let loaded = Rig::new().load(previewer(&["log"], &items, body)).await;
    let (context, log) = context();
    let called = loaded.preview("https://example.org/", context, Limits::preview()).await;
    called.result.unwrap();
    assert_eq!(called.report.lost_log_lines, 800);
    assert_eq!(log.0.lock().unwrap().len(), 200);
}

#[tokio::test]
async fn instances_share_nothing_from_call_to_call() {
    let items = format!("{MEMORY} (global $calls (mut i32) (i32.const 0))");
    let body = "(if (global.get $calls) (then unreachable)) (global.set $calls (i32.const 1))
        (if (i32.load (i32.const 64)) (then unreachable)) (i32.store (i32.const 64) (i32.const 1))";
    let loaded = Rig::new().load(previewer(&[], &items, body)).await;
    for _ in 0..40 {
        loaded
            .preview("https://example.org/", context().0, Limits::preview())
            .await
            .result
            .unwrap();
    }
}

#[tokio::test]
async fn more_calls_than_can_run_at_once_take_turns() {
    let rig = Rig::new();
    let loaded = rig.load(previewer(&[], MEMORY, "")).await;
    let calls = (0..60).map(|_| loaded.preview("https://example.org/", context().0, Limits::preview()));
    for called in futures_util::future::join_all(calls).await {
        called.result.unwrap();
    }
}

#[tokio::test]
async fn wasi_connects_nowhere_and_looks_nothing_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let params = "i32 ".repeat(15);
    let items = format!(
        r#"
        (import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
        (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $create (param i32 i32)))
        (import "wasi:sockets/tcp@0.2.0" "[method]tcp-socket.start-connect" (func $connect (param {params})))
        (import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses" (func $look_up (param i32 i32 i32 i32)))
        (memory (export "memory") 1)
        (data (i32.const 128) "localhost")"#
    );
    let unused = "(i32.const 0)".repeat(6);
    // An address is a port and four bytes, or what is longer. The first byte of an answer is 0 if all went well.
    let body = format!(
        "(call $create (i32.const 0) (i32.const 64))
        (if (i32.eqz (i32.load8_u (i32.const 64))) (then
            (call $connect (i32.load (i32.const 68)) (call $network) (i32.const 0) (i32.const {port})
                (i32.const 127) (i32.const 0) (i32.const 0) (i32.const 1) {unused} (i32.const 80))
            (if (i32.eqz (i32.load8_u (i32.const 80))) (then unreachable))))
        (call $look_up (call $network) (i32.const 128) (i32.const 9) (i32.const 96))
        (if (i32.eqz (i32.load8_u (i32.const 96))) (then unreachable))"
    );
    let guest = crate::guest::previewer_with_wasi(&items, &body);
    let loaded = Rig::new().load(guest).await;
    let called = loaded.preview("https://example.org/", context().0, Limits::preview());
    called.await.result.unwrap();
    let accepted = listener.accept().map_err(|error| error.kind());
    assert!(matches!(accepted, Err(std::io::ErrorKind::WouldBlock)), "{accepted:?}");
}

#[tokio::test]
async fn wasi_gives_nothing_away() {
    // The environment and the folders of a process: both lists must be empty.
    let items = r#"
        (import "wasi:cli/environment@0.2.0" "get-environment" (func $environment (param i32)))
        (import "wasi:cli/environment@0.2.0" "get-arguments" (func $arguments (param i32)))
        (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $folders (param i32)))
        (memory (export "memory") 1)"#;
    let body = "(call $environment (i32.const 64)) (if (i32.load (i32.const 68)) (then unreachable))
        (call $arguments (i32.const 64)) (if (i32.load (i32.const 68)) (then unreachable))
        (call $folders (i32.const 64)) (if (i32.load (i32.const 68)) (then unreachable))";
    let guest = crate::guest::previewer_with_wasi(items, body);
    let loaded = Rig::new().load(guest).await;
    assert!(
        loaded
            .interface()
            .imports
            .iter()
            .all(|import| import.starts_with("listing."))
    );
    loaded
        .preview("https://example.org/", context().0, Limits::preview())
        .await
        .result
        .unwrap();
}
