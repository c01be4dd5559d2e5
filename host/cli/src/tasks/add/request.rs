//! Converts a resolved task into a request to a service.

use std::{collections::BTreeMap, time::Duration};

use command::UsageError;
use data_encoding::BASE64;
use engine::{ProxyChoice, SeedLimit, TaskSpec};
use protocol::{CreateTaskRequest, RequestBody, TorrentFilePath, TorrentRequest};
use transfer::{OnConflict, RequestOptions, SafeUrl, Secret, TorrentOptions};

/// The request for `task`. Fails if a header is there twice, because a service takes each name once.
#[expect(clippy::too_many_lines, reason = "one line for each option of the two records")]
pub(crate) fn from_spec(task: TaskSpec) -> Result<CreateTaskRequest, UsageError> {
    // A field that is added to a task does not compile until it is sent, or named here with the reason why not.
    let TaskSpec {
        urls,
        file_name,
        save_dir,
        segments,
        max_connections,
        min_split_bytes,
        request,
        proxy,
        ignore_tls_errors,
        checksum,
        pieces,
        promised_size,
        start_paused,
        speed_limit_bytes,
        on_conflict,
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        tags,
        retry,
        // The service finds the plugin of a URL, and knows who asks.
        resolution: _,
        given_by: _,
        feed: _,
        created_by: _,
        // A page or a plugin says it, which the command line is not.
        promised_type: _,
        // Named by the caller, which has asked the service for its id.
        queue: _,
        group: _,
        upload_limit_bytes,
        seed_limits,
        is_not_seeded,
        torrent,
        follow_torrent,
        // Only `svc get` continues the part files of other programs.
        adopt: _,
    } = task;
    let RequestOptions {
        method,
        body,
        headers,
        cookies,
        referrer,
        user_agent,
        credentials,
        ssh_host_key,
    } = request;
    let headers = by_name(headers)?;
    let (http_user, http_password) = credentials
        .map(|pair| (pair.user, pair.password.expose().to_owned()))
        .unwrap_or_default();
    let mut urls = urls.iter().map(|url| url.expose().to_owned());
    Ok(CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        file_name: file_name.map(|name| name.to_string()).unwrap_or_default(),
        save_dir: save_dir.map(|dir| dir.display().to_string()).unwrap_or_default(),
        segments: segments.into(),
        cookies: cookies.expose().to_owned(),
        referrer,
        user_agent,
        proxy_url: match proxy {
            ProxyChoice::Settings => String::new(),
            ProxyChoice::Direct => "direct".to_owned(),
            ProxyChoice::Through(url) => url.expose().to_owned(),
        },
        checksum: checksum.map(|checksum| checksum.to_string()).unwrap_or_default(),
        piece_hashes: pieces.map(|pieces| pieces.to_string()).unwrap_or_default(),
        expected_size_bytes: promised_size,
        ignore_tls_errors,
        headers: Some(headers).filter(|headers| !headers.is_empty()),
        method,
        body: body.map(wire_body),
        start_paused,
        http_user,
        http_password,
        ssh_host_key: ssh_host_key.map(|key| key.to_string()).unwrap_or_default(),
        speed_limit_bytes,
        file_exists_behavior: on_conflict.map_or("", OnConflict::name).to_owned(),
        max_connections,
        min_split_bytes,
        use_server_time,
        lowest_speed_bytes,
        max_not_found,
        check_integrity,
        no_netrc,
        tags: tags.into_iter().map(String::from).collect(),
        upload_limit_bytes,
        no_seed: is_not_seeded,
        seed_ratio_limit_milli: own(seed_limits.ratio_milli),
        seed_time_limit_secs: own(seed_limits.time_secs),
        follow_torrent,
        torrent: torrent.as_deref().map(wire_torrent),
        max_tries: retry.map(|policy| policy.attempts.unwrap_or(0)),
        retry_wait_secs: retry.map(|policy| u32::try_from(policy.base.as_secs()).unwrap_or(u32::MAX)),
        ..CreateTaskRequest::default()
    })
}

