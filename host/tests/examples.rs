//! The examples in `examples/` do what they say. `cargo test -p host` builds them with these tests; `tests/run` builds these
//! two before it starts.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use support::{Content, Origin, Resource};

const BYTES: u64 = 300_000;

fn example(name: &str) -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_svc"))
        .parent()
        .expect("an executable is in a directory");
    profile.join("examples").join(name)
}

/// Runs an example with a URL of a local server and these directories; the file is in the last one afterwards.
fn downloads(name: &str, directories: &[&Path]) {
    let content = Content::seeded(7, BYTES);
    let origin = Origin::start(vec![Resource::new("/file.bin", content.clone())]);
    let run = Command::new(example(name))
        .arg(origin.url("/file.bin"))
        .args(directories)
        .output()
        .expect("cargo has built the example");
    assert!(run.status.success(), "{run:?}");
    let file = directories.last().expect("one is for downloads").join("file.bin");
    assert_eq!(content.difference(&file).expect("the file can be read"), None);
}

#[test]
fn a_program_embeds_the_service() {
    let home = tempfile::tempdir().unwrap();
    let (data, save) = (home.path().join("data"), home.path().join("files"));
    downloads("embed", &[&data, &save]);
    // Everything has ended: the same directory can be used again.
    downloads("embed", &[&data, &home.path().join("others")]);
}

#[test]
fn a_program_embeds_the_engine() {
    let save = tempfile::tempdir().unwrap();
    downloads("engine", &[save.path()]);
}
