//! `svc market …` for users of a service: search, install and update plugins, and manage sources.

mod ask;
mod install;
mod source;

use command::{Exit, environment::Environment};
use protocol::{MarketEntryDto, MarketInstalledDto, Method, RevocationDto};

use super::installed;
use crate::{service::ServiceArgs, table};

/// A command for the users of sources.
#[derive(Debug, clap::Subcommand)]
pub enum MarketCommand {
    /// List available plugins
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Search names, descriptions and tags of available plugins
    Search(SearchArgs),
    /// Install plugins, after showing their permissions
    #[command(after_help = install::EXAMPLES)]
    Install(install::InstallArgs),
    /// Update installed plugins: all, or those named
    Update(install::UpdateArgs),
    /// Restore the previous version of a plugin, and pin it
    Rollback(installed::OneArgs),
    /// Pin a plugin to its version
    Pin(installed::OneArgs),
    /// Allow updates of a pinned plugin
    Unpin(installed::OneArgs),
    /// List, add, remove and refresh the sources of a service
    #[command(after_help = source::EXAMPLES)]
    Sources(source::SourcesArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only installed plugins with a newer version
    #[arg(long)]
    updates: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// Words to search for
    #[arg(required = true)]
    words: Vec<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(command: MarketCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        MarketCommand::List(args) => {
            let is_wanted = |entry: &MarketEntryDto| !args.updates || entry.update_available;
            list(&args.service, is_wanted, environment).await
        }
        MarketCommand::Search(args) => {
            let words: Vec<_> = args.words.iter().map(|word| word.to_lowercase()).collect();
            list(&args.service, |entry| has_words(entry, &words), environment).await
        }
        MarketCommand::Install(args) => install::install(&args, environment).await,
        MarketCommand::Update(args) => install::update(&args, environment).await,
        MarketCommand::Rollback(args) => installed::roll_back(&args, environment).await,
        MarketCommand::Pin(args) => installed::set_pinned(&args, true, environment).await,
        MarketCommand::Unpin(args) => installed::set_pinned(&args, false, environment).await,
        MarketCommand::Sources(args) => source::run(&args, environment).await,
    }
}

async fn list(
    service: &ServiceArgs,
    is_wanted: impl Fn(&MarketEntryDto) -> bool,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let mut client = service.connect(environment).await?;
    let mut entries: Vec<MarketEntryDto> = client.ask(Method::PluginMarketList).await?;
    entries.retain(is_wanted);
    service.print(&entries, || lines(&entries))
}

fn lines(entries: &[MarketEntryDto]) -> Vec<String> {
    let row = |entry: &MarketEntryDto| {
        let installed = entry.installed.as_ref().map(|installed| installed.version.clone());
        [
            entry.plugin_id.clone(),
            entry.version.clone(),
            installed.unwrap_or_default(),
            entry.source.clone(),
            state(entry),
            entry.name.clone(),
        ]
    };
    let head = ["PLUGIN", "VERSION", "INSTALLED", "SOURCE", "STATE", "NAME"];
    table::lines(head, entries.iter().map(row))
}

fn has_words(entry: &MarketEntryDto, words: &[String]) -> bool {
    let texts = [&entry.plugin_id, &entry.name, &entry.description, &entry.author];
    let texts: Vec<_> = texts
        .into_iter()
        .chain(&entry.tags)
        .map(|text| text.to_lowercase())
        .collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}

/// Notes for the user, most important first.
fn state(entry: &MarketEntryDto) -> String {
    let is_told = |revoked: &RevocationDto| entry.yanked.contains(&revoked.reason);
    let is_pinned = matches!(&entry.installed, Some(MarketInstalledDto { pinned: true, .. }));
    let mut states = Vec::new();
    states.extend(
        entry
            .revoked
            .as_ref()
            .map(|revoked| format!("{}: {}", revoked.level, revoked.reason)),
    );
    if !entry.yanked.is_empty() && !entry.revoked.as_ref().is_some_and(is_told) {
        states.push(entry.yanked.clone());
    }
    states.extend(entry.stale.then(|| "stale source".to_owned()));
    states.extend(entry.update_available.then(|| "update".to_owned()));
    states.extend(is_pinned.then(|| "pinned".to_owned()));
    states.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> MarketEntryDto {
        MarketEntryDto {
            plugin_id: "one@acme".into(),
            name: "One".into(),
            description: "Makes one of many.".into(),
            tags: vec!["Video".into()],
            ..MarketEntryDto::default()
        }
    }

    #[test]
    fn words_are_sought_in_everything_that_people_read() {
        let found = |words: &[&str]| {
            has_words(
                &entry(),
                &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
            )
        };
        assert!(found(&["many"]) && found(&["acme", "video"]) && found(&["one"]));
        assert!(!found(&["many", "two"]));
    }

    #[test]
    fn a_dangerous_plugin_is_reported_first() {
        let revoked = RevocationDto {
            level: "malicious".into(),
            reason: "sends cookies".into(),
        };
        let entry = MarketEntryDto {
            revoked: Some(revoked),
            yanked: "version 1.0.0 is malicious: sends cookies".into(),
            stale: true,
            update_available: true,
            ..entry()
        };
        assert_eq!(state(&entry), "malicious: sends cookies; stale source; update");
    }
}
