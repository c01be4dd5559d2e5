//! The figures of both READMEs are those of the recorded run of the benchmarks.

use std::process::Command;

use crate::files::root;

#[test]
fn the_figures_of_the_readmes_are_those_that_were_recorded() {
    let checked = Command::new("python3")
        .args(["-B", "tests/bench/publish.py", "check"])
        .current_dir(root())
        .output()
        .expect("the tests need Python");
    let printed = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{printed}");
}
