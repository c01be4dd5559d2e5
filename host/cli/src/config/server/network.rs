//! `svc config server proxy` and `host-limits`: the network as the service sees it.

use command::{Exit, UsageError, amount::counted};
use protocol::{ConnPolicyResult, Method, ProxyTestParams, ProxyTestResult, SystemProxyResult};
use transfer::SafeUrl;

use crate::service::{Client, ServiceArgs};

pub(super) async fn system_proxy(service: &ServiceArgs, client: &mut Client) -> anyhow::Result<Exit> {
    let found: SystemProxyResult = client.ask(Method::ConfigSystemProxy).await?;
    let except = match found.no_list.as_str() {
        "" => String::new(),
        hosts => format!(", except for {hosts}"),
    };
    let sentence = if found.detected {
        format!("{}://{}:{}{except}", found.proxy_type, found.host, found.port)
    } else {
        "the service's system has no proxy".to_owned()
    };
    service.print_done(&found, &sentence)
}

pub(super) async fn test_proxy(
    service: &ServiceArgs,
    client: &mut Client,
    text: &str,
    target: Option<&str>,
) -> anyhow::Result<Exit> {
    let refuse = |problem: &str| UsageError::new("the proxy", problem);
    let url = SafeUrl::parse(text).map_err(|error| refuse(&error.to_string()))?;
    let host = url.as_url().host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refuse("write it as http://, https://, socks4:// or socks5:// and a host"))?;
    let login = url.credentials();
    let params = ProxyTestParams {
        proxy_type: url.scheme().to_owned(),
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url
            .as_url()
            .port_or_known_default()
            .map(|port| port.to_string())
            .unwrap_or_default(),
        username: login.as_ref().map(|login| login.user.clone()).unwrap_or_default(),
        password: login
            .map(|login| login.password.expose().to_owned())
            .unwrap_or_default(),
        url: target.unwrap_or_default().to_owned(),
    };
    let answered: ProxyTestResult = client.call(Method::ConfigProxyTest, &params).await?;
    let sentence = format!("the proxy answered within {} ms", answered.latency_ms);
    service.print_done(&answered, &sentence)
}

pub(super) async fn host_limits(service: &ServiceArgs, client: &mut Client, forget: bool) -> anyhow::Result<Exit> {
    let known: ConnPolicyResult = client.ask(Method::ConfigConnPolicy).await?;
    let hosts = counted(usize::try_from(known.domain_count).unwrap_or(usize::MAX), "host");
    if forget {
        let left: ConnPolicyResult = client.ask(Method::ConfigClearConnPolicy).await?;
        return service.print_done(&left, &format!("forgot the limits of {hosts}"));
    }
    service.print_done(&known, &format!("the limits of {hosts} are known"))
}
