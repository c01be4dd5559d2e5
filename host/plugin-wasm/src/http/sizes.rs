//! The sizes of files whose page does not tell them, asked from their servers for a preview. No body is kept.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use futures_util::{StreamExt as _, stream};
use plugin_host::Link;
use tokio::time::{Instant, timeout_at};
use url::Origin;

use super::{Cookies, Request, Response, call_http::CallHttp, secret::SecretPosition};
use crate::limits::HttpLimits;

/// Concurrent requests: fewer than a plugin may send, because the user did not ask for these files.
const IN_FLIGHT: usize = 4;

/// The answers of servers that know the file but not the method.
const REFUSES_HEAD: [u16; 3] = [403, 405, 501];

impl HttpLimits {
    /// For [`CallHttp::sizes`].
    pub(crate) fn of_sizes() -> Self {
        Self {
            in_flight: IN_FLIGHT,
            ..Self::default()
        }
    }
}

impl CallHttp {
    /// The sizes of `links` in their order, as far as servers tell them within `budget` and the limit on requests. The
    /// budget counts waits for a turn at a site, too: a person waits for the preview.
    pub(crate) async fn sizes(&self, links: &[Link], budget: Duration) -> Vec<Option<u64>> {
        let deadline = Instant::now() + budget;
        let refusing = Mutex::default();
        let asked = (0..links.len()).map(|at| {
            let refusing = &refusing;
            async move { (at, self.size(&links[at], refusing).await) }
        });
        let mut asked = stream::iter(asked).buffer_unordered(self.limits().in_flight);
        let mut sizes = vec![None; links.len()];
        while let Ok(Some((at, size))) = timeout_at(deadline, asked.next()).await {
            sizes[at] = size;
        }
        sizes
    }

    /// Asks for the head of a file, or for its first byte at an origin of `refusing`, which does not answer that.
    async fn size(&self, link: &Link, refusing: &Mutex<HashSet<Origin>>) -> Option<u64> {
        let refusing = || refusing.lock().expect("nobody panics while holding them");
        let is_refused = refusing().contains(&link.url.origin());
        if !is_refused {
            let head = self.send(request("HEAD", link)).await.ok()?;
            if !REFUSES_HEAD.contains(&head.status) {
                return (head.status == 200)
                    .then(|| number(&field(&head, "content-length")?))
                    .flatten();
            }
            refusing().insert(link.url.origin());
        }
        let mut first = request("GET", link);
        first.headers.push(("range".to_owned(), "bytes=0-0".to_owned()));
        let first = self.send(first).await.ok()?;
        let range = field(&first, "content-range").filter(|_| first.status == 206)?;
        number(range.strip_prefix("bytes 0-0/")?)
    }
}

/// A request as a download of `link` would send it; the cookies and fields of the user go to the task's own site only.
fn request(method: &str, link: &Link) -> Request {
    let mut request = Request::new(method, link.url.as_str());
    request.max_bytes = Some(1);
    let has_cookies = link.headers.iter().any(|(name, _)| name == "cookie");
    request.cookies = if has_cookies {
        Cookies::None
    } else {
        Cookies::JarAndTask
    };
    request.headers.clone_from(&link.headers);
    request.headers.retain(|(name, _)| name != "range");
    // The length of a compressed body is not that of the file.
    request
        .headers
        .push(("accept-encoding".to_owned(), "identity".to_owned()));
    for (name, template) in &link.secret_headers {
        request.add_secret(SecretPosition::Header, name, template);
    }
    request
}

/// The only value of a field of an answer that is not compressed.
fn field(response: &Response, name: &str) -> Option<String> {
    let is_plain = |coding: &String| coding.eq_ignore_ascii_case("identity");
    let mut values = response.header_all(name);
    (values.len() == 1 && response.header_all("content-encoding").iter().all(is_plain)).then(|| values.remove(0))
}

