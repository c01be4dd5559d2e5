//! `svc plugin …` for plugins of a service: list, install, consent, enable, configure, roll back, remove.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use command::{Exit, UsageError, environment::Environment, print_json, print_lines};
use plugin_host::Permission;
use protocol::{
    ChoosePluginHostParams, DisabledReason, InstallPluginFileParams, InstalledPlugin, MAX_BLOB_BYTES, Method, OkResult,
    PendingVersionDto, PluginCallDto, PluginDto, PluginHealthDto, PluginJournalDto, PluginParams, PluginRequestDto,
    SetPluginEnabledParams, SetPluginPinnedParams, SettingFieldDto, UninstallPluginParams, UpdatePluginSettingsParams,
};
use serde::Serialize;
use transfer::ByteCount;

use super::{
    accounts::{self, AccountsArgs, LogoutArgs},
    find::find,
    login::{self, LoginArgs},
    preview::{self, PreviewArgs},
};
use crate::{
    config,
    service::{Client, RemoteError, ServiceArgs, http},
    table,
};

/// A command about the plugins of a service.
#[derive(Debug, clap::Subcommand)]
pub enum PluginCommand {
    /// List plugins
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Install a plugin, or another version of one
    Install(InstallArgs),
    /// Enable a plugin
    Enable(OneArgs),
    /// Disable a plugin: it is not called until it is enabled
    Disable(OneArgs),
    /// Show the permissions that a plugin asks for, or grant them
    Consent(ConsentArgs),
    /// Show the files that a plugin lists for a URL; nothing is downloaded
    Preview(PreviewArgs),
    /// Allow or forbid a plugin an optional host
    Allow(AllowArgs),
    /// Show a plugin's calls, requests and log lines
    #[command(visible_alias = "journal")]
    Log(OneArgs),
    /// Restore the previous version of a plugin
    Rollback(OneArgs),
    /// Remove a plugin with its settings and logins
    Rm(RmArgs),
    /// Show or change the settings of a plugin
    Settings(SettingsArgs),
    /// Log in to an account at the site of a plugin
    #[command(after_help = login::EXAMPLES)]
    Login(LoginArgs),
    /// Log out of an account, and delete what is stored of it
    Logout(LogoutArgs),
    /// List the accounts that plugins are logged in to
    Accounts(AccountsArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// The plugin's ZIP archive
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct OneArgs {
    /// Name of the plugin, as "svc plugin list" shows it
    plugin: String,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct RmArgs {
    #[command(flatten)]
    which: OneArgs,
    /// Keep its logins until it is installed again (signed and bundled plugins only)
    #[arg(long)]
    keep_accounts: bool,
}

#[derive(Debug, clap::Args)]
pub struct ConsentArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The digest that was shown with the permissions; without it, they are shown
    digest: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct AllowArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The host as the refusal names it, such as `https://cdn.example.net`
    host: String,
    /// Only for its next call
    #[arg(long)]
    once: bool,
    /// Forbid it, and do not ask again
    #[arg(long, conflicts_with = "once")]
    never: bool,
}

#[derive(Debug, clap::Args)]
pub struct SettingsArgs {
    #[command(flatten)]
    which: OneArgs,
    /// Settings to change, all or none; KEY= restores the default, KEY=- reads from standard input
    #[arg(value_name = "KEY=VALUE", value_parser = config::parse_pair)]
    pairs: Vec<(String, String)>,
}

pub(crate) async fn run(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let switch = |enabled| {
        move |identity| SetPluginEnabledParams {
            identity,
            enabled,
            consent: None,
        }
    };
    match command {
        PluginCommand::List(args) => list(&args.service, environment).await,
        PluginCommand::Install(args) => install(&args, environment).await,
        PluginCommand::Enable(args) => act(&args, environment, Method::PluginSetEnabled, switch(true), "enabled").await,
        PluginCommand::Disable(args) => {
            act(&args, environment, Method::PluginSetEnabled, switch(false), "disabled").await
        }
        PluginCommand::Consent(args) => consent(&args, environment).await,
        PluginCommand::Preview(args) => preview::run(&args, environment).await,
        PluginCommand::Allow(args) => {
            let (choice, what) = match (args.once, args.never) {
                (true, _) => ("once", "allowed the host for the next call of"),
                (_, true) => ("never", "will not ask again about the host for"),
                _ => ("always", "allowed the host for"),
            };
            let host = args.host.clone();
            let params = |identity| ChoosePluginHostParams {
                identity,
                host,
                choice: choice.to_owned(),
            };
            act(&args.which, environment, Method::PluginChooseHost, params, what).await
        }
        PluginCommand::Log(args) => log(&args, environment).await,
        PluginCommand::Rollback(args) => roll_back(&args, environment).await,
        PluginCommand::Rm(RmArgs { which, keep_accounts }) => {
            let params = |identity| UninstallPluginParams {
                identity,
                keep_accounts,
            };
            act(&which, environment, Method::PluginUninstall, params, "removed").await
        }
        PluginCommand::Settings(args) => settings(&args, environment).await,
        PluginCommand::Login(args) => login::run(&args, environment).await,
        PluginCommand::Logout(args) => accounts::log_out(&args, environment).await,
        PluginCommand::Accounts(args) => accounts::list(&args, environment).await,
    }
}

/// Restores the previous version of a plugin.
pub(crate) async fn roll_back(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let params = |identity| PluginParams { identity };
    let what = "put back the version before of";
    act(args, environment, Method::PluginRollBack, params, what).await
}

pub(crate) async fn set_pinned(args: &OneArgs, pinned: bool, environment: &Environment) -> anyhow::Result<Exit> {
    let params = |identity| SetPluginPinnedParams { identity, pinned };
    let what = if pinned { "pinned" } else { "unpinned" };
    act(args, environment, Method::PluginSetPinned, params, what).await
}

/// Calls a method with one plugin.
async fn act<P: Serialize>(
    args: &OneArgs,
    environment: &Environment,
    method: Method,
    params: impl FnOnce(String) -> P,
    what: &str,
) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let PluginDto { identity, .. } = find(&mut client, &args.plugin).await?;
    let sentence = format!("{what} {identity}");
    let answered: OkResult = client.call(method, &params(identity)).await?;
    args.service.print_done(&answered, &sentence)
}

async fn list(service: &ServiceArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = service.connect(environment).await?;
    let plugins: Vec<PluginDto> = client.ask(Method::PluginList).await?;
    let row = |plugin: &PluginDto| {
        [
            plugin.identity.clone(),
            plugin.version.clone(),
            state(plugin),
            plugin.capabilities.join(", "),
            plugin.name.clone(),
        ]
    };
    let head = ["PLUGIN", "VERSION", "STATE", "FOR", "NAME"];
    service.print(&plugins, || {
        let advice = plugins.iter().filter_map(advice);
        table::lines(head, plugins.iter().map(row))
            .into_iter()
            .chain(advice)
            .collect()
    })
}

/// What to do about a plugin that is not well, and since when.
fn advice(plugin: &PluginDto) -> Option<String> {
    let PluginHealthDto { since_ms, advice, .. } = &plugin.health;
    (!advice.is_empty()).then(|| format!("{} since {}: {advice}", plugin.identity, stamp(*since_ms)))
}

/// The state of a plugin, and what it waits for.
fn state(plugin: &PluginDto) -> String {
    let is = match plugin.disabled_reason {
        DisabledReason::CircuitBreaker => "disabled: keeps failing",
        DisabledReason::Manual => "disabled",
        DisabledReason::Revoked => return format!("stopped, it is malicious: {}", plugin.load_error),
        DisabledReason::None if !plugin.load_error.is_empty() => "does not load",
        DisabledReason::None if plugin.enabled => match plugin.health.state.as_str() {
            "degraded" => "enabled, but keeps failing",
            "siteBroken" => "enabled, but its site has changed",
            _ => "enabled",
        },
        DisabledReason::None => return "waits for consent".to_owned(),
    };
    match &plugin.pending {
        Some(PendingVersionDto { version, .. }) => format!("{is}; {version} waits for consent"),
        None => is.to_owned(),
    }
}

async fn install(args: &InstallArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let archive = read(&args.file)?;
    let target = args.service.target(environment)?;
    let installed = match http::upload(&target, "/api/v1/plugins/install", archive).await {
        // A fresh desktop accepts no uploads, but can read a local file itself.
        Err(RemoteError::Refused { status: 404, .. } | RemoteError::NoKey { .. }) if target.address.is_loopback() => {
            let path = std::path::absolute(&args.file)?.display().to_string();
            let mut client = Client::connect(&target).await?;
            let params = InstallPluginFileParams { path };
            client.call(Method::PluginInstallFile, &params).await?
        }
        answer => answer?.read::<InstalledPlugin>(&target)?,
    };
    if args.service.json {
        return print_json(&installed);
    }
    let InstalledPlugin { identity, version, .. } = &installed;
    let mut lines = vec![format!("installed {identity} {version}")];
    if installed.pending_consent.is_some() {
        let mut client = Client::connect(&target).await?;
        lines.extend(requested_permissions(&find(&mut client, identity).await?));
    }
    print_lines(lines)
}

async fn log(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let PluginDto { identity, .. } = find(&mut client, &args.plugin).await?;
    let journal: PluginJournalDto = client.call(Method::PluginJournal, &PluginParams { identity }).await?;
    args.service.print(&journal, || log_lines(&journal))
}

/// All journal entries, in chronological order.
fn log_lines(journal: &PluginJournalDto) -> Vec<String> {
    let events = journal.events.iter().map(|event| {
        let took = event.call.as_ref().map(|call| {
            let PluginCallDto {
                id,
                wall_ms,
                cpu_ms,
                requests,
                received_bytes,
                peak_memory_bytes,
                ..
            } = call;
            format!(
                " (call {id}: {wall_ms} ms, {cpu_ms} ms computing, {requests} requests, {}, {} of memory)",
                ByteCount(*received_bytes),
                ByteCount(*peak_memory_bytes),
            )
        });
        (
            event.at_ms,
            format!("{} {}{}", event.event, event.detail, took.unwrap_or_default()),
        )
    });
    let lines = journal.lines.iter();
    let lines = lines.map(|line| (line.at_ms, format!("{} {}", line.level, line.text)));
    let requests = journal.requests.iter().map(|request| {
        let status = request
            .status
            .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let PluginRequestDto {
            method,
            address,
            received_bytes,
            elapsed_ms,
            ..
        } = request;
        (
            request.at_ms,
            format!(
                "request {method} {address}: {status}, {}, {elapsed_ms} ms",
                ByteCount(*received_bytes)
            ),
        )
    });
    let mut all: Vec<_> = events.chain(lines).chain(requests).collect();
    all.sort_by_key(|(at_ms, _)| *at_ms);
    all.into_iter()
        .map(|(at_ms, text)| format!("{} {text}", stamp(at_ms)))
        .collect()
}

fn stamp(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn read(path: &Path) -> Result<Vec<u8>, UsageError> {
    let refuse = |problem| UsageError::new(path.display().to_string(), problem);
    let mut archive = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BLOB_BYTES as u64 + 1).read_to_end(&mut archive))
        .map_err(|error| refuse(format!("cannot be read: {error}")))?;
    if archive.len() > MAX_BLOB_BYTES {
        return Err(refuse(format!(
            "larger than a plugin may be ({})",
            ByteCount(MAX_BLOB_BYTES as u64)
        )));
    }
    Ok(archive)
}

