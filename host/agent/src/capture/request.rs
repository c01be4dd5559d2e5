//! Converts what browsers send into requests for tasks. Pure.

use std::{borrow::Cow, collections::BTreeMap};

use protocol::{CreateTaskRequest, DownloadRequest};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

/// Downloads of one request.
const MAX_DOWNLOADS: usize = 10_000;

/// Bounds the shared fields (cookies, headers), which every download of a request gets a copy of.
const MAX_REPEATED_BYTES: usize = 16 * 1024 * 1024;

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("url is required")]
    WithoutUrl,
    #[error("urls is empty")]
    EmptyUrls,
    #[error("items is empty or invalid")]
    EmptyItems,
    #[error("no valid urls in items")]
    ItemsWithoutUrl,
    #[error("expected `urls` array or `items` array")]
    NeitherList,
    #[error("more than {MAX_DOWNLOADS} URLs at once; hand them over in several requests")]
    TooMany,
    #[error(
        "what is repeated for every URL (cookies, headers, referrer, saveDir) would have more than {} MiB; hand fewer URLs \
         over at once",
        MAX_REPEATED_BYTES >> 20
    )]
    TooLarge,
}

/// Several downloads: URLs with common options, or whole downloads, of which invalid ones are skipped.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Batch {
    /// The sources.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    urls: Option<Value>,
    /// The downloads.
    #[serde(default)]
    #[schema(value_type = Option<Vec<DownloadRequest>>)]
    items: Option<Value>,
    /// The directory of all URLs.
    #[serde(default)]
    save_dir: Option<String>,
    /// The page that all URLs were found on.
    #[serde(default)]
    referrer: Option<String>,
    /// A `Cookie` value for all URLs.
    #[serde(default)]
    cookies: Option<String>,
    /// The headers for all URLs.
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
}

/// A download of one or more files, which is one question to the user.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Download {
    requests: Vec<CreateTaskRequest>,
    /// What the browser knows of its size.
    pub(crate) size: u64,
    /// The extension that handed it over without a key; empty for any other sender.
    pub(crate) created_by: String,
}

impl Batch {
    pub(crate) fn read(self) -> Result<Download, Invalid> {
        if let Some(urls) = self.urls {
            let urls = urls.as_array().ok_or(Invalid::NeitherList)?;
            let urls: Vec<&str> = urls.iter().filter_map(Value::as_str).collect();
            let shared = DownloadRequest {
                url: urls.join("\n"),
                save_dir: self.save_dir.unwrap_or_default(),
                referrer: self.referrer.unwrap_or_default(),
                cookies: self.cookies.unwrap_or_default(),
                headers: self.headers,
                ..DownloadRequest::default()
            };
            return one(shared).map_err(|error| match error {
                Invalid::WithoutUrl => Invalid::EmptyUrls,
                error => error,
            });
        }
        let items = self.items.ok_or(Invalid::NeitherList)?;
        let items = items.as_array().ok_or(Invalid::EmptyItems)?;
        let items = items.iter().filter_map(|item| DownloadRequest::deserialize(item).ok());
        let items: Vec<DownloadRequest> = items.collect();
        if items.is_empty() {
            return Err(Invalid::EmptyItems);
        }
        let (mut whole, mut bytes) = (Download::default(), 0);
        for item in items {
            let download = match one(item) {
                Ok(download) => download,
                Err(error @ (Invalid::TooMany | Invalid::TooLarge)) => return Err(error),
                // An invalid item is skipped; the others are still accepted.
                Err(_) => continue,
            };
            bytes += download.requests.iter().map(repeated_bytes).sum::<usize>();
            whole.size = if whole.requests.is_empty() { download.size } else { 0 };
            whole.requests.extend(download.requests);
            if whole.requests.len() > MAX_DOWNLOADS {
                return Err(Invalid::TooMany);
            }
            if bytes > MAX_REPEATED_BYTES {
                return Err(Invalid::TooLarge);
            }
        }
        if whole.requests.is_empty() {
            return Err(Invalid::ItemsWithoutUrl);
        }
        whole.share(MAX_REPEATED_BYTES.saturating_sub(bytes))?;
        Ok(whole)
    }
}

/// The bytes of the fields that every URL of a request gets a copy of.
fn repeated_bytes(request: &CreateTaskRequest) -> usize {
    let texts = [
        &request.cookies,
        &request.referrer,
        &request.user_agent,
        &request.save_dir,
    ];
    texts.iter().map(|text| text.len()).sum::<usize>() + headers_bytes(request.headers.as_ref())
}

