//! `daemon.config.proxyTest`: whether an address answers a proxy's handshake, and in how many milliseconds.

use std::time::Duration;

use data_encoding::BASE64;
use egress::{Names, Reach};
use protocol::{ErrorCode, ProxyTestParams, ProxyTestResult, RpcError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::refusal::invalid;

/// For the whole handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Authentication methods of SOCKS 5 (RFC 1928 §3).
const NO_PASSWORD: u8 = 0;
const PASSWORD: u8 = 2;

/// Connects and starts the proxy's handshake. Nothing is fetched through the proxy.
pub(crate) async fn run(params: &ProxyTestParams) -> Result<ProxyTestResult, RpcError> {
    let host = params.host.trim();
    if host.is_empty() || host.contains(['/', '@', '\r', '\n', ' ']) {
        return Err(invalid("host", "host must be a host name or an address"));
    }
    if [&params.username, &params.password]
        .into_iter()
        .any(|text| text.len() > usize::from(u8::MAX))
    {
        return Err(invalid(
            "username",
            "user name and password have at most 255 bytes each",
        ));
    }
    let usual = match params.proxy_type.as_str() {
        "http" => 8080,
        "https" => 443,
        "socks4" | "socks5" => 1080,
        _ => return Err(invalid("proxyType", "proxyType must be http, https, socks4 or socks5")),
    };
    let port = match params.port.trim() {
        "" => usual,
        text => text
            .parse::<u16>()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| invalid("port", "port must be 1 to 65535, or empty"))?,
    };
    let began = Instant::now();
    let outcome = timeout(HANDSHAKE_TIMEOUT, greet(params, host, port)).await;
    let failed = |code, reason: String| Err(RpcError::application(code, format!("the proxy {host}:{port} {reason}")));
    match outcome {
        Err(_) => failed(
            ErrorCode::Timeout,
            format!("did not answer within {} s", HANDSHAKE_TIMEOUT.as_secs()),
        ),
        Ok(Err(error)) => failed(ErrorCode::Unavailable, format!("cannot be used: {error}")),
        Ok(Ok(())) => Ok(ProxyTestResult {
            latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }),
    }
}

async fn greet(params: &ProxyTestParams, host: &str, port: u16) -> std::io::Result<()> {
    // The user names this proxy, so private addresses are allowed.
    let dialled = egress::dial(&Names::default(), (host, port), Reach::Anywhere, HANDSHAKE_TIMEOUT).await;
    let mut stream = dialled.map_err(std::io::Error::other)?;
    match params.proxy_type.as_str() {
        "socks5" => greet_socks5(&mut stream, params).await,
        "http" => greet_http(&mut stream, params, host).await,
        // SOCKS 4 sends nothing before a target is named, HTTPS nothing before TLS: accepting the connection is the
        // test.
        _ => Ok(()),
    }
}

async fn greet_socks5(stream: &mut TcpStream, params: &ProxyTestParams) -> std::io::Result<()> {
    let refused = |reason: &str| Err(std::io::Error::other(reason.to_owned()));
    let has_user = !params.username.is_empty();
    let offer: &[u8] = if has_user {
        &[5, 2, NO_PASSWORD, PASSWORD]
    } else {
        &[5, 1, NO_PASSWORD]
    };
    stream.write_all(offer).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match answer {
        [5, NO_PASSWORD] => Ok(()),
        [5, PASSWORD] if has_user => {
            // RFC 1929; lengths fit in a byte: checked by the caller.
            let mut login = vec![1];
            for text in [&params.username, &params.password] {
                login.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
                login.extend_from_slice(text.as_bytes());
            }
            stream.write_all(&login).await?;
            stream.read_exact(&mut answer).await?;
            if answer[1] == 0 {
                Ok(())
            } else {
                refused("it refuses the user name or password")
            }
        }
        [5, _] => refused("it wants a user name and password"),
        _ => refused("it does not speak SOCKS 5"),
    }
}

async fn greet_http(stream: &mut TcpStream, params: &ProxyTestParams, host: &str) -> std::io::Result<()> {
    let login = if params.username.is_empty() {
        String::new()
    } else {
        let pair = BASE64.encode(format!("{}:{}", params.username, params.password).as_bytes());
        format!("Proxy-Authorization: Basic {pair}\r\n")
    };
    let request = format!("OPTIONS * HTTP/1.1\r\nHost: {host}\r\n{login}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    // Only the status line up to the code matters: "HTTP/1.1 407".
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    if !answer.starts_with(b"HTTP/1.") {
        return Err(std::io::Error::other("it does not speak HTTP"));
    }
    if answer.ends_with(b"407") {
        return Err(std::io::Error::other("it wants another user name or password"));
    }
    Ok(())
}
