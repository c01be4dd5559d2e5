//! HTTP for sources of plugins: whom it trusts, and which proxy it goes through.

use std::sync::Arc;

use egress::tls;
use engine::{Proxies, ProxyChoice, SystemProxy};
use market::{
    Origin, OriginError,
    http::{HttpConfig, Web},
};
use plugin_host::market::Origins;
use transfer::SafeUrl;
use url::Url;

/// What requests say they come from.
const USER_AGENT: &str = concat!("Svc/", env!("CARGO_PKG_VERSION"));

/// Sources on the Internet, as a daemon reaches them.
#[derive(Debug)]
pub(crate) struct Internet;

impl Origins for Internet {
    /// One proxy serves a source and everything that it leads to: who looks names up has to be known beforehand.
    fn at(&self, url: &Url, proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        let failed = |error: &dyn std::error::Error| OriginError::Failed(error.to_string());
        let safe = SafeUrl::parse(url.as_str()).map_err(|error| failed(&error))?;
        let config = HttpConfig::new(USER_AGENT, tls::trusting_system(), proxies.for_url(&safe));
        let web = Web::new(config).map_err(|error| failed(&error))?;
        Ok(Arc::new(web.at(url.clone()).map_err(|error| failed(&error))?))
    }
}

/// What the environment of a command says about proxies.
pub(crate) fn proxies(system: &SystemProxy) -> Proxies {
    Proxies::new(ProxyChoice::Settings, Arc::default(), Arc::new(system.clone()))
}
