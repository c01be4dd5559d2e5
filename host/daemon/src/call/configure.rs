//! `daemon.config.*`

use engine::SystemProxy;
use protocol::{ConnPolicyResult, ErrorCode, Method, Request, RpcError, SystemProxyResult};
use transfer::SafeUrl;

use crate::{
    call::{
        answer::{Answer, read, wrote},
        proxy_test,
    },
    configuration::schema,
    service::{LearnedLimits, Service},
};

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    match method {
        Method::ConfigGet => read(&service.configuration.snapshot()),
        Method::ConfigSchema => read(&schema::schema()),
        Method::ConfigPatch => {
            let patched = service.configuration.patch(request.params()?).await?;
            service.hub.config_changed().await?;
            wrote(&patched)
        }
        Method::ConfigProxyTest => {
            let saved = service.engine.settings().settings;
            read(&proxy_test::run(&request.params()?, &saved).await?)
        }
        Method::ConfigConnPolicy => read(&policy(limits(service)?)),
        Method::ConfigClearConnPolicy => {
            let limits = limits(service)?;
            limits.forget();
            read(&policy(limits))
        }
        Method::ConfigSystemProxy => read(&system_proxy(&service.system_proxy)),
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn limits(service: &Service) -> Result<&dyn LearnedLimits, RpcError> {
    service.learned_limits.as_deref().ok_or_else(|| {
        RpcError::application(
            ErrorCode::Unsupported,
            "no transport of this build learns the limits of hosts",
        )
    })
}

fn policy(limits: &dyn LearnedLimits) -> ConnPolicyResult {
    ConnPolicyResult {
        domain_count: limits.hosts(),
    }
}

fn system_proxy(system: &SystemProxy) -> SystemProxyResult {
    let Some(url) = [&system.https, &system.http, &system.all].into_iter().flatten().next() else {
        return SystemProxyResult {
            no_list: system.no_proxy.clone(),
            ..SystemProxyResult::default()
        };
    };
    SystemProxyResult {
        detected: true,
        proxy_type: url.scheme().to_owned(),
        host: url.as_url().host_str().unwrap_or("").to_owned(),
        port: port(url),
        no_list: system.no_proxy.clone(),
    }
}

fn port(url: &SafeUrl) -> String {
    url.as_url()
        .port_or_known_default()
        .map(|port| port.to_string())
        .unwrap_or_default()
}
