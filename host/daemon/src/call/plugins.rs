//! Plugins, what they make of a URL, and the groups that come of it.

use std::{
    collections::BTreeSet,
    io::Read as _,
    path::{Path, PathBuf},
};

use engine::{GroupSpec, Item, Resolution, ResolverId, TaskSpec};
use plugin_host::{
    Definition, Given, HostChoice, HostPattern, Identity, Idle, Installed, InvalidHostPattern, PluginSummary, Plugins,
    Previewed, Resolved, Status, Variant, manifest::Manifest,
};
use protocol::{
    ChoosePluginHostParams, CreateGroupRequest, CreateGroupResponse, CreateTaskRequest, DevErrorDto, DisabledReason,
    ErrorCode, GroupItemDto, InstallPluginDevRequest, InstallPluginFileParams, InstallPluginParams, InstalledPlugin,
    MAX_BLOB_BYTES, Method, OptionalHostDto, PendingVersionDto, PluginDto, PluginParams, PreviewItemDto,
    PreviewVariantDto, Request, ResolvePreviewRequest, ResolvePreviewResponse, RpcError, SetPluginEnabledParams,
    SetPluginPinnedParams, SettingFieldDto, SettingOptionDto, TaskIdParams, UpdatePluginSettingsParams,
};
use transfer::{ByteCount, FileName, RequestOptions, SafeUrl, Secret};

use super::{Answer, done, market, plugin_journal, read, tasks::task_id, wrote};
use crate::{
    create,
    refusal::{Refuse as _, closing, invalid},
    service::Service,
    view,
};

/// The longest path of a file below its group's directory, in components.
const MAX_DEPTH: usize = 8;

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    if method == Method::PluginIgnoreRetry {
        let params: TaskIdParams = request.params()?;
        service
            .engine
            .ignore_resolver(task_id(&params.task_id)?)
            .await
            .refused()?;
        return done();
    }
    let Some(plugins) = &service.plugins else {
        return match method {
            Method::PluginList => read(&all(None)),
            _ => Err(RpcError::application(
                ErrorCode::Unsupported,
                "this service runs no plugins",
            )),
        };
    };
    let answer = act(service, plugins, method, request).await?;
    if matches!(answer, Answer::Wrote(_)) {
        service.hub.plugins_changed().await.map_err(|_| closing())?;
    }
    Ok(answer)
}

async fn act(service: &Service, plugins: &Plugins, method: Method, request: &Request) -> Result<Answer, RpcError> {
    match method {
        Method::PluginList => read(&all(Some(plugins))),
        Method::PluginInstall => {
            let params: InstallPluginParams = request.params()?;
            let blob = service.blobs.take(&params.blob_id).ok_or_else(|| {
                RpcError::application(ErrorCode::NotFound, "the upload is unknown or was used already")
                    .with_field("blobId")
            })?;
            installed(&plugins.install_zip(blob.to_vec()).await.refused()?)
        }
        Method::PluginInstallDev => {
            let params: InstallPluginDevRequest = request.params()?;
            let folder = PathBuf::from(params.dir_path);
            if !folder.is_absolute() {
                return Err(invalid("dirPath", "dirPath must be an absolute path"));
            }
            installed(&plugins.install_dev(folder).await.refused()?)
        }
        Method::PluginInstallFile => {
            let params: InstallPluginFileParams = request.params()?;
            let archive = read_archive(params.path.into()).await?;
            installed(&plugins.install_zip(archive).await.refused()?)
        }
        Method::PluginJournal => {
            let plugin = one(request)?;
            if plugins.get(&plugin).is_none() {
                return Err(not_found(plugin.as_str()));
            }
            read(&plugin_journal::of(plugins, &plugin))
        }
        Method::PluginChooseHost => {
            choose_host(plugins, &request.params()?).await?;
            done()
        }
        Method::PluginUninstall => {
            plugins.uninstall(one(request)?).await.refused()?;
            done()
        }
        Method::PluginRollBack => {
            plugins.roll_back(one(request)?).await.refused()?;
            done()
        }
        Method::PluginSetPinned => {
            let params: SetPluginPinnedParams = request.params()?;
            plugins
                .set_pinned(identity(&params.identity)?, params.pinned)
                .await
                .refused()?;
            done()
        }
        Method::PluginSetEnabled => {
            set_enabled(plugins, request.params()?).await?;
            done()
        }
        Method::PluginUpdateSettings => {
            let params: UpdatePluginSettingsParams = request.params()?;
            plugins
                .update_settings(identity(&params.identity)?, params.entries)
                .await
                .refused()?;
            done()
        }
        _ => market::call(service, plugins, method, request).await,
    }
}

pub(super) fn identity(text: &str) -> Result<Identity, RpcError> {
    text.parse().map_err(|_| not_found(text))
}

fn not_found(plugin: &str) -> RpcError {
    RpcError::application(ErrorCode::NotFound, format!("plugin not found: {plugin}")).with_field("identity")
}

