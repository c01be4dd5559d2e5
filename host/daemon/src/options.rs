//! A task's options: as clients ask for them, and as the engine takes them. The service maps one to the other here only, field by
//! field, so that an option that is not thought of does not compile.

pub(crate) mod torrent;

use std::{path::PathBuf, sync::Arc, time::Duration};

use data_encoding::BASE64;
use engine::{ProxyChoice, QueueId, SeedLimit, SeedLimits, Site, Task, TaskSpec};
use protocol::{CreateTaskRequest, ErrorCode, RequestBody, Requester, RpcError};
use serde_json::{Map, Value};
use transfer::{
    Checksum, Credentials, FileName, GivenBy, HostKeyFingerprint, OnConflict, RequestOptions, RetryPolicy, SafeUrl,
    Secret, UserHost,
    pieces::InvalidPieces,
    source::{is_harmless_header, without_login_and_fragment},
};

use crate::{
    refusal::{Refuse as _, invalid},
    view,
};

/// The `proxyUrl` of a task that must not use a proxy, whatever the settings say.
const DIRECT: &str = "direct";

/// A limit of seeding that is the one in the settings.
const INHERITED: i64 = -2;

/// Both names of a media type have at most 127 characters each (RFC 6838).
const MAX_MEDIA_TYPE: usize = 255;

/// The most tasks that one call creates.
pub(crate) const MAX_CREATED: usize = 20_000;

/// The specification of a task, every field checked. Both types are destructured without `..`: a new field on either
/// side does not compile until it is mapped here.
#[expect(clippy::too_many_lines, reason = "one line for each option of the two records")]
pub(crate) fn spec(request: CreateTaskRequest, hint_bytes: Option<i64>) -> Result<TaskSpec, RpcError> {
    let CreateTaskRequest {
        url,
        mirrors,
        file_name,
        save_dir,
        segments,
        cookies,
        referrer,
        user_agent,
        proxy_url,
        queue_id,
        checksum,
        piece_hashes,
        expected_size_bytes,
        mime_type,
        ignore_tls_errors,
        headers,
        torrent_b64,
        torrent_blob_id,
        follow_torrent,
        torrent,
        metalink_b64,
        method,
        body: request_body,
        audio_url,
        start_paused,
        http_user,
        http_password,
        // Saved beside the task: see `site_to_save`.
        save_site_auth: _,
        speed_limit_bytes,
        file_exists_behavior,
        max_connections,
        min_split_bytes,
        max_tries,
        retry_wait_secs,
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        upload_limit_bytes,
        tags,
        no_seed,
        seed_ratio_limit_milli,
        seed_time_limit_secs,
        ssh_host_key,
    } = request;
    for (field, is_given) in [
        ("torrentB64", torrent_b64.is_some()),
        ("torrentBlobId", torrent_blob_id.is_some()),
    ] {
        if is_given {
            return Err(invalid(field, format!("{field} is for a call that creates tasks")));
        }
    }
    if metalink_b64.is_some() {
        let message = "metalinkB64 is for a call that creates the tasks of one document";
        return Err(invalid("metalinkB64", message));
    }
    if audio_url.is_some_and(|url| !url.trim().is_empty()) {
        return Err(unsupported("audioUrl", "this build does not join audio and video"));
    }
    let mut urls = TaskSpec::parse(&url).refused()?.urls;
    for mirror in &mirrors {
        urls.push(SafeUrl::parse(mirror).map_err(|error| invalid("mirrors", error.to_string()))?);
    }
    for url in &urls {
        let has_checksum = optional(&checksum).is_some() || optional(&piece_hashes).is_some();
        torrent::check_magnet(url, has_checksum)?;
    }
    Ok(TaskSpec {
        torrent: torrent.map(torrent::options).transpose()?.map(Arc::new),
        follow_torrent,
        urls,
        file_name: optional(&file_name).and_then(FileName::sanitise_or_none),
        save_dir: optional(&save_dir).map(PathBuf::from),
        segments: u16::try_from(segments).map_err(|_| invalid("segments", "segments must be 0 to 64"))?,
        proxy: proxy(&proxy_url)?,
        ignore_tls_errors,
        checksum: self::checksum(&checksum)?,
        pieces: optional(&piece_hashes)
            .map(|text| text.parse().map(Arc::new))
            .transpose()
            .map_err(|error: InvalidPieces| invalid("pieceHashes", error.to_string()))?,
        promised_size: expected_size_bytes.or(hint_bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0)),
        queue: optional(&queue_id)
            .map(str::parse::<QueueId>)
            .transpose()
            .map_err(|error| invalid("queueId", error.to_string()))?,
        start_paused,
        speed_limit_bytes,
        on_conflict: on_conflict(&file_exists_behavior)?,
        max_connections,
        min_split_bytes,
        retry: retry(max_tries, retry_wait_secs),
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        upload_limit_bytes,
        tags: self::tags(tags),
        is_not_seeded: no_seed,
        seed_limits: SeedLimits {
            ratio_milli: seed_limit("seedRatioLimitMilli", seed_ratio_limit_milli.unwrap_or(INHERITED), 1)?,
            time_secs: seed_limit("seedTimeLimitSecs", seed_time_limit_secs.unwrap_or(INHERITED), 1)?,
            ..SeedLimits::default()
        },
        request: RequestOptions {
            method: method.filter(|method| !method.trim().is_empty()),
            body: request_body.map(body).transpose()?,
            headers: headers
                .unwrap_or_default()
                .into_iter()
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
            cookies: Secret::new(cookies),
            // Stored and shown in this form, so it must not hold what is never sent.
            referrer: without_login_and_fragment(&referrer),
            user_agent,
            credentials: (!http_user.is_empty()).then(|| credentials(&http_user, &http_password)),
            ssh_host_key: optional(&ssh_host_key)
                .map(str::parse::<HostKeyFingerprint>)
                .transpose()
                .map_err(|error| invalid("sshHostKey", error.to_string()))?,
        },
        // Not in a request: set by the caller, the engine or a group.
        resolution: None,
        given_by: GivenBy::User,
        feed: None,
        created_by: None,
        promised_type: media_type(&mime_type),
        group: None,
        adopt: false,
    })
}

