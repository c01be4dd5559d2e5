//! From bytes to a plugin: the compiler's process, the cache, and what is refused.

use std::{
    fs,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use plugin_host::runtime::Language;
use plugin_wasm::{CompileError, Limits, LoadError, Wanted};

use crate::{
    guest::{MEMORY, previewer},
    rig::{Rig, context},
};

fn working() -> Vec<u8> {
    previewer(&[], MEMORY, "")
}

/// The compiled plugins in a rig's folder.
fn compiled(rig: &Rig) -> Vec<PathBuf> {
    let engines = fs::read_dir(rig.folder.path()).unwrap();
    let files = engines.flat_map(|engine| fs::read_dir(engine.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn a_compiled_plugin_is_not_compiled_again() {
    let rig = Rig::new();
    let first = rig.load(working()).await;
    // This one cannot compile anything.
    let again = rig
        .restarted("/nonexistent")
        .load(working(), Language::Component)
        .await
        .unwrap();
    assert_eq!(first.hash(), again.hash());
    again
        .preview("https://example.org/", context().0, Limits::preview())
        .await
        .result
        .unwrap();
}

#[tokio::test]
async fn what_several_load_side_by_side_is_compiled_once() {
    let notes = tempfile::tempdir().unwrap();
    let notes = notes.path().join("notes");
    let command = format!(
        "echo compiled >> {}; exec {}",
        notes.display(),
        env!("CARGO_BIN_EXE_compile-plugin")
    );
    let rig = Rig::with_compiler("/bin/sh".into(), &["-c", &command]);
    // Each has its own runtime, as processes have.
    let others: Vec<_> = (0..3)
        .map(|_| rig.restarted_with("/bin/sh", &["-c", &command]))
        .collect();
    let runtimes = others.iter().chain([&rig.runtime]);
    let loads = runtimes.map(|runtime| runtime.load(working(), Language::Component));
    for loaded in futures_util::future::join_all(loads).await {
        loaded.unwrap();
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "compiled\n");
    assert_eq!(compiled(&rig).len(), 1, "no lock is left");
}

#[tokio::test]
async fn a_compiled_plugin_that_was_changed_is_not_used() {
    let rig = Rig::new();
    rig.load(working()).await;
    let file = compiled(&rig).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // It may not be written to.
    fs::remove_file(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    let refused = rig.restarted("/nonexistent").load(working(), Language::Component).await;
    assert!(
        matches!(refused, Err(LoadError::Compile(CompileError::Run { .. }))),
        "{refused:?}"
    );
    rig.load(working()).await;
}

#[tokio::test]
async fn a_compiler_that_is_killed_takes_nobody_along() {
    let rig = Rig::with_compiler("/bin/sh".into(), &["-c", "kill -KILL $$"]);
    let refused = rig.runtime.load(working(), Language::Component).await;
    assert!(
        matches!(refused, Err(LoadError::Compile(CompileError::Limit(_)))),
        "{refused:?}"
    );
    assert_eq!(compiled(&rig), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_the_compiler_refuses_is_said() {
    let rig = Rig::with_compiler("/bin/sh".into(), &["-c", "echo no good >&2; exit 2"]);
    match rig.runtime.load(working(), Language::Component).await {
        Err(LoadError::Compile(CompileError::Refused(reason))) => assert_eq!(reason, "no good"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn code_that_is_not_the_compiler_s_is_not_run() {
    let rig = Rig::with_compiler("/bin/sh".into(), &["-c", "echo this is no code"]);
    let refused = rig.runtime.load(working(), Language::Component).await;
    assert!(matches!(refused, Err(LoadError::Abi { .. })), "{refused:?}");
}

#[tokio::test]
async fn loading_and_calling_may_move_between_threads() {
    fn check<T: Send>(future: T) -> T {
        future
    }
    let rig = Rig::new();
    let loaded = check(rig.runtime.load(working(), Language::Component)).await.unwrap();
    let url = "https://example.org/";
    check(loaded.preview(url, context().0, Limits::preview()))
        .await
        .result
        .unwrap();
    drop(check(loaded.resolve(url, None, context().0, Limits::resolve())));
    let wanted = Wanted {
        url,
        entry_id: "1",
        variant_id: None,
    };
    drop(check(loaded.link(wanted, context().0, Limits::link())));
}

#[tokio::test]
async fn core_modules_are_for_authors() {
    let rig = Rig::new();
    let module = wat::parse_str("(module)").unwrap();
    let refused = rig.runtime.load(module.clone(), Language::Component).await;
    assert!(matches!(refused, Err(LoadError::NotComponent(_))), "{refused:?}");
    let refused = rig.runtime.load(b"PK\x03\x04".to_vec(), Language::CoreModule).await;
    assert!(matches!(refused, Err(LoadError::Screen(_))), "{refused:?}");
}

/// A module made to hang a compiler, straight to the compiler's process: the screen would not let it through.
#[test]
fn a_bomb_ends_the_compiler_s_process_within_its_limits() {
    // Every loop hands every local variable on to the next: blocks times local variables values.
    let count = 12_000;
    let locals = "(local i32)".repeat(count);
    let begin = "loop ".repeat(count);
    let changes: Vec<_> = (0..count)
        .map(|i| format!("local.get {i} i32.const 1 i32.add local.set {i}"))
        .collect();
    let changes = changes.join(" ");
    let end = "local.get 0 br_if 0 end ".repeat(count);
    let bomb = format!("(component (core module (func {locals} {begin} {changes} {end})))");
    let bomb = wat::parse_str(bomb).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_compile-plugin"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bomb).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.signal().is_some(), "{:?}", output.status);
    assert!(output.stdout.is_empty());
}
