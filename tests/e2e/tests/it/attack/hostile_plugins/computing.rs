//! Computing without end, and memory without end.

use super::{Case, does, guest::MEMORY};

/// Four MiB of the letter a, from 64 KiB on.
const LONG_TEXT: &str = "(memory.fill (i32.const 65536) (i32.const 97) (i32.const 4194304))";

const TEXT: &str = r#"
    (import "svc:plugin/text@0.1.0" "regex-find" (func $regex (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/text@0.1.0" "html-select" (func $select (param i32 i32 i32 i32 i32)))
    (memory (export "memory") 80)
    (data (i32.const 100) "(a?){200}(a?){200}b")
    (data (i32.const 200) "* * * * * * * *")
    (data (i32.const 300) "<a>")
    (data (i32.const 320) ".*[^A-Z]|[A-Z]")
    (data (i32.const 340) "[ab]*a[ab]{9000}c")"#;

pub(super) fn cases() -> Vec<Case> {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    let tables = format!("{MEMORY} (table $t 1 funcref)");
    let grow_table =
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable";
    let recursion =
        format!("{MEMORY} (func $f (param i64) (result i64) (i64.add (call $f (local.get 0)) (local.get 0)))");
    let clock = format!(r#"(import "svc:plugin/env@0.1.0" "time-left-ms" (func $left (result i32))) {MEMORY}"#);
    let null = format!("{MEMORY} (table 1 funcref) (type $v (func))");
    let mut cases = vec![
        does(
            "spin",
            "computes without end.",
            "cpuLimit",
            (MEMORY, "(loop $l (br $l))"),
        ),
        does(
            "time-bomb",
            "asks for the time that it has left, again and again.",
            "cpuLimit",
            (&clock, "(loop $l (drop (call $left)) (br $l))"),
        ),
    ];
    cases.extend(searches());
    cases.extend([
        does("memory", "takes memory without end.", "memoryLimit", (MEMORY, grow)),
        does(
            "tables",
            "makes a table longer without end.",
            "memoryLimit",
            (&tables, grow_table),
        ),
        does(
            "recursion",
            "calls itself without end.",
            "stackLimit",
            (&recursion, "(drop (call $f (i64.const 1)))"),
        ),
        does("crash", "crashes.", "trap", (MEMORY, "unreachable")),
        does(
            "division-by-zero",
            "divides by zero.",
            "trap",
            (MEMORY, "(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        ),
        does(
            "out-of-bounds",
            "reads beyond its memory.",
            "trap",
            (MEMORY, "(drop (i32.load (i32.const -4)))"),
        ),
        does(
            "null-call",
            "calls a function that is not there.",
            "trap",
            (&null, "(call_indirect (type $v) (i32.const 0))"),
        ),
    ]);
    cases
}

fn searches() -> Vec<Case> {
    let many_searches = format!(
        "{LONG_TEXT} (loop $l
            (call $regex (i32.const 100) (i32.const 19) (i32.const 65536) (i32.const 400000) (i32.const 400)) (br $l))"
    );
    let html = "(local $i i32) (local.set $i (i32.const 65536))
        (loop $l (i32.store (local.get $i) (i32.const 0x3e613c3e)) (local.set $i (i32.add (local.get $i) (i32.const 3)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 500000))))
        (loop $l (call $select (i32.const 65536) (i32.const 400000) (i32.const 200) (i32.const 15) (i32.const 400))
            (br $l))";
    let square = "(memory.fill (i32.const 65536) (i32.const 65) (i32.const 4194304))
        (loop $l
            (call $regex (i32.const 320) (i32.const 14) (i32.const 65536) (i32.const 4194304) (i32.const 400)) (br $l))";
    let large_pattern = format!(
        "{LONG_TEXT} (loop $l
            (call $regex (i32.const 340) (i32.const 17) (i32.const 65536) (i32.const 4194304) (i32.const 400)) (br $l))"
    );
    let depth = "(local $i i32) (local.set $i (i32.const 65536))
        (loop $l (i32.store (local.get $i) (i32.const 0x3e623c)) (local.set $i (i32.add (local.get $i) (i32.const 3)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 125536))))
        (loop $l (i64.store (local.get $i) (i64.const 0x3e692f3c3e693c)) (local.set $i (i32.add (local.get $i) (i32.const 7)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 4000000))))
        (loop $l (call $select (i32.const 65536) (i32.const 3900000) (i32.const 200) (i32.const 15) (i32.const 400))
            (br $l))";
    vec![
        does(
            "spin-in-a-search",
            "has the host search a long text with a pattern made to be slow, again and again.",
            "cpuLimit",
            (TEXT, &many_searches),
        ),
        does(
            "square-of-a-text",
            "has the host look for each letter of a long text with a pattern that reads on to the end of the text, again and \
             again.",
            "cpuLimit",
            (TEXT, square),
        ),
        does(
            "pattern-with-many-ways",
            "has the host follow 9,000 ways through a pattern at each letter of a long text, again and again.",
            "cpuLimit",
            (TEXT, &large_pattern),
        ),
        does(
            "siblings-in-the-depth",
            "has the host compare each of half a million elements with the 20,000 that they are all in, again and again.",
            "cpuLimit",
            (TEXT, depth),
        ),
        does(
            "spin-in-a-selector",
            "has the host look for deeply nested elements in a long page, again and again.",
            "cpuLimit",
            (TEXT, html),
        ),
    ]
}
