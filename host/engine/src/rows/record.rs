//! The JSON inside rows. Every field has a default, so that records of earlier versions can be read.

use std::{path::Path, sync::Arc, time::Duration};

use data_encoding::BASE64;
use jiff::civil::{DateTime, Time};
use serde::{Deserialize, Serialize};
use transfer::{
    Cookie, CookieJar, Credentials, Failure, FileName, GivenBy, Landing, OnConflict, RequestBody, RequestOptions,
    RetryPolicy, SafeUrl, Secret, TorrentOptions, UserHost,
};

use crate::model::{
    account::{AccountKey, LoginNeed},
    id::Timestamp,
    proxy::ProxyChoice,
    queue::{Days, Queue, QueueSpec, Schedule},
    resolution::{Item, Resolution, ResolverId},
    seeding::{AfterSeeding, Recheck, SeedEnd, SeedLimit, SeedLimits, SeedState, Seeding},
    spec::{TaskSpec, has_secrets},
    task::{AccountWait, LoginWait, PackedSpec, Phase, Unsettled},
};

macro_rules! json {
    ($record:ty) => {
        impl $record {
            pub(super) fn to_json(&self) -> String {
                serde_json::to_string(self).expect("records have only string keys and no failing values")
            }

            pub(super) fn from_json(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }
        }
    };
}

json!(RareRecord);
json!(SecretRecord);
json!(QueueRecord);
json!(SeedingRecord);
json!(UnsettledRecord);
json!(WaitRecord);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The rarely used fields that are stored in plain text.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "it mirrors the specification")]
pub(super) struct RareRecord {
    #[serde(skip_serializing_if = "is_default")]
    mirrors: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    max_connections: Option<u16>,
    #[serde(skip_serializing_if = "is_default")]
    min_split_bytes: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    method: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    referrer: String,
    #[serde(skip_serializing_if = "is_default")]
    user_agent: String,
    #[serde(skip_serializing_if = "is_default")]
    ssh_host_key: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    is_direct: bool,
    #[serde(skip_serializing_if = "is_default")]
    ignore_tls_errors: bool,
    #[serde(skip_serializing_if = "is_default")]
    checksum: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pieces: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    resolver: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    item: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    given_by_other: Option<StrangerRecord>,
    #[serde(skip_serializing_if = "is_default")]
    created_by: Option<Box<str>>,
    #[serde(skip_serializing_if = "is_default")]
    feed: Option<Box<str>>,
    #[serde(skip_serializing_if = "is_default")]
    promised_size: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    promised_type: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    speed_limit_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    upload_limit_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    on_conflict: Option<ConflictRecord>,
    #[serde(skip_serializing_if = "is_default")]
    retry: Option<RetryRecord>,
    #[serde(skip_serializing_if = "is_default")]
    adopt: bool,
    #[serde(skip_serializing_if = "is_default")]
    use_server_time: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    lowest_speed_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    max_not_found: u32,
    #[serde(skip_serializing_if = "is_default")]
    check_integrity: bool,
    #[serde(skip_serializing_if = "is_default")]
    no_netrc: bool,
    /// Those of [`SeedLimits`] in order, by their numbers on the wire.
    #[serde(skip_serializing_if = "is_default")]
    seed_limits: Option<[i64; 4]>,
    #[serde(skip_serializing_if = "is_default")]
    is_not_seeded: bool,
    #[serde(skip_serializing_if = "is_default")]
    follow_torrent: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    tags: Vec<Box<str>>,
    #[serde(skip_serializing_if = "is_default")]
    torrent: Option<TorrentRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ConflictRecord {
    Rename,
    Overwrite,
    Skip,
}

impl ConflictRecord {
    fn of(rule: OnConflict) -> Self {
        match rule {
            OnConflict::Rename => Self::Rename,
            OnConflict::Overwrite => Self::Overwrite,
            OnConflict::Skip => Self::Skip,
        }
    }

    fn into_rule(self) -> OnConflict {
        match self {
            Self::Rename => OnConflict::Rename,
            Self::Overwrite => OnConflict::Overwrite,
            Self::Skip => OnConflict::Skip,
        }
    }
}

/// The URLs came from a web page or another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StrangerRecord {
    /// The host without a port, as in earlier versions; a record without a port matches any.
    user_host: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "is_default")]
    port: Option<u16>,
    #[serde(default, skip_serializing_if = "is_default")]
    is_typed: bool,
}

