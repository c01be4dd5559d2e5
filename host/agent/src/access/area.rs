//! The area of a path: the unit by which interfaces are switched, authorized and counted.

use axum::http::Method;

macro_rules! areas {
    ($($area:ident = $name:literal,)+) => {
        /// A path outside every area never reaches a route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Area {
            $($area,)+
        }

        impl Area {
            pub(crate) const ALL: &[Self] = &[$(Self::$area,)+];

            /// The label in metrics.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$area => $name,)+
                }
            }
        }
    };
}

areas! {
    Page = "page",
    Health = "health",
    Setup = "setup",
    Login = "login",
    Description = "description",
    Management = "management",
    Rpc = "rpc",
    Web = "web",
    Takeover = "takeover",
    Link = "link",
    Jsonrpc = "jsonrpc",
    Mcp = "mcp",
    Metrics = "metrics",
    Nothing = "nothing",
}

impl Area {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        match path {
            "/" => Self::Page,
            "/ping" => Self::Health,
            "/api/v1/setup" | "/api/v1/setup/status" => Self::Setup,
            "/api/v1/openapi.json" | "/api/v1/docs" => Self::Description,
            // The probe answers as the connection would, whose refusal browsers do not show.
            "/api/web/session" if method == Method::POST => Self::Login,
            "/api/web/session" => Self::Rpc,
            _ if path.starts_with("/api/v1/docs/") => Self::Description,
            // `/rpc` by POST is aria2's XML-RPC; the service's own RPC is a WebSocket (GET).
            "/rpc" if method == Method::POST => Self::Jsonrpc,
            "/rpc" => Self::Rpc,
            "/download" | "/download/batch" => Self::Takeover,
            "/jsonrpc" => Self::Jsonrpc,
            "/mcp" => Self::Mcp,
            "/metrics" => Self::Metrics,
            // What other devices call; what the owner calls is management.
            "/api/v1/link/pair/hello" | "/api/v1/link/pair/reveal" | "/api/v1/link/pair/confirm" => Self::Link,
            "/api/v1/link/tasks" | "/api/v1/link/info" | "/api/v1/link/unpair" => Self::Link,
            _ if path.starts_with("/api/v1/") => Self::Management,
            _ if path.starts_with("/api/web/") => Self::Web,
            _ if rest::is_page_file(path) => Self::Page,
            _ => Self::Nothing,
        }
    }
}