fn by_name(headers: Vec<(String, Secret)>) -> Result<BTreeMap<String, String>, UsageError> {
    let mut by_name = BTreeMap::new();
    for (name, value) in headers {
        if by_name.insert(name.clone(), value.expose().to_owned()).is_some() {
            return Err(UsageError::new("--header", format!("a service takes {name} only once")));
        }
    }
    Ok(by_name)
}

/// A limit that is the task's own.
fn own(limit: SeedLimit) -> Option<i64> {
    (limit != SeedLimit::Inherited).then(|| limit.to_wire())
}

fn wire_torrent(options: &TorrentOptions) -> TorrentRequest {
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
    let exposed = |urls: &[SafeUrl]| urls.iter().map(|url| url.expose().to_owned()).collect();
    let secs = |time: &Option<Duration>| time.map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
    TorrentRequest {
        files: files.to_vec(),
        trackers: exposed(trackers),
        webseeds: exposed(webseeds),
        sequential: *is_sequential,
        first_last_piece_first: *edges_first,
        head_bytes: *head_bytes,
        tail_bytes: *tail_bytes,
        ask_for_files: *asks_for_files,
        stop_after_metadata: *stops_after_metadata,
        metadata_only: *is_metadata_only,
        save_metadata: *saves_metadata,
        metadata_timeout_secs: secs(metadata_timeout),
        stall_timeout_secs: secs(stall_timeout),
        max_peers: *max_peers,
        paths: wire_paths(paths),
    }
}

fn wire_paths(paths: &[(u32, String)]) -> Vec<TorrentFilePath> {
    let path = |(index, path): &(u32, String)| TorrentFilePath {
        index: *index,
        path: path.clone(),
    };
    paths.iter().map(path).collect()
}

fn wire_body(body: transfer::RequestBody) -> RequestBody {
    match body {
        transfer::RequestBody::FormData(fields) => RequestBody::FormData {
            fields: fields.into_iter().collect(),
        },
        transfer::RequestBody::UrlEncoded(raw) => RequestBody::UrlEncoded { raw },
        transfer::RequestBody::Raw { bytes, content_type } => RequestBody::Raw {
            bytes_b64: BASE64.encode(&bytes),
            content_type,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskSpec {
        TaskSpec {
            urls: ["https://a.test/f?key=1", "https://b.test/f"]
                .map(|url| SafeUrl::parse(url).unwrap())
                .into(),
            ..TaskSpec::default()
        }
    }

    #[test]
    fn what_was_asked_for_is_what_is_sent() {
        let mut task = task();
        task.request.headers = vec![("A".into(), Secret::new("1"))];
        task.request.cookies = Secret::new("c=1");
        task.request.body = Some(transfer::RequestBody::Raw {
            bytes: vec![0, 1],
            content_type: None,
        });
        task.proxy = ProxyChoice::Direct;
        task.on_conflict = Some(OnConflict::Skip);
        task.segments = 4;
        (task.max_connections, task.min_split_bytes, task.use_server_time) = (Some(3), Some(2048), Some(true));
        let request = from_spec(task).unwrap();
        assert_eq!(request.url, "https://a.test/f?key=1");
        assert_eq!(request.mirrors, ["https://b.test/f"]);
        assert_eq!(
            (request.cookies.as_str(), request.proxy_url.as_str(), request.segments),
            ("c=1", "direct", 4)
        );
        assert_eq!(request.file_exists_behavior, "skip");
        assert_eq!(
            (
                request.max_connections,
                request.min_split_bytes,
                request.use_server_time
            ),
            (Some(3), Some(2048), Some(true))
        );
        assert_eq!(request.headers.unwrap()["A"], "1");
        let raw = RequestBody::Raw {
            bytes_b64: "AAE=".into(),
            content_type: None,
        };
        assert_eq!(request.body, Some(raw));
    }

    #[test]
    fn a_header_that_is_there_twice_is_refused_and_not_dropped() {
        let mut task = task();
        task.request.headers = vec![("A".into(), Secret::new("1")), ("A".into(), Secret::new("2"))];
        let twice = from_spec(task).unwrap_err().to_string();
        assert!(twice.contains("A only once"), "{twice}");
    }
}