impl StrangerRecord {
    fn of(given_by: &GivenBy) -> Option<Self> {
        match given_by {
            GivenBy::User => None,
            GivenBy::Other { user_host } => Some(Self {
                user_host: user_host.as_ref().map(|known| known.host.clone()),
                port: user_host.as_ref().and_then(|known| known.port),
                is_typed: user_host.as_ref().is_some_and(|known| known.is_typed),
            }),
        }
    }

    fn into_given_by(self) -> GivenBy {
        let Self {
            user_host,
            port,
            is_typed,
        } = self;
        let known = |host| UserHost { host, port, is_typed };
        GivenBy::Other {
            user_host: user_host.map(known),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RetryRecord {
    attempts: Option<u32>,
    base_ms: u64,
    cap_ms: u64,
}

impl RetryRecord {
    fn of(policy: &RetryPolicy) -> Self {
        Self {
            attempts: policy.attempts,
            base_ms: millis(policy.base),
            cap_ms: millis(policy.cap),
        }
    }

    fn into_policy(self) -> RetryPolicy {
        RetryPolicy {
            attempts: self.attempts,
            base: Duration::from_millis(self.base_ms),
            cap: Duration::from_millis(self.cap_ms),
            ..RetryPolicy::default()
        }
    }
}

impl RareRecord {
    #[expect(clippy::too_many_lines, reason = "one line for each field of the two records")]
    pub(super) fn of(asked: &PackedSpec) -> Option<Self> {
        let default = TaskSpec::default();
        let spec = asked.rare.as_deref().unwrap_or(&default);
        let mirrors = if has_password(asked) {
            &[][..]
        } else {
            asked.urls.get(1..).unwrap_or(&[])
        };
        let TaskSpec {
            // Stored in columns of their own, or in the task itself.
            urls: _,
            file_name: _,
            save_dir: _,
            segments: _,
            queue: _,
            group: _,
            start_paused: _,
            max_connections,
            min_split_bytes,
            request,
            proxy,
            ignore_tls_errors,
            resolution,
            given_by,
            feed,
            created_by,
            checksum,
            pieces,
            promised_size,
            promised_type,
            speed_limit_bytes,
            upload_limit_bytes,
            on_conflict,
            retry,
            adopt,
            use_server_time,
            lowest_speed_bytes,
            max_not_found,
            check_integrity,
            no_netrc,
            seed_limits,
            is_not_seeded,
            follow_torrent,
            tags,
            torrent,
        } = spec;
        let record = Self {
            mirrors: mirrors.iter().map(|url| url.expose().to_owned()).collect(),
            max_connections: *max_connections,
            min_split_bytes: *min_split_bytes,
            method: request.method.clone(),
            referrer: request.referrer.clone(),
            user_agent: request.user_agent.clone(),
            ssh_host_key: request.ssh_host_key.map(|key| key.to_string()),
            is_direct: *proxy == ProxyChoice::Direct,
            ignore_tls_errors: *ignore_tls_errors,
            checksum: checksum.as_ref().map(ToString::to_string),
            pieces: pieces.as_ref().map(ToString::to_string),
            resolver: resolution.as_ref().map(|it| it.resolver.to_string()),
            item: resolution
                .as_ref()
                .and_then(|it| it.item.as_ref())
                .map(ToString::to_string),
            given_by_other: StrangerRecord::of(given_by),
            created_by: created_by.clone(),
            feed: feed.clone(),
            promised_size: *promised_size,
            promised_type: promised_type.clone(),
            speed_limit_bytes: *speed_limit_bytes,
            upload_limit_bytes: *upload_limit_bytes,
            on_conflict: on_conflict.map(ConflictRecord::of),
            retry: retry.map(|policy| RetryRecord::of(&policy)),
            adopt: *adopt,
            use_server_time: *use_server_time,
            lowest_speed_bytes: *lowest_speed_bytes,
            max_not_found: *max_not_found,
            check_integrity: *check_integrity,
            no_netrc: *no_netrc,
            seed_limits: (*seed_limits != SeedLimits::default()).then(|| limits(seed_limits)),
            is_not_seeded: *is_not_seeded,
            follow_torrent: *follow_torrent,
            tags: tags.clone(),
            torrent: torrent.as_deref().map(TorrentRecord::of),
        };
        (record != Self::default()).then_some(record)
    }

    /// The specification, without its first URL and its secrets.
    pub(super) fn into_spec(self) -> Result<TaskSpec, String> {
        Ok(TaskSpec {
            urls: parse_urls(&self.mirrors)?,
            max_connections: self.max_connections,
            min_split_bytes: self.min_split_bytes,
            proxy: if self.is_direct {
                ProxyChoice::Direct
            } else {
                ProxyChoice::Settings
            },
            ignore_tls_errors: self.ignore_tls_errors,
            checksum: self
                .checksum
                .map(|text| text.parse())
                .transpose()
                .map_err(|error| format!("{error}"))?,
            pieces: self
                .pieces
                .map(|text| text.parse().map(Arc::new))
                .transpose()
                .map_err(|error| format!("{error}"))?,
            resolution: resolution(self.resolver, self.item.as_deref()),
            given_by: self.given_by_other.map_or(GivenBy::User, StrangerRecord::into_given_by),
            created_by: self.created_by,
            feed: self.feed,
            promised_size: self.promised_size,
            promised_type: self.promised_type,
            speed_limit_bytes: self.speed_limit_bytes,
            upload_limit_bytes: self.upload_limit_bytes,
            on_conflict: self.on_conflict.map(ConflictRecord::into_rule),
            retry: self.retry.map(RetryRecord::into_policy),
            adopt: self.adopt,
            use_server_time: self.use_server_time,
            lowest_speed_bytes: self.lowest_speed_bytes,
            max_not_found: self.max_not_found,
            check_integrity: self.check_integrity,
            no_netrc: self.no_netrc,
            seed_limits: self.seed_limits.map(read_limits).unwrap_or_default(),
            is_not_seeded: self.is_not_seeded,
            follow_torrent: self.follow_torrent,
            tags: self.tags,
            torrent: self.torrent.map(TorrentRecord::into_options).transpose()?.map(Arc::new),
            request: RequestOptions {
                method: self.method,
                referrer: self.referrer,
                user_agent: self.user_agent,
                ssh_host_key: self
                    .ssh_host_key
                    .map(|text| text.parse())
                    .transpose()
                    .map_err(|error| format!("{error}"))?,
                // Sealed: see `SecretRecord`.
                headers: Vec::new(),
                cookies: Secret::default(),
                credentials: None,
                body: None,
            },
            // Stored in columns of their own, or in the task itself.
            file_name: None,
            save_dir: None,
            segments: 0,
            queue: None,
            group: None,
            start_paused: false,
        })
    }
}

/// The options of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "it mirrors the options")]
struct TorrentRecord {
    #[serde(skip_serializing_if = "is_default")]
    files: Vec<u32>,
    #[serde(skip_serializing_if = "is_default")]
    trackers: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    webseeds: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    is_sequential: bool,
    #[serde(skip_serializing_if = "is_default")]
    edges_first: bool,
    #[serde(skip_serializing_if = "is_default")]
    head_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    tail_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    asks_for_files: bool,
    #[serde(skip_serializing_if = "is_default")]
    stops_after_metadata: bool,
    #[serde(skip_serializing_if = "is_default")]
    is_metadata_only: bool,
    #[serde(skip_serializing_if = "is_default")]
    saves_metadata: bool,
    #[serde(skip_serializing_if = "is_default")]
    metadata_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    stall_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    max_peers: Option<u16>,
    #[serde(skip_serializing_if = "is_default")]
    paths: Vec<(u32, String)>,
}

impl TorrentRecord {
    fn of(options: &TorrentOptions) -> Self {
        let TorrentOptions {
            files,
            trackers,
            webseeds,
            is_sequential,
            edges_first,
            head_bytes,
            tail_bytes,
            asks_for_files,
            stops_after_metadata,
            is_metadata_only,
            saves_metadata,
            metadata_timeout,
            stall_timeout,
            max_peers,
            paths,
        } = options;
        let texts = |urls: &[SafeUrl]| urls.iter().map(|url| url.expose().to_owned()).collect();
        Self {
            files: files.to_vec(),
            trackers: texts(trackers),
            webseeds: texts(webseeds),
            is_sequential: *is_sequential,
            edges_first: *edges_first,
            head_bytes: *head_bytes,
            tail_bytes: *tail_bytes,
            asks_for_files: *asks_for_files,
            stops_after_metadata: *stops_after_metadata,
            is_metadata_only: *is_metadata_only,
            saves_metadata: *saves_metadata,
            metadata_timeout_ms: metadata_timeout.map(millis),
            stall_timeout_ms: stall_timeout.map(millis),
            max_peers: *max_peers,
            paths: paths.clone(),
        }
    }

    fn into_options(self) -> Result<TorrentOptions, String> {
        Ok(TorrentOptions {
            files: self.files.into(),
            trackers: parse_urls(&self.trackers)?,
            webseeds: parse_urls(&self.webseeds)?,
            is_sequential: self.is_sequential,
            edges_first: self.edges_first,
            head_bytes: self.head_bytes,
            tail_bytes: self.tail_bytes,
            asks_for_files: self.asks_for_files,
            stops_after_metadata: self.stops_after_metadata,
            is_metadata_only: self.is_metadata_only,
            saves_metadata: self.saves_metadata,
            metadata_timeout: self.metadata_timeout_ms.map(Duration::from_millis),
            stall_timeout: self.stall_timeout_ms.map(Duration::from_millis),
            max_peers: self.max_peers,
            paths: self.paths,
        })
    }
}

fn limits(limits: &SeedLimits) -> [i64; 4] {
    let SeedLimits {
        ratio_milli,
        post_ratio_milli,
        time_secs,
        idle_secs,
    } = limits;
    [ratio_milli, post_ratio_milli, time_secs, idle_secs].map(|limit| limit.to_wire())
}

fn read_limits(numbers: [i64; 4]) -> SeedLimits {
    let [ratio_milli, post_ratio_milli, time_secs, idle_secs] =
        numbers.map(|number| SeedLimit::from_wire(number).unwrap_or_default());
    SeedLimits {
        ratio_milli,
        post_ratio_milli,
        time_secs,
        idle_secs,
    }
}

fn resolution(resolver: Option<String>, item: Option<&str>) -> Option<Resolution> {
    resolver.map(|name| Resolution {
        resolver: ResolverId::new(&name),
        item: item.map(Item::read),
    })
}

/// A cookie of a site; sealed before it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CookieRecord {
    domain: String,
    #[serde(default, skip_serializing_if = "is_default")]
    includes_subdomains: bool,
    path: String,
    #[serde(default, skip_serializing_if = "is_default")]
    is_secure: bool,
    name: String,
    value: String,
    #[serde(default, skip_serializing_if = "is_default")]
    expires: Option<u64>,
}

impl CookieRecord {
    /// All cookies of a site as text.
    pub(super) fn text_of(jar: &CookieJar) -> String {
        let records = jar.iter().map(|cookie| Self {
            domain: cookie.domain.to_string(),
            includes_subdomains: cookie.includes_subdomains,
            path: cookie.path.to_string(),
            is_secure: cookie.is_secure,
            name: cookie.name.to_string(),
            value: cookie.value.expose().to_owned(),
            expires: cookie.expires,
        });
        let records: Vec<_> = records.collect();
        serde_json::to_string(&records).expect("records of texts always encode")
    }

    pub(super) fn read(text: &str) -> Result<CookieJar, serde_json::Error> {
        let records: Vec<Self> = serde_json::from_str(text)?;
        let cookies = records.into_iter().map(|record| Cookie {
            domain: record.domain.into(),
            includes_subdomains: record.includes_subdomains,
            path: record.path.into(),
            is_secure: record.is_secure,
            name: record.name.into(),
            value: Secret::new(record.value),
            expires: record.expires,
        });
        Ok(cookies.collect())
    }
}

/// The secret fields; sealed before they are stored.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SecretRecord {
    /// All URLs, if one of them has a password.
    #[serde(skip_serializing_if = "is_default")]
    urls: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "is_default")]
    cookies: String,
    #[serde(skip_serializing_if = "is_default")]
    credentials: Option<(String, String)>,
    #[serde(skip_serializing_if = "is_default")]
    body: Option<BodyRecord>,
    #[serde(skip_serializing_if = "is_default")]
    proxy: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BodyRecord {
    FormData(Vec<(String, Vec<String>)>),
    UrlEncoded(String),
    Raw {
        base64: String,
        content_type: Option<String>,
    },
}

