//! Fetches feeds over HTTP: conditionally, within limits of time and size, and only from addresses that the user's URL
//! leads to.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use egress::{ClientConfig, HttpClient, Names, Pins, Redirects, Refusal, Request, SendError, client::ClientError};
use engine::{Engine, Proxies, ProxyChoice, SystemProxy};
use transfer::{Credentials, GivenBy, RequestOptions, SafeUrl, Secret};
use url::Url;

use crate::{
    feed::{self, Feed, FeedError, MAX_FEED_BYTES},
    model::source::{SourceSpec, Validators},
    provider::{ProviderError, ProviderRequest, Providers},
    state::{Fetch, Fetched},
};

/// For one feed, redirects and the page that names it included.
const TIMEOUT: Duration = Duration::from_secs(30);

/// For establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Feeds move; browsers follow twenty.
const MAX_REDIRECTS: u32 = 10;

/// A host is asked once in minutes, so no connection is worth keeping.
const IDLE_CONNECTIONS: usize = 0;

const ACCEPT: &str = "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, \
                      application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, text/html;q=0.5, */*;q=0.1";

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The server's answer is an error. The words are those that existing clients know.
    #[error("HTTP {status}")]
    Status { status: u16, retry_after: Option<Duration> },
    /// A redirect was not followed.
    #[error("the feed's server redirects to a URL that is not followed: {0}")]
    Redirect(Refusal),
    /// No answer, or an incomplete one.
    #[error("the feed cannot be fetched: {0}")]
    Send(#[from] SendError),
    /// The answer took too long.
    #[error("the feed did not arrive within {} s", TIMEOUT.as_secs())]
    TimedOut,
    /// The answer is no feed.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The plugin that reads it has none.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Reading it ended unexpectedly.
    #[error("the feed cannot be read")]
    Reader,
    /// A URL that a request cannot be sent to.
    #[error("the feed's server redirects to a URL that cannot be used")]
    Url,
}

/// A feed and where it was found.
pub(crate) struct Found {
    pub(crate) url: SafeUrl,
    pub(crate) feed: Feed,
    pub(crate) validators: Validators,
}

enum Answer {
    NotModified,
    Document {
        bytes: Vec<u8>,
        url: SafeUrl,
        content_type: String,
        validators: Validators,
    },
}

/// The client for feeds.
#[derive(Clone)]
pub(crate) struct Fetcher {
    client: HttpClient,
    engine: Engine,
    system_proxy: Arc<SystemProxy>,
    pub(crate) providers: Arc<dyn Providers>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetcher")
    }
}

impl Fetcher {
    pub(crate) fn new(
        engine: Engine,
        system_proxy: Arc<SystemProxy>,
        providers: Arc<dyn Providers>,
    ) -> Result<Self, ClientError> {
        let client = HttpClient::new(ClientConfig {
            user_agent: egress::USER_AGENT.to_owned(),
            tls: egress::tls::trusting_system(),
            connect_timeout: CONNECT_TIMEOUT,
            idle_connections: IDLE_CONNECTIONS,
            names: Names::default(),
        })?;
        Ok(Self {
            client,
            engine,
            system_proxy,
            providers,
        })
    }

    /// Fetches a source's feed for the state machine.
    pub(crate) async fn fetch(&self, fetch: &Fetch) -> Fetched {
        let (spec, known) = (&fetch.spec, fetch.feed_url.as_ref());
        let fetching = async {
            if spec.settings().provider_id.is_empty() {
                self.try_fetch(spec, known, &fetch.validators).await
            } else {
                self.provided(spec, fetch.since, &fetch.validators).await
            }
        };
        let fetched = match tokio::time::timeout(TIMEOUT, fetching).await {
            Ok(fetched) => fetched,
            Err(_) => Err(FetchError::TimedOut),
        };
        match fetched {
            Ok(None) => Fetched::NotModified,
            Ok(Some(found)) => {
                let moved = (found.url != *spec.url()).then_some(found.url);
                Fetched::Feed(Box::new(found.feed), found.validators, moved)
            }
            Err(error) => {
                let retry_after = match &error {
                    FetchError::Status { retry_after, .. } => *retry_after,
                    FetchError::Provider(error) => error.retry_after,
                    _ => None,
                };
                // A server chooses parts of the text.
                Fetched::Failed(feed::one_line(&error.to_string()), retry_after)
            }
        }
    }

