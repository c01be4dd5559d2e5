//! The public handle of the subscriptions. It holds channels only: all state belongs to the driver.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use engine::{Engine, SystemProxy};
use protocol::{
    RssImportFailure, RssImportResponse, RssItemActionRequest, RssItemDto, RssSourceDto, RssValidateRequest,
    RssValidateResponse,
};
use store::{Store, Vault};
use tokio::sync::{broadcast, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    driver::{self, Change, Channels, Error, Message, Parts},
    feed,
    fetch::{Fetcher, Found},
    model::source::{SourceId, SourceSpec},
    opml,
    provider::{self, NoProviders, Providers},
    rows::LoadError,
    rule::InvalidField,
    state::{Action, Command, CommandError, State},
};

/// What the subscriptions need.
#[derive(Debug)]
pub struct Config {
    /// Opened with [`crate::MIGRATIONS`].
    pub store: Store,
    /// Seals what may hold a password.
    pub vault: Arc<Vault>,
    /// Takes the downloads, and has the settings and logins.
    pub engine: Engine,
    /// The proxies of the environment.
    pub system_proxy: Arc<SystemProxy>,
    /// Plugins that read feeds; `None` where no plugins run.
    pub providers: Option<Arc<dyn Providers>>,
    /// Owns what is spawned.
    pub tracker: TaskTracker,
    /// Cancelled to stop.
    pub stop: CancellationToken,
}

/// Why the subscriptions do not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// They cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no client for feeds.
    #[error("cannot set up HTTP for RSS feeds")]
    Http(#[source] egress::client::ClientError),
}

/// The running subscriptions. Clones share them. A command resolves once what it changed is on the disk.
#[derive(Debug, Clone)]
pub struct Subscriptions {
    channels: Channels,
    fetcher: Fetcher,
}

