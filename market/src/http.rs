//! Sources on web servers. The server that the user named may have any address; every other server, which a redirect or
//! a mirror leads to, must use https and have a public address.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use egress::{ClientConfig, HttpClient, Names, Pins, Reach, Redirects, Refusal, Request, Response, SendError};
use tokio::time::timeout;
use transfer::SafeUrl;
use url::Url;

use crate::origin::{Origin, OriginError, Reading};

/// The most redirects of one request. Usual are two: to another host, and from there to a signed URL.
const MAX_REDIRECTS: u32 = 5;

/// Idle connections kept for each host. The files of a source are requested one after the other.
const IDLE_CONNECTIONS: usize = 4;

/// Configuration of [`Web`].
#[derive(Debug)]
pub struct HttpConfig {
    /// The `User-Agent` of requests.
    pub user_agent: String,
    /// The configuration of TLS, with the trusted roots.
    pub tls: egress::tls::ClientConfig,
    /// The proxy for all requests. The proxy then resolves names.
    pub proxy: Option<SafeUrl>,
    /// The resolver of names.
    pub names: Names,
    /// The longest pause between two pieces of a response, and before the first one.
    pub stall: Duration,
    /// The longest time for one file.
    pub total: Duration,
}

impl HttpConfig {
    /// A server that sends nothing for this long is given up.
    const STALL: Duration = Duration::from_secs(15);

    /// Enough for the largest file at 70 KB per second.
    const TOTAL: Duration = Duration::from_mins(2);

    /// A configuration with the default time limits.
    pub fn new(user_agent: &str, tls: egress::tls::ClientConfig, proxy: Option<SafeUrl>) -> Self {
        Self {
            user_agent: user_agent.to_owned(),
            tls,
            proxy,
            names: Names::default(),
            stall: Self::STALL,
            total: Self::TOTAL,
        }
    }
}

/// An HTTP client for sources; clones share connections.
#[derive(Debug, Clone)]
pub struct Web {
    client: HttpClient,
    proxy: Option<SafeUrl>,
    pins: Arc<Pins>,
    stall: Duration,
    total: Duration,
}

/// The HTTP client cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP for the market")]
pub struct WebError(#[source] Box<dyn Error + Send + Sync>);

/// A URL at which no source can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a source is at an http or https URL")]
pub struct InvalidBase;

impl Web {
    /// Creates a client.
    pub fn new(config: HttpConfig) -> Result<Self, WebError> {
        let client = HttpClient::new(ClientConfig {
            user_agent: config.user_agent,
            tls: config.tls,
            connect_timeout: config.stall,
            idle_connections: IDLE_CONNECTIONS,
            names: config.names,
        });
        Ok(Self {
            client: client.map_err(|error| WebError(error.into()))?,
            proxy: config.proxy,
            pins: Arc::default(),
            stall: config.stall,
            total: config.total,
        })
    }

    /// The source below `base`. A missing `/` at the end is added.
    pub fn at(&self, mut base: Url) -> Result<Http, InvalidBase> {
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(InvalidBase);
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Http {
            web: self.clone(),
            base,
        })
    }
}

/// A source on a web server.
#[derive(Clone)]
pub struct Http {
    web: Web,
    base: Url,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_tuple("Http")
            .field(&self.base.host_str().unwrap_or(""))
            .finish()
    }
}

impl Http {
    /// The addresses that a request to `url` may reach, or why it must not be sent.
    fn reach(&self, url: &Url) -> Result<Reach, OriginError> {
        if url.origin() == self.base.origin() {
            return Ok(Reach::Anywhere);
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.scheme() != "https" || has_user || Reach::Global.check(url).is_err() {
            return Err(forbidden(url));
        }
        Ok(Reach::Global)
    }

    async fn append(&self, place: &str, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
        let mut url = self.base.join(place).map_err(|_| no_url())?;
        // `reach` knows which servers may be plain HTTP.
        let mut redirects = Redirects::at_most(MAX_REDIRECTS).with_plain_targets();
        loop {
            let response = self.ask(&url, into.len()).await?;
            let status = response.status();
            if Redirects::is_redirect(status) {
                let to = response.header("location").ok_or(OriginError::Status(status))?;
                url = redirects.follow(&url, to).map_err(|refusal| match refusal {
                    Refusal::Loop | Refusal::TooMany(_) => OriginError::Redirects,
                    Refusal::Unusable(_) => no_url(),
                    Refusal::Scheme(scheme) => OriginError::Forbidden(format!("a URL of the scheme {scheme}")),
                    Refusal::LosesTls => forbidden(&url),
                })?;
                continue;
            }
            return match status {
                200 => {
                    into.clear();
                    self.drain(response, limit, into).await
                }
                206 if starts_at(&response, into.len()) => self.drain(response, limit, into).await,
                // The bytes in `into` are not a prefix of the server's file.
                206 | 416 => {
                    into.clear();
                    Err(OriginError::Status(status))
                }
                // Storage services answer 403 for a missing file to clients that may not list the folder.
                403 | 404 | 410 => Err(OriginError::NotFound),
                _ => Err(OriginError::Status(status)),
            };
        }
    }

    async fn ask(&self, url: &Url, start: usize) -> Result<Response, OriginError> {
        let rest = [("range".to_owned(), format!("bytes={start}-"))];
        let request = Request {
            method: "GET",
            url: url.clone(),
            headers: if start > 0 { &rest } else { &[] },
            body: Bytes::new(),
            reach: self.reach(url)?,
            pins: &self.web.pins,
            proxy: self.web.proxy.as_ref(),
        };
        let stall = self.web.stall;
        let response = timeout(stall, self.web.client.send(request)).await;
        response
            .map_err(|_| OriginError::Stalled(stall))?
            .map_err(|error| failed(url, &error))
    }

    async fn drain(&self, mut response: Response, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
        let stall = self.web.stall;
        // Reserved at once: a buffer that grows by doubling needs twice the memory while it is copied.
        let announced = response.content_length().filter(|length| *length <= limit);
        into.reserve_exact(announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(0));
        loop {
            let piece = timeout(stall, response.chunk())
                .await
                .map_err(|_| OriginError::Stalled(stall))?;
            let Some(piece) = piece.map_err(|error| failed(&self.base, &error))? else {
                return Ok(());
            };
            if (into.len() + piece.len()) as u64 > limit {
                into.clear();
                return Err(OriginError::TooLarge(limit));
            }
            into.extend_from_slice(&piece);
        }
    }
}

impl Origin for Http {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        Box::pin(async move {
            let total = self.web.total;
            let read = timeout(total, self.append(place, limit, into)).await;
            read.unwrap_or(Err(OriginError::TooSlow(total)))
        })
    }
}

fn forbidden(url: &Url) -> OriginError {
    let host = url.host_str().unwrap_or("a URL without a host");
    OriginError::Forbidden(format!("{}://{host}", url.scheme()))
}

fn no_url() -> OriginError {
    OriginError::Failed("the path or redirect is no valid URL".to_owned())
}

fn starts_at(response: &Response, start: usize) -> bool {
    let range = response.header("content-range");
    range.is_some_and(|range| {
        range
            .strip_prefix("bytes ")
            .is_some_and(|range| range.starts_with(&format!("{start}-")))
    })
}

fn failed(url: &Url, error: &SendError) -> OriginError {
    match error {
        SendError::Forbidden(_) => forbidden(url),
        SendError::Timeout | SendError::Tls(_) | SendError::NotHttp(_) | SendError::Failed(_) => {
            OriginError::Failed(error.to_string())
        }
    }
}
