//! Conversion between options and requests to the service.

use std::{collections::BTreeMap, path::Path};

use protocol::{CreateTaskParams, CreateTaskRequest};
use serde_json::{Map, Value};
use transfer::{HostKeyFingerprint, SafeUrl};

use super::{
    set::{MAX_SEGMENTS, Options},
    torrent,
};
use crate::vocabulary::{
    fault::{Fault, Refusal},
    gid::Gid,
};

/// Applies `options` to a request whose URL is set. `usual_dir` is the directory without `dir`.
pub(crate) fn apply(options: &Options, request: &mut CreateTaskRequest, usual_dir: &str) -> Result<(), Fault> {
    let text = |name: &str| options.get(name);
    let number = |name: &str| options.get(name).and_then(|text| text.parse::<u64>().ok());
    place(options, request, usual_dir);
    let (user, password) = login_options(&request.url);
    for (name, field) in [
        ("checksum", &mut request.checksum),
        ("referer", &mut request.referrer),
        ("user-agent", &mut request.user_agent),
        (user, &mut request.http_user),
        (password, &mut request.http_password),
    ] {
        if let Some(value) = text(name) {
            value.clone_into(field);
        }
    }
    // `*` means that the file's own URL is sent as the referrer.
    if request.referrer == "*" {
        request.referrer.clone_from(&request.url);
    }
    if request.checksum.starts_with("adler32") {
        return Err(Fault::bad_option("checksum"));
    }
    headers(options, request);
    if let Some(split) = number("split") {
        request.segments = split.min(MAX_SEGMENTS).cast_signed();
    }
    if let Some(most) = number("max-connection-per-server") {
        request.max_connections = u16::try_from(most).ok();
    }
    request.min_split_bytes = number("min-split-size").or(request.min_split_bytes);
    request.speed_limit_bytes = number("max-download-limit").unwrap_or(request.speed_limit_bytes);
    let small = |number: u64| u32::try_from(number).ok();
    request.max_tries = number("max-tries").and_then(small).or(request.max_tries);
    request.retry_wait_secs = number("retry-wait").and_then(small).or(request.retry_wait_secs);
    request.lowest_speed_bytes = number("lowest-speed-limit").unwrap_or(request.lowest_speed_bytes);
    request.max_not_found = number("max-file-not-found")
        .and_then(small)
        .unwrap_or(request.max_not_found);
    request.check_integrity = text("check-integrity").map_or(request.check_integrity, |value| value == "true");
    request.no_netrc = text("no-netrc").map_or(request.no_netrc, |value| value == "true");
    request.use_server_time = text("remote-time")
        .map(|value| value == "true")
        .or(request.use_server_time);
    request.ignore_tls_errors = text("check-certificate").map_or(request.ignore_tls_errors, |value| value == "false");
    if text("allow-overwrite").is_some() || text("auto-file-renaming").is_some() {
        let rule = match (options.is_on("allow-overwrite"), text("auto-file-renaming")) {
            (true, _) => "overwrite",
            (false, Some("false")) => "skip",
            (false, _) => "rename",
        };
        rule.clone_into(&mut request.file_exists_behavior);
    }
    if let Some(key) = text("ssh-host-key-md") {
        if !key.is_empty() && key.parse::<HostKeyFingerprint>().is_err() {
            return Err(Fault::bad_option("ssh-host-key-md"));
        }
        key.clone_into(&mut request.ssh_host_key);
    }
    request.start_paused |= options.is_on("pause");
    torrent::apply(options, request)?;
    let own = match scheme(&request.url) {
        "https" => "https-proxy",
        "ftp" | "ftpes" | "ftps" | "sftp" => "ftp-proxy",
        _ => "http-proxy",
    };
    for name in [own, "all-proxy"] {
        if let Some(url) = proxy(options, name)? {
            request.proxy_url = url.map_or_else(|| "direct".to_owned(), |url| url.expose().to_owned());
            break;
        }
    }
    Ok(())
}

fn scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

/// The options with user and password for downloads from `url`.
fn login_options(url: &str) -> (&'static str, &'static str) {
    match scheme(url) {
        "ftp" | "ftpes" | "ftps" | "sftp" => ("ftp-user", "ftp-passwd"),
        _ => ("http-user", "http-passwd"),
    }
}

