//! `daemon.plugin.market*`: the plugins on offer, the market sources, and installing from them.

use jiff::Timestamp;
use plugin_host::{
    Identity, Permission, Plugins,
    market::{Adoption, Market, MarketError, Offer, SourceSummary, Trouble, TroubleKind, Unfit},
};
use protocol::{
    ErrorCode, MarketEntryDto, MarketInstallRequest, MarketInstalledDto, MarketRefreshRequest, MarketSourceAddRequest,
    MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, Method, Reason, Request, RpcError,
};

use crate::{
    call::{
        answer::{Answer, done, read, wrote},
        params::identity,
    },
    configuration::keys,
    refusal::{Refuse, chain, invalid, plugin},
    service::Service,
    view::plugin::{installed, revocation},
};

pub(super) async fn call(
    service: &Service,
    plugins: &Plugins,
    method: Method,
    request: &Request,
) -> Result<Answer, RpcError> {
    let market = plugins.market(service.proxies());
    match method {
        Method::PluginMarketList => {
            let updates_itself = service.configuration.is_on(keys::PLUGIN_AUTO_UPDATE);
            let offers = market.list().await.refused()?;
            let entries: Vec<_> = offers.into_iter().map(|offer| entry(offer, updates_itself)).collect();
            read(&entries)
        }
        Method::PluginMarketInstall => install(plugins, &market, request.params()?).await,
        Method::PluginMarketRefresh => {
            let params: MarketRefreshRequest = request.params()?;
            sources(market.refresh(params.source.as_deref()).await.refused()?, wrote)
        }
        Method::PluginMarketSourceList => sources(market.sources(), read),
        Method::PluginMarketSourceAdd => {
            let params: MarketSourceAddRequest = request.params()?;
            let adopted = market.adopt(&params.link, params.fingerprint.as_deref()).await;
            wrote(&adoption(adopted.refused()?))
        }
        Method::PluginMarketSourceRemove => {
            let params: MarketSourceParams = request.params()?;
            market.remove(&params.source).await.refused()?;
            done()
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

async fn install(plugins: &Plugins, market: &Market, params: MarketInstallRequest) -> Result<Answer, RpcError> {
    let plugin: Identity = identity(&params.plugin_id)
        .map_err(|_| not_in_market(format!("no source has the plugin {}", params.plugin_id)))?;
    let version = params.version.filter(|version| !version.is_empty());
    let version = version.map(|version| version.parse()).transpose();
    let version = version.map_err(|_| invalid("version", "version must be a semantic version"))?;
    let source = params.source.filter(|source| !source.is_empty());
    let mut done = market.install(plugin, version, source).await.refused()?;
    if let Some(agreed) = params.agreed
        && let Some(pending) = plugins.get(&done.identity).and_then(|summary| summary.pending)
        && Some(pending.digest) == done.pending_consent
        && !pending.has_other_author
        && pending.added.iter().all(|asked| agreed.contains(&asked.to_string()))
    {
        plugins.consent(done.identity.clone(), pending.digest).await.refused()?;
        done.pending_consent = None;
    }
    wrote(&installed(&done))
}

fn not_in_market(message: String) -> RpcError {
    RpcError::application(ErrorCode::NotFound, message)
        .with_field("pluginId")
        .with_reason(Reason::PluginNotInMarket)
}

fn entry(offer: Offer, updates_itself: bool) -> MarketEntryDto {
    let text = |timestamp: Timestamp| timestamp.to_string();
    MarketEntryDto {
        plugin_id: offer.identity.to_string(),
        version: offer.version.to_string(),
        sequence: offer.seq,
        content_hash: format!("sha256:{}", offer.digest),
        min_app_version: offer.min_host.map(|version| version.to_string()).unwrap_or_default(),
        name: offer.name,
        description: offer.description,
        author: offer.author,
        homepage: offer.homepage.unwrap_or_default(),
        mirrors: offer.mirrors,
        publish_time: offer.published.map(text).unwrap_or_default(),
        yanked: offer.unfit.unwrap_or_default(),
        tags: offer.tags,
        permissions: offer.permissions.iter().map(Permission::to_string).collect(),
        source: offer.source.name(),
        signed_by: offer.signed_by.map(|key| key.fingerprint()),
        installed: offer.installed.map(|(version, pinned)| MarketInstalledDto {
            version: version.to_string(),
            pinned,
        }),
        update_available: offer.is_update,
        updates_at_ms: offer
            .updates_at
            .filter(|_| updates_itself)
            .map(Timestamp::as_millisecond),
        stale: offer.is_stale,
        revoked: offer.revocation.as_ref().map(revocation),
    }
}

fn sources(
    sources: Vec<SourceSummary>,
    answer: fn(&Vec<MarketSourceDto>) -> Result<Answer, RpcError>,
) -> Result<Answer, RpcError> {
    answer(&sources.into_iter().map(source).collect())
}

fn source(summary: SourceSummary) -> MarketSourceDto {
    let status = match (summary.is_fresh, &summary.trouble) {
        (false, _) => "stale",
        (true, Some(_)) => "failing",
        (true, None) => "fresh",
    };
    let (url, key) = summary.place.unzip();
    MarketSourceDto {
        id: summary.source.name(),
        name: summary.name,
        url: url.map(|url| url.to_string()).unwrap_or_default(),
        fingerprint: key.map(|key| key.fingerprint()).unwrap_or_default(),
        status: status.to_owned(),
        plugins: u32::try_from(summary.plugins).unwrap_or(u32::MAX),
        added_at_ms: summary.times.map(|times| times.added.as_millisecond()),
        refreshed_at_ms: summary.times.map(|times| times.refreshed.as_millisecond()),
        valid_until_ms: summary.times.map(|times| times.until.as_millisecond()),
        error_reason: summary
            .trouble
            .as_ref()
            .map(|trouble| reason(trouble.kind).name().to_owned()),
        error: summary.trouble.map(|trouble| trouble.message),
    }
}

fn adoption(adoption: Adoption) -> MarketSourceAddResponse {
    MarketSourceAddResponse {
        url: adoption.link.url.to_string(),
        fingerprint: adoption.link.key.fingerprint(),
        source: adoption.source.map(source),
    }
}

fn reason(kind: TroubleKind) -> Reason {
    match kind {
        TroubleKind::Unreachable => Reason::MarketUnreachable,
        TroubleKind::Invalid => Reason::MarketIndexInvalid,
        TroubleKind::Rollback => Reason::MarketIndexRollback,
    }
}

impl<T> Refuse<T> for Result<T, MarketError> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| refusal(&error))
    }
}

