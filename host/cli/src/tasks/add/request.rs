//! Converts a resolved task into a request to a service.

use command::UsageError;
use data_encoding::BASE64;
use engine::{ProxyChoice, TaskSpec};
use protocol::{CreateTaskRequest, RequestBody};
use transfer::OnConflict;

/// The request for `task`. Fails for options that a service does not support.
pub(crate) fn from_spec(task: TaskSpec) -> Result<CreateTaskRequest, UsageError> {
    let field = || task.urls.first().map_or_else(|| "URL".to_owned(), ToString::to_string);
    let unknown = [
        ("max-connection-per-server", task.max_connections.is_some()),
        ("min-split-size", task.min_split_bytes.is_some()),
        ("remote-time", task.use_server_time.is_some()),
    ];
    if let Some((option, _)) = unknown.into_iter().find(|(_, is_given)| *is_given) {
        let problem = format!("a service takes no {option} for one task; it is among its settings");
        return Err(UsageError::new(field(), problem));
    }
    let request = task.request;
    let mut headers = std::collections::BTreeMap::new();
    for (name, value) in request.headers {
        if headers.insert(name.clone(), value.expose().to_owned()).is_some() {
            return Err(UsageError::new("--header", format!("a service takes {name} only once")));
        }
    }
    let credentials = request.credentials;
    let mut urls = task.urls.iter().map(|url| url.expose().to_owned());
    Ok(CreateTaskRequest {
        url: urls.next().unwrap_or_default(),
        mirrors: urls.collect(),
        file_name: task.file_name.map(|name| name.to_string()).unwrap_or_default(),
        save_dir: task.save_dir.map(|dir| dir.display().to_string()).unwrap_or_default(),
        segments: task.segments.into(),
        cookies: request.cookies.expose().to_owned(),
        referrer: request.referrer,
        user_agent: request.user_agent,
        proxy_url: match task.proxy {
            ProxyChoice::Settings => String::new(),
            ProxyChoice::Direct => "direct".to_owned(),
            ProxyChoice::Through(url) => url.expose().to_owned(),
        },
        checksum: task.checksum.map(|checksum| checksum.to_string()).unwrap_or_default(),
        ignore_tls_errors: task.ignore_tls_errors,
        headers: Some(headers).filter(|headers| !headers.is_empty()),
        method: request.method,
        body: request.body.map(body),
        start_paused: task.start_paused,
        http_user: credentials.as_ref().map(|pair| pair.user.clone()).unwrap_or_default(),
        http_password: credentials
            .map(|pair| pair.password.expose().to_owned())
            .unwrap_or_default(),
        speed_limit_bytes: task.speed_limit_bytes,
        file_exists_behavior: match task.on_conflict {
            None => "",
            Some(OnConflict::Rename) => "rename",
            Some(OnConflict::Overwrite) => "overwrite",
            Some(OnConflict::Skip) => "skip",
        }
        .to_owned(),
        ..CreateTaskRequest::default()
    })
}

fn body(body: transfer::RequestBody) -> RequestBody {
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
    use transfer::{SafeUrl, Secret};

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
        let request = from_spec(task).unwrap();
        assert_eq!(request.url, "https://a.test/f?key=1");
        assert_eq!(request.mirrors, ["https://b.test/f"]);
        assert_eq!(
            (request.cookies.as_str(), request.proxy_url.as_str(), request.segments),
            ("c=1", "direct", 4)
        );
        assert_eq!(request.file_exists_behavior, "skip");
        assert_eq!(request.headers.unwrap()["A"], "1");
        let raw = RequestBody::Raw {
            bytes_b64: "AAE=".into(),
            content_type: None,
        };
        assert_eq!(request.body, Some(raw));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_and_not_dropped() {
        let refusal = |change: fn(&mut TaskSpec)| {
            let mut task = task();
            change(&mut task);
            from_spec(task).unwrap_err().to_string()
        };
        let split = refusal(|task| task.min_split_bytes = Some(1));
        assert!(split.contains("min-split-size") && !split.contains("key=1"), "{split}");
        let twice =
            refusal(|task| task.request.headers = vec![("A".into(), Secret::new("1")), ("A".into(), Secret::new("2"))]);
        assert!(twice.contains("A only once"), "{twice}");
    }
}