fn headers_bytes(headers: Option<&BTreeMap<String, String>>) -> usize {
    /// Estimated overhead of a header beside its texts.
    const HEADER_BYTES: usize = 64;
    let headers = headers.into_iter().flatten();
    headers
        .map(|(name, value)| name.len() + value.len() + HEADER_BYTES)
        .sum()
}

/// Converts a single request. It may have several URLs, one per line; then file name, method, body and audio URL do not
/// apply.
pub(crate) fn one(mut request: DownloadRequest) -> Result<Download, Invalid> {
    let lines = std::mem::take(&mut request.url);
    let urls = lines.lines().map(str::trim).filter(|url| !url.is_empty());
    // Unwrapped here, so that the user is asked about the URL that is downloaded.
    let urls: Vec<Cow<'_, str>> = urls.map(protocol::unwrapped).collect();
    let size = request.file_size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    let is_one = urls.len() == 1;
    let mut pattern = pattern(request);
    if !is_one {
        pattern.file_name.clear();
        pattern.mime_type.clear();
        pattern.method = None;
        pattern.body = None;
        pattern.audio_url = None;
    }
    if urls.len() > MAX_DOWNLOADS {
        return Err(Invalid::TooMany);
    }
    if urls.len().saturating_mul(repeated_bytes(&pattern)) > MAX_REPEATED_BYTES {
        return Err(Invalid::TooLarge);
    }
    let of_url = |url: Cow<'_, str>| CreateTaskRequest {
        url: url.into_owned(),
        ..pattern.clone()
    };
    let requests: Vec<_> = urls.into_iter().map(of_url).collect();
    if requests.is_empty() {
        return Err(Invalid::WithoutUrl);
    }
    Ok(Download {
        requests,
        size: if is_one { size } else { 0 },
        created_by: String::new(),
    })
}

/// Everything but the URL. Cookie, Referer and User-Agent headers become fields.
fn pattern(request: DownloadRequest) -> CreateTaskRequest {
    let mut headers = request.headers.unwrap_or_default();
    let mut or_header = |own: String, name: &str| {
        let found = headers.extract_if(.., |header, _| header.eq_ignore_ascii_case(name));
        let found = found.map(|(_, value)| value).last();
        if own.is_empty() { found.unwrap_or_default() } else { own }
    };
    CreateTaskRequest {
        cookies: or_header(request.cookies, "cookie"),
        referrer: or_header(request.referrer, "referer"),
        user_agent: or_header(String::new(), "user-agent"),
        file_name: request.filename,
        save_dir: request.save_dir,
        mime_type: request.mime_type.unwrap_or_default(),
        headers: Some(headers).filter(|headers| !headers.is_empty()),
        method: request.method,
        body: request.body,
        audio_url: request.audio_url.filter(|url| !url.trim().is_empty()),
        ..CreateTaskRequest::default()
    }
}

impl Download {
    /// Fills fields that items lack from the first item that has them; secrets are shared only between items of one
    /// origin. The copies may take up to `most` bytes together.
    fn share(&mut self, most: usize) -> Result<(), Invalid> {
        let first = |text: fn(&CreateTaskRequest) -> &String| {
            let mut texts = self.requests.iter().map(text);
            texts.find(|text| !text.is_empty()).cloned().unwrap_or_default()
        };
        let (referrer, save_dir) = (first(|request| &request.referrer), first(|request| &request.save_dir));
        let mut secrets: BTreeMap<String, (String, Option<BTreeMap<String, String>>)> = BTreeMap::new();
        for request in &self.requests {
            let known = secrets.entry(origin(&request.url)).or_default();
            if known.0.is_empty() {
                known.0.clone_from(&request.cookies);
            }
            if known.1.is_none() {
                known.1.clone_from(&request.headers);
            }
        }
        let mut left = most;
        for request in &mut self.requests {
            let Some((cookies, headers)) = secrets.get(&origin(&request.url)) else {
                continue;
            };
            for (own, shared) in [
                (&mut request.referrer, &referrer),
                (&mut request.save_dir, &save_dir),
                (&mut request.cookies, cookies),
            ] {
                if own.is_empty() {
                    left = left.checked_sub(shared.len()).ok_or(Invalid::TooLarge)?;
                    own.clone_from(shared);
                }
            }
            if request.headers.is_none() {
                let bytes = headers_bytes(headers.as_ref());
                left = left.checked_sub(bytes).ok_or(Invalid::TooLarge)?;
                request.headers.clone_from(headers);
            }
        }
        Ok(())
    }