/// A limit of seeding: -2 is the one in the settings, -1 none, others are in units of `unit`.
pub(crate) fn seed_limit(field: &'static str, number: i64, unit: u64) -> Result<SeedLimit, RpcError> {
    match SeedLimit::from_wire(number) {
        Some(SeedLimit::Own(own)) => Ok(SeedLimit::Own(own.saturating_mul(unit))),
        Some(limit) => Ok(limit),
        None => Err(invalid(
            field,
            format!("{field} is {number}; it must be -2 (as in the settings), -1 (no limit) or a limit"),
        )),
    }
}

/// The checksum of a request, as `algo=hex`.
pub(crate) fn checksum(text: &str) -> Result<Option<Checksum>, RpcError> {
    let checksum = optional(text).map(str::parse::<Checksum>).transpose();
    checksum.map_err(|error| invalid("checksum", error.to_string()))
}

/// A media type without its parameters, as responses are compared with; `None` if it is none. Browsers call everything
/// `application/octet-stream` that they do not know, which says nothing.
fn media_type(text: &str) -> Option<String> {
    let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_kind = kind.len() <= MAX_MEDIA_TYPE
        && kind
            .split_once('/')
            .is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty());
    (is_kind && kind != "application/octet-stream").then_some(kind)
}

/// The request that would create this task again. It holds the task's secrets.
#[expect(clippy::too_many_lines, reason = "one line for each option of the two records")]
pub fn request(task: &Task) -> CreateTaskRequest {
    let TaskSpec {
        urls,
        file_name,
        // The task's own values are used instead.
        save_dir: _,
        queue: _,
        segments,
        max_connections,
        min_split_bytes,
        request,
        proxy,
        ignore_tls_errors,
        checksum,
        pieces,
        speed_limit_bytes,
        on_conflict,
        retry,
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        upload_limit_bytes,
        is_not_seeded,
        seed_limits,
        // Not in a request.
        resolution: _,
        given_by: _,
        feed: _,
        created_by: _,
        promised_size,
        promised_type,
        group: _,
        start_paused: _,
        adopt: _,
        torrent,
        follow_torrent,
        tags,
    } = task.spec();
    let RequestOptions {
        // Fixed at creation: a change of options cannot name them.
        method: _,
        body: _,
        headers,
        cookies,
        referrer,
        user_agent,
        credentials,
        ssh_host_key,
    } = request;
    let mut urls = urls.iter().map(|url| url.expose().to_owned());
    let (http_user, http_password) = match &credentials {
        Some(pair) => (pair.user.clone(), pair.password.expose().to_owned()),
        None => (String::new(), String::new()),
    };
    let exposed = |(name, value): (String, Secret)| (name, value.expose().to_owned());
    CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        file_name: file_name.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        save_dir: task.save_dir.display().to_string(),
        segments: segments.into(),
        cookies: cookies.expose().to_owned(),
        referrer,
        user_agent,
        proxy_url: match &proxy {
            ProxyChoice::Settings => String::new(),
            ProxyChoice::Direct => DIRECT.to_owned(),
            ProxyChoice::Through(url) => url.expose().to_owned(),
        },
        queue_id: task.queue.to_string(),
        checksum: checksum.map(|checksum| checksum.to_string()).unwrap_or_default(),
        piece_hashes: pieces.map(|pieces| pieces.to_string()).unwrap_or_default(),
        expected_size_bytes: promised_size,
        mime_type: promised_type.unwrap_or_default(),
        ignore_tls_errors,
        headers: (!headers.is_empty()).then(|| headers.into_iter().map(exposed).collect()),
        http_user,
        http_password,
        ssh_host_key: ssh_host_key.map(|key| key.to_string()).unwrap_or_default(),
        speed_limit_bytes,
        file_exists_behavior: on_conflict.map_or("", OnConflict::name).to_owned(),
        max_connections,
        min_split_bytes,
        max_tries: retry.map(|retry| retry.attempts.unwrap_or(0)),
        retry_wait_secs: retry.map(wait_secs),
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        upload_limit_bytes,
        tags: tags.into_iter().map(String::from).collect(),
        no_seed: is_not_seeded,
        seed_ratio_limit_milli: own_limit(seed_limits.ratio_milli),
        seed_time_limit_secs: own_limit(seed_limits.time_secs),
        torrent: torrent.as_deref().map(torrent::request),
        torrent_b64: None,
        torrent_blob_id: None,
        follow_torrent,
        metalink_b64: None,
        method: None,
        body: None,
        audio_url: None,
        start_paused: false,
        save_site_auth: false,
    }
}

