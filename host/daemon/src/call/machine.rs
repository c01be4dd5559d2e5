//! `daemon.runtime.*`, `daemon.fs.*`, `daemon.component.*`, `daemon.diagnostics.*` and `daemon.vault.*`

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use bytes::Bytes;
use protocol::{
    Component, ComponentDto, ComponentParams, ComponentSource, DiagnosticsResult, ErrorCode, ExportResult, FsEntry,
    FsListParams, FsListResult, LogFile, Method, Request, RpcError, VaultRotated,
};
use serde::Serialize;
use tools::{Isolation, Tool};

use crate::{
    call::answer::{Answer, read},
    options::optional,
    refusal::{Refuse as _, chain, invalid},
    service::{Logs, Service, sealed_columns},
};

/// Bounds one answer. The list is for a directory picker, where more are of no use.
const MAX_ENTRIES: usize = 2000;

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    match method {
        Method::RuntimeStats => read(&service.hub.stats().await?),
        Method::FsList => {
            let params: FsListParams = request.params()?;
            let dir = optional(&params.path).map_or_else(|| service.save_dir(), PathBuf::from);
            if !dir.is_absolute() {
                return Err(invalid("path", "path must be absolute"));
            }
            let listing = tokio::task::spawn_blocking(move || list(&dir));
            read(&listing.await.map_err(|error| RpcError::internal(error.to_string()))??)
        }
        Method::DiagnosticsDescribe => read(&service.describe().await?),
        Method::ComponentGet => {
            let ComponentParams { component } = request.params()?;
            read(&service.component(component).await?)
        }
        Method::DiagnosticsPrepareLogExport => export(service).await,
        Method::VaultRotate => {
            let rotated = service.vault.rotate(&service.store, sealed_columns()).await;
            let values = rotated.map_err(|error| RpcError::application(ErrorCode::Unavailable, chain(&error)))?;
            tracing::info!(values, "the key of the secrets was replaced");
            read(&VaultRotated { values })
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

/// The sub-directories of `dir` by name, hidden ones left out.
fn list(dir: &Path) -> Result<FsListResult, RpcError> {
    let failed = |error: std::io::Error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorCode::NotFound,
            _ => ErrorCode::Unavailable,
        };
        RpcError::application(code, format!("cannot list {}: {error}", dir.display()))
            .with_field("path")
            .with_retryable(false)
    };
    let mut names: Vec<String> = fs::read_dir(dir)
        .map_err(failed)?
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    let is_truncated = names.len() > MAX_ENTRIES;
    names.truncate(MAX_ENTRIES);
    let entry = |name: String| FsEntry {
        path: dir.join(&name).display().to_string(),
        name,
    };
    Ok(FsListResult {
        path: dir.display().to_string(),
        parent: dir.parent().map(|parent| parent.display().to_string()),
        entries: names.into_iter().map(entry).collect(),
        truncated: is_truncated,
    })
}

/// The diagnostics file that users attach to bug reports: no field may hold a secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    describe: DiagnosticsResult,
    config: protocol::ConfigSnapshot,
    stats: protocol::RuntimeStats,
    failures: Vec<Failed>,
    logs: Vec<LogFile>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failed {
    task_id: String,
    url: String,
    kind: &'static str,
    message: String,
}

/// These bound the size of an export.
const MAX_FAILED: usize = 1000;
const MAX_LOG_BYTES: u64 = 1024 * 1024;

async fn export(service: &Service) -> Result<Answer, RpcError> {
    let snapshot = service.engine.snapshot().await.refused()?;
    let failures = snapshot.tasks.iter().filter_map(|task| {
        let failure = task.failure()?;
        Some(Failed {
            task_id: task.id.to_string(),
            // `SafeUrl` prints without passwords and query values.
            url: task.url().to_string(),
            kind: failure.kind.code(),
            message: failure.message.clone(),
        })
    });
    let export = Export {
        describe: service.describe().await?,
        config: service.configuration.snapshot(),
        stats: service.hub.stats().await?,
        failures: failures.take(MAX_FAILED).collect(),
        logs: logs(service).await?,
    };
    let text = serde_json::to_vec_pretty(&export).map_err(|error| RpcError::internal(error.to_string()))?;
    let export_id = protocol::proof::nonce().map_err(|error| RpcError::internal(error.to_string()))?;
    service
        .exports
        .keep(export_id.clone(), Bytes::from(text))
        .map_err(|_| RpcError::application(ErrorCode::Unavailable, "too many exports wait to be fetched"))?;
    read(&ExportResult { export_id })
}

