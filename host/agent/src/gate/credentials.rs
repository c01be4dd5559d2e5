//! Extracts the key from a request, in the forms that its area accepts. Pure.

use axum::{
    extract::Request,
    http::{HeaderMap, header},
};
use data_encoding::BASE64URL_NOPAD;

use crate::access::area::Area;

/// The WebSocket sub-protocol that clients offer on `/rpc` and that is selected.
pub(crate) const RPC_PROTOCOL: &str = "svc.rpc.v1";

/// The sub-protocol prefix for browsers, which cannot set headers on a WebSocket.
const RPC_TOKEN_PREFIX: &str = "svc.token.";

pub(crate) fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn query(request: &Request, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(request.uri().query()?.as_bytes());
    let mut found = pairs.filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.into_owned())
}

/// The key of a request; an empty one counts as none.
pub(super) fn shown_key(request: &Request, area: Area) -> Option<String> {
    let in_query = || query(request, "token").filter(|key| area == Area::Web && !key.is_empty());
    header_key(request.headers(), area).or_else(in_query)
}

/// Like [`shown_key`], from headers alone.
pub(super) fn header_key(headers: &HeaderMap, area: Area) -> Option<String> {
    let bearer = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let own = text(headers, "x-svc-token");
    let shown = match area {
        Area::Rpc => bearer.map(ToOwned::to_owned).or_else(|| protocol_key(headers)),
        Area::Takeover | Area::Jsonrpc => own.map(ToOwned::to_owned),
        Area::Web => bearer.map(ToOwned::to_owned),
        _ => bearer.or(own).map(ToOwned::to_owned),
    };
    shown.filter(|key| !key.is_empty())
}

/// A key in a sub-protocol counts only if [`RPC_PROTOCOL`] is offered as well.
fn protocol_key(headers: &HeaderMap) -> Option<String> {
    let lists = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let lists: Vec<&str> = lists.filter_map(|value| value.to_str().ok()).collect();
    let offered = || lists.iter().flat_map(|list| list.split(',')).map(str::trim);
    offered().find(|protocol| *protocol == RPC_PROTOCOL)?;
    let encoded = offered().find_map(|protocol| protocol.strip_prefix(RPC_TOKEN_PREFIX))?;
    String::from_utf8(BASE64URL_NOPAD.decode(encoded.as_bytes()).ok()?).ok()
}