    /// Fetches a feed once, for a dry run.
    pub(crate) async fn fetch_once(&self, spec: &SourceSpec) -> Result<Found, FetchError> {
        let unconditional = Validators::default();
        let looking = async {
            if spec.settings().provider_id.is_empty() {
                self.try_fetch(spec, None, &unconditional).await
            } else {
                self.provided(spec, None, &unconditional).await
            }
        };
        let looked = tokio::time::timeout(TIMEOUT, looking).await;
        let found = looked.unwrap_or(Err(FetchError::TimedOut))?;
        // The request was not conditional, so an answer of 304 is an error of the server.
        found.ok_or(FetchError::Status {
            status: 304,
            retry_after: None,
        })
    }

    /// The feed that the source's plugin reads.
    async fn provided(
        &self,
        spec: &SourceSpec,
        since: Option<jiff::Timestamp>,
        validators: &Validators,
    ) -> Result<Option<Found>, FetchError> {
        let settings = spec.settings();
        let provided = self.providers.fetch(ProviderRequest {
            provider: settings.provider_id.clone(),
            config: settings.provider_config.clone(),
            url: spec.url().without_login(),
            since,
            etag: validators.etag.clone(),
            request: RequestOptions {
                user_agent: self.user_agent(spec),
                cookies: Secret::new(&settings.cookies),
                credentials: self.login(spec, spec.url()).await,
                ..RequestOptions::default()
            },
            proxies: self.proxies(spec),
        });
        Ok(provided.await?.map(|provided| Found {
            url: spec.url().clone(),
            validators: Validators {
                etag: provided.etag.clone(),
                last_modified: String::new(),
            },
            feed: provided.into(),
        }))
    }

    /// The feed at `known`, or where the source's URL leads: itself, or the first feed that the page there names.
    async fn try_fetch(
        &self,
        spec: &SourceSpec,
        known: Option<&SafeUrl>,
        validators: &Validators,
    ) -> Result<Option<Found>, FetchError> {
        if let Some(known) = known {
            match self.read(spec, known, validators).await {
                // The page may name another one by now.
                Err(FetchError::Status { status: 404 | 410, .. } | FetchError::Feed(_)) => {}
                read => {
                    return Ok(read?.map(|found| Found {
                        url: known.clone(),
                        ..found
                    }));
                }
            }
        }
        let unconditional = Validators::default();
        let validators = if known.is_some() { &unconditional } else { validators };
        let (bytes, url) = match self.get(spec, spec.url(), validators).await? {
            Answer::NotModified => return Ok(None),
            Answer::Document {
                bytes,
                url,
                content_type,
                validators,
            } => match parse(bytes, url.clone(), content_type).await {
                Ok(feed) => {
                    return Ok(Some(Found {
                        url: spec.url().clone(),
                        feed,
                        validators,
                    }));
                }
                Err((FetchError::Feed(FeedError::WebPage), bytes)) => (bytes, url),
                Err((error, _)) => return Err(error),
            },
        };
        let named = feed::discover(&bytes, &url);
        let first = named.into_iter().next().ok_or(FeedError::WebPage)?;
        self.read(spec, &first, &unconditional)
            .await
            .map(|read| read.map(|found| Found { url: first, ..found }))
    }

    async fn read(
        &self,
        spec: &SourceSpec,
        url: &SafeUrl,
        validators: &Validators,
    ) -> Result<Option<Found>, FetchError> {
        match self.get(spec, url, validators).await? {
            Answer::NotModified => Ok(None),
            Answer::Document {
                bytes,
                url,
                content_type,
                validators,
            } => {
                let feed = parse(bytes, url.clone(), content_type)
                    .await
                    .map_err(|(error, _)| error)?;
                Ok(Some(Found { url, feed, validators }))
            }
        }
    }

