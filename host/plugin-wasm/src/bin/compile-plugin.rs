//! The compiler's process by itself: for tests and measurements, which have no `svc` to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    plugin_wasm::compile_child_main()
}
