//! `engine::Resolver` implemented with plugins: which plugin claims a URL, and which files and links it gives for it.

use std::{
    collections::HashSet,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use accounts::{Secrets, Template};
use engine::{
    AccountKey, AccountLimits, AccountUse, Item, LeftOut, LeftOutKind, Link as EngineLink, List, ListedFile, LoginNeed,
    ResolveFuture, ResolveRequest, Resolved as Answer, Resolver, ResolverId, Unresolved,
};
use market::Identity;
use transfer::{Failure, FailureKind, FileName, GivenBy, SafeUrl, Secret, SegmentKey};
use url::Url;

use crate::{
    call::{Resolved, login::login_required},
    error::{CallError, CallFailure},
    install::Plugins,
    policy::{
        fault::{GuestError, PluginFault, Retry},
        grant::CallTarget,
    },
    runtime::{Entry, Facts, Link, Listing},
};

/// The most files of a listing; further pages are not requested.
const MAX_FILES: usize = 10_000;

/// The most pages of a listing.
const MAX_PAGES: usize = 100;

impl Resolver for Plugins {
    fn claim(&self, url: &SafeUrl) -> Option<ResolverId> {
        Self::claim(self, url.as_url()).map(|plugin| ResolverId::new(plugin.as_str()))
    }

    fn resolve(&self, request: ResolveRequest) -> ResolveFuture {
        let plugins = self.clone();
        Box::pin(async move { answer(&plugins, request).await })
    }
}

async fn answer(plugins: &Plugins, request: ResolveRequest) -> Result<Answer, Unresolved> {
    let asked = Asked {
        attempts: request.attempts,
        full_accounts: request.full_accounts,
    };
    let given = CallTarget {
        url: request.url.as_url().clone(),
        by_user: request.given_by == GivenBy::User,
        request: request.request,
        proxies: request.proxies,
    };
    let plugin: Identity = request.resolution.resolver.as_str().parse().map_err(|error| {
        let message = format!("the task names a plugin that cannot be: {error}");
        Failure::new(FailureKind::PluginUnavailable, message)
    })?;
    let Some(item) = request.resolution.item else {
        let error = match all_pages(plugins, given.clone()).await {
            Ok(Some(resolved)) => return describe(plugins, resolved, (&given, &asked)).await,
            // No plugin claims it: an ordinary URL, unless the plugin that claimed it before is disabled or
            // uninstalled.
            Ok(None) => plugins.unavailable(&plugin),
            Err(error) => Some(error),
        };
        return error.map_or(Ok(Answer::Pass), |error| Err(unresolved(plugins, &error)));
    };
    let link = link_of(plugins, &plugin, given.clone(), &item).await?;
    let made = self::link(&link, None)?;
    of_account(plugins, &plugin, (&link, made), (&given, &asked)).await
}

/// What a request says besides its URL.
struct Asked {
    attempts: u32,
    full_accounts: Vec<AccountKey>,
}

/// The answer with `made`, which was built from `link`: it waits if its account has no room, and has the account's secrets
/// otherwise.
async fn of_account(
    plugins: &Plugins,
    plugin: &Identity,
    (link, mut made): (&Link, EngineLink),
    (given, asked): (&CallTarget, &Asked),
) -> Result<Answer, Unresolved> {
    if let Some(slot) = &link.account {
        made.account = account_use(plugins, plugin, slot).await;
        if let Some(used) = made.account.take_if(|used| asked.full_accounts.contains(&used.account)) {
            return Ok(Answer::AccountFull(Box::new(used)));
        }
        if asked.attempts > 0 {
            // Sites refuse the links of an account whose session they have ended.
            let confirmed = plugins.0.confirm_login(plugin, slot, given).await;
            confirmed.map_err(|error| unresolved(plugins, &error))?;
        }
    }
    let found = with_secrets(plugins, plugin, link, made).await?;
    Ok(Answer::Link(Box::new(found)))
}

/// The account in a slot, and what the plugin's manifest says that its site allows.
async fn account_use(plugins: &Plugins, plugin: &Identity, slot: &str) -> Option<AccountUse> {
    let account = plugins.0.accounts.find(plugin, slot).await.ok()??;
    let loaded = plugins.0.registry.get(plugin)?;
    let slots = &loaded.manifest.as_ref()?.capabilities.login;
    let declared = slots.iter().find(|had| had.id == slot)?;
    Some(AccountUse {
        account: AccountKey::new(ResolverId::new(plugin.as_str()), slot, &account.id).ok()?,
        limits: AccountLimits {
            parallel: declared.max_parallel.and_then(NonZeroU32::new),
            daily_bytes: declared.daily_bytes.and_then(NonZeroU64::new),
            daily_downloads: declared.daily_files.and_then(NonZeroU32::new),
        },
    })
}

/// `made`, which was built from `link`, with the headers that hold secrets, and the cookies of its account. A secret that is
/// not bound to every host of the link fails the call: the transport may send the headers to any of them.
async fn with_secrets(
    plugins: &Plugins,
    plugin: &Identity,
    link: &Link,
    mut made: EngineLink,
) -> Result<EngineLink, Unresolved> {
    if link.secret_headers.is_empty() && link.account.is_none() {
        return Ok(made);
    }
    let refused = |error: String| Failure::new(FailureKind::Plugin, format!("plugin {plugin}: {error}"));
    let secrets = plugins.0.secrets_of(plugin);
    let mut secrets = secrets.ok_or_else(|| refused("it is not installed".to_owned()))?;
    if let Some(slot) = &link.account {
        let account = secrets
            .of_account(slot)
            .await
            .map_err(|error| refused(error.to_string()))?;
        secrets = account.ok_or_else(|| unresolved(plugins, &login_required(plugin, slot)))?;
    }
    // Headers of a link are sent with the requests for all its segments and for their decryption keys.
    let keys = link
        .segments
        .iter()
        .filter_map(|segment| match &*segment.cipher.as_ref()?.key {
            SegmentKey::At(url) => Some(url.as_url()),
            SegmentKey::Bytes(_) => None,
        });
    let segments = link.segments.iter().map(|segment| segment.url.as_url());
    let own = std::iter::once(&link.url).chain(&link.mirrors);
    let urls: Vec<_> = own.chain(segments).chain(keys).collect();
    for (name, template) in &link.secret_headers {
        let template = Template::parse(template).map_err(|error| refused(error.to_string()))?;
        let filled = secrets.fill(&template, &urls).await;
        let value = filled.map_err(|error| refused(error.to_string()))?;
        if value.expose().chars().any(char::is_control) {
            return Err(refused(format!("the secret for the field {name} cannot be sent")).into());
        }
        made.headers.retain(|(other, _)| other != name);
        made.headers.push((name.clone(), value));
    }
    if link.account.is_some() {
        let cookies = account_cookies(plugins, plugin, &secrets, &urls).await;
        if !cookies.is_empty() {
            made.headers.retain(|(other, _)| other != "cookie");
            made.headers
                .push(("cookie".to_owned(), Secret::new(cookies.join("; "))));
        }
    }
    Ok(made)
}

/// The cookies of an account that may be sent to all of `urls`.
async fn account_cookies(plugins: &Plugins, plugin: &Identity, secrets: &Secrets, urls: &[&Url]) -> Vec<String> {
    let loaded = plugins.0.registry.get(plugin);
    let running = loaded.as_ref().and_then(|loaded| loaded.running.as_ref().ok());
    let (Some(running), Some((first, others))) = (running, urls.split_first()) else {
        return Vec::new();
    };
    let mut cookies = running.guest.cookies_for(secrets.clone(), Url::clone(first)).await;
    let mut seen = HashSet::from([first.origin()]);
    for url in others {
        if seen.insert(url.origin()) {
            let theirs = running.guest.cookies_for(secrets.clone(), Url::clone(url)).await;
            cookies.retain(|cookie| theirs.contains(cookie));
        }
    }
    cookies
}

/// The listing of a URL with all its pages.
pub(crate) async fn all_pages(plugins: &Plugins, given: CallTarget) -> Result<Option<Resolved>, CallError> {
    let Some(mut resolved) = plugins.resolve(given.clone(), None).await? else {
        return Ok(None);
    };
    plugins.add_pages(&mut resolved, given).await?;
    Ok(Some(resolved))
}

impl Plugins {
    /// Adds the pages that follow the first one of a listing.
    pub(super) async fn add_pages(&self, resolved: &mut Resolved, given: CallTarget) -> Result<(), CallError> {
        for _ in 1..MAX_PAGES {
            let Some(token) = resolved.listing.next_page.take() else {
                break;
            };
            if resolved.listing.entries.len() >= MAX_FILES {
                resolved.listing.next_page = Some(token);
                break;
            }
            let page = self.more(&resolved.plugin, given.clone(), token).await?;
            resolved.listing.entries.extend(page.entries);
            resolved.listing.next_page = page.next_page;
            for left_out in page.left_out {
                left_out.add_to(&mut resolved.listing.left_out);
            }
        }
        if resolved.listing.next_page.take().is_some() {
            let (kind, name) = (LeftOutKind::TooManyFiles, String::new());
            LeftOut { kind, name, count: 0 }.add_to(&mut resolved.listing.left_out);
        }
        Ok(())
    }
}

/// A plugin that includes links in its listing need not implement `linkFor`.
async fn link_of(plugins: &Plugins, plugin: &Identity, given: CallTarget, item: &Item) -> Result<Link, Unresolved> {
    let variant = item.variant.as_deref().map(str::to_owned);
    let asked = plugins
        .link_for(plugin, given.clone(), item.id.to_string(), variant)
        .await;
    let error = match asked {
        Ok(link) => return Ok(link),
        Err(error) => error,
    };
    if !matches!(
        error.reason,
        CallFailure::Fault(PluginFault::Answer(GuestError::Unsupported(_)) | PluginFault::NotExported(_))
    ) {
        return Err(unresolved(plugins, &error));
    }
    let listed = all_pages(plugins, given).await;
    let listed = listed.map_err(|error| unresolved(plugins, &error))?;
    let listed = listed.filter(|listed| listed.plugin == *plugin);
    let link = listed.and_then(|listed| listed_link(listed.listing, item));
    let not_found = || Failure::new(FailureKind::NotFound, format!("the plugin no longer lists {item}"));
    Ok(link.ok_or_else(not_found)?)
}

fn listed_link(listing: Listing, item: &Item) -> Option<Link> {
    let entry = listing.entries.into_iter().find(|entry| *entry.id == *item.id)?;
    match &item.variant {
        None => entry.facts.link,
        Some(wanted) => {
            let variant = entry.variants.into_iter().find(|variant| *variant.id == **wanted)?;
            variant.facts.link
        }
    }
}

async fn describe(plugins: &Plugins, resolved: Resolved, request: (&CallTarget, &Asked)) -> Result<Answer, Unresolved> {
    let Resolved { plugin, mut listing } = resolved;
    if listing.password_prompt.is_some() && listing.entries.is_empty() {
        return Err(Failure::new(FailureKind::LoginRequired, "the share wants a password").into());
    }
    let mut left_out = std::mem::take(&mut listing.left_out);
    let mut wanted: Vec<_> = listing.entries.iter().filter(|entry| entry.is_selected()).collect();
    let surplus = wanted.len().saturating_sub(MAX_FILES);
    if surplus > 0 {
        wanted.truncate(MAX_FILES);
        let (kind, name, count) = (LeftOutKind::TooManyFiles, String::new(), surplus as u64);
        LeftOut { kind, name, count }.add_to(&mut left_out);
    }
    // Only a group can show what was left out.
    if left_out.is_empty()
        && let [only] = wanted[..]
        && let Some(found) = &only.default_facts().link
    {
        let made = link(found, Some(only))?;
        return of_account(plugins, &plugin, (found, made), request).await;
    }
    Ok(Answer::List(List {
        resolver: ResolverId::new(plugin.as_str()),
        files: wanted.into_iter().filter_map(listed_file).collect(),
        name: listing.title.unwrap_or_default(),
        left_out,
    }))
}

/// What the engine stores for an entry, to make a task of it. An entry whose id or name cannot be used is left out, so
/// that one bad entry does not fail the list; path components that sanitise to nothing (`..`, empty) are dropped.
fn listed_file(entry: &Entry) -> Option<ListedFile> {
    Some(ListedFile {
        url: None,
        item: Item::new(&entry.id, entry.default_variant().map(|variant| &*variant.id)).ok()?,
        name: FileName::sanitise_or_none(&entry.name)?,
        directories: entry
            .folder
            .iter()
            .filter_map(|part| FileName::sanitise_or_none(part))
            .collect(),
        size_bytes: entry.default_facts().size,
        checksum: entry.default_facts().strongest_checksum(),
    })
}

fn link(link: &Link, entry: Option<&Entry>) -> Result<EngineLink, Failure> {
    if let Some(kind) = &link.manifest {
        let message = format!("this version cannot put together a file from a list of the kind {kind}");
        return Err(Failure::new(FailureKind::UnsupportedScheme, message));
    }
    if link.audio.is_some() {
        let message = "this version cannot put sound and pictures of two links together";
        return Err(Failure::new(FailureKind::UnsupportedScheme, message));
    }
    let url = |url: &Url| {
        SafeUrl::parse(url.as_str()).map_err(|error| {
            Failure::new(
                FailureKind::Plugin,
                format!("the plugin gave an unusable link: {error}"),
            )
        })
    };
    let urls: Result<Vec<_>, _> = std::iter::once(&link.url).chain(&link.mirrors).map(url).collect();
    let facts = entry.map(Entry::default_facts);
    Ok(EngineLink {
        urls: urls?,
        headers: link
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
            .collect(),
        file_name: entry.and_then(|entry| FileName::sanitise_or_none(&entry.name)),
        promised_size: facts.and_then(|facts| facts.size),
        checksum: facts.and_then(Facts::strongest_checksum),
        is_single_use: link.is_single_use,
        is_whole_only: link.supports_ranges == Some(false),
        max_connections: link
            .max_connections
            .map(|most| u16::try_from(most).unwrap_or(u16::MAX).max(1)),
        segments: link.segments.as_slice().into(),
        account: None,
    })
}

/// The failure of a task whose plugin call failed, and the login after which the call may succeed.
fn unresolved(plugins: &Plugins, error: &CallError) -> Unresolved {
    let mut failure = failure(error);
    let login = match &error.reason {
        CallFailure::Fault(PluginFault::Answer(GuestError::LoginRequired(slot))) => {
            login_need(plugins, &error.plugin, slot.as_deref())
        }
        _ => None,
    };
    if login.is_some() {
        let message = failure.message;
        failure.message = format!(
            "{message}; it continues by itself after: svc plugin login {}",
            error.plugin
        );
    }
    Unresolved { failure, login }
}

/// A login in the slot that the plugin named, or in its first one. `None` if it has no such slot.
fn login_need(plugins: &Plugins, plugin: &Identity, named: Option<&str>) -> Option<LoginNeed> {
    let loaded = plugins.0.registry.get(plugin)?;
    let slots = &loaded.manifest.as_ref()?.capabilities.login;
    let slot = slots.iter().find(|slot| named.is_none_or(|named| slot.id == named))?;
    LoginNeed::new(ResolverId::new(plugin.as_str()), &slot.id, None).ok()
}

/// The failure of a task whose plugin call failed. Retries depend on its kind only, never on the message.
fn failure(error: &CallError) -> Failure {
    let kind = match &error.reason {
        CallFailure::Fault(PluginFault::Answer(answer)) => match answer {
            GuestError::LoginRequired(_) | GuestError::CaptchaRequired(_) => FailureKind::LoginRequired,
            GuestError::NotFound(_) => FailureKind::NotFound,
            GuestError::Gone(_) => FailureKind::Gone,
            GuestError::Forbidden(_) => FailureKind::Forbidden,
            GuestError::InvalidInput(_) => FailureKind::InvalidSource,
            GuestError::RateLimited(_) => FailureKind::Busy,
            GuestError::Network(_) => FailureKind::Network,
            GuestError::Upstream(500..) => FailureKind::ServerError,
            GuestError::Upstream(_) => FailureKind::UnexpectedStatus,
            GuestError::NotMatched
            | GuestError::Parse(_)
            | GuestError::Unsupported(_)
            | GuestError::Internal(_)
            | GuestError::Denied(_) => FailureKind::Plugin,
        },
        CallFailure::Fault(PluginFault::Overloaded | PluginFault::ToolBusy(_) | PluginFault::NoTurn { .. })
        | CallFailure::Resting(_)
        | CallFailure::Loading
        | CallFailure::Closed => FailureKind::Busy,
        CallFailure::Fault(_) => FailureKind::Plugin,
        CallFailure::Disabled
        | CallFailure::Tripped
        | CallFailure::Revoked(_)
        | CallFailure::ConsentPending
        | CallFailure::NotLoaded(_)
        | CallFailure::Incapable
        | CallFailure::NotInstalled => FailureKind::PluginUnavailable,
    };
    let mut message = error.to_string();
    if !error.grantable.is_empty() {
        let allow = |host: &String| format!("svc plugin allow {} {host}", error.plugin);
        let ways: Vec<_> = error.grantable.iter().map(allow).collect();
        message = format!("{message}; you can allow that, and resume: {}", ways.join("; "));
    }
    let mut failure = Failure::new(kind, message);
    failure.retry_after = match error.reason.retry() {
        Retry::Backoff(pause) => pause,
        Retry::Never | Retry::Once | Retry::AfterUser | Retry::NextPlugin => None::<Duration>,
    };
    failure
}