/// Applies `dir` and `out`. Directories in `out` are below `dir`, never above it.
fn place(options: &Options, request: &mut CreateTaskRequest, usual_dir: &str) {
    if let Some(dir) = options.get("dir").filter(|dir| !dir.is_empty()) {
        // `join` keeps an absolute path.
        request.save_dir = Path::new(usual_dir).join(dir).display().to_string();
    }
    let Some(out) = options.get("out") else { return };
    let mut steps: Vec<&str> = out
        .split('/')
        .filter(|step| !matches!(*step, "" | "." | ".."))
        .collect();
    steps.pop().unwrap_or_default().clone_into(&mut request.file_name);
    if !steps.is_empty() {
        let dir = if request.save_dir.is_empty() {
            usual_dir
        } else {
            &request.save_dir
        };
        request.save_dir = Path::new(dir).join(steps.join("/")).display().to_string();
    }
}

/// Applies `header` and `http-no-cache`. Repeated headers are joined with commas, as HTTP defines.
fn headers(options: &Options, request: &mut CreateTaskRequest) {
    let mut headers = BTreeMap::<String, String>::new();
    if options.is_on("http-no-cache") {
        for name in ["Cache-Control", "Pragma"] {
            headers.insert(name.to_owned(), "no-cache".to_owned());
        }
    }
    for line in options.get("header").unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        match name.to_ascii_lowercase().as_str() {
            "cookie" if request.cookies.is_empty() => value.clone_into(&mut request.cookies),
            "cookie" => request.cookies.extend(["; ", value]),
            "referer" => value.clone_into(&mut request.referrer),
            "user-agent" => value.clone_into(&mut request.user_agent),
            _ => {
                let known = headers.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
                let text = headers.entry(known.unwrap_or_else(|| name.to_owned())).or_default();
                if !text.is_empty() {
                    text.push_str(", ");
                }
                text.push_str(value);
            }
        }
    }
    if options.get("header").is_some() || !headers.is_empty() {
        request.headers = Some(headers);
    }
}

/// The options of proxies that a download can use.
const PROXIES: [&str; 4] = ["all-proxy", "ftp-proxy", "http-proxy", "https-proxy"];

/// Fails if a download with these options would be refused for its proxy.
pub(crate) fn check_proxies(options: &Options) -> Result<(), Refusal> {
    PROXIES
        .into_iter()
        .try_for_each(|name| proxy(options, name).map(|_usable| ()))
}

/// The proxy of the option `name`, with the user and password options that belong to it. `Some(None)` disables the
/// proxy, `None` means not set.
pub fn proxy(options: &Options, name: &str) -> Result<Option<Option<SafeUrl>>, Refusal> {
    let Some(proxy) = options.get(name) else {
        return Ok(None);
    };
    if proxy.is_empty() {
        return Ok(Some(None));
    }
    let text = if proxy.contains("://") {
        proxy.to_owned()
    } else {
        format!("http://{proxy}")
    };
    let mut url = url::Url::parse(&text).map_err(|_| Refusal::from(Fault::bad_option(name)))?;
    for (suffix, is_user) in [("user", true), ("passwd", false)] {
        let Some(value) = options.get(&format!("{name}-{suffix}")) else {
            continue;
        };
        let set = if is_user {
            url.set_username(value)
        } else {
            url.set_password(Some(value))
        };
        set.map_err(|()| Refusal::from(Fault::bad_option(name)))?;
    }
    let unusable = |why: &dyn std::fmt::Display| {
        let Fault { message, .. } = Fault::bad_option(name);
        Refusal::from(Fault::new(format!("{message} {why}")))
    };
    let url = SafeUrl::parse(url.as_str()).map_err(|error| unusable(&error))?;
    transfer::proxy::check(&url).map_err(|error| unusable(&error))?;
    Ok(Some(Some(url)))
}

