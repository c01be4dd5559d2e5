//! Too much of everything that a plugin hands out, and what it may not hand out at all.

use super::{
    Attempt, Call, Case, Seen, case, does,
    guest::{MEMORY, previewer},
};

/// Entries and links; names and URLs are taken from the memory. The text of a case is at 2000.
fn items(text: &str) -> String {
    format!(
        r#"
    (import "svc:plugin/listing@0.1.0" "[method]listing.add" (func $add (param i32 i32 i32 i32 i32) (result i32)))
    (import "svc:plugin/listing@0.1.0" "[method]listing.title" (func $title (param i32 i32 i32)))
    (import "svc:plugin/listing@0.1.0" "[resource-drop]entry" (func $drop_entry (param i32)))
    (import "svc:plugin/listing@0.1.0" "[method]entry.dir" (func $dir (param i32 i32 i32)))
    (import "svc:plugin/listing@0.1.0" "[method]entry.checksum" (func $checksum (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/listing@0.1.0" "[method]entry.add-variant"
        (func $variant (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "svc:plugin/listing@0.1.0" "[constructor]link" (func $link (param i32 i32) (result i32)))
    (import "svc:plugin/listing@0.1.0" "[method]link.header" (func $header (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/listing@0.1.0" "[method]link.pair-audio" (func $audio (param i32 i32)))
    (memory (export "memory") 2)
    (global $n (mut i32) (i32.const 0))
    (data (i32.const 0) "a")
    (data (i32.const 200) "https://a.example/")
    (data (i32.const 2000) "{text}")"#
    )
}

const ENTRY: &str = "(call $add (local.get $listing) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1))";
/// Makes another id of three bytes at 0, and [`NUMBERED`] an entry of it.
const COUNT: &str = "(global.set $n (i32.add (global.get $n) (i32.const 1)))
    (i32.store8 (i32.const 0) (i32.and (global.get $n) (i32.const 127)))
    (i32.store8 (i32.const 1) (i32.and (i32.shr_u (global.get $n) (i32.const 7)) (i32.const 127)))
    (i32.store8 (i32.const 2) (i32.and (i32.shr_u (global.get $n) (i32.const 14)) (i32.const 127)))";
const NUMBERED: &str = "(call $add (local.get $listing) (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 1))";
const LINK: &str = "(call $link (i32.const 200) (i32.const 18))";

/// A case with `text`, of `len` bytes, in its memory.
fn says(name: &'static str, what: &str, ends: &'static str, (text, body): (&str, &str)) -> Case {
    does(name, what, ends, (&items(text), body))
}

/// A case whose listing is made harmless.
fn cleaned(name: &'static str, what: &str, (text, body): (&str, &str)) -> Case {
    let call = Call {
        is_harmless: is_plain,
        ..Call::of(previewer(&items(text), body))
    };
    case(name, what, "ok", Attempt::Call(Box::new(call)))
}

/// Whether there is one file, whose name and folders are names everywhere.
fn is_plain(seen: &Seen) -> bool {
    let items = seen.answer["items"].as_array().map_or(&[][..], Vec::as_slice);
    let [item] = items else { return false };
    let (name, path) = (item["name"].as_str().unwrap(), item["path"].as_str().unwrap());
    let folders = path.split('/').filter(|_| !path.is_empty());
    folders.chain([name]).all(|name| {
        let is_special = matches!(name, "" | "." | "..");
        !is_special && !name.contains(['/', '\\', ':']) && !name.chars().any(char::is_control)
    })
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = floods();
    cases.extend(texts());
    cases.extend(handles());
    cases
}

fn floods() -> Vec<Case> {
    let write = r#"(import "svc:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))"#;
    let lines = format!("{write} (global $i (mut i32) (i32.const 100000)) {MEMORY}");
    let flood = "(loop $l (call $write (i32.const 0) (i32.const 0) (i32.const 1))
        (global.set $i (i32.sub (global.get $i) (i32.const 1))) (br_if $l (global.get $i)))";
    let large = format!("{write} (memory (export \"memory\") 700)");
    let random = format!(r#"(import "svc:plugin/env@0.1.0" "random" (func $random (param i32 i32))) {MEMORY}"#);
    let variants = format!(
        "(local $e i32) (local.set $e {ENTRY}) (loop $l {COUNT}
        (drop (call $variant (local.get $e) (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 1) (i32.const 0)))
        (br $l))"
    );
    let entries = format!("(loop $l {COUNT} (call $drop_entry {NUMBERED}) (br $l))");
    let objects = format!("(loop $l {COUNT} (drop {NUMBERED}) (br $l))");
    let titles = "(loop $l (call $title (local.get $listing) (i32.const 4096) (i32.const 65536)) (br $l))";
    vec![
        says(
            "endless-listing",
            "lists files without end.",
            "outputLimit",
            ("", &entries),
        ),
        says(
            "endless-variants",
            "gives a file qualities without end.",
            "outputLimit",
            ("", &variants),
        ),
        says(
            "endless-texts",
            "sets a long title without end.",
            "outputLimit",
            ("", titles),
        ),
        says(
            "endless-objects",
            "keeps every object that the host makes for it.",
            "hostcallLimit",
            ("", &objects),
        ),
        case(
            "log-flood",
            "writes 100,000 lines; 200 are kept.",
            "ok",
            Attempt::Call(Box::new(Call {
                is_harmless: |seen| seen.lines == 200 && seen.call["lostLines"] == 99_800,
                ..Call::of(previewer(&lines, flood))
            })),
        ),
        does(
            "large-message",
            "writes a line of 40 MiB.",
            "trap",
            (&large, "(call $write (i32.const 0) (i32.const 0) (i32.const 41943040))"),
        ),
        does(
            "random-flood",
            "asks for 4 GiB of random bytes at once.",
            "trap",
            (&random, "(call $random (i32.const -1) (i32.const 400))"),
        ),
    ]
}

fn texts() -> Vec<Case> {
    let named = |len: usize| {
        format!(
            "(drop (call $add (local.get $listing) (i32.const 0) (i32.const 1) (i32.const 2000) (i32.const {len})))"
        )
    };
    let folder = |len: usize| format!("(call $dir {ENTRY} (i32.const 2000) (i32.const {len}))");
    let link = |len: usize| format!("(drop (call $link (i32.const 2000) (i32.const {len})))");
    let header = |name: usize, value: usize| {
        let at = 2000 + name;
        format!("(call $header {LINK} (i32.const 2000) (i32.const {name}) (i32.const {at}) (i32.const {value}))")
    };
    vec![
        cleaned(
            "path-in-a-name",
            "names a file `../../etc/passwd`.",
            ("../../etc/passwd", &named(16)),
        ),
        cleaned(
            "nul-in-a-name",
            "names a file with a NUL and a line break in it.",
            ("a\\00b\\0ac", &named(5)),
        ),
        cleaned(
            "path-in-a-folder",
            "puts a file into `/../..\\\\x/C:/`.",
            ("/../..\\\\x/C:/", &folder(11)),
        ),
        says(
            "deep-folder",
            "puts a file into a folder nine levels deep.",
            "invalidOutput",
            ("a/a/a/a/a/a/a/a/a", &folder(17)),
        ),
        says(
            "invalid-utf-8",
            "names a file with bytes that are no text.",
            "trap",
            ("\\ff\\fe", &named(2)),
        ),
        says(
            "file-link",
            "links to `file:///etc/passwd`.",
            "invalidOutput",
            ("file:///etc/passwd", &link(18)),
        ),
        says(
            "script-link",
            "links to `javascript:alert(1)`.",
            "invalidOutput",
            ("javascript:alert(1)", &link(19)),
        ),
        says(
            "link-header-break",
            "gives a link a field with a line break in its value.",
            "invalidOutput",
            ("X-Aa\\0d\\0aHost: b", &header(3, 10)),
        ),
        says(
            "link-host",
            "gives a link a `Host` of its own.",
            "invalidOutput",
            ("Hostevil.example", &header(4, 12)),
        ),
        says(
            "nonsense-digest",
            "gives a digest that is none.",
            "invalidOutput",
            (
                "md5zz",
                &format!("(call $checksum {ENTRY} (i32.const 2000) (i32.const 3) (i32.const 2003) (i32.const 2))"),
            ),
        ),
        says(
            "lying-length",
            "hands out a text that goes beyond its memory.",
            "trap",
            ("", "(call $title (local.get $listing) (i32.const 4096) (i32.const -1))"),
        ),
    ]
}

fn handles() -> Vec<Case> {
    vec![
        says(
            "forged-handle",
            "uses an object that it was never given.",
            "trap",
            ("", "(call $title (i32.const 77) (i32.const 0) (i32.const 1))"),
        ),
        says(
            "handle-after-drop",
            "uses an object after giving it back.",
            "trap",
            (
                "",
                &format!(
                    "(local $e i32) (local.set $e {ENTRY}) (call $drop_entry (local.get $e))
                    (call $dir (local.get $e) (i32.const 0) (i32.const 1))"
                ),
            ),
        ),
        says(
            "handle-of-another-kind",
            "uses a link as if it were a file.",
            "trap",
            ("", &format!("(call $dir {LINK} (i32.const 0) (i32.const 1))")),
        ),
        says(
            "sound-of-sound",
            "gives the sound of a link a sound of its own.",
            "invalidOutput",
            (
                "",
                &format!(
                    "(local $a i32) (local.set $a {LINK}) (call $audio (local.get $a) {LINK})
                    (call $audio {LINK} (local.get $a))"
                ),
            ),
        ),
        says(
            "return-beyond-memory",
            "says that its answer is beyond its memory.",
            "trap",
            ("", "(call $give_back (local.get $listing)) (return (i32.const -16))"),
        ),
    ]
}
