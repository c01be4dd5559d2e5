//! `svc market install` and `update`: permissions are shown before the installation, and granted only if the code
//! requests exactly those.

use std::collections::BTreeSet;

use command::{Exit, UsageError, environment::Environment, print_json, print_lines};
use protocol::{
    DisabledReason, InstalledPlugin, MarketEntryDto, MarketInstallRequest, Method, OkResult, PluginDto,
    SetPluginEnabledParams,
};

use super::ask::confirm;
use crate::{
    ids::Known,
    plugin::installed,
    service::{Client, ServiceArgs},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc market install open-directory hls            as \"svc market list\" shows them, or shorter
  svc market install acme@acme --source example    where several sources have it
  svc market install acme@acme --expect 1.2.0 --yes
                                                   for scripts: fails if another version is there

The newest version that this service can run is installed. --yes grants its permissions, also if its author is not that \
of the installed version. Without --yes and without a terminal to ask on, nothing is installed.";

#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// The plugins
    #[arg(required = true, value_name = "PLUGIN")]
    plugins: Vec<String>,
    /// The source to install from
    #[arg(long)]
    source: Option<String>,
    /// Install only if the newest version is this one
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// The plugins; all that have a newer version if none is named
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(Debug, clap::Args)]
struct HowArgs {
    /// Grant the permissions without asking
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn install(args: &InstallArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.how.service.connect(environment).await?;
    let mut entries: Vec<MarketEntryDto> = client.ask(Method::PluginMarketList).await?;
    entries.retain(|entry| args.source.as_ref().is_none_or(|source| entry.source == *source));
    let wanted = find(&entries, &args.plugins)?;
    let mut installer = Installer::new(&mut client, &args.how);
    for mut entry in wanted {
        if let Some(version) = &args.expect {
            entry.version.clone_from(version);
        }
        installer.install(&entry).await?;
    }
    installer.end()
}

pub(crate) async fn update(args: &UpdateArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.how.service.connect(environment).await?;
    let mut entries: Vec<MarketEntryDto> = client.ask(Method::PluginMarketList).await?;
    entries.retain(|entry| entry.installed.is_some());
    let is_named = !args.plugins.is_empty();
    let mut wanted = if is_named {
        find(&entries, &args.plugins)?
    } else {
        entries
    };
    wanted.retain(|entry| entry.update_available);
    let mut installer = Installer::new(&mut client, &args.how);
    if wanted.is_empty() {
        installer.print("there is nothing newer".to_owned())?;
    }
    for entry in wanted {
        let is_pinned = entry.installed.as_ref().is_some_and(|installed| installed.pinned);
        if is_pinned && !is_named {
            let MarketEntryDto { plugin_id, version, .. } = entry;
            installer.print(format!("{plugin_id} is pinned; {version} is taken only if it is named"))?;
        } else {
            installer.install(&entry).await?;
        }
    }
    installer.end()
}

/// The named entries, one per plugin.
fn find(entries: &[MarketEntryDto], given: &[String]) -> anyhow::Result<Vec<MarketEntryDto>> {
    let identities: BTreeSet<_> = entries.iter().map(|entry| entry.plugin_id.clone()).collect();
    let found = Known::new("plugin of the market", identities).find(given)?;
    let one = |identity: String| {
        let of: Vec<_> = entries.iter().filter(|entry| entry.plugin_id == identity).collect();
        match of[..] {
            [entry] => Ok(entry.clone()),
            ref several => {
                let sources: Vec<_> = several.iter().map(|entry| entry.source.as_str()).collect();
                let problem = format!("several sources have {identity}: name one of {}", sources.join(", "));
                Err(UsageError::new("--source", problem).into())
            }
        }
    };
    found.into_iter().map(one).collect()
}

/// Installs several plugins in sequence.
struct Installer<'c> {
    client: &'c mut Client,
    how: &'c HowArgs,
    installed: Vec<InstalledPlugin>,
}

impl<'c> Installer<'c> {
    fn new(client: &'c mut Client, how: &'c HowArgs) -> Self {
        let installed = Vec::new();
        Self { client, how, installed }
    }

    async fn install(&mut self, entry: &MarketEntryDto) -> anyhow::Result<()> {
        if !self.how.yes && !confirm(&shown(entry), "Install it?", "--yes")? {
            return self.print(format!("left {} as it is", entry.plugin_id));
        }
        let request = MarketInstallRequest {
            plugin_id: entry.plugin_id.clone(),
            version: Some(entry.version.clone()),
            source: Some(entry.source.clone()),
            agreed: Some(entry.permissions.clone()),
        };
        let mut installed: InstalledPlugin = self.client.call(Method::PluginMarketInstall, &request).await?;
        self.print(format!("installed {} {}", installed.identity, installed.version))?;
        if installed.pending_consent.is_some() && self.agree(entry).await? {
            installed.pending_consent = None;
        }
        self.installed.push(installed);
        Ok(())
    }