impl SecretRecord {
    pub(super) fn of(asked: &PackedSpec) -> Option<Self> {
        let default = TaskSpec::default();
        let spec = asked.rare.as_deref().unwrap_or(&default);
        let mut record = Self::default();
        if has_password(asked) {
            record.urls = asked.urls.iter().map(|url| url.expose().to_owned()).collect();
        }
        if let ProxyChoice::Through(proxy) = &spec.proxy {
            record.proxy = Some(proxy.expose().to_owned());
        }
        if has_secrets(&spec.request) {
            let request = &spec.request;
            let exposed = |(name, value): &(String, Secret)| (name.clone(), value.expose().to_owned());
            record.headers = request.headers.iter().map(exposed).collect();
            request.cookies.expose().clone_into(&mut record.cookies);
            let pair = |pair: &Credentials| (pair.user.clone(), pair.password.expose().to_owned());
            record.credentials = request.credentials.as_ref().map(pair);
            record.body = request.body.as_ref().map(BodyRecord::of);
        }
        (record != Self::default()).then_some(record)
    }

    pub(super) fn has_urls(&self) -> bool {
        !self.urls.is_empty()
    }

    pub(super) fn fill(self, spec: &mut TaskSpec) -> Result<(), String> {
        if self.has_urls() {
            spec.urls = parse_urls(&self.urls)?;
        }
        if let Some(proxy) = self.proxy {
            spec.proxy = ProxyChoice::Through(SafeUrl::stored(&proxy).map_err(|error| error.to_string())?);
        }
        spec.request.headers = self
            .headers
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect();
        spec.request.cookies = Secret::new(self.cookies);
        spec.request.credentials = self.credentials.map(|(user, password)| Credentials {
            user,
            password: Secret::new(password),
        });
        spec.request.body = self.body.map(BodyRecord::into_body).transpose()?;
        Ok(())
    }
}

