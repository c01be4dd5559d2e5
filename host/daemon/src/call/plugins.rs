//! `daemon.plugin.*`

mod auth;

use std::{io::Read as _, path::PathBuf};

use plugin_host::{HostChoice, HostPattern, Identity, InvalidHostPattern, Plugins};
use protocol::{
    ChoosePluginHostParams, ErrorCode, InstallPluginDevRequest, InstallPluginFileParams, InstallPluginParams,
    MAX_BLOB_BYTES, Method, PluginParams, Request, RpcError, SetPluginEnabledParams, SetPluginPinnedParams,
    TaskIdParams, UninstallPluginParams, UpdatePluginSettingsParams,
};
use transfer::ByteCount;

use crate::{
    call::{
        answer::{Answer, done, read, wrote},
        market,
        params::{identity, not_found, task_id},
    },
    refusal::{Refuse as _, closing, invalid},
    service::Service,
    view::{
        plugin::{all, installed},
        plugin_journal,
    },
};

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
            wrote(&installed(&plugins.install_zip(blob.to_vec()).await.refused()?))
        }
        Method::PluginInstallDev => {
            let params: InstallPluginDevRequest = request.params()?;
            let folder = PathBuf::from(params.dir_path);
            if !folder.is_absolute() {
                return Err(invalid("dirPath", "dirPath must be an absolute path"));
            }
            wrote(&installed(&plugins.install_dev(folder).await.refused()?))
        }
        Method::PluginInstallFile => {
            let params: InstallPluginFileParams = request.params()?;
            let archive = read_archive(params.path.into()).await?;
            wrote(&installed(&plugins.install_zip(archive).await.refused()?))
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
        Method::PluginAuth => auth::call(service, plugins, request.params()?).await,
        Method::PluginUninstall => {
            let params: UninstallPluginParams = request.params()?;
            let plugin = identity(&params.identity)?;
            let removed = if params.keep_accounts {
                plugins.uninstall_keeping_accounts(plugin).await
            } else {
                plugins.uninstall(plugin).await
            };
            removed.refused()?;
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

/// Reads an archive from a path on this machine.
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