    /// Grants what the service did not grant at once, because it is more than was shown or the author is another one.
    async fn agree(&mut self, entry: &MarketEntryDto) -> anyhow::Result<bool> {
        let plugins: Vec<PluginDto> = self.client.ask(Method::PluginList).await?;
        let found = plugins.into_iter().find(|plugin| plugin.identity == entry.plugin_id);
        let Some(PluginDto {
            identity,
            disabled_reason,
            pending: Some(pending),
            ..
        }) = found
        else {
            return Ok(true);
        };
        let unseen: Vec<_> = pending
            .added
            .iter()
            .filter(|asked| !entry.permissions.contains(asked))
            .collect();
        let mut lines = Vec::new();
        if !unseen.is_empty() {
            lines.push(format!("The code of {identity} shows more than its source says:"));
            lines.extend(descriptions(unseen));
        }
        if let Some(author) = installed::other_author(&pending) {
            let author = format!("{identity} {}{author}", pending.version);
            if self.how.yes {
                self.print(author)?;
            } else {
                lines.push(author);
            }
        }
        if !self.how.yes && !lines.is_empty() && !confirm(&lines, "Agree to that, too?", "--yes")? {
            self.print(format!("{identity} {} waits for consent", pending.version))?;
            return Ok(false);
        }
        let params = SetPluginEnabledParams {
            // A plugin that the user disabled stays disabled.
            enabled: disabled_reason == DisabledReason::None,
            identity,
            consent: Some(pending.digest),
        };
        let _: OkResult = self.client.call(Method::PluginSetEnabled, &params).await?;
        Ok(true)
    }

    fn print(&self, line: String) -> anyhow::Result<()> {
        if !self.how.service.json {
            print_lines([line])?;
        }
        Ok(())
    }

    fn end(self) -> anyhow::Result<Exit> {
        if self.how.service.json {
            print_json(&self.installed)
        } else {
            Ok(Exit::Success)
        }
    }
}

/// What will be installed, its source, and its permissions.
fn shown(entry: &MarketEntryDto) -> Vec<String> {
    let mut first = format!("{} {} ({})", entry.plugin_id, entry.version, entry.name);
    if let Some(installed) = &entry.installed {
        first.extend([" in place of ", &installed.version]);
    }
    first.extend([", from ", &entry.source]);
    if let Some(key) = &entry.signed_by {
        first.extend([", signed by ", key]);
    }
    let mut lines = vec![first];
    lines.extend(descriptions(&entry.permissions));
    if entry.permissions.is_empty() {
        lines.push("  asks for nothing".to_owned());
    }
    lines
}

/// One line per permission.
fn descriptions<S: AsRef<str>>(permissions: impl IntoIterator<Item = S>) -> Vec<String> {
    let words = permissions.into_iter();
    words
        .map(|permission| installed::permission_line(permission.as_ref()))
        .collect()
}

#[cfg(test)]
mod tests {
    use protocol::MarketInstalledDto;

    use super::*;

    fn entry(identity: &str, source: &str) -> MarketEntryDto {
        MarketEntryDto {
            plugin_id: identity.into(),
            version: "1.0.0".into(),
            name: "One".into(),
            source: source.into(),
            permissions: vec!["host https://one.test".into()],
            ..MarketEntryDto::default()
        }
    }

    #[test]
    fn what_is_asked_for_is_shown_before_the_question() {
        let mut update = entry("one@acme", "main");
        update.signed_by = Some("0123 4567".into());
        update.installed = Some(MarketInstalledDto {
            version: "0.9.0".into(),
            pinned: false,
        });
        assert_eq!(
            shown(&update),
            [
                "one@acme 1.0.0 (One) in place of 0.9.0, from main, signed by 0123 4567",
                "  may contact https://one.test"
            ]
        );
        update.permissions.clear();
        assert_eq!(shown(&update)[1], "  asks for nothing");
    }

    #[test]
    fn a_plugin_is_named_shortly_and_its_source_only_if_there_are_several() {
        let entries = [
            entry("hls@svc", "bundled"),
            entry("one@acme", "main"),
            entry("one@acme", "other"),
        ];
        let find = |name: &str| find(&entries, &[name.to_owned()]);
        assert_eq!(find("hls").unwrap()[0].plugin_id, "hls@svc");
        let several = find("one@acme").unwrap_err().to_string();
        assert!(
            several.starts_with("--source") && several.contains("main, other"),
            "{several}"
        );
        assert!(find("none@acme").is_err());
    }
}
