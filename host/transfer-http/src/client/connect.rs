//! Opens the connection for a request: [`egress::route`] leads to the target, which checks where it may lead, and `https`
//! adds TLS.

use std::net::IpAddr;

use egress::{
    Reach,
    route::{self, Leg, Stream},
};
use transfer::{Failure, SafeUrl};

use crate::client::shared::Shared;

/// The key of the connection pool: connections with equal keys are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) ignore_tls_errors: bool,
}

/// A target, and which addresses it may resolve to.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) key: Key,
    pub(crate) reach: Reach,
}

impl Key {
    pub(crate) fn of(url: &SafeUrl, proxy: Option<&SafeUrl>, ignore_tls_errors: bool) -> Self {
        let parsed = url.as_url();
        Self {
            is_tls: parsed.scheme() == "https",
            // An IPv6 literal has brackets in a URL, but not when connecting.
            host: parsed
                .host_str()
                .unwrap_or("")
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: parsed.port_or_known_default().unwrap_or(80),
            proxy: proxy.cloned(),
            ignore_tls_errors,
        }
    }

    /// The HTTP proxy that wants requests in absolute form, because requests to it are not tunnelled.
    pub(crate) fn forward_proxy(&self) -> Option<&SafeUrl> {
        self.proxy
            .as_ref()
            .filter(|proxy| !self.is_tls && matches!(proxy.scheme(), "http" | "https"))
    }
}

/// Connects to the target of `route`. Returns the address of the target, which is not known behind a proxy.
pub(crate) async fn connect(shared: &Shared, route: &Route) -> Result<(Stream, Option<IpAddr>), Failure> {
    let limit = shared.config.connect_timeout;
    let Route { key, reach } = route;
    let leg = Leg {
        names: &shared.config.names,
        tls: &shared.tls,
        ignore_tls_errors: key.ignore_tls_errors,
        target: (&key.host, key.port),
        proxy: key.proxy.as_ref(),
        reach: *reach,
        limit,
    };
    let (stream, address) = if key.forward_proxy().is_some() {
        (leg.to_proxy().await?, None)
    } else {
        leg.to_target().await?
    };
    if !key.is_tls {
        return Ok((stream, address));
    }
    let config = shared.tls.config(key.ignore_tls_errors);
    let secured = route::within(limit, &key.host, route::secure(&config, &key.host, stream));
    Ok((secured.await?, address))
}