impl BodyRecord {
    fn of(body: &RequestBody) -> Self {
        match body {
            RequestBody::FormData(fields) => Self::FormData(fields.clone()),
            RequestBody::UrlEncoded(text) => Self::UrlEncoded(text.clone()),
            RequestBody::Raw { bytes, content_type } => Self::Raw {
                base64: BASE64.encode(bytes),
                content_type: content_type.clone(),
            },
        }
    }

    fn into_body(self) -> Result<RequestBody, String> {
        Ok(match self {
            Self::FormData(fields) => RequestBody::FormData(fields),
            Self::UrlEncoded(text) => RequestBody::UrlEncoded(text),
            Self::Raw { base64, content_type } => {
                let bytes = BASE64.decode(base64.as_bytes()).map_err(|error| error.to_string())?;
                RequestBody::Raw { bytes, content_type }
            }
        })
    }
}

/// What a task uploads. A live run is stored as a wait for a slot, because after a restart it is.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SeedingRecord {
    state: SeedStateRecord,
    #[serde(skip_serializing_if = "is_default")]
    uploaded_bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    uploaded_at_completion: u64,
    #[serde(skip_serializing_if = "is_default")]
    order: u64,
    #[serde(skip_serializing_if = "is_default")]
    seeded_ms: u64,
    #[serde(skip_serializing_if = "is_default")]
    idle_ms: u64,
    #[serde(skip_serializing_if = "is_default")]
    recheck: Option<RecheckRecord>,
}