/// The ends of the log files. Nothing in them is a secret: whatever is logged is masked.
async fn logs(service: &Service) -> Result<Vec<LogFile>, RpcError> {
    let Some(Logs { directory, read }) = service.logs.clone() else {
        return Ok(Vec::new());
    };
    let ends = tokio::task::spawn_blocking(move || read(&directory, MAX_LOG_BYTES)).await;
    let ends = ends.map_err(|error| RpcError::internal(error.to_string()))?;
    let ends = ends.map_err(|error| {
        RpcError::application(ErrorCode::Unavailable, format!("cannot read the log files: {error}"))
    })?;
    let text = |(name, text): (String, Vec<u8>)| LogFile {
        name,
        text: String::from_utf8_lossy(&text).into_owned(),
    };
    Ok(ends.into_iter().map(text).collect())
}

impl Service {
    /// The default download directory.
    fn save_dir(&self) -> PathBuf {
        let settings = self.engine.settings().settings;
        settings
            .default_save_dir
            .clone()
            .unwrap_or_else(|| self.default_dir.clone())
    }

    /// What is known of a program of the user. It is asked for its version, which can take a second.
    async fn component(&self, component: Component) -> Result<ComponentDto, RpcError> {
        let none = || RpcError::application(ErrorCode::Unavailable, "this service starts no programs");
        let tools = self.tools.as_ref().ok_or_else(none)?;
        let tool = match component {
            Component::Ffmpeg => Tool::Ffmpeg,
            Component::YtDlp => Tool::YtDlp,
        };
        let found = tools.find(tool).await;
        let source = match (&found.path, found.is_manual) {
            (None, _) => ComponentSource::None,
            (Some(_), true) => ComponentSource::Manual,
            (Some(_), false) => ComponentSource::System,
        };
        let (isolated, isolation_problem) = match found.isolation {
            None => (None, None),
            Some(Isolation::Namespaces) => (Some(true), None),
            Some(Isolation::LimitsOnly { reason }) => (Some(false), Some(reason)),
        };
        Ok(ComponentDto {
            component,
            enabled: found.is_enabled,
            available: found.is_enabled && found.problem.is_none(),
            version: found.version,
            source,
            path: found.path.map(|path| path.display().to_string()),
            problem: found.problem,
            isolated,
            isolation_problem,
        })
    }

    async fn describe(&self) -> Result<DiagnosticsResult, RpcError> {
        let snapshot = self.engine.snapshot().await.refused()?;
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        let plugins = self.plugins.as_ref().map(|plugins| plugins.journal().totals());
        let plugins = plugins.unwrap_or_default();
        Ok(DiagnosticsResult {
            service: "svc-daemon".to_owned(),
            version: self.version.to_owned(),
            instance_id: self.hub.epoch().to_owned(),
            uptime_secs: self.started_at.elapsed().as_secs(),
            tasks: count(snapshot.tasks.len()),
            queues: count(snapshot.queues.len()),
            groups: count(snapshot.groups.len()),
            config_revision: self.configuration.snapshot().revision,
            log_dir: self
                .logs
                .as_ref()
                .map_or_else(String::new, |logs| logs.directory.display().to_string()),
            connections: self.connections.load(Ordering::Relaxed),
            plugin_calls: plugins.calls,
            plugin_faults: plugins.faults,
            plugin_call_ms: u64::try_from(plugins.wall.as_millis()).unwrap_or(u64::MAX),
            resident_bytes: transfer::resident_bytes(),
            components: Vec::new(),
        })
    }
}
