//! Where a proxy may come from: the task or the system. The settings are the third.

use transfer::SafeUrl;

/// Which proxy a task uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The one in the settings.
    #[default]
    Settings,
    /// None, whatever the settings say.
    Direct,
    /// This one.
    Through(SafeUrl),
}

/// Proxies that the system (environment, desktop) names. Only the program's entry reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemProxy {
    /// For `http` URLs.
    pub http: Option<SafeUrl>,
    /// For `https` URLs.
    pub https: Option<SafeUrl>,
    /// For every other scheme, and where the one above is missing.
    pub all: Option<SafeUrl>,
    /// Hosts to reach directly, separated by commas: `host`, `.suffix`, `*`.
    pub no_proxy: String,
}
