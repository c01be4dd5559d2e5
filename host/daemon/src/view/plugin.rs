//! Maps plugins and their settings to the protocol's records.

use std::collections::BTreeSet;

use plugin_host::{Condition, Definition, Idle, Installed, PluginSummary, Plugins, Status, manifest::Manifest};
use protocol::{
    DevErrorDto, DisabledReason, InstalledPlugin, OptionalHostDto, PendingVersionDto, PluginDto, PluginHealthDto,
    RevocationDto, SettingFieldDto, SettingOptionDto,
};

pub(crate) fn all(plugins: Option<&Plugins>) -> Vec<PluginDto> {
    plugins
        .map(Plugins::list)
        .unwrap_or_default()
        .iter()
        .map(plugin)
        .collect()
}

fn plugin(summary: &PluginSummary) -> PluginDto {
    let manifest = summary.manifest.as_deref();
    let stopped = summary
        .revocation
        .as_ref()
        .filter(|_| summary.status == Status::Revoked);
    let (load_status, load_error) = match &summary.idle {
        _ if let Some(revocation) = stopped => ("Revoked", revocation.reason.clone()),
        None => ("Loaded", String::new()),
        Some(Idle::Loading) => ("Loading", String::new()),
        Some(Idle::ConsentPending) => ("PendingConsent", String::new()),
        Some(Idle::Failed(error)) => ("Failed", error.clone()),
    };
    let feed = manifest.and_then(|manifest| manifest.capabilities.feed.as_ref());
    PluginDto {
        identity: summary.identity.to_string(),
        name: manifest.map(|manifest| manifest.name.clone()).unwrap_or_default(),
        version: manifest
            .map(|manifest| manifest.version.to_string())
            .unwrap_or_default(),
        description: manifest
            .map(|manifest| manifest.description.clone())
            .unwrap_or_default(),
        homepage: manifest
            .and_then(|manifest| manifest.homepage.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        enabled: summary.status == Status::Enabled,
        dev_mode: summary.development_folder().is_some(),
        disabled_reason: match summary.status {
            Status::Disabled => DisabledReason::Manual,
            Status::Tripped => DisabledReason::CircuitBreaker,
            Status::Revoked => DisabledReason::Revoked,
            Status::Enabled | Status::PendingConsent => DisabledReason::None,
        },
        settings: manifest
            .map(|manifest| manifest.settings.iter().map(setting).collect())
            .unwrap_or_default(),
        settings_values: summary.values.clone(),
        permissions: summary.permissions.iter().map(ToString::to_string).collect(),
        optional_hosts: manifest
            .map(|manifest| optional_hosts(manifest, summary))
            .unwrap_or_default(),
        auth_supported: manifest.is_some_and(|manifest| !manifest.capabilities.login.is_empty()),
        subscription_provider_ids: feed.iter().map(|_| summary.identity.to_string()).collect(),
        subscription_fields: feed.iter().flat_map(|feed| &feed.config).map(setting).collect(),
        load_status: load_status.to_owned(),
        load_error,
        code_digest: summary.code.map(|code| code.to_string()).unwrap_or_default(),
        dev_error: summary.development_error.as_ref().map(|error| DevErrorDto {
            step: error.step.to_owned(),
            message: error.message.clone(),
        }),
        pending: summary.pending.as_ref().map(|pending| PendingVersionDto {
            version: pending.version.to_string(),
            added: pending.added.iter().map(ToString::to_string).collect(),
            signed_by: pending.signed_by.map(|key| key.fingerprint()),
            author_changed: pending.has_other_author,
            folder: pending.folder.as_ref().map(|folder| folder.display().to_string()),
            digest: pending.digest.to_string(),
        }),
        capabilities: manifest
            .map(|manifest| manifest.capabilities.names())
            .unwrap_or_default(),
        source: summary.source.name(),
        signed_by: summary.signed_by.map(|key| key.fingerprint()),
        pinned: summary.is_pinned,
        previous_version: summary.previous.as_ref().map(ToString::to_string),
        revoked: summary.revocation.as_ref().map(revocation),
        health: health(summary),
    }
}

fn health(summary: &PluginSummary) -> PluginHealthDto {
    let (condition, since_ms) = summary.condition;
    let (identity, pages) = (&summary.identity, summary.manifest.as_ref());
    let author = pages.and_then(|manifest| manifest.homepage.as_ref());
    let author = author.map(|page| format!(" ({page})")).unwrap_or_default();
    let update = format!("look for an update: svc market update {identity}; if there is none, tell its author{author}");
    let (state, advice) = match condition {
        Condition::Ok => ("ok", String::new()),
        Condition::Degraded => (
            "degraded",
            format!("it failed several times, so its calls pause; see what fails: svc plugin log {identity}; {update}"),
        ),
        Condition::SiteBroken => ("siteBroken", format!("its site seems to have changed: {update}")),
    };
    PluginHealthDto {
        state: state.to_owned(),
        since_ms,
        advice,
    }
}

fn optional_hosts(manifest: &Manifest, summary: &PluginSummary) -> Vec<OptionalHostDto> {
    let optional = &manifest.permissions.optional_hosts;
    let named = optional.named.iter().map(ToString::to_string);
    let chosen = summary.host_choices.keys().filter(|_| optional.any).cloned();
    let hosts: BTreeSet<_> = named.chain(chosen).collect();
    hosts
        .into_iter()
        .map(|host| {
            let choice = summary.host_choices.get(&host).map_or("", |choice| choice.name());
            OptionalHostDto {
                choice: choice.to_owned(),
                host,
            }
        })
        .collect()
}

fn setting(definition: &Definition) -> SettingFieldDto {
    SettingFieldDto {
        key: definition.key.clone(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        value_type: definition.widget.value_type().to_string(),
        widget: definition.widget.name().to_owned(),
        options: definition
            .options
            .iter()
            .map(|option| SettingOptionDto {
                value: option.value.clone(),
                label: option.label.clone(),
            })
            .collect(),
        default: definition.default.clone(),
        required: definition.is_required,
        min: definition.min,
        max: definition.max,
        pattern: definition.pattern.as_ref().map(ToString::to_string),
        helper_script: None,
        helper_label: None,
    }
}

pub(crate) fn revocation(revocation: &plugin_host::market::Revocation) -> RevocationDto {
    RevocationDto {
        level: revocation.level.name().to_owned(),
        reason: revocation.reason.clone(),
    }
}

pub(crate) fn installed(installed: &Installed) -> InstalledPlugin {
    InstalledPlugin {
        identity: installed.identity.to_string(),
        version: installed.version.to_string(),
        missing_components: Vec::new(),
        pending_consent: installed.pending_consent.as_ref().map(ToString::to_string),
        source: installed.source.name(),
        signed_by: installed.signed_by.map(|key| key.fingerprint()),
    }
}