    /// Applies the user's edits. Secrets are kept for unchanged URLs only; new URLs get none.
    pub(crate) fn edited(mut self, edit: DownloadRequest) -> Result<Self, Invalid> {
        let name = edit.filename.clone();
        let save_dir = edit.save_dir.clone();
        if !edit.url.trim().is_empty() {
            let wanted = one(edit)?;
            let mut known: BTreeMap<String, CreateTaskRequest> = self
                .requests
                .into_iter()
                .map(|request| (request.url.clone(), request))
                .collect();
            let keep = |request: CreateTaskRequest| known.remove(&request.url).unwrap_or(request);
            self.requests = wanted.requests.into_iter().map(keep).collect();
        }
        if let [request] = &mut self.requests[..]
            && !name.trim().is_empty()
        {
            request.file_name = name;
        }
        if !save_dir.trim().is_empty() {
            self.requests
                .iter_mut()
                .for_each(|request| request.save_dir.clone_from(&save_dir));
        }
        Ok(self)
    }

    /// Whether all parts are plain `GET` requests, as if a link was followed.
    pub(crate) fn is_plain(&self) -> bool {
        let is_get = |method: &str| method.trim().is_empty() || method.trim().eq_ignore_ascii_case("GET");
        self.requests
            .iter()
            .all(|request| request.body.is_none() && request.method.as_deref().is_none_or(is_get))
    }

    /// Forbids overwriting, whatever the settings are, and records `visitor` as the owner.
    pub(crate) fn confine(&mut self, visitor: &str) {
        visitor.clone_into(&mut self.created_by);
        for request in &mut self.requests {
            "rename".clone_into(&mut request.file_exists_behavior);
        }
    }

    pub(crate) fn requests(&self) -> &[CreateTaskRequest] {
        &self.requests
    }

    /// The same with other requests.
    pub(crate) fn only(self, requests: Vec<CreateTaskRequest>) -> Self {
        Self { requests, ..self }
    }

    pub(crate) fn into_requests(self) -> Vec<CreateTaskRequest> {
        self.requests
    }

    /// The page that the download was found on.
    pub(crate) fn referrer(&self) -> &str {
        self.requests.first().map_or("", |request| &request.referrer)
    }
}

pub(crate) fn host(url: &str) -> Option<String> {
    Url::parse(url.trim()).ok()?.host_str().map(ToOwned::to_owned)
}

