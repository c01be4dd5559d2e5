//! The commands that are clients of a running service, on this machine or another.
//!
//! *Owns* the command line of these commands, the connection to a service, and the stored client configuration.
//!
//! *Never* downloads anything itself, and accesses a service only through its protocol. Exceptions: `doctor` and `logs`
//! read files of the service on this machine, `torrent create` and `torrent show` need no service, and `open` starts one.
//!
//! # Layers
//! - `methods`: that every method has a command (a test)
//! - `logs`
//! - `doctor`
//! - `link`, `post`, `rss`, `torrent`, `webhook`
//! - `export`, `import`, `open`
//! - `plugin`, `setup`, `tasks`
//! - `config`, `cookies`, `key`, `ping`, `restart`, `secrets`, `site`
//! - `device`: paired devices by name
//! - `ids`, `page`: beginnings of ids; the address of the web interface
//! - `service`: which service, which key, and the connection
//! - `chain`, `file`, `left_out`, `secret`, `table`

mod chain;
mod config;
mod cookies;
mod device;
mod doctor;
mod export;
mod file;
mod ids;
mod import;
mod key;
mod left_out;
mod link;
mod logs;
#[cfg(test)]
mod methods;
mod open;
mod page;
mod ping;
mod plugin;
mod post;
mod restart;
mod rss;
mod secret;
mod secrets;
mod service;
mod setup;
mod site;
mod table;
mod tasks;
mod torrent;
mod webhook;

use std::pin::Pin;

use command::{Exit, environment::Environment, runtime};

pub use config::{parse_pair, read_value};
pub use plugin::{installed::PluginCommand, market::MarketCommand};
pub use service::{Address, Client, Observer, RemoteError, ServiceArgs, Target, attend::attend};

/// A command for a service.
#[derive(Debug, clap::Subcommand)]
pub enum ClientCommand {
    /// Check that a service answers; needs no access key
    #[command(after_help = ping::PING_EXAMPLES)]
    Ping(ping::PingArgs),
    /// Show the version of a service, and what it does now
    Info(ping::InfoArgs),
    /// Restart a service, for example after an update
    #[command(after_help = restart::HELP)]
    Restart(restart::RestartArgs),
    /// Set the first access key of a new service
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::SetupArgs),
    /// Add downloads to the service
    #[command(after_help = tasks::add::EXAMPLES, after_long_help = tasks::add::long_help())]
    Add(Box<tasks::add::AddArgs>),
    /// List tasks
    #[command(visible_alias = "ls", after_help = tasks::list::LIST_EXAMPLES)]
    List(tasks::list::ListArgs),
    /// Show one task with its history
    #[command(visible_alias = "stat")]
    Status(tasks::list::StatusArgs),
    /// Pause tasks
    Pause(tasks::list::IdsArgs),
    /// Resume tasks that are paused or have failed
    Resume(tasks::list::ResumeArgs),
    /// Remove tasks; completed files stay unless --files is given
    Rm(tasks::list::RemoveArgs),
    /// Pause all tasks
    PauseAll(tasks::list::AllArgs),
    /// Resume all paused tasks
    ResumeAll(tasks::list::AllArgs),
    /// Rename a task and its file
    #[command(after_help = tasks::change::RENAME_EXAMPLES)]
    Rename(tasks::change::RenameArgs),
    /// Replace the URL of a task, and keep what it downloaded
    #[command(visible_alias = "url", after_help = tasks::change::CHANGE_URL_EXAMPLES)]
    ChangeUrl(tasks::change::ChangeUrlArgs),
    /// Limit the rate of a task, or switch the service to its alternative limits
    #[command(after_help = tasks::change::LIMIT_EXAMPLES)]
    Limit(tasks::change::LimitArgs),
    /// Replace the tags of a task
    #[command(after_help = tasks::change::TAG_EXAMPLES)]
    Tag(tasks::change::TagArgs),
    /// Check now whether the files of completed tasks still exist
    Rescan(tasks::list::AllArgs),
    /// List and change queues: limits, schedules, order of tasks
    #[command(after_help = tasks::queue::EXAMPLES)]
    Queue(tasks::queue::QueueArgs),
    /// List, pause, continue and remove groups of tasks
    #[command(after_help = tasks::group::EXAMPLES)]
    Group(tasks::group::GroupArgs),
    /// Unpack a finished archive
    #[command(after_help = post::UNPACK_EXAMPLES)]
    Unpack(post::UnpackArgs),
    /// See what follows downloads: unpacking, renaming, checksums
    #[command(after_help = post::EXAMPLES)]
    Post(post::PostArgs),
    /// Subscribe to feeds, and see what they bring
    #[command(visible_alias = "feed", after_help = rss::EXAMPLES)]
    Rss(rss::RssArgs),
    /// List, store and remove logins of sites
    #[command(after_help = site::EXAMPLES)]
    Site(site::SiteArgs),
    /// List, import and remove cookies of sites, from a browser's export
    #[command(after_help = cookies::EXAMPLES)]
    Cookies(cookies::CookiesArgs),
    /// Pair with other devices, and send downloads to them
    #[command(after_help = link::EXAMPLES)]
    Link(link::LinkArgs),
    /// Tell HTTP endpoints what becomes of downloads
    #[command(visible_alias = "hook", after_help = webhook::EXAMPLES)]
    Webhook(webhook::WebhookArgs),
    /// Show or change the access key of the service
    #[command(after_help = key::EXAMPLES)]
    Key(key::KeyArgs),
    /// Replace the key that stored secrets are sealed with
    #[command(after_help = secrets::EXAMPLES)]
    Secrets(secrets::SecretsArgs),
    /// Accept or reject downloads that browsers handed over
    #[command(after_help = tasks::capture::EXAMPLES)]
    Capture(tasks::capture::CaptureArgs),
    /// Open the web interface; or hand over links and files, as a desktop does. Starts the service if it does not run
    #[command(after_help = open::EXAMPLES)]
    Open(open::OpenArgs),
    /// Follow tasks as they change
    #[command(after_help = tasks::watch::HELP)]
    Watch(tasks::watch::WatchArgs),
    /// Settings of these commands, and of the service (config server)
    #[command(after_help = config::EXAMPLES)]
    Config(config::ConfigArgs),
}

