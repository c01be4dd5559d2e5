//! From what a client asks for to what the engine takes.

use std::path::PathBuf;

use data_encoding::BASE64;
use engine::{ProxyChoice, QueueId, Site, TaskSpec};
use protocol::{CreateTaskRequest, ErrorCode, RequestBody, RpcError};
use transfer::{Checksum, Credentials, FileName, OnConflict, RequestOptions, SafeUrl, Secret};

use crate::refusal::{Refuse as _, invalid};

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
        request: options(request)?,
        ..TaskSpec::default()
    })
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
        referrer: request.referrer,
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
