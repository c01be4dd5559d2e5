//! From what browsers send to what tasks are made of. Pure.

use std::collections::BTreeMap;

use protocol::{CreateTaskRequest, DownloadRequest};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

/// Why nothing can be made of what was sent.
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
}

/// Several downloads: URLs that share the rest, or whole downloads, of which those that make no sense are left out.
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
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Download {
    requests: Vec<CreateTaskRequest>,
    /// What the browser knows of its size.
    pub(super) size: u64,
    /// The extension that handed it over without a key; empty is anybody else.
    pub(super) created_by: String,
}

impl Batch {
    pub(super) fn read(self) -> Result<Download, Invalid> {
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
            return one(shared).map_err(|_| Invalid::EmptyUrls);
        }
        let items = self.items.ok_or(Invalid::NeitherList)?;
        let items = items.as_array().ok_or(Invalid::EmptyItems)?;
        let items = items.iter().filter_map(|item| DownloadRequest::deserialize(item).ok());
        let items: Vec<DownloadRequest> = items.collect();
        if items.is_empty() {
            return Err(Invalid::EmptyItems);
        }
        let mut downloads = items.into_iter().filter_map(|item| one(item).ok());
        let mut whole = downloads.next().ok_or(Invalid::ItemsWithoutUrl)?;
        for download in downloads {
            whole.requests.extend(download.requests);
            whole.size = 0;
        }
        whole.share();
        Ok(whole)
    }
}

/// The download that `request` is. Its URLs may be several, with a line each; then it names no file.
pub(super) fn one(mut request: DownloadRequest) -> Result<Download, Invalid> {
    let lines = std::mem::take(&mut request.url);
    let urls: Vec<&str> = lines.lines().map(str::trim).filter(|url| !url.is_empty()).collect();
    let size = request.file_size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    let is_one = urls.len() == 1;
    let pattern = pattern(request);
    let of_url = |url: &&str| {
        let mut request = pattern.clone();
        (*url).clone_into(&mut request.url);
        if !is_one {
            request.file_name.clear();
            request.method = None;
            request.body = None;
            request.audio_url = None;
        }
        request
    };
    let requests: Vec<_> = urls.iter().map(of_url).collect();
    if requests.is_empty() {
        return Err(Invalid::WithoutUrl);
    }
    Ok(Download {
        requests,
        size: if is_one { size } else { 0 },
        created_by: String::new(),
    })
}

/// All but the URL. What browsers keep among the headers and we apart is taken from there.
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
        headers: Some(headers).filter(|headers| !headers.is_empty()),
        method: request.method,
        body: request.body,
        audio_url: request.audio_url.filter(|url| !url.trim().is_empty()),
        ..CreateTaskRequest::default()
    }
}

impl Download {
    /// What some of several items did not say, as the first one said it. What is secret stays with its host.
    fn share(&mut self) {
        let first = |text: fn(&CreateTaskRequest) -> &String| {
            let mut texts = self.requests.iter().map(text);
            texts.find(|text| !text.is_empty()).cloned().unwrap_or_default()
        };
        let (referrer, save_dir) = (first(|request| &request.referrer), first(|request| &request.save_dir));
        let mut secrets: BTreeMap<String, (String, Option<BTreeMap<String, String>>)> = BTreeMap::new();
        for request in &self.requests {
            let known = secrets.entry(host(&request.url).unwrap_or_default()).or_default();
            if known.0.is_empty() {
                known.0.clone_from(&request.cookies);
            }
            if known.1.is_none() {
                known.1.clone_from(&request.headers);
            }
        }
        for request in &mut self.requests {
            let Some((cookies, headers)) = secrets.get(&host(&request.url).unwrap_or_default()) else {
                continue;
            };
            for (own, shared) in [
                (&mut request.referrer, &referrer),
                (&mut request.save_dir, &save_dir),
                (&mut request.cookies, cookies),
            ] {
                if own.is_empty() {
                    own.clone_from(shared);
                }
            }
            if request.headers.is_none() {
                request.headers.clone_from(headers);
            }
        }
    }

    /// The download as its user wants it. URLs that it had keep what came with them; others come with nothing.
    pub(super) fn edited(mut self, edit: DownloadRequest) -> Result<Self, Invalid> {
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

    /// Whether all of it is asked for as a link is that one follows.
    pub(super) fn is_plain(&self) -> bool {
        let is_get = |method: &str| method.trim().is_empty() || method.trim().eq_ignore_ascii_case("GET");
        self.requests
            .iter()
            .all(|request| request.body.is_none() && request.method.as_deref().is_none_or(is_get))
    }

    /// Lets it take no name that is taken, whatever the settings say, and belong to `visitor`.
    pub(super) fn confine(&mut self, visitor: &str) {
        visitor.clone_into(&mut self.created_by);
        for request in &mut self.requests {
            "rename".clone_into(&mut request.file_exists_behavior);
        }
    }

    pub(super) fn requests(&self) -> &[CreateTaskRequest] {
        &self.requests
    }

    pub(super) fn into_requests(self) -> Vec<CreateTaskRequest> {
        self.requests
    }

    /// The page that it was found on.
    pub(super) fn referrer(&self) -> &str {
        self.requests.first().map_or("", |request| &request.referrer)
    }
}

/// The host of a URL.
pub(super) fn host(url: &str) -> Option<String> {
    Url::parse(url.trim()).ok()?.host_str().map(ToOwned::to_owned)
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
    fn items_share_what_is_not_secret_and_secrets_with_their_host_only() {
        let made = batch(json!({"items": [
            {"url": "https://a.test/1", "cookies": "c=1", "headers": {"Authorization": "x"}, "saveDir": "/d"},
            {"url": "https://a.test/2"}, {"url": "https://b.test/3", "referrer": "https://page.test/"}]}))
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
        assert_eq!(shared, [("c=1", true, "/d"), ("c=1", true, "/d"), ("", false, "/d")]);
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