/// A size that a file can have. A server that says 0 to a request for the head mostly means that it does not know.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let size = digits.parse().ok().filter(|_| is_number)?;
    (1..=i64::MAX as u64).contains(&size).then_some(size)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use plugin_host::Grants;
    use transfer::{RequestOptions, Secret};

    use super::*;
    use crate::{
        call::CallContext,
        http::{Answer, Exchange, Exchanged, Network, TaskSite},
    };

    const BUDGET: Duration = Duration::from_secs(5);

    /// Servers that answer after a moment, or never if the status is 0.
    struct Servers {
        answer: fn(&Exchange) -> Answer,
        asked: Mutex<Vec<Exchange>>,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl std::fmt::Debug for Servers {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Servers")
        }
    }

    impl Network for Servers {
        fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
            Box::pin(async move {
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
                let answer = (self.answer)(&exchange);
                self.asked.lock().unwrap().push(exchange.clone());
                if answer.status == 0 {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                self.now.fetch_sub(1, Ordering::Relaxed);
                Ok(answer)
            })
        }
    }

    fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Answer {
            status,
            headers: headers.collect(),
            body: bytes::Bytes::new(),
        }
    }

    fn link(url: &str) -> Link {
        Link::new(url.parse().unwrap())
    }

    /// The sizes of `links`, the requests for them, and the most requests at once.
    async fn ask(links: &[Link], answer: fn(&Exchange) -> Answer) -> (Vec<Option<u64>>, Vec<Exchange>, usize) {
        let servers = Arc::new(Servers {
            answer,
            asked: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let hosts = ["https://a.example", "https://b.example"];
        let request = RequestOptions {
            cookies: Secret::new("mine=1"),
            headers: vec![("X-Of-User".to_owned(), Secret::new("yes"))],
            ..RequestOptions::default()
        };
        let context = CallContext {
            grants: Grants {
                hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
                ..Grants::default()
            },
            network: servers.clone(),
            task: Some(TaskSite::new("https://a.example/".parse().unwrap(), request)),
            ..CallContext::isolated()
        };
        let told = context.http(HttpLimits::of_sizes()).sizes(links, BUDGET).await;
        let asked = servers.asked.lock().unwrap().clone();
        (told, asked, servers.most.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_files_some_are_asked_a_few_at_once() {
        let links: Vec<_> = (1..=200).map(|n| link(&format!("https://a.example/{n}"))).collect();
        let (told, asked, most) = ask(&links, |exchange| {
            answer(200, &[("content-length", exchange.url.path().trim_start_matches('/'))])
        })
        .await;
        let expect: Vec<_> = (1..=200).map(|n| (n <= 64).then_some(n)).collect();
        assert_eq!((told, most), (expect, IN_FLIGHT));
        assert!(asked.len() == 64 && asked.iter().all(|exchange| exchange.method == "HEAD"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_told_in_time_stays_unknown() {
        let links: Vec<_> = ["hangs", "a", "b", "c", "d"]
            .map(|name| link(&format!("https://a.example/{name}")))
            .into();
        let started = Instant::now();
        let (told, ..) = ask(&links, |exchange| {
            let status = if exchange.url.path() == "/hangs" { 0 } else { 200 };
            answer(status, &[("content-length", "5")])
        })
        .await;
        assert_eq!(told, [None, Some(5), Some(5), Some(5), Some(5)]);
        assert!(started.elapsed() <= BUDGET, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_length_that_is_the_file_s_is_believed() {
        let answers: [fn(&Exchange) -> Answer; 11] = [
            |_| answer(200, &[]),
            |_| answer(404, &[("content-length", "5")]),
            |_| answer(200, &[("content-length", "0")]),
            |_| answer(200, &[("content-length", "-5")]),
            |_| answer(200, &[("content-length", "+5")]),
            |_| answer(200, &[("content-length", "9223372036854775808")]),
            |_| answer(200, &[("content-length", "99999999999999999999999")]),
            |_| answer(200, &[("content-length", "5"), ("content-encoding", "gzip")]),
            |_| answer(200, &[("content-length", "5"), ("content-length", "6")]),
            |_| answer(302, &[("location", "http://127.0.0.1/"), ("content-length", "5")]),
            |exchange| match exchange.method.as_str() {
                "HEAD" => answer(405, &[]),
                // The range is ignored.
                _ => answer(200, &[("content-length", "5")]),
            },
        ];
        for (at, odd) in answers.into_iter().enumerate() {
            let (told, ..) = ask(&[link("https://a.example/x")], odd).await;
            assert_eq!(told, [None], "{at}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_refuses_to_tell_the_head_is_asked_for_the_first_byte() {
        let links: Vec<_> = (0..6).map(|n| link(&format!("https://a.example/{n}"))).collect();
        let (told, asked, _) = ask(&links, |exchange| match exchange.method.as_str() {
            "HEAD" => answer(405, &[("content-length", "19")]),
            _ => answer(206, &[("content-range", "bytes 0-0/1234"), ("content-length", "1")]),
        })
        .await;
        assert_eq!(told, [Some(1234); 6]);
        let heads = asked.iter().filter(|exchange| exchange.method == "HEAD").count();
        assert_eq!(
            (heads, asked.len()),
            (IN_FLIGHT, 6 + IN_FLIGHT),
            "the origin is known after the first"
        );
        let range = ("range".to_owned(), "bytes=0-0".to_owned());
        let gets = asked.iter().filter(|exchange| exchange.method == "GET");
        assert!(
            gets.clone()
                .all(|get| get.headers.contains(&range) && get.max_bytes == 1)
                && gets.count() == 6
        );
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_cookies_and_fields_are_those_of_a_call() {
        let mut with_key = link("https://a.example/moved");
        with_key.headers = vec![("x-key".to_owned(), "k".to_owned())];
        let links = [with_key, link("https://other.example/x"), link("https://b.example/x")];
        let (told, asked, _) = ask(&links, |exchange| match exchange.url.path() {
            "/moved" => answer(302, &[("location", "https://b.example/there")]),
            _ => answer(200, &[("content-length", "5")]),
        })
        .await;
        assert_eq!(
            told,
            [Some(5), None, Some(5)],
            "a host that was not granted is not asked"
        );
        let sent = |url: &str| {
            let exchange = asked.iter().find(|exchange| exchange.url.as_str() == url).unwrap();
            let private = ["cookie", "x-of-user", "x-key"];
            let names = exchange.headers.iter().map(|(name, _)| name.as_str());
            names.filter(|name| private.contains(name)).count()
        };
        assert_eq!(asked.len(), 3);
        assert_eq!(sent("https://a.example/moved"), 3);
        assert_eq!((sent("https://b.example/there"), sent("https://b.example/x")), (0, 0));
    }
}