/// The permissions that a plugin requests, and the command that grants them.
fn requested_permissions(plugin: &PluginDto) -> Vec<String> {
    let PluginDto { identity, pending, .. } = plugin;
    let Some(pending) = pending else {
        return vec![format!("{identity} asks for nothing")];
    };
    let mut lines = vec![format!("{identity} {} asks you to agree that it", pending.version)];
    lines.extend(pending.added.iter().map(|permission| permission_line(permission)));
    lines.extend(other_author(pending));
    lines.push(format!("agree with: svc plugin consent {identity} {}", pending.digest));
    lines
}

/// A warning if the pending version is by another author than the running one.
pub(crate) fn other_author(pending: &PendingVersionDto) -> Option<String> {
    let author = match (&pending.folder, &pending.signed_by) {
        (Some(folder), _) => format!(
            "  runs from the folder {folder}, whatever is in it, and gets the secrets, cookies, settings and memory of what \
             is installed, and all that it will ask for"
        ),
        (None, Some(key)) => format!(
            "  is signed by {key}, not by the author of the version that runs, and gets its permissions and secrets"
        ),
        (None, None) => {
            "  is not signed: it may be another author's than the version that runs, and gets its permissions \
                         and secrets"
                .to_owned()
        }
    };
    pending.author_changed.then_some(author)
}

