//! `daemon.config.proxyTest`: requests a page through a proxy, as downloads would, and says how long that took.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use egress::{ClientConfig, HttpClient, Names, Pins, Reach, Request, Response, SendError, tls};
use engine::{InvalidSetting, Proxies, ProxyChoice, Settings};
use protocol::{ErrorCode, ProxyTestParams, ProxyTestResult, RpcError};
use tokio::time::{Instant, timeout};
use transfer::SafeUrl;

use crate::{
    options::optional,
    refusal::{chain, invalid},
};

/// For everything, from the proxy's name to the head of the response.
const TEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Requested if the caller names nothing: IANA keeps this host for such uses (RFC 2606). HTTPS, so that an HTTP proxy has
/// to open a tunnel and cannot answer in the page's place.
const USUAL_URL: &str = "https://example.com/";

/// What proxies answer in the page's place: without the right login, and when they cannot reach it.
const WRONG_LOGIN: u16 = 407;
const GATEWAY_ERRORS: std::ops::RangeInclusive<u16> = 502..=504;

/// Tests the proxy of `params`; `saved` has the password of which clients know only that there is one.
pub(crate) async fn run(params: &ProxyTestParams, saved: &Settings) -> Result<ProxyTestResult, RpcError> {
    let url = optional(&params.url).unwrap_or(USUAL_URL);
    let url = SafeUrl::parse(url).map_err(|error| invalid("url", error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("url", "url must be http or https"));
    }
    let proxy = proxy(params, saved, &url)?;
    let began = Instant::now();
    let status = match timeout(TEST_TIMEOUT, ask(&url, &proxy)).await {
        Err(_) | Ok(Err(SendError::Timeout)) => {
            let limit = TEST_TIMEOUT.as_secs();
            let message = format!("no response from {url} through the proxy {proxy} within {limit} s");
            return Err(RpcError::application(ErrorCode::Timeout, message));
        }
        Ok(Err(error)) => return Err(unusable(&proxy, &chain(&error))),
        Ok(Ok(response)) => response.status(),
    };
    if status == WRONG_LOGIN {
        return Err(unusable(&proxy, "it wants another user name or password"));
    }
    if GATEWAY_ERRORS.contains(&status) {
        return Err(unusable(&proxy, &format!("it answers {status} for {url}")));
    }
    Ok(ProxyTestResult {
        latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The proxy that these values would be as settings.
fn proxy(params: &ProxyTestParams, saved: &Settings, url: &SafeUrl) -> Result<SafeUrl, RpcError> {
    let is_saved = params.password == protocol::MASKED;
    let password = if is_saved {
        saved.proxy_password.expose()
    } else {
        &params.password
    };
    let mut settings = Settings::default();
    for (key, value) in [
        ("proxy_mode", "manual"),
        ("proxy_type", &params.proxy_type),
        ("proxy_host", &params.host),
        ("proxy_port", &params.port),
        ("proxy_username", &params.username),
        ("proxy_password", password),
    ] {
        settings.set(key, value).map_err(|error| named(&error))?;
    }
    settings.validate().map_err(|error| named(&error))?;
    let proxies = Proxies::new(ProxyChoice::Settings, Arc::new(settings), Arc::default());
    proxies
        .for_url(url)
        .ok_or_else(|| invalid("host", "host must be a host name or an address"))
}

/// The error under the name that the param has.
fn named(error: &InvalidSetting) -> RpcError {
    let key = match error {
        InvalidSetting::UnknownKey(key) => key.as_str(),
        InvalidSetting::Value { key, .. } => key,
    };
    let param = match key {
        "proxy_type" => "proxyType",
        "proxy_port" => "port",
        "proxy_username" => "username",
        "proxy_password" => "password",
        _ => "host",
    };
    invalid(param, error.to_string())
}

async fn ask(url: &SafeUrl, proxy: &SafeUrl) -> Result<Response, SendError> {
    let client = HttpClient::new(ClientConfig {
        user_agent: egress::USER_AGENT.to_owned(),
        tls: tls::trusting_system(),
        connect_timeout: TEST_TIMEOUT,
        idle_connections: 0,
        names: Names::default(),
    });
    let client = client.map_err(|error| SendError::Failed(error.to_string()))?;
    let request = Request {
        method: "HEAD",
        url: url.as_url().clone(),
        headers: &[],
        body: Bytes::new(),
        // The user names proxy and page.
        reach: Reach::Anywhere,
        pins: &Pins::default(),
        proxy: Some(proxy),
    };
    client.send(request).await
}

fn unusable(proxy: &SafeUrl, why: &str) -> RpcError {
    RpcError::application(
        ErrorCode::Unavailable,
        format!("the proxy {proxy} cannot be used: {why}"),
    )
}