/// What a task that is hashed again was before.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RecheckRecord {
    completed_at: Option<i64>,
    state: SeedStateRecord,
}

impl RecheckRecord {
    fn of(recheck: &Recheck) -> Self {
        Self {
            completed_at: recheck.completed_at.map(Timestamp::unix_millis),
            state: recheck
                .end
                .as_ref()
                .map_or(SeedStateRecord::Waiting, SeedStateRecord::of_end),
        }
    }

    fn into_recheck(self) -> Recheck {
        Recheck {
            completed_at: self.completed_at.map(Timestamp::from_unix_millis),
            end: match self.state.into_state() {
                SeedState::Ended(end) => Some(end),
                _ => None,
            },
        }
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SeedStateRecord {
    #[default]
    Downloading,
    Waiting,
    Ratio,
    Time,
    Idle,
    User,
    Off,
    Failed(Failure),
}

impl SeedStateRecord {
    fn of_end(end: &SeedEnd) -> Self {
        match end {
            SeedEnd::Ratio => Self::Ratio,
            SeedEnd::Time => Self::Time,
            SeedEnd::Idle => Self::Idle,
            SeedEnd::User => Self::User,
            SeedEnd::Off => Self::Off,
            SeedEnd::Failed(failure) => Self::Failed(Failure::clone(failure)),
        }
    }

    fn into_state(self) -> SeedState {
        SeedState::Ended(match self {
            Self::Downloading => return SeedState::Downloading,
            Self::Waiting => return SeedState::Waiting,
            Self::Ratio => SeedEnd::Ratio,
            Self::Time => SeedEnd::Time,
            Self::Idle => SeedEnd::Idle,
            Self::User => SeedEnd::User,
            Self::Off => SeedEnd::Off,
            Self::Failed(failure) => SeedEnd::Failed(Box::new(failure)),
        })
    }
}

impl SeedingRecord {
    pub(super) fn of(seeding: &Seeding) -> Self {
        Self {
            state: match &seeding.state {
                SeedState::Downloading => SeedStateRecord::Downloading,
                SeedState::Waiting | SeedState::Seeding(_) | SeedState::Stopping(_, AfterSeeding::Wait) => {
                    SeedStateRecord::Waiting
                }
                SeedState::Stopping(_, AfterSeeding::End(end)) | SeedState::Ended(end) => SeedStateRecord::of_end(end),
            },
            uploaded_bytes: seeding.uploaded_bytes,
            uploaded_at_completion: seeding.uploaded_at_completion,
            order: seeding.order,
            seeded_ms: millis(seeding.seeded),
            idle_ms: millis(seeding.idle),
            recheck: seeding.recheck.as_deref().map(RecheckRecord::of),
        }
    }

    pub(super) fn into_seeding(self) -> Seeding {
        Seeding {
            state: self.state.into_state(),
            uploaded_bytes: self.uploaded_bytes,
            uploaded_at_completion: self.uploaded_at_completion,
            order: self.order,
            seeded: Duration::from_millis(self.seeded_ms),
            idle: Duration::from_millis(self.idle_ms),
            since: None,
            recheck: self.recheck.map(|recheck| Box::new(recheck.into_recheck())),
        }
    }
}

/// The file operation in progress: at most one of the two fields.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UnsettledRecord {
    #[serde(skip_serializing_if = "is_default")]
    renaming: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    landing: Option<LandingRecord>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LandingRecord {
    path: String,
    inode: u64,
    size_bytes: u64,
}

impl UnsettledRecord {
    pub(super) fn of(unsettled: &Unsettled) -> Self {
        match unsettled {
            Unsettled::Renaming(name) => Self {
                renaming: Some(name.as_str().to_owned()),
                landing: None,
            },
            Unsettled::Landing(landing) => Self {
                renaming: None,
                landing: Some(LandingRecord {
                    path: text(&landing.path),
                    inode: landing.inode,
                    size_bytes: landing.size_bytes,
                }),
            },
            // Its row is one of a deleted task.
            Unsettled::Leaving(_) => Self::default(),
        }
    }

    pub(super) fn into_unsettled(self) -> Option<Unsettled> {
        let landing = self.landing.map(|landing| {
            Unsettled::Landing(Landing {
                path: landing.path.into(),
                inode: landing.inode,
                size_bytes: landing.size_bytes,
            })
        });
        let name = self.renaming.as_deref().and_then(FileName::sanitise_or_none);
        landing.or(name.map(Unsettled::Renaming))
    }
}

/// What a task waits for.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WaitRecord {
    identity: String,
    slot: String,
    #[serde(skip_serializing_if = "is_default")]
    account: Option<String>,
    order: u64,
    /// In Unix milliseconds.
    #[serde(skip_serializing_if = "is_default")]
    until: Option<i64>,
}

impl WaitRecord {
    pub(super) fn of(phase: &Phase) -> Option<Self> {
        match phase {
            Phase::NeedsLogin(wait) => Some(Self {
                identity: wait.need.identity().to_string(),
                slot: wait.need.slot().to_owned(),
                account: wait.need.account().map(ToOwned::to_owned),
                order: wait.order,
                until: None,
            }),
            Phase::AccountLimited(wait) => Some(Self {
                identity: wait.account.identity().to_string(),
                slot: wait.account.slot().to_owned(),
                account: Some(wait.account.account().to_owned()),
                order: wait.order,
                until: wait.until.map(Timestamp::unix_millis),
            }),
            _ => None,
        }
    }

