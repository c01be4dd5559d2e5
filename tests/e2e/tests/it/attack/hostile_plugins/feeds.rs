//! Feeds without end, and items that lead where none may.

use super::{Attempt, Call, Case, Function, case, guest::feed_handler};

/// Items; texts are taken from the memory. The text of a case is at 2000.
fn items(text: &str) -> String {
    format!(
        r#"
    (import "svc:plugin/feed-sink@0.1.0" "[method]sink.title" (func $title (param i32 i32 i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]sink.etag" (func $etag (param i32 i32 i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]sink.ttl-seconds" (func $ttl (param i32 i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]sink.add"
        (func $add (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[resource-drop]item" (func $drop_item (param i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]item.summary" (func $summary (param i32 i32 i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]item.enclosure" (func $enclosure (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/feed-sink@0.1.0" "[method]item.infohash" (func $infohash (param i32 i32 i32)))
    (memory (export "memory") 2)
    (data (i32.const 2000) "{text}")"#
    )
}

/// An item with the text of the case as its link, `len` bytes of it.
fn linked(len: usize) -> String {
    format!(
        "(call $add (local.get $sink) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1)
            (i32.const 2000) (i32.const {len}))"
    )
}

fn says(name: &'static str, what: &str, ends: &'static str, (text, body): (&str, &str)) -> Case {
    let call = Call {
        function: Function::Feed,
        ..Call::of(feed_handler(&items(text), body))
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = floods();
    cases.extend(texts());
    cases
}

fn floods() -> Vec<Case> {
    let item = linked(0);
    let items = format!("(loop $l (call $drop_item {item}) (br $l))");
    let objects = format!("(loop $l (drop {item}) (br $l))");
    let titles = "(loop $l (call $title (local.get $sink) (i32.const 4096) (i32.const 65536)) (br $l))";
    let summaries = format!(
        "(local $i i32) (local.set $i {item})
        (loop $l (call $summary (local.get $i) (i32.const 4096) (i32.const 65536)) (br $l))"
    );
    vec![
        says("endless-feed", "gives items without end.", "outputLimit", ("", &items)),
        says(
            "endless-feed-objects",
            "keeps every item that the host makes for it.",
            "hostcallLimit",
            ("", &objects),
        ),
        says(
            "endless-feed-titles",
            "names its feed without end.",
            "outputLimit",
            ("", titles),
        ),
        says(
            "endless-summaries",
            "describes an item without end.",
            "outputLimit",
            ("", &summaries),
        ),
        says(
            "endless-feed-loop",
            "computes without end.",
            "cpuLimit",
            ("", "(loop $l (br $l))"),
        ),
        says(
            "feed-trap",
            "crashes in the middle of an item.",
            "trap",
            ("", &format!("(drop {item}) unreachable")),
        ),
        says(
            "longest-ttl",
            "asks to be left alone for 136 years; a day is what it gets.",
            "ok",
            ("", "(call $ttl (local.get $sink) (i32.const -1))"),
        ),
    ]
}

fn texts() -> Vec<Case> {
    let bad = |name, what: &str, text: &str| {
        let body = format!("(drop {})", linked(text.len()));
        says(name, what, "invalidOutput", (text, &body))
    };
    let file = "file:///etc/passwd";
    let enclosure = format!(
        "(call $enclosure {} (i32.const 2000) (i32.const {}) (i32.const 0) (i32.const 0))",
        linked(0),
        file.len()
    );
    let hash = "../../../../../../../../etc/passwd/aaaaaa";
    let infohash = format!(
        "(call $infohash {} (i32.const 2000) (i32.const {}))",
        linked(0),
        hash.len()
    );
    let etag = "(call $etag (local.get $sink) (i32.const 4096) (i32.const 60000))";
    let guid = "(drop (call $add (local.get $sink) (i32.const 4096) (i32.const 60000) (i32.const 0) (i32.const 1)
        (i32.const 0) (i32.const 0)))";
    vec![
        bad("item-file-link", "links an item to a file of this machine.", file),
        bad("item-script-link", "links an item to a script.", "javascript:alert(1)"),
        says(
            "item-file",
            "gives a file of this machine as that of an item.",
            "invalidOutput",
            (file, &enclosure),
        ),
        says(
            "item-infohash",
            "gives a path as an info hash.",
            "invalidOutput",
            (hash, &infohash),
        ),
        says(
            "long-etag",
            "gives an etag of 60,000 bytes.",
            "invalidOutput",
            ("", etag),
        ),
        says(
            "long-guid",
            "gives an identifier of 60,000 bytes.",
            "invalidOutput",
            ("", guid),
        ),
    ]
}