    async fn get(&self, spec: &SourceSpec, first: &SafeUrl, validators: &Validators) -> Result<Answer, FetchError> {
        let proxies = self.proxies(spec);
        let (pins, mut redirects) = (Pins::default(), Redirects::at_most(MAX_REDIRECTS).with_plain_targets());
        let mut url = first.clone();
        loop {
            let (headers, bare) = self.headers(spec, &url, validators).await;
            let proxy = proxies.for_url(&url);
            let request = Request {
                method: "GET",
                reach: egress::reach::of(&GivenBy::User, spec.url().as_url(), &bare),
                url: bare,
                headers: &headers,
                body: Bytes::new(),
                pins: &pins,
                proxy: proxy.as_ref(),
            };
            let mut response = self.client.send(request).await?;
            let status = response.status();
            let header = |name| response.header(name).unwrap_or_default().to_owned();
            if Redirects::is_redirect(status) {
                let next = redirects
                    .follow(url.as_url(), &header("location"))
                    .map_err(FetchError::Redirect)?;
                url = SafeUrl::parse(next.as_str())
                    .map_err(|_| FetchError::Url)?
                    .without_login();
                continue;
            }
            if status == 304 {
                return Ok(Answer::NotModified);
            }
            if !(200..300).contains(&status) {
                let retry_after = transfer::retry_after(&header("retry-after"), SystemTime::now());
                return Err(FetchError::Status { status, retry_after });
            }
            let validators = Validators {
                etag: header("etag"),
                last_modified: header("last-modified"),
            };
            let content_type = header("content-type");
            if response
                .content_length()
                .is_some_and(|length| length > MAX_FEED_BYTES as u64)
            {
                return Err(FeedError::TooLarge.into());
            }
            let mut bytes = Vec::new();
            while let Some(piece) = response.chunk().await? {
                if bytes.len() + piece.len() > MAX_FEED_BYTES {
                    return Err(FeedError::TooLarge.into());
                }
                bytes.extend_from_slice(&piece);
            }
            return Ok(Answer::Document {
                bytes,
                url,
                content_type,
                validators,
            });
        }
    }

    fn proxies(&self, spec: &SourceSpec) -> Proxies {
        let choice = spec
            .proxy()
            .cloned()
            .map_or(ProxyChoice::Settings, ProxyChoice::Through);
        Proxies::new(choice, self.engine.settings().settings, Arc::clone(&self.system_proxy))
    }

    /// The source's own login at its own origin, or else the one that is stored for the site.
    async fn login(&self, spec: &SourceSpec, url: &SafeUrl) -> Option<Credentials> {
        let is_own = url.origin() == spec.url().origin();
        let own = if is_own { spec.url().credentials() } else { None };
        match own {
            Some(login) => Some(login),
            None => self.engine.site_match(url).await.ok().flatten(),
        }
    }

    fn user_agent(&self, spec: &SourceSpec) -> String {
        let own = &spec.settings().user_agent;
        if own.is_empty() {
            self.engine.settings().settings.global_user_agent.clone()
        } else {
            own.clone()
        }
    }

    /// The headers of a request, and its URL without a login. Secrets of the source go to its own origin only; another
    /// origin gets the login that is stored for it, or none.
    async fn headers(&self, spec: &SourceSpec, url: &SafeUrl, validators: &Validators) -> (Vec<(String, String)>, Url) {
        let settings = spec.settings();
        let is_own = url.origin() == spec.url().origin();
        let (login, user_agent) = (self.login(spec, url).await, self.user_agent(spec));
        let cookies = if is_own { &*settings.cookies } else { "" };
        let fields = [
            ("accept", ACCEPT),
            ("user-agent", &user_agent),
            ("cookie", cookies),
            ("if-none-match", &validators.etag),
            ("if-modified-since", &validators.last_modified),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let mut headers: Vec<_> = given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        headers.extend(login.map(|login| ("authorization".to_owned(), login.basic())));
        (headers, url.without_login().as_url().clone())
    }
}

/// Reads a document on a thread that may be kept busy. Gives the bytes back if they are no feed.
async fn parse(bytes: Vec<u8>, url: SafeUrl, content_type: String) -> Result<Feed, (FetchError, Vec<u8>)> {
    let reading = tokio::task::spawn_blocking(move || {
        let read = feed::read(&bytes, &url, &content_type);
        read.map_err(|error| (error.into(), bytes))
    });
    reading.await.unwrap_or(Err((FetchError::Reader, Vec::new())))
}
