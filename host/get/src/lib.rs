//! `svc get`: downloads files in this process, without a service, and waits for completion.
//!
//! *Owns* the command-line options of a download, the format of input files, and the progress display. `svc add` has
//! the same options and display for downloads of a service.
//!
//! *Never* connects to a service.
//!
//! # Layers
//! - `drive`: runs the engine until every download has ended
//! - `interrupt`: stop requests, even while the disk blocks the main thread
//! - `plan`: settings of the engine and its tasks
//! - `ledger`: the state of each file, for the display
//! - `render`: bars, lines or JSON
//! - `wanted`: command line, documents and input file as tasks
//! - `document`: the files of Metalink documents as tasks
//! - `file_options`
//! - `request`, `input_file`
//! - `args`

pub mod args;
mod document;
mod drive;
mod file_options;
mod input_file;
mod interrupt;
#[expect(missing_docs, reason = "its fields and variants are those of the engine's tasks")]
pub mod ledger;
mod plan;
#[expect(missing_docs, reason = "its fields are figures whose names carry their units")]
pub mod render;
pub mod request;
pub mod wanted;

use std::sync::Arc;

use command::{Exit, UsageError, descriptors, environment::Environment, log, memory};
use tokio::runtime::{Builder, LocalOptions};
use transfer::{Lanes, Transport};
use transfer_ftp::FtpTransport;
use transfer_http::HttpTransport;
use transfer_sftp::SftpTransport;
use transfer_torrent::{Following, Torrents};

pub use args::GetArgs;

/// Shown below the options in `--help`.
pub const EXAMPLES: &str = "Examples:
  svc get https://host/disk.iso                    save it here
  svc get -d ~/Downloads -o my.iso https://host/disk.iso
  svc get --checksum sha-256=9f86… https://host/disk.iso
  svc get -i list.txt -j 16                        many files, 16 at a time
  svc get disk.meta4                               the files of a Metalink document
  svc get 'magnet:?xt=urn:btih:…'                  a torrent; quotes keep the shell from splitting it
  svc get --seed-ratio 1 disk.torrent              and give back as much as was taken

Stopped? Run the same command again: it continues where it was.";

/// [`EXAMPLES`], and notes for scripts.
pub fn long_help() -> String {
    const JSON: &str = "JSON lines:
  Each has \"event\", and all but the summary \"index\" (position of the input, from 0) and \"url\":
  started · named {path,total} · progress {done,total,bytesPerSecond,connections} · notice {message}
  retrying {kind,message,waitMs} · finished {path,sizeBytes,receivedBytes} · skipped {existing}
  failed {kind,message} · last: summary {finished,failed,skipped,unfinished,bytes,seconds}";
    format!("{EXAMPLES}\n\n{JSON}\n\n{}", command::exit::help())
}

/// The schemes of the URLs that can be downloaded.
const SCHEMES: [&str; 7] = ["http", "https", "ftp", "ftpes", "ftps", "sftp", "magnet"];

/// Executes the command.
pub fn run(args: GetArgs, environment: &Environment) -> anyhow::Result<Exit> {
    log::start(args.output.verbose, environment)?;
    let _as_many_as_there_are = descriptors::raise_limit();
    let screen = render::screen(&args.output, environment);
    let transport = HttpTransport::new(plan::transport_config(&args.connection))
        .map_err(|failure| UsageError::new("--ca-certificate", failure.message))?;
    let ftp = FtpTransport::new(plan::ftp_config(&args.connection))
        .map_err(|failure| UsageError::new("--ca-certificate", failure.message))?;
    let sftp = SftpTransport::new(plan::sftp_config(&args.connection, environment))
        .map_err(|failure| UsageError::new("--ca-certificate", failure.message))?;
    let plan = plan::Plan::new(args, &SCHEMES)?;
    memory::release_code();
    // One thread for the engine and the transfers: most of the cost of a small file would be the wakeups between two.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let torrents = Torrents::new(plan.swarm.config()?);
    let following = |inner| Arc::new(Following::new(inner, torrents.clone()));
    let transports: Vec<Arc<dyn Transport>> = vec![
        following(Arc::new(transport.on(Lanes::here()))),
        following(Arc::new(ftp.on(Lanes::here()))),
        following(Arc::new(sftp.on(Lanes::here()))),
        Arc::new(torrents.clone()),
    ];
    let exit = runtime.block_on(drive::drive(&plan, transports, &torrents, screen));
    // A disk that hangs does not keep the process.
    runtime.shutdown_background();
    exit
}
