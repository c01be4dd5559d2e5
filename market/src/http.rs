//! A source on a web server. Only the server that the user named is asked whatever its address is; everything else that
//! a redirect or a mirror leads to must be https at a public address.

use std::{error::Error, fmt, net::IpAddr, time::Duration};

use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_RANGE, LOCATION, RANGE},
    redirect::Policy,
};
use tokio::time::timeout;
use url::{Host, Url};

use crate::origin::{Origin, OriginError, Reading};

/// Redirects in a row: one to another host and one to a signed address are usual.
const MAX_REDIRECTS: usize = 5;

/// How HTTP is to be done.
pub struct HttpConfig {
    /// Begins a client: with TLS, the user agent, and the proxy if there is one.
    pub builder: Box<dyn Fn() -> ClientBuilder + Send + Sync>,
    /// What looks names up.
    pub names: Names,
    /// How long nothing may come.
    pub stall: Duration,
    /// How long one file may take.
    pub total: Duration,
}

/// Who looks names up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// We do, and refuse those that lead to addresses which are not public.
    Here,
    /// The proxy does; only addresses that are written as numbers can be checked here.
    Proxy,
}

impl HttpConfig {
    /// Nothing for so long means that the server is gone.
    const STALL: Duration = Duration::from_secs(15);

    /// Time for the largest file at 70 KB a second.
    const TOTAL: Duration = Duration::from_mins(2);

    /// The usual patience.
    pub fn new(names: Names, builder: impl Fn() -> ClientBuilder + Send + Sync + 'static) -> Self {
        Self {
            builder: Box::new(builder),
            names,
            stall: Self::STALL,
            total: Self::TOTAL,
        }
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Connections to servers of sources.
#[derive(Debug, Clone)]
pub struct Web {
    /// Connects to public addresses only.
    guarded: Client,
    /// Connects anywhere: to the server that the user named.
    open: Client,
    stall: Duration,
    total: Duration,
}

/// Why there is no HTTP.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP for the market")]
pub struct WebError(#[source] reqwest::Error);

/// A text that is no place of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a source is at an http or https URL")]
pub struct InvalidBase;

impl Web {
    /// HTTP as `config` wants it.
    pub fn new(config: &HttpConfig) -> Result<Self, WebError> {
        let builder = || {
            (config.builder)()
                .redirect(Policy::none())
                .referer(false)
                .connect_timeout(config.stall)
        };
        let guarded = match config.names {
            Names::Here => builder().dns_resolver(PublicAddresses),
            Names::Proxy => builder(),
        };
        Ok(Self {
            guarded: guarded.build().map_err(WebError)?,
            open: builder().build().map_err(WebError)?,
            stall: config.stall,
            total: config.total,
        })
    }

    /// The source at `base`.
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
    /// The client for `url`, if it is to be asked.
    fn client(&self, url: &Url) -> Result<&Client, OriginError> {
        if url.origin() == self.base.origin() {
            return Ok(&self.web.open);
        }
        let is_public = match url.host() {
            Some(Host::Domain(name)) => !is_local(name),
            Some(Host::Ipv4(address)) => transfer::address::is_global(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => transfer::address::is_global(IpAddr::V6(address)),
            None => false,
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.scheme() != "https" || !is_public || has_user {
            let host = url.host_str().unwrap_or("a place without a host");
            return Err(OriginError::Forbidden(format!("{}://{host}", url.scheme())));
        }
        Ok(&self.web.guarded)
    }

    async fn append(&self, place: &str, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
        let mut url = join(&self.base, place)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(&url, into.len()).await?;
            let status = response.status();
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                let to = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                url = join(&url, to.ok_or(OriginError::Status(status.as_u16()))?)?;
                continue;
            }
            return match status {
                StatusCode::OK => {
                    into.clear();
                    self.drain(response, limit, into).await
                }
                StatusCode::PARTIAL_CONTENT if starts_at(&response, into.len()) => {
                    self.drain(response, limit, into).await
                }
                // What we have is not a part of what is there.
                StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                    into.clear();
                    Err(OriginError::Status(status.as_u16()))
                }
                // Storage services deny what is not there to those who may not list it.
                StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN => Err(OriginError::NotFound),
                _ => Err(OriginError::Status(status.as_u16())),
            };
        }
        Err(OriginError::Redirects)
    }

    async fn ask(&self, url: &Url, start: usize) -> Result<Response, OriginError> {
        let mut request = self.client(url)?.get(url.clone());
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let stall = self.web.stall;
        let response = timeout(stall, request.send()).await;
        response.map_err(|_| OriginError::Stalled(stall))?.map_err(failed)
    }

    async fn drain(&self, mut response: Response, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
        let stall = self.web.stall;
        // What is told to come has its place at once: a list that grows by doubling is there twice meanwhile.
        let told = response.content_length().filter(|told| *told <= limit);
        into.reserve_exact(told.and_then(|told| usize::try_from(told).ok()).unwrap_or(0));
        loop {
            let piece = timeout(stall, response.chunk())
                .await
                .map_err(|_| OriginError::Stalled(stall))?;
            let Some(piece) = piece.map_err(failed)? else {
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

fn join(base: &Url, place: &str) -> Result<Url, OriginError> {
    base.join(place)
        .map_err(|_| OriginError::Failed("a place that is no URL".to_owned()))
}

/// Names that mean this machine or the local network wherever they are looked up.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or("");
    !name.contains('.') || matches!(last, "localhost" | "local" | "internal" | "home" | "lan")
}

fn starts_at(response: &Response, start: usize) -> bool {
    let range = response
        .headers()
        .get(CONTENT_RANGE)
        .and_then(|value| value.to_str().ok());
    range.is_some_and(|range| {
        range
            .strip_prefix("bytes ")
            .is_some_and(|range| range.starts_with(&format!("{start}-")))
    })
}

fn failed(error: reqwest::Error) -> OriginError {
    // URLs can hold secrets, and causes end up in logs.
    let error = error.without_url();
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    // The innermost cause is the one that tells something.
    OriginError::Failed(cause.to_string())
}

/// A name has no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no public address")]
struct NoPublicAddress;

/// Looks names up and hands out public addresses only. The connection is made to what it hands out, so that a name
/// cannot lead elsewhere a moment later.
#[derive(Debug)]
struct PublicAddresses;

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found
                .filter(|address| transfer::address::is_global(address.ip()))
                .collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_that_lead_here_have_no_address() {
        let name = "localhost".parse().unwrap();
        let error = PublicAddresses.resolve(name).await.map(|_| ()).unwrap_err();
        assert!(error.is::<NoPublicAddress>(), "{error}");
    }

    #[test]
    fn local_names_are_known_by_their_look() {
        for name in [
            "localhost",
            "router",
            "nas.local",
            "LOCALHOST.",
            "a.localhost",
            "db.internal",
            "x.lan",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in ["example.org", "local.example.org", "plugins.svc.test"] {
            assert!(!is_local(name), "{name}");
        }
    }
}
