//! Completes the `OpenAPI` description with what applies to all handlers.

use axum::http::StatusCode;
use utoipa::{
    OpenApi as _,
    openapi::{
        OpenApi, PathItem, RefOr,
        path::Operation,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
        tag::TagBuilder,
    },
};

use crate::problem::ResultMessage;

const BEARER: &str = "bearerAuth";
const HEADER: &str = "tokenHeader";

/// The tags in order, with their path prefixes. Other paths belong to the system.
const PARTS: &[(&str, &str, &[&str])] = &[
    ("system", "The service itself.", &[]),
    (
        "management",
        "Tasks, queues, and logins and cookies of sites.",
        &["/api/v1/info", "/api/v1/queues", "/api/v1/site-", "/api/v1/tasks"],
    ),
    (
        "groups",
        "Several files of one source.",
        &["/api/v1/groups", "/api/v1/resolve"],
    ),
    (
        "plugins",
        "Plugins, which resolve links of particular sites, and their sources.",
        &["/api/v1/market", "/api/v1/plugins"],
    ),
    (
        "post",
        "What follows finished downloads: unpacking, renaming, checksums.",
        &["/api/v1/post"],
    ),
    ("rss", "Subscriptions to feeds.", &["/api/v1/rss"]),
    ("takeover", "Downloads that browsers hand over.", &["/download"]),
    ("aria2", "The dialect of aria2's clients.", &["/jsonrpc"]),
    ("mcp", "AI clients.", &["/mcp"]),
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Svc",
        description = "Downloads, on this machine and from elsewhere.",
        version = "0.1.0"
    ),
    components(schemas(ResultMessage))
)]
struct Frame;

pub(super) fn frame() -> OpenApi {
    Frame::openapi()
}

/// Adds what handlers need not repeat: the meaning of statuses, the accepted keys, and the tag of each operation.
pub(super) fn complete(api: &mut OpenApi) {
    let components = api.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    let header = ApiKey::Header(ApiKeyValue::new("X-Svc-Token"));
    components.add_security_scheme(HEADER, SecurityScheme::ApiKey(header));
    let tags = PARTS.iter().map(|(name, about, _)| {
        let tag = TagBuilder::new().name(*name);
        tag.description(Some(*about)).build()
    });
    api.tags = Some(tags.collect());
    for (path, item) in &mut api.paths.paths {
        for operation in operations(item) {
            operation.tags = Some(vec![part(path, operation).to_owned()]);
            operation.security = keys(path, operation);
            name_answers(operation);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let operations = [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
    ];
    operations.into_iter().flatten()
}

fn part(path: &str, operation: &Operation) -> &'static str {
    let is_xml = operation.operation_id.as_deref() == Some("xml_call");
    let path = if is_xml { "/jsonrpc" } else { path };
    let is_of = |(_, _, paths): &&(_, _, &[&str])| paths.iter().any(|begin| path.starts_with(begin));
    PARTS.iter().find(is_of).map_or("system", |(name, ..)| name)
}

/// The accepted forms of the key, if one is required.
fn keys(path: &str, operation: &Operation) -> Option<Vec<SecurityRequirement>> {
    operation.responses.responses.get("401")?;
    let by = |scheme: &str| SecurityRequirement::new(scheme, Vec::<String>::new());
    Some(if path.starts_with("/download") {
        vec![by(HEADER)]
    } else if path == "/rpc" || path.starts_with("/api/web/") {
        vec![by(BEARER)]
    } else {
        vec![by(BEARER), by(HEADER)]
    })
}

/// Describes a response without a description by its status.
fn name_answers(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            let status = status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok());
            let reason = status.as_ref().and_then(StatusCode::canonical_reason);
            reason.unwrap_or("Answer").clone_into(&mut response.description);
        }
    }
}
