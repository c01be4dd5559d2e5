//! HTTP access to plugin sources: trusted certificates and proxies.

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

/// Plugin sources on the Internet, as a daemon reaches them.
#[derive(Debug)]
pub(crate) struct Internet;

impl Origins for Internet {
    /// One proxy applies to a source and everything that it refers to, because it must be known beforehand who resolves
    /// names.
    fn at(&self, url: &Url, proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        let failed = |error: &dyn std::error::Error| OriginError::Failed(error.to_string());
        let safe = SafeUrl::parse(url.as_str()).map_err(|error| failed(&error))?;
        let config = HttpConfig::new(egress::USER_AGENT, tls::trusting_system(), proxies.for_url(&safe));
        let web = Web::new(config).map_err(|error| failed(&error))?;
        Ok(Arc::new(web.at(url.clone()).map_err(|error| failed(&error))?))
    }
}

/// The proxies of a command's environment.
pub(crate) fn proxies(system: &SystemProxy) -> Proxies {
    Proxies::new(ProxyChoice::Settings, Arc::default(), Arc::new(system.clone()))
}
