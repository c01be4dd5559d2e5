//! `svc self-update`: brings an installation by `host/packaging/install.sh` up to date, with the copy of that script that
//! was installed with it. The script verifies signature and version.

use std::{path::Path, process::Command};

use anyhow::Context as _;
use command::{Exit, UsageError};

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
    let program = std::env::current_exe().context("cannot find this executable")?;
    // PREFIX/bin/svc
    let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let script = prefix.join("share/svc/install.sh");
    if !script.is_file() || !prefix.join("share/svc/receipt").is_file() {
        let problem = format!(
            "{} was not installed by install.sh; update it the way it was installed: apt for the Debian package, a new image \
             for a container, git pull and cargo build for sources",
            program.display()
        );
        return Err(UsageError::new("self-update", problem).into());
    }
    let mut command = Command::new("sh");
    command.arg(&script).arg("--prefix").arg(prefix);
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
