//! Sources: what users say of them, checked, and what happened to them.

use std::{fmt, path::Path, time::Duration};

use jiff::Timestamp;
use transfer::SafeUrl;
use uuid::Uuid;

use crate::{
    feed::Hints,
    rule::{InvalidField, Rules},
};
use protocol::RssSourceDto;

/// The most sources.
pub const MAX_SOURCES: usize = 10_000;

/// Minutes between fetches where a source does not say.
const DEFAULT_INTERVAL_MINUTES: u32 = 30;

/// The longest interval: a week.
const MAX_INTERVAL_MINUTES: u32 = 7 * 24 * 60;

/// Downloads per fetch where a source does not say, and the most.
const DEFAULT_PER_FETCH: u32 = 20;
const MAX_PER_FETCH: u32 = 100;

/// The longest value of any other text field, in bytes.
const MAX_FIELD_BYTES: usize = 4096;

/// Identifies a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub Uuid);

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What users say of a source, checked. Only made by [`SourceSpec::new`].
#[derive(Debug, Clone)]
pub struct SourceSpec {
    settings: RssSourceDto,
    url: SafeUrl,
    proxy: Option<SafeUrl>,
    rules: Rules,
}

impl PartialEq for SourceSpec {
    /// Everything else follows from the settings.
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl SourceSpec {
    /// Checks what a request says. Runtime fields are dropped; secrets that are shown masked stay those of `before`.
    pub fn new(mut settings: RssSourceDto, before: Option<&Self>) -> Result<Self, InvalidField> {
        if let Some(before) = before {
            restore_secrets(&mut settings, before)?;
        }
        settings.position = before.map_or(0, |before| before.settings.position);
        Self::stored(settings)
    }

    /// Checks what was stored.
    pub(crate) fn stored(settings: RssSourceDto) -> Result<Self, InvalidField> {
        if settings.url.trim().is_empty() {
            let reason = "is empty: give the URL of a feed, or of a web page that names one";
            return Err(InvalidField::new("url", reason));
        }
        let url = SafeUrl::parse(&settings.url).map_err(|error| InvalidField::new("url", error.to_string()))?;
        if url.as_url().password() == Some(protocol::MASKED) {
            let reason = "its password is masked: give it in full";
            return Err(InvalidField::new("url", reason));
        }
        let is_plain = settings.provider_id.is_empty();
        if is_plain && !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidField::new("url", "a feed is read from an http or https URL"));
        }
        let proxy = match settings.proxy_url.trim() {
            "" => None,
            text => Some(SafeUrl::parse(text).map_err(|error| InvalidField::new("proxyUrl", error.to_string()))?),
        };
        if proxy
            .as_ref()
            .is_some_and(|proxy| proxy.as_url().password() == Some(protocol::MASKED))
        {
            let reason = "its password is masked: give it in full";
            return Err(InvalidField::new("proxyUrl", reason));
        }
        check(&settings)?;
        let rules = Rules::compile(&settings)?;
        if settings.auto_download && rules.include_everything() && !settings.download_all {
            let reason = "every new item of this feed would be downloaded: set includePattern, set autoDownload to \
                          false, or confirm with downloadAll";
            return Err(InvalidField::new("downloadAll", reason));
        }
        Ok(Self {
            settings: without_runtime(settings),
            url,
            proxy,
            rules,
        })
    }

    /// At another place in the list of sources.
    pub(crate) fn at(mut self, position: u32) -> Self {
        self.settings.position = position;
        self
    }

    /// As on the wire, secrets included, for the database.
    pub fn settings(&self) -> &RssSourceDto {
        &self.settings
    }

    /// Where it is.
    pub fn url(&self) -> &SafeUrl {
        &self.url
    }

    /// Its own proxy.
    pub fn proxy(&self) -> Option<&SafeUrl> {
        self.proxy.as_ref()
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The least time between two fetches.
    pub fn interval(&self) -> Duration {
        let minutes = self.settings.interval_minutes;
        let minutes = if minutes == 0 {
            DEFAULT_INTERVAL_MINUTES
        } else {
            minutes
        };
        Duration::from_secs(u64::from(minutes) * 60)
    }

    /// The most downloads that one fetch begins.
    pub fn per_fetch(&self) -> usize {
        let most = self.settings.max_per_fetch;
        usize::try_from(if most == 0 { DEFAULT_PER_FETCH } else { most }).unwrap_or(usize::MAX)
    }

    /// Whether what its rules take is downloaded without being asked.
    pub fn downloads(&self) -> bool {
        self.settings.enabled && self.settings.auto_download
    }

    /// Whether the other one reads the same feed.
    pub fn is_same_feed(&self, other: &Self) -> bool {
        self.url == other.url
            && self.settings.provider_id == other.settings.provider_id
            && self.settings.provider_config == other.settings.provider_config
    }

    /// As on the wire: without passwords and cookies.
    pub fn shown(&self) -> RssSourceDto {
        let masked = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                protocol::MASKED.to_owned()
            }
        };
        RssSourceDto {
            url: shown_url(&self.url),
            proxy_url: self.proxy.as_ref().map_or(String::new(), shown_url),
            cookies: masked(&self.settings.cookies),
            ..self.settings.clone()
        }
    }
}

/// A URL as [`SourceSpec::shown`] gives it; one that cannot be read is empty.
pub(crate) fn shown(url: &str) -> String {
    SafeUrl::parse(url).as_ref().map_or(String::new(), shown_url)
}