/// Scheme, host and port. A URL without a host, and one that cannot be read, has its own.
fn origin(url: &str) -> String {
    match Url::parse(url.trim()) {
        Ok(parsed) if parsed.has_host() => parsed.origin().ascii_serialization(),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn batch(value: Value) -> Result<Vec<CreateTaskRequest>, Invalid> {
        let batch: Batch = serde_json::from_value(value).unwrap();
        batch.read().map(Download::into_requests)
    }

    fn download(value: Value) -> Download {
        one(serde_json::from_value(value).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn one_download_keeps_what_came_with_it() {
        let made = download(
            json!({"url": " http://a.test/f ", "filename": "n", "fileSize": 5, "cookies": "own=1",
            "headers": {"Cookie": "c=1", "referer": "http://page.test/", "User-Agent": "Browser", "X-A": "b"}}),
        );
        assert_eq!(made.size, 5);
        let request = &made.requests[0];
        assert_eq!(
            (request.url.as_str(), request.file_name.as_str()),
            ("http://a.test/f", "n")
        );
        assert_eq!(
            (request.cookies.as_str(), request.referrer.as_str()),
            ("own=1", "http://page.test/")
        );
        assert_eq!(request.user_agent, "Browser");
        let headers: Vec<_> = request
            .headers
            .iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(headers, ["X-A"]);
        let nothing = one(DownloadRequest::default()).map(Download::into_requests);
        assert_eq!(nothing, Err(Invalid::WithoutUrl));
    }

    #[test]
    fn several_lines_are_several_tasks_without_a_name() {
        let made = download(
            json!({"url": "http://a/1\n\n http://a/2\r\n", "filename": "n", "fileSize": 5,
            "method": "POST", "saveDir": "/d"}),
        );
        let urls: Vec<_> = made.requests.iter().map(|request| request.url.as_str()).collect();
        assert_eq!((urls, made.size), (vec!["http://a/1", "http://a/2"], 0));
        let is_plain = |request: &CreateTaskRequest| {
            request.file_name.is_empty() && request.method.is_none() && request.save_dir == "/d"
        };
        assert!(made.requests.iter().all(is_plain));
    }

    #[test]
    fn a_batch_has_urls_or_items() {
        let made = batch(json!({"urls": ["http://a/1", " ", 5, "http://a/2"], "cookies": "c=1"})).unwrap();
        assert!(made.len() == 2 && made.iter().all(|request| request.cookies == "c=1"));
        let made = batch(json!({"items": [{"url": 5}, {"url": ""}, {"url": "http://a/1"}, "x"]})).unwrap();
        assert_eq!(made.len(), 1);
        for (value, expect) in [
            (json!({"urls": []}), Invalid::EmptyUrls),
            (json!({"urls": [" "]}), Invalid::EmptyUrls),
            (json!({"items": []}), Invalid::EmptyItems),
            (json!({"items": [5]}), Invalid::EmptyItems),
            (json!({"items": "x"}), Invalid::EmptyItems),
            (json!({"items": [{"url": " "}]}), Invalid::ItemsWithoutUrl),
            (json!({}), Invalid::NeitherList),
            (json!({"urls": "http://a/"}), Invalid::NeitherList),
        ] {
            assert_eq!(batch(value.clone()), Err(expect), "{value}");
        }
    }

    #[test]
    fn what_is_repeated_for_every_url_is_bounded_before_it_is_repeated() {
        let large = "c".repeat(2 * 1024 * 1024);
        let lines = |count: usize| "http://a/\n".repeat(count);
        let many = json!({"url": lines(200_000), "cookies": "c"});
        let requests = |value: Value| one(serde_json::from_value(value).unwrap()).map(Download::into_requests);
        assert_eq!(requests(many), Err(Invalid::TooMany));
        assert_eq!(
            requests(json!({"url": lines(9), "cookies": large})),
            Err(Invalid::TooLarge)
        );
        assert_eq!(
            requests(json!({"url": lines(9), "headers": {"a": large}})),
            Err(Invalid::TooLarge)
        );
        assert_eq!(requests(json!({"url": lines(7), "cookies": large})).unwrap().len(), 7);
        let urls = |count: usize| vec!["http://a/"; count];
        assert_eq!(
            batch(json!({"urls": urls(9), "cookies": large})),
            Err(Invalid::TooLarge)
        );
        assert_eq!(batch(json!({"urls": urls(10_001)})), Err(Invalid::TooMany));
        // A field of one item that another item of the same host would inherit.
        for field in ["cookies", "referrer", "saveDir"] {
            let mut items = vec![json!({"url": "http://a/"}); 9];
            items[0][field] = large.as_str().into();
            assert_eq!(batch(json!({"items": items})), Err(Invalid::TooLarge), "{field}");
        }
        let items = vec![json!({"url": lines(2000)}); 6];
        assert_eq!(batch(json!({"items": items})), Err(Invalid::TooMany));
    }

    #[test]
    fn items_share_what_is_not_secret_and_secrets_with_their_origin_only() {
        let made = batch(json!({"items": [
            {"url": "https://a.test/1", "cookies": "c=1", "headers": {"Authorization": "x"}, "saveDir": "/d"},
            {"url": "https://a.test/2"}, {"url": "https://b.test/3", "referrer": "https://page.test/"},
            {"url": "http://a.test/4"}, {"url": "https://a.test:8443/5"}]}))
        .unwrap();
        let shared: Vec<_> = made
            .iter()
            .map(|request| {
                (
                    request.cookies.as_str(),
                    request.headers.is_some(),
                    request.save_dir.as_str(),
                )
            })
            .collect();
        let (all, rest) = (("c=1", true, "/d"), ("", false, "/d"));
        assert_eq!(shared, [all, all, rest, rest, rest]);
        assert!(made.iter().all(|request| request.referrer == "https://page.test/"));
    }

    #[test]
    fn what_a_user_changes_takes_no_secret_elsewhere() {
        let edit = |value: Value| {
            let waiting = download(json!({"url": "http://a/1\nhttp://a/2", "cookies": "c=1", "saveDir": "/d"}));
            let edited = waiting
                .edited(serde_json::from_value(value).unwrap())
                .map(Download::into_requests);
            edited.unwrap()
        };
        let less = edit(json!({"url": "http://a/2", "filename": "n", "saveDir": "/e"}));
        let [only] = &less[..] else { panic!("one is left") };
        assert_eq!((only.url.as_str(), only.cookies.as_str()), ("http://a/2", "c=1"));
        assert_eq!((only.file_name.as_str(), only.save_dir.as_str()), ("n", "/e"));
        let other = edit(json!({"url": "http://b/3"}));
        assert!(other.len() == 1 && other[0].cookies.is_empty());
        assert_eq!(edit(json!({})).len(), 2);
    }
}
