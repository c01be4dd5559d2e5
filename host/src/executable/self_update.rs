//! `svc self-update`: brings an installation by `host/packaging/install.sh` up to date, with the copy of that script that
//! was installed with it. The script verifies signature and version.

use std::process::Command;

use anyhow::Context as _;
use command::{
    Exit, UsageError,
    installation::{self, Installation},
};

/// Shown below the options in `--help`.
pub(super) const HELP: &str = "\
Only for what install.sh installed; a package is updated by its package manager, a container by a new image. The archive is
verified with the key in the installed script, and an older version is refused. Then svc restart has a running service
continue with the new version.";

#[derive(Debug, clap::Args)]
pub(super) struct SelfUpdateArgs {
    /// Install this version instead of the newest
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Also if it is older than the installed one
    #[arg(long, requires = "to")]
    allow_older: bool,
}

pub(super) fn run(args: &SelfUpdateArgs) -> anyhow::Result<Exit> {
    let installation = Installation::here();
    let Installation::Installer(prefix) = installation else {
        let problem = format!(
            "this executable was not installed by install.sh; it is {}",
            installation.sentence()
        );
        return Err(UsageError::new("self-update", problem).into());
    };
    let script = installation::script(&prefix);
    let mut command = Command::new("sh");
    command.arg(&script).arg("--prefix").arg(&prefix);
    if let Some(version) = &args.to {
        command.arg("--version").arg(version);
    }
    if args.allow_older {
        command.arg("--allow-older");
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", script.display()))?;
    Ok(if status.success() {
        Exit::Success
    } else {
        Exit::Untrusted
    })
}
