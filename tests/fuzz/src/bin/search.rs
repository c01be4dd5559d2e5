//! One target under libFuzzer. Which one, the variable `FUZZ_TARGET` says: the arguments are libFuzzer's.

#![no_main]

use std::cell::RefCell;

use fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static TARGET: RefCell<Option<Target>> = const { RefCell::new(None) };
}

fn start() -> Target {
    #[expect(clippy::disallowed_methods, reason = "the arguments belong to libFuzzer")]
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET is set");
    let mut targets = TARGETS.iter();
    let (_, ready) = targets
        .find(|(known, _)| *known == name)
        .expect("FUZZ_TARGET is a target");
    ready()
}

fuzz_target!(|data: &[u8]| {
    TARGET.with_borrow_mut(|target| target.get_or_insert_with(start)(data));
});
