//! The proxy of a task, and the proxies of the system. The settings have a third source.

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

/// Proxies of the environment or desktop. Only the program's entry point reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemProxy {
    /// For `http` URLs.
    pub http: Option<SafeUrl>,
    /// For `https` URLs.
    pub https: Option<SafeUrl>,
    /// For `ftp`, `ftpes` and `ftps` URLs.
    pub ftp: Option<SafeUrl>,
    /// For every other scheme, and where the scheme's own is missing.
    pub all: Option<SafeUrl>,
    /// Hosts to reach directly, separated by commas: `host`, `.suffix`, `*`.
    pub no_proxy: String,
}
