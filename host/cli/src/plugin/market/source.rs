//! `svc market sources`: the sources of a service's plugins.

use command::{Exit, environment::Environment, print_lines};
use protocol::{
    MarketRefreshRequest, MarketSourceAddRequest, MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, Method,
    OkResult,
};

use super::ask::confirm;
use crate::{
    service::{Client, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc market sources                               all sources, and their state
  svc market sources add 'svc://market?url=https://plugins.example.org/&key=RW…'
  svc market sources remove example
  svc market sources refresh                       look for news now
  svc market sources add LINK --fingerprint '0123 4567 …'   for scripts

The maintainer of a source publishes its link. The fingerprint of its key is shown before it is added: compare it with \
the one that the maintainer publishes elsewhere.";

#[derive(Debug, clap::Args)]
pub struct SourcesArgs {
    #[command(subcommand)]
    command: Option<SourcesCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum SourcesCommand {
    /// List sources (the default)
    #[command(visible_alias = "ls")]
    List,
    /// Add a source
    Add {
        /// Its link, `svc://market?url=…&key=…`
        link: String,
        /// The fingerprint of its key, as published; without it, the fingerprint is shown for you to confirm
        #[arg(long, value_name = "DIGITS")]
        fingerprint: Option<String>,
    },
    /// Remove a source that no installed plugin came from
    #[command(visible_alias = "rm")]
    Remove {
        /// The source, as the list names it
        source: String,
    },
    /// Refresh sources now
    Refresh {
        /// The source; all of them if none is named
        source: Option<String>,
    },
}

pub(crate) async fn run(args: &SourcesArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    match &args.command {
        None | Some(SourcesCommand::List) => {
            let sources: Vec<MarketSourceDto> = client.ask(Method::PluginMarketSourceList).await?;
            service.print(&sources, || lines(&sources))
        }
        Some(SourcesCommand::Refresh { source }) => {
            let source = source.clone();
            let sources: Vec<MarketSourceDto> = client
                .call(Method::PluginMarketRefresh, &MarketRefreshRequest { source })
                .await?;
            service.print(&sources, || lines(&sources))
        }
        Some(SourcesCommand::Add { link, fingerprint }) => add(service, link, fingerprint.clone(), &mut client).await,
        Some(SourcesCommand::Remove { source }) => {
            let source = source.clone();
            let sentence = format!("forgot {source}");
            let params = MarketSourceParams { source };
            let answered: OkResult = client.call(Method::PluginMarketSourceRemove, &params).await?;
            service.print_done(&answered, &sentence)
        }
    }
}

async fn add(
    service: &ServiceArgs,
    link: &str,
    fingerprint: Option<String>,
    client: &mut Client,
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
            "Compare it with the one that the source's maintainer publishes elsewhere.".to_owned(),
        ];
        if !confirm(&lines, "Is it the same?", "--fingerprint")? {
            return print_lines(["nothing was added"]).map(|_| Exit::Unfinished);
        }
        request.fingerprint = Some(fingerprint);
    }
    let added: MarketSourceAddResponse = client.call(Method::PluginMarketSourceAdd, &request).await?;
    let source = added.source.clone().unwrap_or_default();
    let sentence = format!("added {}: {}, {} plugins", source.id, source.name, source.plugins);
    service.print_done(&added, &sentence)
}

fn lines(sources: &[MarketSourceDto]) -> Vec<String> {
    let row = |source: &MarketSourceDto| {
        let state = match &source.error {
            Some(error) => format!("{}: {error}", source.status),
            None => source.status.clone(),
        };
        [
            source.id.clone(),
            state,
            source.plugins.to_string(),
            source.url.clone(),
            source.fingerprint.clone(),
        ]
    };
    let head = ["SOURCE", "STATE", ">PLUGINS", "URL", "FINGERPRINT"];
    table::lines(head, sources.iter().map(row))
}