/// A limit that is the task's own, by its number on the wire.
fn own_limit(limit: SeedLimit) -> Option<i64> {
    Some(limit.to_wire()).filter(|number| *number != INHERITED)
}

/// The options of a task for clients, without secrets: no password, no cookies, URLs without password, and [`protocol::MASKED`] as
/// the value of every header that may hold a token. [`changed`] restores the hidden values if a client sends them back.
pub(crate) fn public_request(task: &Task) -> CreateTaskRequest {
    let mut request = request(task);
    let spec = task.spec();
    let mut urls = spec.urls.iter().map(view::shown);
    request.url = urls.next().unwrap_or_default();
    request.mirrors = urls.collect();
    request.cookies.clear();
    request.http_password.clear();
    for (name, value) in request.headers.iter_mut().flatten() {
        if !is_harmless_header(name) {
            protocol::MASKED.clone_into(value);
        }
    }
    if let ProxyChoice::Through(url) = &spec.proxy {
        // `Display` of a `SafeUrl` omits user and password.
        request.proxy_url = url.to_string();
    }
    request
}

/// The specification of a task after `change`, an object with some fields of a request. What a request has no field for
/// (such as body and method) is kept.
pub(crate) fn changed(task: &Task, change: Map<String, Value>) -> Result<TaskSpec, RpcError> {
    let before = task.spec();
    let Ok(Value::Object(mut fields)) = serde_json::to_value(request(task)) else {
        return Err(RpcError::internal("a request is an object"));
    };
    fields.extend(change);
    let request: CreateTaskRequest = protocol::from_value(&Value::Object(fields))
        .map_err(|error| RpcError::invalid_params(format!("change: {error}")))?;
    let mut after = spec(request, None)?;
    for url in &mut after.urls {
        // `public_request` shows URLs without password; one that comes back like that keeps its login.
        if let Some(known) = before.urls.iter().find(|known| known.is_shown_as(url)) {
            url.clone_from(known);
        }
    }
    for (name, value) in &mut after.request.headers {
        // `public_request` shows secret headers as `protocol::MASKED`; one that comes back like that keeps its value.
        let mut known = before.request.headers.iter();
        if value.expose() == protocol::MASKED
            && let Some((_, known)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            value.clone_from(known);
        }
    }
    after.request.method = before.request.method;
    after.request.body = before.request.body;
    // With other URLs, the item that the resolver gave for the old ones means nothing.
    if after.urls == before.urls {
        after.resolution = before.resolution;
    }
    Ok(TaskSpec {
        given_by: before.given_by,
        feed: before.feed,
        created_by: before.created_by,
        adopt: before.adopt,
        ..after
    })
}

