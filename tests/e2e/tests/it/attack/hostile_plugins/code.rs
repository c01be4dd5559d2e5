//! Code that is no plugin's, or that is made to hang a compiler.

use super::{
    Attempt, Case, REFUSED, case,
    guest::{MEMORY, previewer},
    manifest, package,
};

/// A plugin with this code.
fn coded(name: &'static str, what: &str, code: &[u8]) -> Case {
    let archive = package::of(&manifest(name), code);
    case(name, what, REFUSED, Attempt::Install(archive))
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {text})")).unwrap()
}

/// Every loop hands every local variable on to the next: blocks times local variables values.
fn bomb(count: usize) -> String {
    let (locals, begin) = ("(local i32)".repeat(count), "loop ".repeat(count));
    let end = "local.get 0 br_if 0 end ".repeat(count);
    format!("(core module (func {locals} {begin} {end}))")
}

pub(super) fn cases() -> Vec<Case> {
    let good = previewer(MEMORY, "");
    let starts = format!("{MEMORY} (func $start (loop $l (br $l))) (start $start)");
    let hungry = r#"(memory (export "memory") 4000)"#;
    let modules = "(core module) ".repeat(20);
    let functions = format!("(core module {})", "(func) ".repeat(25_000));
    let shell = r#"(import "evil:host/shell" (instance (export "run" (func))))"#;
    vec![
        coded("no-code", "is an archive instead of code.", b"PK\x03\x04"),
        coded("cut-off", "ends in the middle.", &good[..good.len() / 2]),
        coded(
            "core-module",
            "is a core module, which has no types.",
            &wat::parse_str("(module)").unwrap(),
        ),
        coded(
            "threads",
            "shares its memory between threads.",
            &component("(core module (memory 1 1 shared))"),
        ),
        coded(
            "memory-64",
            "has a memory of 64 bits.",
            &component("(core module (memory i64 1))"),
        ),
        coded(
            "two-memories",
            "has two memories.",
            &component("(core module (memory 1) (memory 1))"),
        ),
        coded("many-modules", "is made of 20 modules.", &component(&modules)),
        coded("many-functions", "has 25,000 functions.", &component(&functions)),
        coded(
            "compile-bomb",
            "is small and takes a compiler hours.",
            &component(&bomb(3000)),
        ),
        coded("unknown-import", "imports what no host gives.", &component(shell)),
        coded(
            "spin-at-start",
            "computes without end when it is started.",
            &previewer(&starts, ""),
        ),
        coded(
            "memory-at-start",
            "begins with 250 MiB of memory.",
            &previewer(hungry, ""),
        ),
    ]
}
