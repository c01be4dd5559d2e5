//! `svc torrent`: torrents as files, and those of a service's tasks.

mod create;
mod limit;
mod show;
mod task;

use command::{Exit, environment::Environment};

pub(crate) const EXAMPLES: &str = "Without a service:
  svc torrent create photos --tracker https://tracker.example/announce
  svc torrent create film.mkv -o film.torrent --private --source ABC
  svc torrent show photos.torrent
  svc torrent show 'magnet:?xt=urn:btih:...' --json

Torrents of tasks, which svc add adds:
  svc torrent files 3f2a                           with their numbers, and how much of each is there
  svc torrent select 3f2a 1,4-7                    download these files only
  svc torrent peers 3f2a
  svc torrent export 3f2a --magnet
  svc torrent seed 3f2a --ratio 2 --time none      how long to give back what was taken

The directory or only file of a torrent is renamed with svc rename, like every task.";

#[derive(Debug, clap::Args)]
pub struct TorrentArgs {
    #[command(subcommand)]
    command: TorrentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TorrentCommand {
    /// Create the torrent of a file or a directory
    Create(create::CreateArgs),
    /// Show what a torrent or a magnet link consists of
    Show(show::ShowArgs),
    #[command(flatten)]
    Task(task::TaskCommand),
}

/// Executes a command that needs no service; `None` for one that does.
pub(crate) fn run_alone(args: &TorrentArgs) -> Option<anyhow::Result<Exit>> {
    match &args.command {
        TorrentCommand::Create(args) => Some(create::run(args)),
        TorrentCommand::Show(args) => Some(show::run(args)),
        TorrentCommand::Task(_) => None,
    }
}

/// Executes a command for a task.
pub(crate) async fn run(args: &TorrentArgs, environment: &Environment) -> anyhow::Result<Exit> {
    match &args.command {
        TorrentCommand::Task(command) => task::run(command, environment).await,
        TorrentCommand::Create(_) | TorrentCommand::Show(_) => run_alone(args).expect("these commands need no service"),
    }
}