fn refusal(error: &MarketError) -> RpcError {
    let message = chain(error);
    let refused = |code| RpcError::application(code, message.clone());
    let of_trouble = |trouble: Option<&Trouble>| {
        let kind = trouble.map_or(TroubleKind::Unreachable, |trouble| trouble.kind);
        refused(ErrorCode::Unavailable).with_reason(reason(kind))
    };
    match error {
        MarketError::NotInMarket(_) | MarketError::Unfit(Unfit::None | Unfit::OldKey(_)) => {
            not_in_market(message.clone())
        }
        MarketError::Unfit(Unfit::Yanked(..) | Unfit::Revoked(..)) => {
            refused(ErrorCode::Conflict).with_reason(Reason::PluginYanked)
        }
        MarketError::Unfit(Unfit::Host(..) | Unfit::Abi(..)) => refused(ErrorCode::Unsupported),
        MarketError::VersionChanged { .. } => refused(ErrorCode::Conflict).with_reason(Reason::MarketVersionChanged),
        MarketError::UnknownSource(_) => refused(ErrorCode::NotFound).with_field("source"),
        MarketError::Ambiguous { .. } => refused(ErrorCode::Conflict).with_field("source"),
        MarketError::Older { .. } => refused(ErrorCode::Conflict).with_field("version"),
        MarketError::Stale { trouble, .. } => of_trouble(trouble.as_ref()),
        MarketError::Refresh(trouble) => of_trouble(Some(trouble)),
        MarketError::Download(_) if error.is_other_package() => {
            refused(ErrorCode::InvalidArgument).with_reason(Reason::PluginPackageInvalid)
        }
        MarketError::Download(_) if error.is_too_large() => {
            refused(ErrorCode::InvalidArgument).with_reason(Reason::PluginPackageTooLarge)
        }
        MarketError::Download(_) | MarketError::TooSlow(_) => {
            refused(ErrorCode::Unavailable).with_reason(Reason::PluginDownloadFailed)
        }
        MarketError::Link(_) => invalid("link", message.clone()),
        MarketError::Fingerprint(_) => refused(ErrorCode::Conflict).with_field("fingerprint"),
        MarketError::SourceExists(_)
        | MarketError::ReservedSource(_)
        | MarketError::TooManySources(_)
        | MarketError::SourceInUse { .. }
        | MarketError::BundledSource => refused(ErrorCode::Conflict),
        MarketError::Plugin(error) => plugin(error),
    }
}
