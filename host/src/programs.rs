//! How the programs of the user are started.

use std::{ffi::OsString, path::PathBuf};

/// The first argument of a supervisor of a program; internal, therefore not a documented command.
pub(crate) const RUN_TOOL: &str = "run-tool";

/// The first argument of an unpacker process; internal, therefore not a documented command.
pub(crate) const UNPACK: &str = "unpack-archive";

/// Unpackers are processes of the `svc` executable at `svc`.
pub(crate) fn unpacker(svc: PathBuf) -> confined::OwnCommand {
    confined::OwnCommand {
        program: svc,
        args: vec![UNPACK.into()],
    }
}

/// Where programs are searched if nobody says: a service manager may give none, and an embedded host reads none.
pub(crate) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Supervisors are processes of the `svc` executable at `svc`; programs are searched in `path`.
pub(crate) fn launcher(svc: PathBuf, path: impl Into<OsString>) -> tools::Launcher {
    tools::Launcher {
        supervisor: svc,
        arguments: vec![RUN_TOOL.into()],
        path: path.into(),
    }
}
