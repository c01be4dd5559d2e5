//! Lists of trackers that the user subscribed to: fetched once a day, merged, given to torrents that are not private.

use std::time::Duration;

use bytes::Bytes;
use egress::{HttpClient, Pins, Redirects, Request};
use futures_util::future::join_all;
use metainfo::TRACKER_SCHEMES;
use tokio::sync::{mpsc, oneshot, watch};
use transfer::{ByteCount, GivenBy, SafeUrl};

use crate::{
    client::shown,
    session::{ListView, Shared},
    settings::MAX_ADDITIONAL,
};

/// Between two readings.
const INTERVAL: Duration = Duration::from_hours(24);

/// After a reading in which a list failed.
const RETRY: Duration = Duration::from_hours(1);

/// For one list.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The longest list in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Lists that are read.
const MAX_LISTS: usize = 20;

const MAX_REDIRECTS: u32 = 5;

/// Runs until the session stops.
pub(crate) async fn run(
    http: HttpClient,
    mut shared: Shared,
    known: watch::Sender<Vec<SafeUrl>>,
    mut refreshes: mpsc::Receiver<oneshot::Sender<Vec<ListView>>>,
) {
    let mut read_for = None;
    let mut wait = INTERVAL;
    loop {
        let (lists, proxy) = {
            let settings = shared.settings.borrow_and_update();
            (settings.tracker_lists.clone(), settings.proxy.clone())
        };
        let mut reply = None;
        if read_for.as_ref() == Some(&lists) {
            tokio::select! {
                () = shared.stop.cancelled() => return,
                changed = shared.settings.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                Some(asked) = refreshes.recv() => reply = Some(asked),
                () = tokio::time::sleep(wait), if !lists.is_empty() => {}
            }
        }
        let reading = join_all(lists.iter().take(MAX_LISTS).map(|url| read(&http, url, proxy.as_ref())));
        let read = tokio::select! {
            read = reading => read,
            () = shared.stop.cancelled() => return,
        };
        wait = if read.iter().all(Result::is_ok) {
            INTERVAL
        } else {
            RETRY
        };
        let views = lists.iter().zip(&read).map(|(url, list)| ListView {
            url: url.clone(),
            trackers: list.as_ref().map(Vec::len).map_err(Clone::clone),
        });
        let views: Vec<_> = views.collect();
        // When every list has failed, the trackers of the last reading stay.
        if read.is_empty() || read.iter().any(Result::is_ok) {
            known.send_if_modified(|known| {
                let merged = merge(read.into_iter().filter_map(Result::ok));
                let is_new = *known != merged;
                *known = merged;
                is_new
            });
        }
        read_for = Some(lists);
        if let Some(reply) = reply {
            // A caller that is gone needs no answer.
            let _gone = reply.send(views);
        }
    }
}

/// The trackers of all lists, each once.
fn merge(lists: impl Iterator<Item = Vec<SafeUrl>>) -> Vec<SafeUrl> {
    let mut merged: Vec<SafeUrl> = Vec::new();
    for url in lists.flatten() {
        if merged.len() < MAX_ADDITIONAL && !merged.contains(&url) {
            merged.push(url);
        }
    }
    merged
}

/// The trackers of a list, or why there is none, in words.
async fn read(http: &HttpClient, url: &SafeUrl, proxy: Option<&SafeUrl>) -> Result<Vec<SafeUrl>, String> {
    let reading = tokio::time::timeout(TIMEOUT, fetch(http, url, proxy));
    let text = reading
        .await
        .unwrap_or_else(|_| Err(format!("it did not arrive within {} s", TIMEOUT.as_secs())))?;
    let trackers = parse(&text);
    if trackers.is_empty() {
        return Err("there is no tracker in it".to_owned());
    }
    Ok(trackers)
}

async fn fetch(http: &HttpClient, list: &SafeUrl, proxy: Option<&SafeUrl>) -> Result<String, String> {
    let (pins, mut redirects) = (Pins::default(), Redirects::at_most(MAX_REDIRECTS));
    let mut url = list.as_url().clone();
    loop {
        let sent = http.send(Request {
            method: "GET",
            url: url.clone(),
            headers: &[],
            body: Bytes::new(),
            reach: egress::reach::of(&GivenBy::User, list.as_url(), &url),
            pins: &pins,
            proxy,
        });
        let mut response = sent.await.map_err(|error| shown(&error))?;
        let status = response.status();
        if let Some(location) = response.header("location").filter(|_| Redirects::is_redirect(status)) {
            url = redirects.follow(&url, location).map_err(|refusal| shown(&refusal))?;
            continue;
        }
        if status != 200 {
            return Err(format!("HTTP {status}"));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| shown(&error))? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(format!("it is longer than {}", ByteCount(MAX_BYTES as u64)));
            }
            body.extend_from_slice(&chunk);
        }
        return Ok(String::from_utf8_lossy(&body).into_owned());
    }
}

/// The trackers of a list: one on a line, others separated by commas, comments after `#`.
pub fn parse(text: &str) -> Vec<SafeUrl> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    let words = lines.flat_map(|line| line.split([',', ' ', '\t']));
    let urls = words.map(str::trim).filter(|word| !word.is_empty());
    let trackers = urls.filter_map(|word| {
        let url = SafeUrl::parse(word).ok()?;
        let has_host = url.as_url().host_str().is_some_and(|host| !host.is_empty());
        (TRACKER_SCHEMES.contains(&url.scheme()) && has_host).then_some(url)
    });
    merge([trackers.take(MAX_ADDITIONAL).collect()].into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_the_forms_that_exist() {
        let text = "# best\n\nudp://a.test:1337/announce\n\r\nhttp://b.test/announce,https://c.test/announce\n\
            wss://d.test\nnot a url\nudp://a.test:1337/announce # again\n<html>";
        let trackers = parse(text);
        let urls: Vec<_> = trackers.iter().map(SafeUrl::expose).collect();
        assert_eq!(
            urls,
            [
                "udp://a.test:1337/announce",
                "http://b.test/announce",
                "https://c.test/announce"
            ]
        );
        let many: String = (0..2_000)
            .map(|at| format!("udp://t{at}.test:1\n"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(parse(&many).len(), MAX_ADDITIONAL);
    }
}
