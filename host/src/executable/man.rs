//! `svc man`: a manual page in roff, for `man -l -` or an installer.

use command::{Exit, UsageError};

/// Which page.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The command whose page to print, such as `get`; without one, that of svc itself
    command: Option<String>,
}

pub(super) fn run(args: &ManArgs, root: clap::Command) -> anyhow::Result<Exit> {
    let page = match &args.command {
        None => root,
        Some(name) => page_of(&root, name)?,
    };
    let mut roff = Vec::new();
    let source = concat!("svc ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(page).source(source).render(&mut roff)?;
    command::print_bytes(&roff)
}

/// The subcommand `name`, with the full name of its page (`svc-get`).
fn page_of(root: &clap::Command, name: &str) -> Result<clap::Command, UsageError> {
    let command = root.find_subcommand(name).ok_or_else(|| {
        let known: Vec<_> = root.get_subcommands().map(clap::Command::get_name).collect();
        UsageError::new(
            "COMMAND",
            format!("there is no command \"{name}\"; known are {}", known.join(", ")),
        )
    })?;
    let root_name = root.get_name();
    let page = command
        .clone()
        .display_name(format!("{root_name}-{name}"))
        .bin_name(format!("{root_name} {name}"));
    Ok(page.version(env!("CARGO_PKG_VERSION")))
}