/// A command about the service of this machine as a whole, or about another program beside it.
#[derive(Debug, clap::Subcommand)]
pub enum MaintenanceCommand {
    /// Add the downloads of another program, or a copied curl command
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Print the unfinished downloads in another program's format
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Create torrents, show what is in one, and look after those of tasks
    #[command(after_help = torrent::EXAMPLES)]
    Torrent(torrent::TorrentArgs),
    /// Diagnose problems of the service
    #[command(after_help = doctor::HELP)]
    Doctor(doctor::DoctorArgs),
    /// Export the logs of the service for a bug report
    #[command(subcommand)]
    Logs(logs::LogsCommand),
}

/// Boxed, because each of these futures is large and `block_on` is instantiated for every type that it is given.
type Work<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Exit>> + 'a>>;

fn block_on(work: Work<'_>) -> anyhow::Result<Exit> {
    runtime::current_thread()?.block_on(work)
}

/// Executes a client command.
pub fn run(command: &ClientCommand, environment: &Environment) -> anyhow::Result<Exit> {
    use tasks::{add, capture, change, group, list, queue, watch};
    block_on(match command {
        ClientCommand::Ping(args) => Box::pin(ping::ping(args, environment)),
        ClientCommand::Info(args) => Box::pin(ping::info(args, environment)),
        ClientCommand::Restart(args) => Box::pin(restart::run(args, environment)),
        ClientCommand::Setup(args) => Box::pin(setup::run(args, environment)),
        ClientCommand::Add(args) => Box::pin(add::run(args, environment)),
        ClientCommand::List(args) => Box::pin(list::list(args, environment)),
        ClientCommand::Status(args) => Box::pin(list::status(args, environment)),
        ClientCommand::Pause(args) => Box::pin(list::pause(args, environment)),
        ClientCommand::Resume(args) => Box::pin(list::resume(args, environment)),
        ClientCommand::Rm(args) => Box::pin(list::remove(args, environment)),
        ClientCommand::PauseAll(args) => Box::pin(list::pause_all(args, environment)),
        ClientCommand::ResumeAll(args) => Box::pin(list::resume_all(args, environment)),
        ClientCommand::Rename(args) => Box::pin(change::rename(args, environment)),
        ClientCommand::ChangeUrl(args) => Box::pin(change::change_url(args, environment)),
        ClientCommand::Limit(args) => Box::pin(change::limit(args, environment)),
        ClientCommand::Tag(args) => Box::pin(change::tag(args, environment)),
        ClientCommand::Rescan(args) => Box::pin(change::rescan(args, environment)),
        ClientCommand::Queue(args) => Box::pin(queue::run(args, environment)),
        ClientCommand::Group(args) => Box::pin(group::run(args, environment)),
        ClientCommand::Unpack(args) => Box::pin(post::unpack(args, environment)),
        ClientCommand::Post(args) => Box::pin(post::run(args, environment)),
        ClientCommand::Rss(args) => Box::pin(rss::run(args, environment)),
        ClientCommand::Site(args) => Box::pin(site::run(args, environment)),
        ClientCommand::Cookies(args) => Box::pin(cookies::run(args, environment)),
        ClientCommand::Link(args) => Box::pin(link::run(args, environment)),
        ClientCommand::Webhook(args) => Box::pin(webhook::run(args, environment)),
        ClientCommand::Key(args) => Box::pin(key::run(args, environment)),
        ClientCommand::Secrets(args) => Box::pin(secrets::run(args, environment)),
        ClientCommand::Capture(args) => Box::pin(capture::run(args, environment)),
        ClientCommand::Open(args) => Box::pin(open::run(args, environment)),
        ClientCommand::Watch(args) => Box::pin(watch::run(args, environment)),
        ClientCommand::Config(args) => Box::pin(config::run(args, environment)),
    })
}

