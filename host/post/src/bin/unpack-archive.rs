//! The unpacker's process by itself: for tests, which have no `svc` to start.

use std::process::ExitCode;

fn main() -> ExitCode {
    post::unpack_child_main()
}