/// A URL with its password masked.
fn shown_url(url: &SafeUrl) -> String {
    let mut shown = url.as_url().clone();
    if shown.password().is_some() {
        // Only URLs without a host cannot have one.
        let _cannot_fail = shown.set_password(Some(protocol::MASKED));
    }
    shown.into()
}

/// Puts back what the masks stand for. What was given for one site is not sent to another because its mask was.
fn restore_secrets(settings: &mut RssSourceDto, before: &SourceSpec) -> Result<(), InvalidField> {
    let shown = before.shown();
    if settings.url == shown.url {
        settings.url.clone_from(&before.settings.url);
    }
    if settings.proxy_url == shown.proxy_url {
        settings.proxy_url.clone_from(&before.settings.proxy_url);
    }
    let is_same_site = SafeUrl::parse(&settings.url).is_ok_and(|url| url.origin() == before.url.origin());
    let refused = |field| {
        Err(InvalidField::new(
            field,
            "give it again: the URL is now of another site",
        ))
    };
    if settings.cookies == protocol::MASKED {
        if !is_same_site {
            return refused("cookies");
        }
        settings.cookies.clone_from(&before.settings.cookies);
    }
    let known = &before.settings.provider_config;
    for (key, value) in settings
        .provider_config
        .iter_mut()
        .filter(|(_, value)| *value == protocol::MASKED)
    {
        if !is_same_site || settings.provider_id != before.settings.provider_id {
            return refused("providerConfig");
        }
        value.clone_from(known.get(key).unwrap_or(&String::new()));
    }
    Ok(())
}

fn check(settings: &RssSourceDto) -> Result<(), InvalidField> {
    let texts = [
        ("name", &settings.name),
        ("queueId", &settings.queue_id),
        ("saveDir", &settings.save_dir),
        ("cookies", &settings.cookies),
        ("userAgent", &settings.user_agent),
        ("providerId", &settings.provider_id),
    ];
    let of_rules = settings.rules.iter().enumerate().flat_map(|(number, rule)| {
        [
            ("name", &rule.name),
            ("queueId", &rule.queue_id),
            ("saveDir", &rule.save_dir),
        ]
        .map(|(field, text)| (format!("rules[{number}].{field}"), text))
    });
    for (field, text) in texts
        .map(|(field, text)| (field.to_owned(), text))
        .into_iter()
        .chain(of_rules)
    {
        if field.ends_with("saveDir") && !text.is_empty() && !Path::new(text).is_absolute() {
            return Err(InvalidField::new(field, "a directory is named by its whole path"));
        }
        // Some of them become headers.
        if text.len() > MAX_FIELD_BYTES || text.chars().any(char::is_control) {
            let reason = format!("at most {MAX_FIELD_BYTES} bytes, without line breaks and control characters");
            return Err(InvalidField::new(field, reason));
        }
    }
    let config = settings
        .provider_config
        .iter()
        .map(|(name, value)| name.len() + value.len());
    if config.sum::<usize>() > MAX_FIELD_BYTES {
        return Err(InvalidField::new(
            "providerConfig",
            format!("at most {MAX_FIELD_BYTES} bytes"),
        ));
    }
    if settings.interval_minutes > MAX_INTERVAL_MINUTES {
        return Err(InvalidField::new(
            "intervalMinutes",
            format!("at most {MAX_INTERVAL_MINUTES}, which is a week"),
        ));
    }
    if settings.max_per_fetch > MAX_PER_FETCH {
        return Err(InvalidField::new("maxPerFetch", format!("at most {MAX_PER_FETCH}")));
    }
    Ok(())
}

fn without_runtime(settings: RssSourceDto) -> RssSourceDto {
    RssSourceDto {
        source_id: String::new(),
        last_fetch_at: 0,
        last_success_at: 0,
        next_fetch_at: 0,
        last_error: String::new(),
        fail_count: 0,
        seeded: false,
        unread_count: 0,
        ..settings
    }
}

/// What a server asked to be sent with the next request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// `ETag`; of a plugin's feed, what it gave as its own.
    pub etag: String,
    /// `Last-Modified`.
    pub last_modified: String,
}

/// What happened to a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// The feed's title.
    pub title: String,
    /// Its first round is over.
    pub is_seeded: bool,
    /// When it was last fetched.
    pub last_fetch: Option<Timestamp>,
    /// When that last succeeded.
    pub last_success: Option<Timestamp>,
    /// When it is due.
    pub next_fetch: Timestamp,
    /// Failures since the last success.
    pub fail_count: u32,
    /// The last failure; empty after a success.
    pub last_error: String,
    /// For the next request.
    pub validators: Validators,
    /// Where the feed is, if the source's URL is a web page that names it.
    pub feed_url: Option<SafeUrl>,
    /// When the feed asks to be left alone.
    pub hints: Hints,
}

/// A source.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its id.
    pub id: SourceId,
    /// What users say of it.
    pub spec: SourceSpec,
    /// What happened to it.
    pub history: History,
}

impl Source {
    /// Its name, or that of its feed.
    pub fn name(&self) -> &str {
        let named = &self.spec.settings.name;
        if named.is_empty() { &self.history.title } else { named }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_a_url_is_refused_with_what_to_give() {
        for url in ["", " "] {
            let settings = RssSourceDto {
                url: url.to_owned(),
                ..RssSourceDto::default()
            };
            let refused = SourceSpec::new(settings, None).unwrap_err().to_string();
            assert!(
                refused.contains("url") && refused.contains("give the URL of a feed"),
                "{refused}"
            );
        }
    }
}
