//! `svc site`: the logins that a service keeps for sites.

use std::path::PathBuf;

use command::{Exit, environment::Environment};
use protocol::{Method, SiteAuthEntryDto, SiteAuthSaveRequest, SiteParams};

use crate::{secret, service::ServiceArgs, table};

pub(crate) const EXAMPLES: &str = "Examples:
  svc site                                         sites with a stored login, without passwords
  svc site set https://host --user me              asks for the password (or pipe it in)
  svc site set https://host:8443 --user me --password-file pw.txt
  svc site remove https://host

A login is sent to its site only: scheme, host and port. http and https are different sites.";

#[derive(Debug, clap::Args)]
pub struct SiteArgs {
    #[command(subcommand)]
    command: Option<SiteCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum SiteCommand {
    /// List sites with a stored login
    #[command(visible_alias = "ls")]
    List,
    /// Store the login of a site, in place of an earlier one
    Set {
        /// The site, or any URL of it; https if no scheme is given
        site: String,
        /// User name
        #[arg(long, value_name = "NAME")]
        user: String,
        /// File whose first line is the password, - for standard input [default: asked for on a terminal, else standard input]
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        password_file: Option<PathBuf>,
    },
    /// Remove the login of a site
    #[command(visible_alias = "rm")]
    Remove {
        /// The site, as the list shows it
        site: String,
    },
    /// Remove all logins
    Clear,
}

pub(crate) async fn run(args: &SiteArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    match args.command.as_ref().unwrap_or(&SiteCommand::List) {
        SiteCommand::List => {
            let sites: Vec<SiteAuthEntryDto> = service.connect(environment).await?.ask(Method::SiteAuthList).await?;
            let row = |entry: &SiteAuthEntryDto| [entry.site.clone(), entry.user.clone()];
            service.print(&sites, || table::lines(["SITE", "USER"], sites.iter().map(row)))
        }
        SiteCommand::Set {
            site,
            user,
            password_file,
        } => {
            let password = secret::choose("--password-file", password_file.as_deref(), "Password")?;
            let request = SiteAuthSaveRequest {
                site: site.clone(),
                user: user.clone(),
                pass: password.expose().to_owned(),
            };
            let mut client = service.connect(environment).await?;
            let saved: SiteAuthEntryDto = client.call(Method::SiteAuthSave, &request).await?;
            service.print_done(&saved, &format!("stored the login of {} at {}", saved.user, saved.site))
        }
        SiteCommand::Remove { site } => {
            let mut client = service.connect(environment).await?;
            let params = SiteParams { site: site.clone() };
            let left: Vec<SiteAuthEntryDto> = client.call(Method::SiteAuthDelete, &params).await?;
            service.print_done(&left, &format!("removed the login of {site}"))
        }
        SiteCommand::Clear => {
            let mut client = service.connect(environment).await?;
            let left: Vec<SiteAuthEntryDto> = client.ask(Method::SiteAuthClear).await?;
            service.print_done(&left, "removed all logins")
        }
    }
}