impl Subscriptions {
    /// Reads what the store holds and starts.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let providers = config.providers.unwrap_or_else(|| Arc::new(NoProviders));
        let fetcher = Fetcher::new(config.engine.clone(), config.system_proxy, providers);
        let fetcher = fetcher.map_err(StartError::Http)?;
        let channels = driver::start(Parts {
            store: config.store,
            vault: config.vault,
            engine: config.engine,
            fetcher: fetcher.clone(),
            tracker: config.tracker,
            stop: config.stop,
        })
        .await?;
        Ok(Self { channels, fetcher })
    }

    /// Subscribes to changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.channels.changes.subscribe()
    }

    /// How often the items of each source changed since the start; sources without changes are left out.
    pub fn revisions(&self) -> Arc<BTreeMap<SourceId, u64>> {
        Arc::clone(&self.channels.revisions.borrow())
    }

    /// All sources, in their order.
    pub async fn sources(&self) -> Result<Vec<RssSourceDto>, Error> {
        let mut sources = self.read(State::sources).await?;
        for source in sources.iter_mut().filter(|source| !source.provider_id.is_empty()) {
            provider::mask(source, &*self.fetcher.providers);
        }
        Ok(sources)
    }

    /// The items of a source, newest first.
    pub async fn items(&self, source: SourceId) -> Result<Vec<RssItemDto>, Error> {
        Ok(self.read(move |state| state.items(source)).await??)
    }

    /// Adds a source; it is fetched at once.
    pub async fn create(&self, settings: RssSourceDto) -> Result<SourceId, Error> {
        let id = SourceId(Uuid::new_v4());
        self.check_provider(&SourceSpec::new(settings.clone(), None).map_err(CommandError::InvalidField)?)?;
        self.command(Command::Add(id, Box::new(settings))).await.map(|()| id)
    }

    /// Replaces what is said of a source.
    pub async fn update(&self, source: SourceId, settings: RssSourceDto) -> Result<(), Error> {
        let before = self.read(move |state| state.spec(source)).await?;
        let spec = SourceSpec::new(settings.clone(), before.as_ref()).map_err(CommandError::InvalidField)?;
        if before.is_some() {
            self.check_provider(&spec)?;
        }
        self.command(Command::Update(source, Box::new(settings))).await
    }

    /// Deletes a source with its items. Its tasks stay.
    pub async fn delete(&self, source: SourceId) -> Result<(), Error> {
        self.command(Command::Delete(source)).await
    }

    /// Fetches a source now. Succeeds if it is being fetched already.
    pub async fn refresh(&self, source: SourceId) -> Result<(), Error> {
        self.command(Command::Refresh(source)).await
    }

    /// Acts on an item, or with `readAll` on all new items of the source.
    pub async fn act(&self, source: SourceId, request: RssItemActionRequest) -> Result<(), Error> {
        let action = match &*request.action {
            "download" => Action::Download,
            "ignore" => Action::Ignore,
            "read" => Action::Read,
            "readAll" => return self.command(Command::ReadAll(source)).await,
            _ => {
                let reason = "an action is one of download, ignore, read and readAll";
                return Err(CommandError::InvalidField(InvalidField::new("action", reason)).into());
            }
        };
        self.command(Command::Act(source, request.guid, action)).await
    }

    /// What a source would do with a feed, without adding it; or, without a URL, what other rules would have done with the
    /// stored items of a source. A feed that cannot be fetched is an answer, too.
    pub async fn validate(&self, request: RssValidateRequest) -> Result<RssValidateResponse, Error> {
        let stored = request
            .source
            .as_ref()
            .and_then(|source| parse_id(&source.source_id).ok());
        let is_history = request.url.trim().is_empty() && stored.is_some();
        let before = match stored {
            Some(id) => self.read(move |state| state.spec(id)).await?,
            None => None,
        };
        let spec = tried(request, before.as_ref()).map_err(CommandError::InvalidField)?;
        self.check_provider(&spec)?;
        if let Some(id) = stored.filter(|_| is_history) {
            let url = spec.url().to_string();
            let tried = move |state: &State| (state.items(id).map(drop), state.preview_history(id, &spec));
            let (known, items) = self.read(tried).await?;
            known?;
            return Ok(RssValidateResponse {
                url,
                items,
                ..RssValidateResponse::default()
            });
        }
        match self.fetcher.fetch_once(&spec).await {
            Ok(Found { url, feed, .. }) => {
                let feed_title = feed.title.clone();
                let items = self.read(move |state| state.preview(&spec, &feed)).await?;
                Ok(RssValidateResponse {
                    url: url.to_string(),
                    feed_title,
                    items,
                    error: String::new(),
                })
            }
            Err(error) => Ok(RssValidateResponse {
                url: spec.url().to_string(),
                error: feed::one_line(&error.to_string()),
                ..RssValidateResponse::default()
            }),
        }
    }

    /// Adds the sources of an OPML document that are not there yet, each as [`Subscriptions::create`] does but without
    /// downloads by itself. One that cannot be used does not keep the others out.
    pub async fn import(&self, document: &[u8]) -> Result<RssImportResponse, Error> {
        let document = document.to_vec();
        let reading = tokio::task::spawn_blocking(move || opml::read(&document));
        let listed = reading
            .await
            .map_err(|_| Error::Closed)?
            .map_err(|error| CommandError::InvalidField(InvalidField::new("document", error.to_string())))?;
        let known: HashSet<_> = self.read(State::urls).await?;
        let mut response = RssImportResponse::default();
        for source in listed {
            let (name, url) = (source.name.clone(), crate::model::source::shown(&source.url));
            if known.contains(&url) {
                response.known += 1;
                continue;
            }
            match self.create(source).await {
                Ok(id) => response.source_ids.push(id.to_string()),
                Err(Error::Refused(CommandError::InvalidField(refused))) => response.failed.push(RssImportFailure {
                    name,
                    url,
                    error: refused.to_string(),
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(response)
    }

    /// All sources as an OPML document, without secrets.
    pub async fn export(&self) -> Result<String, Error> {
        self.sources().await.map(|sources| opml::write(&sources))
    }

    fn check_provider(&self, spec: &SourceSpec) -> Result<(), CommandError> {
        let settings = spec.settings();
        if settings.provider_id.is_empty() {
            return Ok(());
        }
        let providers = &self.fetcher.providers;
        Ok(providers.check(&settings.provider_id, spec.url(), &settings.provider_config)?)
    }

    async fn command(&self, command: Command) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        let sent = self.channels.messages.send(Message::Command(command, reply)).await;
        sent.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    async fn read<T: Send + 'static>(&self, look: impl FnOnce(&State) -> T + Send + 'static) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |state: &State| {
            let _nobody_waits = reply.send(look(state));
        });
        let sent = self.channels.messages.send(Message::Read(look)).await;
        sent.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)
    }
}

/// The id of a source.
pub fn parse_id(text: &str) -> Result<SourceId, InvalidField> {
    let id = Uuid::try_parse(text).map(SourceId);
    id.map_err(|_| InvalidField::new("sourceId", "the id of an RSS source is a UUID"))
}

/// The source that a dry run tries. Without a source of its own it takes everything, to show what there is.
fn tried(request: RssValidateRequest, before: Option<&SourceSpec>) -> Result<SourceSpec, InvalidField> {
    let RssValidateRequest {
        url,
        cookies,
        user_agent,
        proxy_url,
        source,
    } = request;
    let mut settings = source.unwrap_or_default();
    for (field, value) in [
        (&mut settings.url, url),
        (&mut settings.cookies, cookies),
        (&mut settings.user_agent, user_agent),
        (&mut settings.proxy_url, proxy_url),
    ] {
        if !value.trim().is_empty() {
            *field = value;
        }
    }
    if settings.url.trim().is_empty() {
        match before {
            Some(before) => before.settings().url.clone_into(&mut settings.url),
            None => return Err(InvalidField::new("url", "url is required")),
        }
    }
    // Nothing is downloaded, so that nothing has to be confirmed.
    settings.download_all = true;
    SourceSpec::new(settings, before)
}
