//! `svc completions`: a completion script for a shell.

use clap_complete::Shell;
use command::Exit;

/// Which script.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, mut command: clap::Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "svc", &mut script);
    command::print_bytes(&script)
}