/// The request that creates a download of aria2's options under its GID. `usual_dir` is the directory without `dir`.
pub fn created(uris: &[String], options: &Options, usual_dir: &str) -> Result<CreateTaskParams, Refusal> {
    let mut uris = uris.iter().cloned();
    let mut request = CreateTaskRequest {
        url: uris.next().unwrap_or_default(),
        mirrors: uris.collect(),
        ..CreateTaskRequest::default()
    };
    apply(options, &mut request, usual_dir)?;
    Ok(CreateTaskParams {
        request,
        task_id: options.get("gid").and_then(Gid::chosen).map(Gid::task_id),
        ..CreateTaskParams::default()
    })
}

/// The patch that `options` make for an existing request.
pub(crate) fn change(
    options: &Options,
    request: &CreateTaskRequest,
    usual_dir: &str,
) -> Result<Map<String, Value>, Fault> {
    let fields = |request: &CreateTaskRequest| match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let before = fields(request);
    let mut request = request.clone();
    if options.get("header").is_some() {
        request.cookies.clear();
    }
    apply(options, &mut request, usual_dir)?;
    let after = fields(&request).into_iter();
    // What is secret is not told, so that a value that looks the same may differ.
    let is_given = |name: &str| match name {
        "cookies" => options.get("header").is_some(),
        "httpPassword" => options.get(login_options(&request.url).1).is_some(),
        _ => false,
    };
    Ok(after
        .filter(|(name, value)| is_given(name) || before.get(name) != Some(value))
        .collect())
}

/// The options that recreate the request under the same GID, including secrets. Parts that aria2 has no option for are
/// omitted.
pub fn saved(request: &CreateTaskRequest, task_id: &str) -> Options {
    let mut options = shown(request);
    let mut put = |name: &'static str, value: String| drop(options.0.insert(name, value));
    if let Some(gid) = Gid::of_task(task_id) {
        put("gid", gid.to_string());
    }
    if !request.http_password.is_empty() {
        put(login_options(&request.url).1, request.http_password.clone());
    }
    if !request.cookies.is_empty() {
        let headers = options.0.entry("header").or_default();
        headers.extend(["Cookie: ", &request.cookies, "\n"]);
    }
    options.filtered(|row| options.get(row.name()).is_some_and(|value| row.read(value).is_ok()))
}

/// The options that correspond to a request.
pub(crate) fn shown(request: &CreateTaskRequest) -> Options {
    let mut options = Options::default();
    let mut put = |name: &'static str, value: String| {
        if !value.is_empty() {
            options.0.insert(name, value);
        }
    };
    let positive = |number: u64| if number > 0 { number.to_string() } else { String::new() };
    let maybe = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    put("dir", request.save_dir.clone());
    put("out", request.file_name.clone());
    put("checksum", request.checksum.clone());
    put("referer", request.referrer.clone());
    put("user-agent", request.user_agent.clone());
    put(login_options(&request.url).0, request.http_user.clone());
    put("split", positive(request.segments.try_into().unwrap_or(0)));
    put(
        "max-connection-per-server",
        maybe(request.max_connections.map(u64::from)),
    );
    put("min-split-size", maybe(request.min_split_bytes));
    put("max-download-limit", request.speed_limit_bytes.to_string());
    put("max-tries", maybe(request.max_tries.map(u64::from)));
    put("retry-wait", maybe(request.retry_wait_secs.map(u64::from)));
    put(
        "remote-time",
        request
            .use_server_time
            .map(|is_on| is_on.to_string())
            .unwrap_or_default(),
    );
    put("lowest-speed-limit", request.lowest_speed_bytes.to_string());
    put("max-file-not-found", request.max_not_found.to_string());
    put("check-integrity", request.check_integrity.to_string());
    put("no-netrc", request.no_netrc.to_string());
    put("ssh-host-key-md", request.ssh_host_key.clone());
    put("check-certificate", (!request.ignore_tls_errors).to_string());
    let rule = request.file_exists_behavior.as_str();
    if !rule.is_empty() {
        put("allow-overwrite", (rule == "overwrite").to_string());
        put("auto-file-renaming", (rule != "skip").to_string());
    }
    if request.proxy_url != "direct" {
        put("all-proxy", request.proxy_url.clone());
    }
    torrent::shown(request, &mut put);
    let lines = request
        .headers
        .iter()
        .flatten()
        .map(|(name, value)| format!("{name}: {value}\n"));
    put("header", lines.collect());
    options
}