/// The line of a permission in a list, with a mark if it is a grave one; an unknown one of a newer service is shown as is.
pub(crate) fn permission_line(permission: &str) -> String {
    match permission.parse::<Permission>() {
        Ok(permission) if permission.is_grave() => format!("! {}", permission.description()),
        Ok(permission) => format!("  {}", permission.description()),
        Err(_) => format!("  {permission}"),
    }
}

async fn consent(args: &ConsentArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.which.service;
    let mut client = service.connect(environment).await?;
    let plugin = find(&mut client, &args.which.plugin).await?;
    let Some(digest) = &args.digest else {
        return service.print(&plugin.pending, || requested_permissions(&plugin));
    };
    let sentence = format!("{} may do what it asked for", plugin.identity);
    let params = SetPluginEnabledParams {
        // A plugin that the user disabled stays disabled.
        enabled: plugin.disabled_reason == DisabledReason::None,
        identity: plugin.identity,
        consent: Some(digest.clone()),
    };
    let answered: OkResult = client.call(Method::PluginSetEnabled, &params).await?;
    service.print_done(&answered, &sentence)
}

async fn settings(args: &SettingsArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.which.service;
    let entries = entries(&args.pairs)?;
    let mut client = service.connect(environment).await?;
    let plugin = find(&mut client, &args.which.plugin).await?;
    if entries.is_empty() {
        return show_settings(service, &plugin);
    }
    let sentence = format!("changed {} of {}", args.pairs.len(), plugin.identity);
    let identity = plugin.identity;
    let params = UpdatePluginSettingsParams { identity, entries };
    let answered: OkResult = client.call(Method::PluginUpdateSettings, &params).await?;
    service.print_done(&answered, &sentence)
}

