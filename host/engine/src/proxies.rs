//! The choice of a proxy per URL.

use std::sync::Arc;

use transfer::SafeUrl;

use crate::model::{
    proxy::{ProxyChoice, SystemProxy},
    settings::Settings,
};

/// A task's choice of a proxy, with the settings at that time. The choice must be repeated for every URL of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxies {
    choice: ProxyChoice,
    settings: Arc<Settings>,
    system: Arc<SystemProxy>,
}

impl Proxies {
    /// Resolves `choice` under these settings.
    pub fn new(choice: ProxyChoice, settings: Arc<Settings>, system: Arc<SystemProxy>) -> Self {
        Self {
            choice,
            settings,
            system,
        }
    }

    /// No proxy for anything.
    pub fn none() -> Self {
        Self::new(ProxyChoice::Direct, Arc::default(), Arc::default())
    }

    /// The proxy for `url`, if it needs one.
    pub fn for_url(&self, url: &SafeUrl) -> Option<SafeUrl> {
        match &self.choice {
            ProxyChoice::Settings => self.settings.proxy_for(url, &self.system),
            ProxyChoice::Direct => None,
            ProxyChoice::Through(proxy) => Some(proxy.clone()),
        }
    }
}
