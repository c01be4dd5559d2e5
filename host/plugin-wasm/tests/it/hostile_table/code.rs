//! Code that is no plugin's, or that is made to hang a compiler.

use plugin_wasm::MAX_PLUGIN_BYTES;

use super::{Attempt, Case, case};
use crate::guest::{MEMORY, previewer};

fn component(text: &str) -> Attempt {
    Attempt::Load(wat::parse_str(format!("(component {text})")).unwrap())
}

/// Every loop hands every local variable on to the next: blocks times local variables values.
fn bomb(count: usize) -> String {
    let (locals, begin) = ("(local i32)".repeat(count), "loop ".repeat(count));
    let end = "local.get 0 br_if 0 end ".repeat(count);
    format!("(core module (func {locals} {begin} {end}))")
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn cases() -> Vec<Case> {
    let starts = format!("{MEMORY} (func $start (loop $l (br $l))) (start $start)");
    let hungry = r#"(memory (export "memory") 4000)"#;
    let modules = "(core module) ".repeat(20);
    let functions = format!("(core module {})", "(func) ".repeat(25_000));
    vec![
        case(
            "no-code",
            "is an archive instead of code.",
            "screen",
            Attempt::Load(b"PK\x03\x04".to_vec()),
        ),
        case(
            "cut-off",
            "ends in the middle.",
            "screen",
            Attempt::Load({
                let mut bytes = previewer(&[], MEMORY, "");
                bytes.truncate(bytes.len() / 2);
                bytes
            }),
        ),
        case(
            "too-large",
            "is larger than a plugin may be.",
            "screen",
            Attempt::Load(vec![0; MAX_PLUGIN_BYTES + 1]),
        ),
        case(
            "core-module",
            "is a core module, which has no types.",
            "kind",
            Attempt::Load(wat::parse_str("(module)").unwrap()),
        ),
        case(
            "threads",
            "shares its memory between threads.",
            "screen",
            component("(core module (memory 1 1 shared))"),
        ),
        case(
            "memory-64",
            "has a memory of 64 bits.",
            "screen",
            component("(core module (memory i64 1))"),
        ),
        case(
            "two-memories",
            "has two memories.",
            "screen",
            component("(core module (memory 1) (memory 1))"),
        ),
        case("many-modules", "is made of 20 modules.", "screen", component(&modules)),
        case(
            "many-functions",
            "has 25,000 functions.",
            "screen",
            component(&functions),
        ),
        case(
            "compile-bomb",
            "is small and takes a compiler hours.",
            "screen",
            component(&bomb(3000)),
        ),
        case(
            "unknown-import",
            "imports what no host gives.",
            "abi",
            component(r#"(import "evil:host/shell" (instance (export "run" (func))))"#),
        ),
        case(
            "spin-at-start",
            "computes without end when it is started.",
            "start: cpuLimit",
            Attempt::Load(previewer(&[], &starts, "")),
        ),
        case(
            "memory-at-start",
            "begins with 250 MiB of memory.",
            "start: memoryLimit",
            Attempt::Load(previewer(&[], hungry, "")),
        ),
    ]
}