fn retry(max_tries: Option<u32>, retry_wait_secs: Option<u32>) -> Option<RetryPolicy> {
    let usual = RetryPolicy::default();
    if max_tries.is_none() && retry_wait_secs.is_none() {
        return None;
    }
    let wait = Duration::from_secs(retry_wait_secs.unwrap_or(0).into());
    let base = if wait.is_zero() { usual.base } else { wait };
    Some(RetryPolicy {
        attempts: max_tries.map_or(usual.attempts, |tries| (tries > 0).then_some(tries)),
        base,
        cap: usual.cap.max(base),
        ..usual
    })
}

/// The `retryWaitSecs` of this policy; 0 stands for the default.
fn wait_secs(policy: RetryPolicy) -> u32 {
    let is_usual = policy.base == RetryPolicy::default().base;
    let wait = if is_usual { Duration::ZERO } else { policy.base };
    u32::try_from(wait.as_secs()).unwrap_or(u32::MAX)
}

/// Tags as they are kept: without white space around them, each once.
pub(crate) fn tags(given: Vec<String>) -> Vec<Box<str>> {
    let mut tags: Vec<Box<str>> = Vec::new();
    for tag in given {
        let tag = tag.trim();
        if !tags.iter().any(|known| **known == *tag) {
            tags.push(tag.into());
        }
    }
    tags
}

/// The credentials that the request wants saved, and for which site.
pub(crate) fn site_to_save(request: &CreateTaskRequest) -> Result<Option<(Site, Credentials)>, RpcError> {
    if !request.save_site_auth || request.http_user.is_empty() {
        return Ok(None);
    }
    let url = SafeUrl::parse(&request.url).map_err(|error| invalid("url", error.to_string()))?;
    let site = Site::of(&url).ok_or_else(|| invalid("url", "the URL has no host to store credentials for"))?;
    Ok(Some((site, credentials(&request.http_user, &request.http_password))))
}

/// The program without a key that creates the task, if any.
pub(crate) fn created_by(requester: Option<&Requester>) -> Option<Box<str>> {
    requester.and_then(|requester| optional(&requester.created_by).map(Into::into))
}