    pub(super) fn into_account(self, failure: Failure) -> AccountWait {
        let identity = ResolverId::new(&self.identity);
        AccountWait {
            account: AccountKey::stored(identity, &self.slot, self.account.as_deref().unwrap_or_default()),
            failure,
            until: self.until.map(Timestamp::from_unix_millis),
            order: self.order,
        }
    }

    pub(super) fn into_login(self, failure: Failure) -> LoginWait {
        let identity = ResolverId::new(&self.identity);
        LoginWait {
            need: LoginNeed::stored(identity, &self.slot, self.account.as_deref()),
            failure,
            order: self.order,
        }
    }
}

/// A queue's settings and schedule.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct QueueRecord {
    name: String,
    speed_limit_bytes: u64,
    upload_limit_bytes: u64,
    max_concurrent: u32,
    default_save_dir: Option<String>,
    default_segments: u16,
    default_user_agent: String,
    post_chain: String,
    schedule_is_enabled: bool,
    schedule_start: Option<Time>,
    schedule_stop: Option<Time>,
    schedule_days: u8,
    schedule_seen: Option<DateTime>,
}

impl QueueRecord {
    pub(super) fn of(queue: &Queue) -> Self {
        let spec = &queue.spec;
        Self {
            name: spec.name.clone(),
            speed_limit_bytes: spec.speed_limit_bytes,
            upload_limit_bytes: spec.upload_limit_bytes,
            max_concurrent: spec.max_concurrent,
            default_save_dir: spec.default_save_dir.as_deref().map(text),
            default_segments: spec.default_segments,
            default_user_agent: spec.default_user_agent.clone(),
            post_chain: spec.post_chain.clone(),
            schedule_is_enabled: queue.schedule.is_enabled,
            schedule_start: queue.schedule.start,
            schedule_stop: queue.schedule.stop,
            schedule_days: queue.schedule.days.bits(),
            schedule_seen: queue.schedule_seen,
        }
    }

