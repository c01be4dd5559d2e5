//! `svc cookies`: the cookies that a service keeps for sites, from a browser's export.

use std::path::PathBuf;

use command::{Exit, amount, environment::Environment};
use jiff::Timestamp;
use protocol::{Method, OkResult, SiteCookiesDto, SiteCookiesImportRequest, SiteParams};

use crate::{file, service::ServiceArgs, table};

pub(crate) const EXAMPLES: &str = "Examples:
  svc cookies                                      sites with stored cookies
  svc cookies import cookies.txt                   from an extension such as Get cookies.txt LOCALLY
  svc cookies import export.json --site example.com
  svc cookies remove example.com

An export is a cookies.txt (Netscape's format) or the JSON of Cookie-Editor, EditThisCookie and the like.
Cookies are sent with plain downloads from their site only, as the browser would send them.";

/// As large as a service takes it.
const MAX_FILE_BYTES: u64 = 512 * 1024;

#[derive(Debug, clap::Args)]
pub struct CookiesArgs {
    #[command(subcommand)]
    command: Option<CookiesCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum CookiesCommand {
    /// List sites with stored cookies
    #[command(visible_alias = "ls")]
    List,
    /// Store the cookies of a browser's export, in place of those that their sites had
    Import {
        /// The export, - for standard input
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// Take the cookies of this site only
        #[arg(long, value_name = "SITE")]
        site: Option<String>,
    },
    /// Remove the cookies of a site
    #[command(visible_alias = "rm")]
    Remove {
        /// The site, as the list shows it
        site: String,
    },
    /// Remove all cookies
    Clear,
}

pub(crate) async fn run(args: &CookiesArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    match args.command.as_ref().unwrap_or(&CookiesCommand::List) {
        CookiesCommand::List => {
            let mut client = service.connect(environment).await?;
            let sites: Vec<SiteCookiesDto> = client.ask(Method::SiteCookiesList).await?;
            let row = |entry: &SiteCookiesDto| [entry.site.clone(), entry.count.to_string(), expiry(entry)];
            service.print(&sites, || {
                table::lines(["SITE", "COOKIES", "EXPIRE"], sites.iter().map(row))
            })
        }
        CookiesCommand::Import { file, site } => {
            let request = SiteCookiesImportRequest {
                cookies: file::read_text(file, MAX_FILE_BYTES)?,
                site: site.clone().unwrap_or_default(),
            };
            let mut client = service.connect(environment).await?;
            let stored: Vec<SiteCookiesDto> = client.call(Method::SiteCookiesImport, &request).await?;
            let told: Vec<_> = stored
                .iter()
                .map(|entry| format!("{} of {}", amount::counted(entry.count, "cookie"), entry.site))
                .collect();
            service.print_done(&stored, &format!("stored {}", told.join(", ")))
        }
        CookiesCommand::Remove { site } => {
            let mut client = service.connect(environment).await?;
            let params = SiteParams { site: site.clone() };
            let done: OkResult = client.call(Method::SiteCookiesDelete, &params).await?;
            service.print_done(&done, &format!("removed the cookies of {site}"))
        }
        CookiesCommand::Clear => {
            let mut client = service.connect(environment).await?;
            let done: OkResult = client.ask(Method::SiteCookiesClear).await?;
            service.print_done(&done, "removed all cookies")
        }
    }
}

/// When the last cookie expires.
fn expiry(entry: &SiteCookiesDto) -> String {
    let seconds = entry.expires_at.and_then(|seconds| i64::try_from(seconds).ok());
    let moment = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map_or_else(|| "never".to_owned(), |moment| moment.strftime("%Y-%m-%d").to_string())
}