pub(crate) fn given_by(requester: Option<&Requester>) -> GivenBy {
    requester.map_or(GivenBy::User, |requester| GivenBy::Other {
        user_host: UserHost::visited(&requester.user_host).map(|host| {
            if requester.is_host_allowed {
                UserHost {
                    port: None,
                    is_typed: true,
                    ..host
                }
            } else {
                host
            }
        }),
    })
}

fn credentials(user: &str, password: &str) -> Credentials {
    Credentials {
        user: user.to_owned(),
        password: Secret::new(password),
    }
}

fn body(body: RequestBody) -> Result<transfer::RequestBody, RpcError> {
    Ok(match body {
        RequestBody::FormData { fields } => transfer::RequestBody::FormData(fields.into_iter().collect()),
        RequestBody::UrlEncoded { raw } => transfer::RequestBody::UrlEncoded(raw),
        RequestBody::Raw {
            bytes_b64,
            content_type,
        } => transfer::RequestBody::Raw {
            bytes: BASE64
                .decode(bytes_b64.as_bytes())
                .map_err(|error| invalid("body", format!("bytesB64 is not base64: {error}")))?,
            content_type,
        },
    })
}

fn proxy(text: &str) -> Result<ProxyChoice, RpcError> {
    match optional(text) {
        None => Ok(ProxyChoice::Settings),
        Some(DIRECT) => Ok(ProxyChoice::Direct),
        Some(text) => {
            let url = SafeUrl::parse(text).map_err(|error| invalid("proxyUrl", error.to_string()))?;
            transfer::proxy::check(&url).map_err(|unusable| invalid("proxyUrl", unusable.to_string()))?;
            Ok(ProxyChoice::Through(url))
        }
    }
}

fn on_conflict(text: &str) -> Result<Option<OnConflict>, RpcError> {
    if text.is_empty() {
        return Ok(None);
    }
    let rule = OnConflict::of_name(text);
    let unknown = "fileExistsBehavior must be rename, overwrite or skip";
    rule.map(Some).ok_or_else(|| invalid("fileExistsBehavior", unknown))
}

fn unsupported(field: &str, message: &str) -> RpcError {
    RpcError::application(ErrorCode::Unsupported, message).with_field(field)
}

/// `None` for empty text: clients send empty fields for "default".
pub(crate) fn optional(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut CreateTaskRequest)) -> String {
        let mut request = CreateTaskRequest {
            url: "http://a.test/f".into(),
            ..CreateTaskRequest::default()
        };
        change(&mut request);
        let error = spec(request, None).unwrap_err();
        error.data.unwrap().field.unwrap()
    }

    #[test]
    fn a_refusal_names_the_field() {
        assert_eq!(refused(|request| request.url = " ".into()), "url");
        assert_eq!(refused(|request| request.segments = -1), "segments");
        assert_eq!(refused(|request| request.checksum = "md5=1".into()), "checksum");
        assert_eq!(refused(|request| request.queue_id = "?".into()), "queueId");
        assert_eq!(refused(|request| request.proxy_url = "ftp://p".into()), "proxyUrl");
        assert_eq!(refused(|request| request.mirrors = vec!["x".into()]), "mirrors");
        assert_eq!(refused(|request| request.torrent_b64 = Some("x".into())), "torrentB64");
        let body = RequestBody::Raw {
            bytes_b64: "?".into(),
            content_type: None,
        };
        assert_eq!(refused(|request| request.body = Some(body)), "body");
    }

    #[test]
    fn empty_fields_mean_the_usual() {
        let request = CreateTaskRequest {
            url: " http://a.test/f ".into(),
            method: Some(String::new()),
            ..CreateTaskRequest::default()
        };
        assert_eq!(
            spec(request, Some(-1)).unwrap(),
            TaskSpec::parse("http://a.test/f").unwrap()
        );
    }
}
