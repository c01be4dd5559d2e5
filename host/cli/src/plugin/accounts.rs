//! `svc plugin accounts` and `svc plugin logout`: the accounts that plugins are logged in to.

use command::{Exit, environment::Environment};
use protocol::{
    LoginAccountDto, LoginSlotDto, Method, PluginAuthAction, PluginAuthRequest, PluginAuthResponse, PluginDto,
};
use serde::Serialize;

use super::find::find;
use crate::{
    service::{Client, ServiceArgs},
    table,
};

#[derive(Debug, clap::Args)]
pub struct AccountsArgs {
    /// Name of the plugin, as "svc plugin list" shows it [default: all that can log in]
    plugin: Option<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// Name of the plugin, as "svc plugin list" shows it
    plugin: String,
    /// Which account, as "svc plugin accounts" shows it [default: the only one]
    #[arg(long, value_name = "SLOT")]
    slot: Option<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// What a plugin can log in to.
#[derive(Debug, Serialize)]
struct PluginAccounts {
    identity: String,
    accounts: Vec<LoginSlotDto>,
}

pub(crate) async fn list(args: &AccountsArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let mut all = Vec::new();
    for identity in meant(&mut client, args.plugin.as_deref()).await? {
        let request = PluginAuthRequest::new(Some(identity.clone()), PluginAuthAction::Status);
        let answer: PluginAuthResponse = client.call(Method::PluginAuth, &request).await?;
        all.push(PluginAccounts {
            identity,
            accounts: answer.accounts.unwrap_or_default(),
        });
    }
    args.service.print(&all, || lines(&all))
}

/// The plugin that is named, else all with a login.
async fn meant(client: &mut Client, named: Option<&str>) -> anyhow::Result<Vec<String>> {
    if let Some(text) = named {
        return Ok(vec![find(client, text).await?.identity]);
    }
    let plugins: Vec<PluginDto> = client.ask(Method::PluginList).await?;
    let with_login = plugins.into_iter().filter(|plugin| plugin.auth_supported);
    Ok(with_login.map(|plugin| plugin.identity).collect())
}

fn lines(all: &[PluginAccounts]) -> Vec<String> {
    let slots = all
        .iter()
        .flat_map(|plugin| plugin.accounts.iter().map(|slot| (&plugin.identity, slot)));
    let rows = slots.map(|(identity, slot)| {
        let account = slot.account.as_ref();
        [
            identity.clone(),
            slot.slot.clone(),
            account.map_or_else(|| "-".to_owned(), shown),
            account.map(|account| day(account.since)).unwrap_or_default(),
            slot.modes.join(", "),
            slot.title.clone(),
        ]
    });
    table::lines(["PLUGIN", "SLOT", "ACCOUNT", "SINCE", "LOGIN BY", "TITLE"], rows)
}

fn shown(account: &LoginAccountDto) -> String {
    let LoginAccountDto { name, site, .. } = account;
    let site = site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
    let state = if account.expired { " (log in again)" } else { "" };
    format!("{name}{site}{state}")
}

fn day(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.strftime("%Y-%m-%d").to_string()
}

pub(crate) async fn log_out(args: &LogoutArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let PluginDto { identity, .. } = find(&mut client, &args.plugin).await?;
    let request = PluginAuthRequest {
        slot: args.slot.clone(),
        ..PluginAuthRequest::new(Some(identity.clone()), PluginAuthAction::Logout)
    };
    let answer: PluginAuthResponse = client.call(Method::PluginAuth, &request).await?;
    let sentence = format!("{identity}: {}", answer.message);
    args.service.print_done(&answer, &sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_says_whether_another_login_is_needed() {
        let slot = |slot: &str, account| LoginSlotDto {
            slot: slot.to_owned(),
            title: "Account".to_owned(),
            modes: vec!["qr".to_owned(), "password".to_owned()],
            account,
        };
        let account = LoginAccountDto {
            id: "7".to_owned(),
            name: "Ann".to_owned(),
            since: 86_400_000,
            expired: true,
            site: Some("https://a.example/".to_owned()),
        };
        let all = [PluginAccounts {
            identity: "acme@us".to_owned(),
            accounts: vec![slot("main", Some(account)), slot("other", None)],
        }];
        assert_eq!(
            lines(&all),
            [
                "PLUGIN   SLOT   ACCOUNT                                   SINCE       LOGIN BY      TITLE",
                "acme@us  main   Ann at https://a.example/ (log in again)  1970-01-02  qr, password  Account",
                "acme@us  other  -                                                     qr, password  Account",
            ]
        );
    }
}
