//! The `svc` executable. Everything it does is in the library `host`.

use std::process::ExitCode;

fn main() -> ExitCode {
    host::executable::main(std::env::args_os())
}
