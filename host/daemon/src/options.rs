//! From what a client asks for to what the engine takes.

use std::{path::PathBuf, time::Duration};

use data_encoding::BASE64;
use engine::{ProxyChoice, QueueId, Site, Task, TaskSpec};
use protocol::{CreateTaskRequest, ErrorCode, RequestBody, RpcError, Stranger};
use serde_json::{Map, Value};
use transfer::{
    Checksum, Credentials, FileName, GivenBy, OnConflict, RequestOptions, RetryPolicy, SafeUrl, Secret, UserHost,
    source::{is_harmless_header, without_login_and_fragment},
};

use crate::{
    refusal::{Refuse as _, invalid},
    view::{self, HIDDEN},
};

/// The proxy of a task that shall use none, whatever the settings say.
const DIRECT: &str = "direct";

/// The specification of a task, every field checked.
pub(crate) fn spec(request: CreateTaskRequest, hint_bytes: Option<i64>) -> Result<TaskSpec, RpcError> {
    if request.torrent_b64.is_some() {
        return Err(unsupported("torrentB64", "this build downloads no torrents"));
    }
    if request.audio_url.as_deref().is_some_and(|url| !url.trim().is_empty()) {
        return Err(unsupported("audioUrl", "this build does not join audio and video"));
    }
    let mut urls = TaskSpec::parse(&request.url).refused()?.urls;
    for mirror in &request.mirrors {
        urls.push(SafeUrl::parse(mirror).map_err(|error| invalid("mirrors", error.to_string()))?);
    }
    let segments = u16::try_from(request.segments).map_err(|_| invalid("segments", "segments must be 0 to 64"))?;
    Ok(TaskSpec {
        urls,
        file_name: optional(&request.file_name).and_then(FileName::sanitise_or_none),
        save_dir: optional(&request.save_dir).map(PathBuf::from),
        segments,
        proxy: proxy(&request.proxy_url)?,
        ignore_tls_errors: request.ignore_tls_errors,
        checksum: optional(&request.checksum)
            .map(str::parse::<Checksum>)
            .transpose()
            .map_err(|error| invalid("checksum", error.to_string()))?,
        promised_size: hint_bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0),
        queue: optional(&request.queue_id)
            .map(str::parse::<QueueId>)
            .transpose()
            .map_err(|error| invalid("queueId", error.to_string()))?,
        start_paused: request.start_paused,
        speed_limit_bytes: request.speed_limit_bytes,
        on_conflict: on_conflict(&request.file_exists_behavior)?,
        max_connections: request.max_connections,
        min_split_bytes: request.min_split_bytes,
        retry: retry(&request),
        use_server_time: request.use_server_time,
        request: options(request)?,
        ..TaskSpec::default()
    })
}

/// What is asked for of a task, as a request that asks for it. It holds the task's secrets.
pub fn request(task: &Task) -> CreateTaskRequest {
    let spec = task.spec();
    let mut urls = spec.urls.iter().map(|url| url.expose().to_owned());
    let options = &spec.request;
    let (http_user, http_password) = match &options.credentials {
        Some(pair) => (pair.user.clone(), pair.password.expose().to_owned()),
        None => (String::new(), String::new()),
    };
    let headers = options
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.expose().to_owned()));
    CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        file_name: spec
            .file_name
            .as_ref()
            .map(|name| name.as_str().to_owned())
            .unwrap_or_default(),
        save_dir: task.save_dir.display().to_string(),
        segments: spec.segments.into(),
        cookies: options.cookies.expose().to_owned(),
        referrer: options.referrer.clone(),
        user_agent: options.user_agent.clone(),
        proxy_url: match &spec.proxy {
            ProxyChoice::Settings => String::new(),
            ProxyChoice::Direct => DIRECT.to_owned(),
            ProxyChoice::Through(url) => url.expose().to_owned(),
        },
        queue_id: task.queue.to_string(),
        checksum: spec.checksum.as_ref().map(ToString::to_string).unwrap_or_default(),
        ignore_tls_errors: spec.ignore_tls_errors,
        headers: (!options.headers.is_empty()).then(|| headers.collect()),
        http_user,
        http_password,
        speed_limit_bytes: spec.speed_limit_bytes,
        file_exists_behavior: match spec.on_conflict {
            None => "",
            Some(OnConflict::Rename) => "rename",
            Some(OnConflict::Overwrite) => "overwrite",
            Some(OnConflict::Skip) => "skip",
        }
        .to_owned(),
        max_connections: spec.max_connections,
        min_split_bytes: spec.min_split_bytes,
        max_tries: spec.retry.map(|retry| retry.attempts.unwrap_or(0)),
        retry_wait_secs: spec.retry.map(wait_secs),
        use_server_time: spec.use_server_time,
        ..CreateTaskRequest::default()
    }
}

/// The request for those who ask what a task's options are. Passwords and cookies stay here, and so does the value of
/// every header that may hold a token: its name is shown.
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
            HIDDEN.clone_into(value);
        }
    }
    if let ProxyChoice::Through(url) = &spec.proxy {
        // Printed without user and password.
        request.proxy_url = url.to_string();
    }
    request
}

