//! `svc integrate`: makes the desktop open links and files with Svc and start it with the session, and takes that back.
//! Every system has a plan of pieces (`freedesktop`, `windows`, `macos`), which is pure; `pieces` puts them in place.

#[cfg(all(unix, not(target_os = "macos")))]
mod freedesktop;
#[cfg(any(target_os = "macos", test))]
mod macos;
#[cfg(any(all(unix, not(target_os = "macos")), test))]
mod mime_apps;
mod pieces;
#[cfg(any(windows, test))]
mod windows;

use std::path::PathBuf;

use anyhow::Context as _;
use command::{Exit, print_json, print_lines};

use self::pieces::{Act, Step};
#[cfg(all(unix, not(target_os = "macos")))]
use freedesktop as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

/// Shown below the options in `--help`.
pub const EXAMPLES: &str = "Examples:
  svc integrate --dry-run                          what would be written
  svc integrate                                    handlers of svc:, magnet:, torrents and Metalink; start with the session
  svc integrate --no-autostart --keep-defaults     only svc: links
  svc integrate --remove                           as it was before

It writes for the current user only, and never over a file that it has not written. The program that opened magnet links
before is the next one in the desktop's list, so that it does so again after --remove.";

/// Options of `svc integrate`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct IntegrateArgs {
    /// Remove what was installed
    #[arg(long, conflicts_with_all = ["no_autostart", "keep_defaults"])]
    remove: bool,
    /// Do not start with the session
    #[arg(long)]
    no_autostart: bool,
    /// Leave magnet links, torrents and Metalink files to the program that opens them now
    #[arg(long)]
    keep_defaults: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// What is to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Wish {
    /// The executable that handlers start.
    pub(crate) program: PathBuf,
    pub(crate) is_removal: bool,
    pub(crate) has_autostart: bool,
    pub(crate) keeps_defaults: bool,
}

/// Carries the command out, and reports each piece.
pub fn run(args: &IntegrateArgs) -> anyhow::Result<Exit> {
    let wish = Wish {
        program: std::env::current_exe().context("cannot find this executable")?,
        is_removal: args.remove,
        has_autostart: !args.no_autostart,
        keeps_defaults: args.keep_defaults,
    };
    let steps = system::carry_out(&wish, args.dry_run)?;
    if args.json {
        print_json(&steps)?;
    } else {
        print_lines(lines(&steps, args.dry_run))?;
    }
    let is_whole = steps.iter().all(|step| step.act != Act::Kept);
    Ok(if is_whole { Exit::Success } else { Exit::Exists })
}

fn lines(steps: &[Step], is_dry_run: bool) -> Vec<String> {
    let mut lines: Vec<String> = steps.iter().map(|step| step.line(is_dry_run)).collect();
    if lines.is_empty() {
        lines.push("nothing of Svc is installed here".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_changes_nothing_says_so() {
        assert_eq!(lines(&[], false), ["nothing of Svc is installed here"]);
        let step = Step::new("/a", Act::Created);
        assert_eq!(lines(&[step], true), ["would create /a"]);
    }
}
