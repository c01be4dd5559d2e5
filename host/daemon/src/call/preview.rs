//! The preview of a URL by plugins, and the creation of groups from its items.

use std::path::{Path, PathBuf};

use engine::{GroupSpec, Item, LeftOut, LeftOutKind, Resolution, ResolverId, TaskSpec};
use plugin_host::{CallTarget, Entry, Facts, FileKind, Previewed, Resolved, Variant};
use protocol::{
    CreateGroupRequest, CreateGroupResponse, CreateTaskRequest, ErrorCode, GroupItemDto, LeftOutDto, PreviewItemDto,
    PreviewVariantDto, ResolvePreviewRequest, ResolvePreviewResponse, RpcError,
};
use transfer::{FileName, RequestOptions, SafeUrl, Secret};

use crate::{
    call::answer::{Answer, read, wrote},
    options::{self, MAX_CREATED},
    refusal::{Refuse as _, invalid},
    service::Service,
    view,
};

/// The longest name of something that is left out.
const MAX_OMISSION_BYTES: usize = 1024;

/// The longest path of a file below its group's directory, in components.
const MAX_DEPTH: usize = 8;

/// The request options that the user entered for this URL.
fn request_options(request: &ResolvePreviewRequest) -> RequestOptions {
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

/// Previews a URL. Failures are successful replies that carry a message: clients show it beside the URL field.
pub(super) async fn preview(service: &Service, request: ResolvePreviewRequest) -> Result<Answer, RpcError> {
    let url = TaskSpec::parse(&request.url).refused()?.urls.remove(0);
    let given = CallTarget {
        request: request_options(&request),
        proxies: service.proxies(),
        ..CallTarget::by_user(url.as_url().clone())
    };
    let mut response = ResolvePreviewResponse {
        source_url: request.url,
        ..ResolvePreviewResponse::default()
    };
    let previewed = match &service.plugins {
        Some(plugins) => Box::pin(plugins.preview(given)).await,
        None => Ok(Previewed::Unclaimed),
    };
    match previewed {
        Ok(Previewed::List(Resolved { plugin, listing })) => {
            if listing.entries.is_empty() {
                response.message = format!("{plugin} lists no files for this URL");
            }
            response.plugin = plugin.to_string();
            response.name = listing.title.unwrap_or_default();
            let selected = listing.entries.iter().filter(|entry| entry.is_selected());
            let sizes: Vec<_> = selected.map(|entry| entry.default_facts().size).collect();
            response.total_bytes = sizes
                .iter()
                .flatten()
                .fold(0, |total, size| total.saturating_add(*size));
            response.unknown_sizes = sizes.iter().filter(|size| size.is_none()).count() as u64;
            response.left_out = listing.left_out.iter().map(view::left_out).collect();
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

/// The message for a URL that matches a plugin whose permissions the user has not granted yet.
pub(super) fn waiting(service: &Service, url: &SafeUrl) -> Option<String> {
    let plugins = service.plugins.as_ref()?;
    if plugins.claim(url.as_url()).is_some() {
        return None;
    }
    let plugin = plugins.awaiting_consent(url.as_url())?;
    let message = format!("{plugin} knows this URL and waits for your consent; see: svc plugin consent {plugin}");
    Some(message)
}

fn item(entry: Entry) -> PreviewItemDto {
    PreviewItemDto {
        checksum: checksum(&entry.facts),
        kind: kind(entry.facts.kind).to_owned(),
        selected: entry.is_selected(),
        id: entry.id,
        name: entry.name,
        path: entry.folder.join("/"),
        size: entry.facts.size.unwrap_or(0),
        size_from_server: entry.facts.is_size_of_server,
        variants: entry.variants.into_iter().map(variant).collect(),
    }
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Folder => "folder",
        FileKind::VideoStream => "videoStream",
        FileKind::AudioStream => "audioStream",
        FileKind::Subtitle => "subtitle",
        FileKind::Image => "image",
    }
}

fn variant(variant: Variant) -> PreviewVariantDto {
    PreviewVariantDto {
        id: variant.id,
        label: variant.label,
        size: variant.facts.size.unwrap_or(0),
        size_from_server: variant.facts.is_size_of_server,
        checksum: checksum(&variant.facts),
    }
}

fn checksum(facts: &Facts) -> String {
    let known = facts.strongest_checksum();
    known.map(|checksum| checksum.to_string()).unwrap_or_default()
}

/// Creates a task per preview item. Each resolves its link when it starts, because links expire.
pub(super) async fn create_group(service: &Service, request: CreateGroupRequest) -> Result<Answer, RpcError> {
    if request.items.is_empty() {
        return Err(invalid("items", "items must not be empty"));
    }
    let url = SafeUrl::parse(&request.source_url).map_err(|error| invalid("sourceUrl", error.to_string()))?;
    let claimed = service.plugins.as_ref().and_then(|plugins| plugins.claim(url.as_url()));
    let resolver = claimed.map(|plugin| ResolverId::new(plugin.as_str())).ok_or_else(|| {
        RpcError::application(ErrorCode::Unsupported, "no plugin claims the URL").with_field("sourceUrl")
    })?;
    let common = options::spec(common(&request), None)?;
    if request.items.len() > MAX_CREATED {
        let message = format!(
            "items has {} members; it must have 1 to {MAX_CREATED}",
            request.items.len()
        );
        return Err(invalid("items", message));
    }
    if common.has_too_much_for(request.items.len()) {
        let message = "each item gets the request's headers and cookies: together more than 16 MiB";
        return Err(invalid("extraHeaders", message));
    }
    let settings = service.engine.settings().settings;
    let parent = common.save_dir.clone().or_else(|| settings.default_save_dir.clone());
    let parent = parent.unwrap_or_else(|| service.default_dir.clone());
    let name = FileName::sanitise_or_none(&request.group_name);
    let root = name.as_ref().map_or(parent.clone(), |name| parent.join(name.as_str()));
    let tasks: Result<Vec<_>, _> = request
        .items
        .iter()
        .map(|item| member(item, &resolver, &root, &common))
        .collect();
    let mut left_out = Vec::new();
    for given in request.left_out {
        omission(given)?.add_to(&mut left_out);
    }
    let group = GroupSpec {
        name: request.group_name,
        source_url: view::shown(&url),
        save_dir: Some(root),
        left_out,
    };
    let created = match name {
        Some(_) => service.engine.group_create_apart(group, tasks?).await,
        None => service.engine.group_create(group, tasks?).await,
    };
    let (group, tasks) = created.refused()?;
    wrote(&CreateGroupResponse {
        group_id: group.to_string(),
        task_ids: tasks.iter().map(ToString::to_string).collect(),
    })
}

/// What the preview says is left out.
fn omission(given: LeftOutDto) -> Result<LeftOut, RpcError> {
    let LeftOutDto { kind, name, count } = given;
    let kind = LeftOutKind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = kind.ok_or_else(|| {
        let known = LeftOutKind::ALL.map(LeftOutKind::name).join(", ");
        invalid("leftOut", format!("kind must be one of {known}"))
    })?;
    if name.len() > MAX_OMISSION_BYTES || name.contains(char::is_control) {
        let problem = format!("name must be at most {MAX_OMISSION_BYTES} bytes long, without control characters");
        return Err(invalid("leftOut", problem));
    }
    Ok(LeftOut { kind, name, count })
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
        checksum: options::checksum(&item.checksum)?,
        resolution: Some(Resolution {
            resolver: resolver.clone(),
            item: Some(wanted),
        }),
        ..common.clone()
    })
}

/// Joins `path` to `root`; refuses whatever would lead outside of `root`.
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
