//! `svc rss`: subscriptions to feeds.

mod fields;

use std::path::{Path, PathBuf};

use command::{Exit, UsageError, amount, environment::Environment, print_bytes, print_json};
use protocol::{
    Method, OkResult, RssCreatedSource, RssExportResponse, RssImportRequest, RssImportResponse, RssItemActionParams,
    RssItemDto, RssItemStatus, RssRuleDto, RssSourceDto, RssSourceParams, RssValidateRequest, RssValidateResponse,
    RssValidatedItem,
};
use serde_json::json;

use self::fields::FieldArgs;
use crate::{
    file, ids,
    service::{Client, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc rss check https://host/feed.xml --include '1080p|720p'   what would be downloaded, and why
  svc rss add https://host/feed.xml --include 'show 1080p' --episodes --dir /srv/tv
  svc rss add https://blog.example --no-download               only list what is new
  svc rss items show --new
  svc rss download show GUID
  svc rss set show --exclude 'cam|hdts'
  svc rss export > feeds.opml

A feed is named by its name, its id or the first characters of its id. What a feed contains when it is
added is never downloaded by itself.";

/// The largest file of rules or subscriptions that is read.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct RssArgs {
    #[command(subcommand)]
    command: Option<RssCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum RssCommand {
    /// List feeds
    #[command(visible_alias = "ls")]
    List,
    /// Subscribe to a feed, or to the feed that a web page names
    Add {
        /// The feed or the page
        #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
        feed: String,
        #[command(flatten)]
        fields: Box<FieldArgs>,
    },
    /// Change a subscription; what is not given stays
    Set {
        #[command(flatten)]
        which: OneArgs,
        /// Another URL of the feed
        #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
        to: Option<String>,
        #[command(flatten)]
        fields: Box<FieldArgs>,
    },
    /// Remove a subscription with its items; its downloads stay
    #[command(visible_alias = "delete")]
    Rm(OneArgs),
    /// List the items of a feed, newest first
    Items {
        #[command(flatten)]
        which: OneArgs,
        /// Only new items
        #[arg(long)]
        new: bool,
        /// At most this many, 0 for all
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Download an item, whatever became of it before
    Download(ItemArgs),
    /// Never download an item
    Ignore(ItemArgs),
    /// Mark an item, or all items of a feed, as read
    Read {
        #[command(flatten)]
        which: OneArgs,
        /// The item [default: all]
        guid: Option<String>,
    },
    /// Show the rules of a feed as JSON, or replace them
    Rules {
        #[command(flatten)]
        which: OneArgs,
        /// File with the new rules, - for standard input
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        set: Option<PathBuf>,
    },
    /// Show what a feed, or a subscription with other options, would download and why; changes nothing
    #[command(visible_alias = "try")]
    Check {
        /// The URL of a feed, or a subscription
        feed: String,
        /// Try the options on the stored items of the subscription, without fetching
        #[arg(long)]
        stored: bool,
        #[command(flatten)]
        fields: Box<FieldArgs>,
    },
    /// Fetch feeds now
    Refresh {
        /// The feeds [default: all]
        feeds: Vec<String>,
    },
    /// Subscribe to the feeds of an OPML file; they do not download by themselves
    Import {
        /// The file, - for standard input
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print all subscriptions as OPML
    Export,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Name or id of the feed
    feed: String,
}

#[derive(Debug, clap::Args)]
struct ItemArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The item, as "svc rss items" shows it
    guid: String,
}

pub(crate) async fn run(args: &RssArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    let client = &mut client;
    match args.command.as_ref().unwrap_or(&RssCommand::List) {
        RssCommand::List => {
            let sources = sources(client).await?;
            service.print(&sources, || source_lines(&sources))
        }
        RssCommand::Add { feed, fields } => {
            let mut source = RssSourceDto {
                url: feed.clone(),
                ..RssSourceDto::default()
            };
            fields.apply(&mut source, client).await?;
            let created: RssCreatedSource = client.call(Method::RssCreateSource, &source).await?;
            service.print_done(&created, &format!("subscribed to {feed}: {}", created.source_id))
        }
        RssCommand::Set { which, to, fields } => {
            let mut source = find(client, &which.feed).await?;
            if let Some(url) = to {
                source.url.clone_from(url);
            }
            fields.apply(&mut source, client).await?;
            let done: OkResult = client.call(Method::RssUpdateSource, &source).await?;
            service.print_done(&done, &format!("changed {}", source.name))
        }
        RssCommand::Rm(which) => {
            let source = find(client, &which.feed).await?;
            let done: OkResult = client.call(Method::RssDeleteSource, &params(&source)).await?;
            service.print_done(&done, &format!("removed {}", source.name))
        }
        RssCommand::Items { which, new, limit } => {
            let source = find(client, &which.feed).await?;
            let mut items: Vec<RssItemDto> = client.call(Method::RssGetItems, &params(&source)).await?;
            items.retain(|item| !new || item.status == RssItemStatus::New);
            items.truncate(if *limit == 0 { usize::MAX } else { *limit });
            service.print(&items, || item_lines(&items))
        }
        RssCommand::Download(item) => act(client, service, item, "download", "downloading").await,
        RssCommand::Ignore(item) => act(client, service, item, "ignore", "ignored").await,
        RssCommand::Read { which, guid } => {
            let source = find(client, &which.feed).await?;
            let request = RssItemActionParams {
                source_id: source.source_id,
                guid: guid.clone().unwrap_or_default(),
                action: if guid.is_some() { "read" } else { "readAll" }.to_owned(),
            };
            let done: OkResult = client.call(Method::RssItemAction, &request).await?;
            service.print_done(&done, "marked as read")
        }
        RssCommand::Rules { which, set } => rules(client, service, which, set.as_deref()).await,
        RssCommand::Check { feed, stored, fields } => check(client, service, feed, *stored, fields).await,
        RssCommand::Refresh { feeds } => refresh(client, service, feeds).await,
        RssCommand::Import { file } => {
            let document = file::read_text(file, MAX_FILE_BYTES)?;
            let imported: RssImportResponse = client.call(Method::RssImport, &RssImportRequest { document }).await?;
            let sentence = format!(
                "subscribed to {}; {} known already",
                amount::counted(imported.source_ids.len(), "feed"),
                imported.known
            );
            let failed = imported.failed.iter();
            let lines = std::iter::once(sentence).chain(
                failed.map(|failed| format!("cannot subscribe to {} ({}): {}", failed.name, failed.url, failed.error)),
            );
            let lines: Vec<_> = lines.collect();
            service.print(&imported, || lines)
        }
        RssCommand::Export => {
            let RssExportResponse { document } = client.ask(Method::RssExport).await?;
            print_bytes(document.as_bytes())
        }
    }
}

async fn sources(client: &mut Client) -> anyhow::Result<Vec<RssSourceDto>> {
    Ok(client.ask(Method::RssListSources).await?)
}

async fn find(client: &mut Client, text: &str) -> anyhow::Result<RssSourceDto> {
    let sources = sources(client).await?;
    let names = sources
        .iter()
        .map(|source| (source.source_id.as_str(), source.name.as_str()));
    let id = ids::named("feed", names, text)?;
    let found = sources.into_iter().find(|source| source.source_id == id);
    Ok(found.expect("the id is one of theirs"))
}

fn params(source: &RssSourceDto) -> RssSourceParams {
    RssSourceParams {
        source_id: source.source_id.clone(),
    }
}

async fn act(
    client: &mut Client,
    service: &ServiceArgs,
    item: &ItemArgs,
    action: &str,
    what: &str,
) -> anyhow::Result<Exit> {
    let source = find(client, &item.which.feed).await?;
    let request = RssItemActionParams {
        source_id: source.source_id,
        guid: item.guid.clone(),
        action: action.to_owned(),
    };
    let done: OkResult = client.call(Method::RssItemAction, &request).await?;
    service.print_done(&done, &format!("{what} {}", item.guid))
}

async fn rules(
    client: &mut Client,
    service: &ServiceArgs,
    which: &OneArgs,
    file: Option<&Path>,
) -> anyhow::Result<Exit> {
    let mut source = find(client, &which.feed).await?;
    let Some(file) = file else {
        return print_json(&source.rules);
    };
    let text = file::read_text(file, MAX_FILE_BYTES)?;
    let rules: Result<Vec<RssRuleDto>, _> = protocol::from_json(text.as_bytes());
    source.rules = rules.map_err(|mismatch| UsageError::new("--set", format!("{}: {mismatch}", file.display())))?;
    let done: OkResult = client.call(Method::RssUpdateSource, &source).await?;
    let count = amount::counted(source.rules.len(), "rule");
    service.print_done(&done, &format!("{} has {count} now", source.name))
}

async fn check(
    client: &mut Client,
    service: &ServiceArgs,
    feed: &str,
    stored: bool,
    fields: &FieldArgs,
) -> anyhow::Result<Exit> {
    let is_url = feed.contains("://");
    if is_url && stored {
        return Err(UsageError::new("--stored", "needs a subscription and not a URL").into());
    }
    let mut source = if is_url {
        RssSourceDto {
            url: feed.to_owned(),
            ..RssSourceDto::default()
        }
    } else {
        find(client, feed).await?
    };
    fields.apply(&mut source, client).await?;
    let request = RssValidateRequest {
        url: if stored { String::new() } else { source.url.clone() },
        source: Some(source),
        ..RssValidateRequest::default()
    };
    let response: RssValidateResponse = client.call(Method::RssValidate, &request).await?;
    let exit = service.print(&response, || checked_lines(&response))?;
    Ok(if response.error.is_empty() { exit } else { Exit::Network })
}

async fn refresh(client: &mut Client, service: &ServiceArgs, feeds: &[String]) -> anyhow::Result<Exit> {
    let mut chosen = Vec::new();
    if feeds.is_empty() {
        chosen = sources(client).await?;
    }
    for feed in feeds {
        chosen.push(find(client, feed).await?);
    }
    for source in &chosen {
        let OkResult { .. } = client.call(Method::RssRefreshSource, &params(source)).await?;
    }
    let done = json!({ "refreshed": chosen.len() });
    service.print_done(&done, &format!("fetching {}", amount::counted(chosen.len(), "feed")))
}

fn source_lines(sources: &[RssSourceDto]) -> Vec<String> {
    let known = ids::Known::new("feed", sources.iter().map(|source| source.source_id.clone()));
    let chars = known.shown_chars();
    let rows = sources.iter().map(|source| {
        [
            ids::shorten(&source.source_id, chars).to_owned(),
            source.unread_count.to_string(),
            condition(source),
            source.name.clone(),
            source.url.clone(),
        ]
    });
    table::lines(["ID", ">NEW", "STATE", "NAME", "URL"], rows)
}

fn condition(source: &RssSourceDto) -> String {
    if !source.enabled {
        "off".to_owned()
    } else if !source.last_error.is_empty() {
        format!("failed {} times: {}", source.fail_count, source.last_error)
    } else if source.last_success_at == 0 {
        "not fetched yet".to_owned()
    } else if source.auto_download {
        "downloads".to_owned()
    } else {
        "lists".to_owned()
    }
}

fn item_lines(items: &[RssItemDto]) -> Vec<String> {
    let rows = items.iter().map(|item| {
        let status = match item.status {
            RssItemStatus::New => "new",
            RssItemStatus::Downloaded => "downloaded",
            RssItemStatus::Ignored => "ignored",
            RssItemStatus::RuleMiss => "no match",
            RssItemStatus::DuplicateEpisode => "duplicate",
            RssItemStatus::Seeded => "initial",
        };
        [
            status.to_owned(),
            if item.detail.is_empty() {
                item.reason.clone()
            } else {
                format!("{}: {}", item.reason, item.detail)
            },
            size(item.enclosure_length),
            item.title.clone(),
            item.guid.clone(),
        ]
    });
    table::lines(["STATUS", "REASON", ">SIZE", "TITLE", "GUID"], rows)
}

fn checked_lines(response: &RssValidateResponse) -> Vec<String> {
    if !response.error.is_empty() {
        return vec![format!("{}: {}", response.url, response.error)];
    }
    let row = |item: &RssValidatedItem| {
        let why = match (&*item.rule, &*item.detail) {
            ("", detail) => detail.to_owned(),
            (rule, detail) => format!("{rule}: {detail}"),
        };
        [
            if item.taken { "yes" } else { "no" }.to_owned(),
            size(item.enclosure_length),
            item.episode_key.clone(),
            item.title.clone(),
            why,
        ]
    };
    let mut lines = table::lines(
        ["TAKEN", ">SIZE", "EPISODE", "TITLE", "WHY"],
        response.items.iter().map(row),
    );
    let taken = response.items.iter().filter(|item| item.taken).count();
    lines.push(format!(
        "{taken} of {} taken",
        amount::counted(response.items.len(), "item")
    ));
    lines
}

fn size(bytes: u64) -> String {
    if bytes == 0 {
        String::new()
    } else {
        amount::bytes(bytes)
    }
}