async fn set_enabled(plugins: &Plugins, params: SetPluginEnabledParams) -> Result<(), RpcError> {
    let plugin = identity(&params.identity)?;
    if let Some(digest) = params.consent {
        let digest = digest
            .parse()
            .map_err(|_| invalid("consent", "consent must be the digest that was shown"))?;
        plugins.consent(plugin.clone(), digest).await.refused()?;
    }
    plugins.set_enabled(plugin, params.enabled).await.refused()
}

async fn choose_host(plugins: &Plugins, params: &ChoosePluginHostParams) -> Result<(), RpcError> {
    let host: HostPattern = params
        .host
        .parse()
        .map_err(|error: InvalidHostPattern| invalid("host", error.to_string()))?;
    let choice = HostChoice::named(&params.choice);
    let choice = choice.ok_or_else(|| invalid("choice", "choice must be once, always or never"))?;
    let plugin = identity(&params.identity)?;
    plugins.choose_host(plugin, host, choice).await.refused()
}

/// The archive in a file of this machine.
async fn read_archive(path: PathBuf) -> Result<Vec<u8>, RpcError> {
    if !path.is_absolute() {
        return Err(invalid("path", "path must be absolute"));
    }
    let read = move || {
        let mut archive = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(MAX_BLOB_BYTES as u64 + 1).read_to_end(&mut archive)?;
        Ok::<_, std::io::Error>(archive)
    };
    let archive = tokio::task::spawn_blocking(read).await.map_err(|_| closing())?;
    let archive = archive.map_err(|error| invalid("path", format!("the file cannot be read: {error}")))?;
    if archive.len() > MAX_BLOB_BYTES {
        return Err(invalid(
            "path",
            format!("the file is larger than {}", ByteCount(MAX_BLOB_BYTES as u64)),
        ));
    }
    Ok(archive)
}

fn one(request: &Request) -> Result<Identity, RpcError> {
    let params: PluginParams = request.params()?;
    identity(&params.identity)
}

pub(super) fn installed(installed: &Installed) -> Result<Answer, RpcError> {
    wrote(&InstalledPlugin {
        identity: installed.identity.to_string(),
        version: installed.version.to_string(),
        missing_components: Vec::new(),
        pending_consent: installed.pending_consent.as_ref().map(ToString::to_string),
        source: installed.source.name(),
        signed_by: installed.signed_by.map(|key| key.fingerprint()),
    })
}

/// All plugins, as clients see them.
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
        subscription_provider_ids: Vec::new(),
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
        revoked: summary.revocation.as_ref().map(market::revocation),
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
        value_type: definition.widget.value_type().to_owned(),
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

/// How the user would ask for the URL.
fn own_request(request: &ResolvePreviewRequest) -> RequestOptions {
    let headers = request.extra_headers.iter();
    RequestOptions {
        headers: headers
            .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
            .collect(),
        cookies: Secret::new(request.cookies.clone()),
        referrer: request.referrer.clone(),
        user_agent: request.user_agent.clone(),
        ..RequestOptions::default()
    }
}

/// What is behind a URL. Every failure is an answer too: people read it beside the field they typed the URL into.
pub(super) async fn preview(service: &Service, request: ResolvePreviewRequest) -> Result<Answer, RpcError> {
    let url = TaskSpec::parse(&request.url).refused()?.urls.remove(0);
    let given = Given {
        request: own_request(&request),
        proxies: service.proxies(),
        ..Given::by_user(url.as_url().clone())
    };
    let mut response = ResolvePreviewResponse {
        source_url: request.url,
        ..ResolvePreviewResponse::default()
    };
    let previewed = match &service.plugins {
        Some(plugins) => plugins.preview(given).await,
        None => Ok(Previewed::Unclaimed),
    };
    match previewed {
        Ok(Previewed::List(Resolved { plugin, listing })) => {
            if listing.entries.is_empty() {
                response.message = format!("{plugin} finds no files behind this URL");
            }
            response.plugin = plugin.to_string();
            response.name = listing.title.unwrap_or_default();
            response.items = listing.entries.into_iter().map(item).collect();
        }
        Ok(Previewed::File(plugin)) => {
            response.message = format!("{plugin} downloads this URL as one file");
            response.plugin = plugin.to_string();
        }
        Ok(Previewed::Unclaimed) => match waiting(service, &url) {
            Some(waiting) => response.error = waiting,
            None => "no plugin claims this URL; it is downloaded as a plain file".clone_into(&mut response.message),
        },
        Err(error) => {
            response.plugin = error.plugin.to_string();
            response.error = error.to_string();
            response.grantable = !error.grantable.is_empty();
            response.grantable_hosts = error.grantable;
        }
    }
    read(&response)
}