/// The values to set; one may come from standard input, which other users of the machine cannot see.
fn entries(pairs: &[(String, String)]) -> anyhow::Result<BTreeMap<String, String>> {
    let hidden: Vec<_> = pairs.iter().filter(|(_, value)| value == "-").collect();
    if let [_, (key, _), ..] = hidden[..] {
        return Err(UsageError::new(key, "only one value can come from standard input").into());
    }
    let value = |value: &String| {
        if value == "-" {
            config::read_value()
        } else {
            Ok(value.clone())
        }
    };
    pairs
        .iter()
        .map(|(key, text)| Ok((key.clone(), value(text)?)))
        .collect()
}

fn show_settings(service: &ServiceArgs, plugin: &PluginDto) -> anyhow::Result<Exit> {
    let row = |field: &SettingFieldDto| {
        let value = plugin.settings_values.get(&field.key).cloned();
        [field.key.clone(), value.unwrap_or_default(), field.title.clone()]
    };
    service.print(&plugin.settings_values, || {
        let mut lines = table::lines(["KEY", "VALUE", "TITLE"], plugin.settings.iter().map(row));
        lines.extend(feed_fields(plugin));
        lines
    })
}

/// What `svc rss add` can be told for a plugin that reads feeds.
fn feed_fields(plugin: &PluginDto) -> Vec<String> {
    let row = |field: &SettingFieldDto| {
        let option = if field.widget == "password" {
            "--provider-secret"
        } else {
            "--provider-field"
        };
        [option.to_owned(), field.key.clone(), field.title.clone()]
    };
    if plugin.subscription_fields.is_empty() {
        return Vec::new();
    }
    table::lines(
        ["OF EACH FEED", "KEY", "TITLE"],
        plugin.subscription_fields.iter().map(row),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> PluginDto {
        PluginDto {
            identity: "site@author".into(),
            enabled: true,
            disabled_reason: DisabledReason::None,
            ..PluginDto::default()
        }
    }

    /// A plugin whose pending version requests permissions.
    fn asking() -> PluginDto {
        let pending = PendingVersionDto {
            version: "2.0.0".into(),
            added: vec!["host https://site.test".into(), "permission-of-a-newer-service".into()],
            digest: "abc".into(),
            ..PendingVersionDto::default()
        };
        PluginDto {
            pending: Some(pending),
            ..plugin()
        }
    }

    #[test]
    fn a_plugin_that_does_not_run_says_why() {
        assert_eq!(state(&plugin()), "enabled");
        assert_eq!(state(&asking()), "enabled; 2.0.0 waits for consent");
        let mut broken = plugin();
        broken.health = PluginHealthDto {
            state: "siteBroken".into(),
            since_ms: 1000,
            advice: "look for an update".into(),
        };
        assert_eq!(state(&broken), "enabled, but its site has changed");
        let advised = format!("{} since 1970-01-01T00:00:01.000Z: look for an update", broken.identity);
        assert_eq!((advice(&broken), advice(&plugin())), (Some(advised), None));
        let new = PluginDto {
            enabled: false,
            ..asking()
        };
        assert_eq!(state(&new), "waits for consent");
        let tripped = PluginDto {
            enabled: false,
            disabled_reason: DisabledReason::CircuitBreaker,
            ..plugin()
        };
        assert_eq!(state(&tripped), "disabled: keeps failing");
        let revoked = PluginDto {
            enabled: false,
            disabled_reason: DisabledReason::Revoked,
            load_error: "sends cookies".into(),
            ..plugin()
        };
        assert_eq!(state(&revoked), "stopped, it is malicious: sends cookies");
    }

    #[test]
    fn a_version_by_another_author_is_marked() {
        let mut plugin = asking();
        let pending = plugin.pending.as_mut().unwrap();
        assert_eq!(other_author(pending), None);
        (pending.author_changed, pending.signed_by) = (true, Some("0123 4567".into()));
        assert!(requested_permissions(&plugin)[3].contains("signed by 0123 4567, not by the author"));
        plugin.pending.as_mut().unwrap().signed_by = None;
        assert!(requested_permissions(&plugin)[3].contains("is not signed: it may be another author's"));
        plugin.pending.as_mut().unwrap().folder = Some("/src/site".into());
        assert!(requested_permissions(&plugin)[3].contains("runs from the folder /src/site"));
    }

    #[test]
    fn what_is_asked_for_is_shown_with_the_way_to_agree() {
        assert_eq!(requested_permissions(&plugin()), ["site@author asks for nothing"]);
        assert_eq!(
            requested_permissions(&asking()),
            [
                "site@author 2.0.0 asks you to agree that it",
                "  may contact https://site.test",
                "  permission-of-a-newer-service",
                "agree with: svc plugin consent site@author abc"
            ]
        );
    }

    #[test]
    fn grave_permissions_are_marked() {
        assert_eq!(
            permission_line("secrets:reveal"),
            "! may read the secrets that you give it"
        );
        assert!(permission_line("tools:discover").starts_with("! may have yt-dlp, a program of this machine,"));
        assert!(permission_line("secrets:derive").starts_with("  may "));
    }

    #[test]
    fn one_value_may_come_from_standard_input() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let plain = entries(&[pair("quality", "hd"), pair("token", "")]).unwrap();
        assert_eq!((plain["quality"].as_str(), plain["token"].as_str()), ("hd", ""));
        assert!(
            entries(&[pair("a", "-"), pair("b", "-")])
                .unwrap_err()
                .is::<UsageError>()
        );
    }

    #[test]
    fn an_archive_that_no_service_takes_is_not_sent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large.zip");
        fs::write(&path, vec![0; MAX_BLOB_BYTES + 1]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("(4 MiB)"));
        assert!(read(&directory.path().join("none.zip")).is_err());
    }
}
