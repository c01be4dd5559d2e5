//! HTTP for sources of plugins: whom it trusts, and which proxy it goes through.

use std::sync::Arc;

use engine::{Proxies, ProxyChoice, SystemProxy};
use market::{
    Origin, OriginError,
    http::{HttpConfig, Names, Web, WebError},
};
use plugin_host::market::Origins;
use transfer::SafeUrl;
use url::Url;

/// What requests say they come from.
const USER_AGENT: &str = concat!("Svc/", env!("CARGO_PKG_VERSION"));

/// Sources on the Internet, as a daemon reaches them.
#[derive(Debug)]
pub(super) struct Internet;

impl Origins for Internet {
    /// One proxy serves a source and everything that it leads to: who looks names up has to be known beforehand.
    fn at(&self, url: &Url, proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        let failed = |error: &dyn std::error::Error| OriginError::Failed(error.to_string());
        let web = web(proxy(url, proxies)?).map_err(|error| failed(&error))?;
        Ok(Arc::new(web.at(url.clone()).map_err(|error| failed(&error))?))
    }
}

/// What the environment of a command says about proxies.
pub(super) fn proxies(system: &SystemProxy) -> Proxies {
    Proxies::new(ProxyChoice::Settings, Arc::default(), Arc::new(system.clone()))
}

fn proxy(url: &Url, proxies: &Proxies) -> Result<Option<reqwest::Proxy>, OriginError> {
    let safe = SafeUrl::parse(url.as_str()).map_err(|error| OriginError::Failed(error.to_string()))?;
    let Some(proxy) = proxies.for_url(&safe) else {
        return Ok(None);
    };
    // A proxy that knows names is told names.
    let address = match proxy.expose().strip_prefix("socks5:") {
        Some(rest) => format!("socks5h:{rest}"),
        None => proxy.expose().to_owned(),
    };
    let usable = reqwest::Proxy::all(address).map(Some);
    usable.map_err(|_| OriginError::Failed(format!("the proxy {proxy} cannot be used")))
}

fn web(proxy: Option<reqwest::Proxy>) -> Result<Web, WebError> {
    let tls = transfer_http::trusting_client();
    let names = if proxy.is_some() { Names::Proxy } else { Names::Here };
    let builder = move || {
        let builder = reqwest::Client::builder()
            .no_proxy()
            .http1_only()
            .user_agent(USER_AGENT)
            .tls_backend_preconfigured(tls.as_ref().clone());
        match &proxy {
            Some(proxy) => builder.proxy(proxy.clone()),
            None => builder,
        }
    };
    Web::new(&HttpConfig::new(names, builder))
}