/// The specification of a task after `change`, which names fields of a request. What no request names stays.
pub(crate) fn changed(task: &Task, change: Map<String, Value>) -> Result<TaskSpec, RpcError> {
    let before = task.spec();
    let Ok(Value::Object(mut fields)) = serde_json::to_value(request(task)) else {
        return Err(RpcError::internal("a request is an object"));
    };
    fields.extend(change);
    let request: CreateTaskRequest = protocol::from_value(Value::Object(fields))
        .map_err(|misfit| RpcError::invalid_params(format!("change: {misfit}")))?;
    let mut after = spec(request, None)?;
    for url in &mut after.urls {
        // What is shown of a URL has no login, and comes back so.
        if let Some(known) = before.urls.iter().find(|known| known.without_login() == *url) {
            url.clone_from(known);
        }
    }
    for (name, value) in &mut after.request.headers {
        // What is shown of a header comes back so.
        let mut known = before.request.headers.iter();
        if value.expose() == HIDDEN
            && let Some((_, known)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            value.clone_from(known);
        }
    }
    after.request.method = before.request.method;
    after.request.body = before.request.body;
    // Other URLs are another file of their resolver.
    if after.urls == before.urls {
        after.resolution = before.resolution;
    }
    Ok(TaskSpec {
        given_by: before.given_by,
        created_by: before.created_by,
        promised_size: before.promised_size,
        promised_type: before.promised_type,
        adopt: before.adopt,
        ..after
    })
}

fn retry(request: &CreateTaskRequest) -> Option<RetryPolicy> {
    let usual = RetryPolicy::default();
    if request.max_tries.is_none() && request.retry_wait_secs.is_none() {
        return None;
    }
    let wait = Duration::from_secs(request.retry_wait_secs.unwrap_or(0).into());
    let base = if wait.is_zero() { usual.base } else { wait };
    Some(RetryPolicy {
        attempts: request
            .max_tries
            .map_or(usual.attempts, |tries| (tries > 0).then_some(tries)),
        base,
        cap: usual.cap.max(base),
    })
}

/// The wait that a request asks for with this policy; the usual one is not asked for.
fn wait_secs(policy: RetryPolicy) -> u32 {
    let is_usual = policy.base == RetryPolicy::default().base;
    let wait = if is_usual { Duration::ZERO } else { policy.base };
    u32::try_from(wait.as_secs()).unwrap_or(u32::MAX)
}

/// The pair that the request wants stored, and for which site.
pub(crate) fn site_to_save(request: &CreateTaskRequest) -> Result<Option<(Site, Credentials)>, RpcError> {
    if !request.save_site_auth || request.http_user.is_empty() {
        return Ok(None);
    }
    let url = SafeUrl::parse(&request.url).map_err(|error| invalid("url", error.to_string()))?;
    let site = Site::of(&url).ok_or_else(|| invalid("url", "the URL has no host to store credentials for"))?;
    Ok(Some((site, credentials(&request.http_user, &request.http_password))))
}

/// The program without a key that makes a task, if one does.
pub(crate) fn created_by(stranger: Option<&Stranger>) -> Option<Box<str>> {
    stranger.and_then(|stranger| optional(&stranger.created_by).map(Into::into))
}

/// Who gave the URLs.
pub(crate) fn given_by(stranger: Option<&Stranger>) -> GivenBy {
    stranger.map_or(GivenBy::User, |stranger| GivenBy::Other {
        user_host: UserHost::visited(&stranger.user_host),
    })
}

fn options(request: CreateTaskRequest) -> Result<RequestOptions, RpcError> {
    let has_user = !request.http_user.is_empty();
    Ok(RequestOptions {
        method: request.method.filter(|method| !method.trim().is_empty()),
        body: request.body.map(body).transpose()?,
        headers: request
            .headers
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect(),
        cookies: Secret::new(request.cookies),
        // It is shown and stored as it is, and never sent with more than that.
        referrer: without_login_and_fragment(&request.referrer),
        user_agent: request.user_agent,
        credentials: has_user.then(|| credentials(&request.http_user, &request.http_password)),
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
            match url.scheme() {
                "http" | "https" | "socks4" | "socks5" => Ok(ProxyChoice::Through(url)),
                _ => Err(invalid("proxyUrl", "proxyUrl must be http, https, socks4 or socks5")),
            }
        }
    }
}

fn on_conflict(text: &str) -> Result<Option<OnConflict>, RpcError> {
    match text {
        "" => Ok(None),
        "rename" => Ok(Some(OnConflict::Rename)),
        "overwrite" => Ok(Some(OnConflict::Overwrite)),
        "skip" => Ok(Some(OnConflict::Skip)),
        _ => Err(invalid(
            "fileExistsBehavior",
            "fileExistsBehavior must be rename, overwrite or skip",
        )),
    }
}

fn unsupported(field: &str, message: &str) -> RpcError {
    RpcError::application(ErrorCode::Unsupported, message).with_field(field)
}

/// The text, if there is any in it.
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