/// What to tell about a URL that would be a plugin's if the user agreed to what that asks for.
pub(super) fn waiting(service: &Service, url: &SafeUrl) -> Option<String> {
    let plugins = service.plugins.as_ref()?;
    if plugins.claim(url.as_url()).is_some() {
        return None;
    }
    let plugin = plugins.awaiting_consent(url.as_url())?;
    let message = format!("{plugin} knows this URL and waits for your consent; see: svc plugin consent {plugin}");
    Some(message)
}

fn item(entry: plugin_host::Entry) -> PreviewItemDto {
    PreviewItemDto {
        id: entry.id,
        name: entry.name,
        path: entry.folder.join("/"),
        size: entry.facts.size.unwrap_or(0),
        variants: entry.variants.into_iter().map(variant).collect(),
    }
}

fn variant(variant: Variant) -> PreviewVariantDto {
    PreviewVariantDto {
        id: variant.id,
        label: variant.label,
        size: variant.facts.size.unwrap_or(0),
    }
}

/// Items of a preview become tasks, each asking its plugin for its link when its turn comes.
pub(super) async fn create_group(service: &Service, request: CreateGroupRequest) -> Result<Answer, RpcError> {
    if request.items.is_empty() {
        return Err(invalid("items", "items must not be empty"));
    }
    let url = SafeUrl::parse(&request.source_url).map_err(|error| invalid("sourceUrl", error.to_string()))?;
    let claimed = service.plugins.as_ref().and_then(|plugins| plugins.claim(url.as_url()));
    let resolver = claimed.map(|plugin| ResolverId::new(plugin.as_str())).ok_or_else(|| {
        RpcError::application(ErrorCode::Unsupported, "no plugin claims the URL").with_field("sourceUrl")
    })?;
    let common = create::spec(common(&request), None)?;
    let settings = service.engine.settings().settings;
    let parent = common.save_dir.clone().or_else(|| settings.default_save_dir.clone());
    let parent = parent.unwrap_or_else(|| service.default_dir.clone());
    let root =
        FileName::sanitise_or_none(&request.group_name).map_or(parent.clone(), |name| parent.join(name.as_str()));
    let tasks: Result<Vec<_>, _> = request
        .items
        .iter()
        .map(|item| member(item, &resolver, &root, &common))
        .collect();
    let group = GroupSpec {
        name: request.group_name,
        source_url: view::shown(&url),
        save_dir: Some(root),
    };
    let (group, tasks) = service.engine.group_create(group, tasks?).await.refused()?;
    wrote(&CreateGroupResponse {
        group_id: group.to_string(),
        task_ids: tasks.iter().map(ToString::to_string).collect(),
    })
}

fn common(request: &CreateGroupRequest) -> CreateTaskRequest {
    CreateTaskRequest {
        url: request.source_url.clone(),
        save_dir: request.save_dir.clone(),
        queue_id: request.queue_id.clone(),
        segments: request.segments,
        cookies: request.cookies.clone(),
        referrer: request.referrer.clone(),
        user_agent: request.user_agent.clone(),
        proxy_url: request.proxy_url.clone(),
        headers: Some(request.extra_headers.clone()),
        ignore_tls_errors: request.ignore_tls_errors,
        start_paused: request.start_paused,
        ..CreateTaskRequest::default()
    }
}

fn member(item: &GroupItemDto, resolver: &ResolverId, root: &Path, common: &TaskSpec) -> Result<TaskSpec, RpcError> {
    let wanted: Item = item
        .resolver_item
        .parse()
        .map_err(|error: engine::InvalidItem| invalid("items", format!("resolverItem: {error}")))?;
    let name = FileName::sanitise_or_none(&item.file_name).ok_or_else(|| {
        invalid(
            "items",
            format!("fileName is missing or unusable for {}", item.resolver_item),
        )
    })?;
    Ok(TaskSpec {
        file_name: Some(name),
        save_dir: Some(below(root, &item.rel_path)?),
        promised_size: Some(item.size).filter(|size| *size > 0),
        resolution: Some(Resolution {
            resolver: resolver.clone(),
            item: Some(wanted),
        }),
        ..common.clone()
    })
}

/// `path` below `root`, and nowhere else.
fn below(root: &Path, path: &str) -> Result<PathBuf, RpcError> {
    let parts: Vec<_> = path
        .split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.len() > MAX_DEPTH || parts.contains(&"..") {
        return Err(invalid(
            "items",
            format!("relPath must stay below the group's directory, at most {MAX_DEPTH} directories deep"),
        ));
    }
    let parts = parts.into_iter().filter_map(FileName::sanitise_or_none);
    Ok(parts.fold(root.to_owned(), |path, part| path.join(part.as_str())))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_relative_path_stays_below_the_group() {
        let root = Path::new("/downloads/group");
        assert_eq!(below(root, "").unwrap(), root);
        assert_eq!(below(root, "/a\\b/./c").unwrap(), root.join("a/b/c"));
        for path in ["..", "a/../../b", "a/b/c/d/e/f/g/h/i"] {
            assert!(below(root, path).is_err(), "{path}");
        }
    }
}
