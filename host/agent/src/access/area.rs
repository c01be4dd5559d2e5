//! The area of a path: the unit by which interfaces are switched, authorized and counted.

use axum::http::Method;

/// A path outside every area never reaches a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    Page,
    Health,
    Setup,
    Description,
    Management,
    Rpc,
    Web,
    Takeover,
    Jsonrpc,
    Mcp,
    Metrics,
    Nothing,
}

impl Area {
    pub(crate) const ALL: [Self; 12] = [
        Self::Page,
        Self::Health,
        Self::Setup,
        Self::Description,
        Self::Management,
        Self::Rpc,
        Self::Web,
        Self::Takeover,
        Self::Jsonrpc,
        Self::Mcp,
        Self::Metrics,
        Self::Nothing,
    ];

    /// The label in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Health => "health",
            Self::Setup => "setup",
            Self::Description => "description",
            Self::Management => "management",
            Self::Rpc => "rpc",
            Self::Web => "web",
            Self::Takeover => "takeover",
            Self::Jsonrpc => "jsonrpc",
            Self::Mcp => "mcp",
            Self::Metrics => "metrics",
            Self::Nothing => "nothing",
        }
    }

    pub(crate) fn of(method: &Method, path: &str) -> Self {
        match path {
            "/" => Self::Page,
            "/ping" => Self::Health,
            "/api/v1/setup" | "/api/v1/setup/status" => Self::Setup,
            "/api/v1/openapi.json" | "/api/v1/docs" => Self::Description,
            _ if path.starts_with("/api/v1/docs/") => Self::Description,
            // `/rpc` by POST is aria2's XML-RPC; the service's own RPC is a WebSocket (GET).
            "/rpc" if method == Method::POST => Self::Jsonrpc,
            "/rpc" => Self::Rpc,
            "/download" | "/download/batch" => Self::Takeover,
            "/jsonrpc" => Self::Jsonrpc,
            "/mcp" => Self::Mcp,
            "/metrics" => Self::Metrics,
            _ if path.starts_with("/api/v1/") => Self::Management,
            _ if path.starts_with("/api/web/") => Self::Web,
            _ => Self::Nothing,
        }
    }
}
