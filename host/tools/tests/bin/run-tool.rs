//! The supervisor of tools by itself: for tests, which have no `svc` to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::supervisor_main(std::env::args_os().skip(1))
}