/// Executes a maintenance command.
pub fn run_maintenance(command: &MaintenanceCommand, environment: &Environment) -> anyhow::Result<Exit> {
    block_on(match command {
        MaintenanceCommand::Import(command) => Box::pin(import::run(command, environment)),
        MaintenanceCommand::Export(command) => Box::pin(export::run(command, environment)),
        MaintenanceCommand::Torrent(args) => match torrent::run_alone(args) {
            Some(done) => return done,
            None => Box::pin(torrent::run(args, environment)),
        },
        MaintenanceCommand::Doctor(args) => Box::pin(doctor::run(args, environment)),
        MaintenanceCommand::Logs(command) => Box::pin(logs::run(command, environment)),
    })
}

/// Executes a command about plugins.
pub fn run_plugin(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    block_on(Box::pin(plugin::installed::run(command, environment)))
}

/// Executes a command about plugin sources.
pub fn run_market(command: MarketCommand, environment: &Environment) -> anyhow::Result<Exit> {
    block_on(Box::pin(plugin::market::run(command, environment)))
}

#[cfg(test)]
mod tests {
    use clap::Subcommand as _;

    use super::*;

    /// The widest line that clap leaves as it is.
    const WIDTH: usize = 100;

    fn check(command: &clap::Command) {
        for help in [command.get_after_help(), command.get_after_long_help()]
            .into_iter()
            .flatten()
        {
            let text = help.to_string();
            // Prose is wrapped by clap; an example that is wrapped cannot be copied.
            let wide = text
                .lines()
                .find(|line| line.starts_with("  ") && line.chars().count() > WIDTH);
            assert_eq!(wide, None, "{}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn examples_fit_into_a_line() {
        let command = clap::Command::new("svc");
        let command = MaintenanceCommand::augment_subcommands(ClientCommand::augment_subcommands(command));
        check(&MarketCommand::augment_subcommands(PluginCommand::augment_subcommands(
            command,
        )));
    }
}