    pub(super) fn into_parts(self) -> (QueueSpec, Schedule, Option<DateTime>) {
        let spec = QueueSpec {
            name: self.name,
            speed_limit_bytes: self.speed_limit_bytes,
            upload_limit_bytes: self.upload_limit_bytes,
            max_concurrent: self.max_concurrent,
            default_save_dir: self.default_save_dir.map(Into::into),
            default_segments: self.default_segments,
            default_user_agent: self.default_user_agent,
            post_chain: self.post_chain,
        };
        let schedule = Schedule {
            is_enabled: self.schedule_is_enabled,
            start: self.schedule_start,
            stop: self.schedule_stop,
            days: Days::from_bits(self.schedule_days),
        };
        (spec, schedule, self.schedule_seen)
    }
}

fn has_password(asked: &PackedSpec) -> bool {
    asked
        .urls
        .iter()
        .any(|url| url.as_url().password().is_some() || !url.as_url().username().is_empty())
}

fn parse_urls(texts: &[String]) -> Result<Vec<SafeUrl>, String> {
    texts
        .iter()
        .map(|text| SafeUrl::stored(text).map_err(|error| error.to_string()))
        .collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Paths are UTF-8 by the time they get here: directories are checked when a task is made, names are made of text.
pub(super) fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}
