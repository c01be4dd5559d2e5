//! `svc market sources`: the sources of a service's plugins.

use command::{Exit, environment::Environment, print_json, print_lines};
use protocol::{
    MarketRefreshRequest, MarketSourceAddRequest, MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, Method,
    OkResult,
};

use super::ask::confirm;
use crate::{
    service::{Client, ServiceArgs, print_done},
    table::{Align, Table},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc market sources                               where plugins come from, and how that is
  svc market sources add 'svc://market?url=https://plugins.example.org/&key=RW…'
  svc market sources remove example
  svc market sources refresh                       ask for news now

A link comes from whoever maintains the source. Its fingerprint is shown before anything is added:
compare it with what the maintainer tells elsewhere. Scripts give the fingerprint that they know:
  svc market sources add LINK --fingerprint '0123 4567 …'";

#[derive(Debug, clap::Args)]
pub struct SourcesArgs {
    #[command(subcommand)]
    command: Option<SourcesCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum SourcesCommand {
    /// List sources; so does no command at all
    #[command(visible_alias = "ls")]
    List,
    /// Add a source
    Add {
        /// Its link, `svc://market?url=…&key=…`
        link: String,
        /// The fingerprint that the maintainer tells; without it, that of the link is shown and asked about
        #[arg(long, value_name = "DIGITS")]
        fingerprint: Option<String>,
    },
    /// Forget a source that no plugin came from
    #[command(visible_alias = "rm")]
    Remove {
        /// The source, as the list names it
        source: String,
    },
    /// Ask sources for news now
    Refresh {
        /// The source; all of them if none is named
        source: Option<String>,
    },
}

pub(crate) async fn run(args: &SourcesArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let target = service.target(environment)?;
    let mut client = Client::connect(&target).await?;
    match &args.command {
        None | Some(SourcesCommand::List) => {
            let sources = client.ask(Method::PluginMarketSourceList).await?;
            print_result(service, sources)
        }
        Some(SourcesCommand::Refresh { source }) => {
            let source = source.clone();
            let sources = client
                .call(Method::PluginMarketRefresh, &MarketRefreshRequest { source })
                .await?;
            print_result(service, sources)
        }
        Some(SourcesCommand::Add { link, fingerprint }) => add(service, link, fingerprint.clone(), &mut client).await,
        Some(SourcesCommand::Remove { source }) => {
            let source = source.clone();
            let sentence = format!("forgot {source}");
            let params = MarketSourceParams { source };
            let answered: OkResult = client.call(Method::PluginMarketSourceRemove, &params).await?;
            print_done(service, &answered, &sentence)
        }
    }
}

async fn add(
    service: &ServiceArgs,
    link: &str,
    fingerprint: Option<String>,
    client: &mut Client<'_>,
) -> anyhow::Result<Exit> {
    let mut request = MarketSourceAddRequest {
        link: link.to_owned(),
        fingerprint,
    };
    if request.fingerprint.is_none() {
        let MarketSourceAddResponse { url, fingerprint, .. } =
            client.call(Method::PluginMarketSourceAdd, &request).await?;
        let lines = [
            format!("A source of plugins at {url}"),
            format!("Fingerprint of its key: {fingerprint}"),
            "Compare it with what the source's maintainer tells elsewhere.".to_owned(),
        ];
        if !confirm(&lines, "Is it the same?", "--fingerprint")? {
            return print_lines(["nothing was added"]).map(|_| Exit::Unfinished);
        }
        request.fingerprint = Some(fingerprint);
    }
    let added: MarketSourceAddResponse = client.call(Method::PluginMarketSourceAdd, &request).await?;
    let source = added.source.clone().unwrap_or_default();
    let sentence = format!("added {}: {}, {} plugins", source.id, source.name, source.plugins);
    print_done(service, &added, &sentence)
}

fn print_result(service: &ServiceArgs, sources: Vec<MarketSourceDto>) -> anyhow::Result<Exit> {
    if service.json {
        return print_json(&sources);
    }
    let mut table = Table::new([
        ("SOURCE", Align::Left),
        ("STATE", Align::Left),
        ("PLUGINS", Align::Right),
        ("URL", Align::Left),
        ("FINGERPRINT", Align::Left),
    ]);
    for source in sources {
        let state = match &source.error {
            Some(error) => format!("{}: {error}", source.status),
            None => source.status,
        };
        table.push([
            source.id,
            state,
            source.plugins.to_string(),
            source.url,
            source.fingerprint,
        ]);
    }
    print_lines(table.lines())
}
