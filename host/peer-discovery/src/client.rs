//! Asks trackers, over the connections that `egress` allows.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use egress::{
    HttpClient, Names, Pins, Redirects,
    udp::{self, Datagrams},
};
use tokio::time::{Instant, timeout, timeout_at};
use transfer::{GivenBy, SafeUrl, retry_after};
use url::Url;

use crate::tracker::{
    Announce, Answer, Retry, TrackerFailure, http, text,
    udp::{self as packet, Foreign},
};

/// For an answer over HTTP, redirects included.
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// Trackers move to another path or to HTTPS; nothing else needs more.
const MAX_REDIRECTS: u32 = 5;

/// For looking a tracker's name up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// For each attempt of a packet, the connection's and the announce's. The standard waits 15 s and doubles that eight times,
/// which no other tracker of the tier would wait for.
const UDP_TIMEOUTS: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(6), Duration::from_secs(12)];

/// Addresses of one tracker that are tried.
const MAX_ADDRESSES: usize = 3;

/// An announce to one tracker.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) announce: Announce,
    pub(crate) url: SafeUrl,
    pub(crate) given_by: GivenBy,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) pins: Arc<Pins>,
}

/// Sends announces.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) http: HttpClient,
    pub(crate) names: Names,
}

impl Client {
    /// Asks the tracker; bounded in time by itself.
    pub(crate) async fn announce(&self, request: &Request) -> Result<Answer, TrackerFailure> {
        if request.url.scheme() == "udp" {
            return self.over_udp(request).await;
        }
        let asking = timeout(HTTP_TIMEOUT, self.over_http(request)).await;
        asking.unwrap_or_else(|_| Err(timed_out(HTTP_TIMEOUT)))
    }

    async fn over_http(&self, request: &Request) -> Result<Answer, TrackerFailure> {
        let home = request.url.as_url();
        let mut redirects = Redirects::at_most(MAX_REDIRECTS);
        let mut url = http::url(home, &request.announce);
        loop {
            let reach = egress::reach::of(&request.given_by, home, &url);
            let sent = self.http.send(egress::Request {
                method: "GET",
                url: url.clone(),
                headers: &[],
                body: Bytes::new(),
                reach,
                pins: &request.pins,
                proxy: request.proxy.as_ref(),
            });
            let mut response = sent.await.map_err(|error| TrackerFailure::new(error.to_string()))?;
            let status = response.status();
            if let Some(location) = response.header("location").filter(|_| Redirects::is_redirect(status)) {
                let followed = redirects.follow(&url, location);
                url = followed.map_err(|refusal| TrackerFailure::new(refusal.to_string()))?;
                continue;
            }
            let wait = response.header("retry-after");
            let wait = wait.and_then(|value| retry_after(value, SystemTime::now()));
            let body = read(&mut response).await?;
            return match http::read(&body) {
                Ok(answer) if status == 200 => Ok(answer),
                Err(failure) if status == 200 => Err(failure),
                // Some send their refusal with the status of an error.
                Err(failure) if body.starts_with(b"d") => Err(with_wait(failure, wait)),
                _ => Err(with_wait(
                    TrackerFailure::new(format!("the tracker answered with HTTP {status}")),
                    wait,
                )),
            };
        }
    }

    async fn over_udp(&self, request: &Request) -> Result<Answer, TrackerFailure> {
        if request.proxy.is_some() {
            return Err(TrackerFailure::new(
                "a tracker over UDP cannot be asked through a proxy, and would see your address without it",
            ));
        }
        let url = request.url.as_url();
        let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
        let port = url
            .port()
            .ok_or_else(|| TrackerFailure::new("the tracker's URL has no port"))?;
        let reach = request.pins.narrow(url, egress::reach::of(&request.given_by, url, url));
        let found = udp::resolve(&self.names, (host, port), reach, LOOKUP_TIMEOUT).await;
        let found = found.map_err(|error| TrackerFailure::new(error.to_string()))?;
        let mut failure = TrackerFailure::new("the tracker has no address");
        for address in found.into_iter().take(MAX_ADDRESSES) {
            let connected = Datagrams::connect(address, reach).await;
            let socket = match connected {
                Ok(socket) => socket,
                Err(error) => {
                    failure = TrackerFailure::new(error.to_string());
                    continue;
                }
            };
            request.pins.note(url, address.ip());
            match converse(&socket, request, address.is_ipv6()).await {
                Ok(answer) => return answer,
                Err(unanswered) => failure = unanswered,
            }
        }
        Err(failure)
    }
}

/// The conversation with one address: the answer or the refusal of a tracker there, or an error if there is none.
async fn converse(
    socket: &Datagrams,
    request: &Request,
    is_v6: bool,
) -> Result<Result<Answer, TrackerFailure>, TrackerFailure> {
    let mut last = TrackerFailure::new("the tracker did not answer");
    for limit in UDP_TIMEOUTS {
        let transaction = random();
        let packet = packet::connect(transaction);
        let connection = match ask(socket, &packet, limit, |answer| {
            packet::read_connection(answer, transaction)
        })
        .await
        {
            Ok(Ok(connection)) => connection,
            Ok(Err(refused)) => return Ok(Err(refused)),
            Err(unanswered) => {
                last = unanswered;
                continue;
            }
        };
        // A connection is valid for a minute, which is longer than these attempts; each announce has its own, so that
        // there is none to be guessed or kept.
        let transaction = random();
        let packet = packet::announce(&request.announce, request.url.as_url(), connection, transaction);
        match ask(socket, &packet, limit, |answer| {
            packet::read_announce(answer, transaction, is_v6)
        })
        .await
        {
            Ok(answered) => return Ok(answered),
            Err(unanswered) => last = unanswered,
        }
    }
    Err(last)
}

/// Sends a packet and waits for its answer; what is no answer to it is passed over, but extends no limit.
async fn ask<T>(
    socket: &Datagrams,
    packet: &[u8],
    limit: Duration,
    read: impl Fn(&[u8]) -> Result<T, Foreign>,
) -> Result<T, TrackerFailure> {
    let deadline = Instant::now() + limit;
    let failed = |error: std::io::Error| TrackerFailure::new(format!("the tracker cannot be reached: {error}"));
    socket.send(packet).await.map_err(failed)?;
    let mut buffer = vec![0; packet::MAX_PACKET_BYTES];
    loop {
        let received = timeout_at(deadline, socket.receive(&mut buffer)).await;
        let (length, _) = received.map_err(|_| timed_out(limit))?.map_err(failed)?;
        if let Ok(answer) = read(&buffer[..length]) {
            return Ok(answer);
        }
    }
}

async fn read(response: &mut egress::Response) -> Result<Vec<u8>, TrackerFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| TrackerFailure::new(error.to_string()))?
    {
        if body.len() + chunk.len() > http::MAX_ANSWER_BYTES {
            let limit = transfer::ByteCount(http::MAX_ANSWER_BYTES as u64);
            return Err(TrackerFailure::new(format!(
                "the tracker's answer is longer than {limit}"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn with_wait(failure: TrackerFailure, wait: Option<Duration>) -> TrackerFailure {
    match (failure.retry, wait) {
        (Retry::Default, Some(wait)) => TrackerFailure {
            retry: Retry::After(wait.min(http::MAX_WAIT)),
            ..failure
        },
        _ => failure,
    }
}

fn timed_out(limit: Duration) -> TrackerFailure {
    TrackerFailure::new(format!("the tracker did not answer within {} s", limit.as_secs()))
}

/// A number that others cannot guess.
pub(crate) fn random() -> u32 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    u32::from_ne_bytes(bytes)
}

/// Whether the user named a tracker on this machine, so that its peers may be here, too.
pub(crate) fn is_on_this_machine(url: &Url, given_by: &GivenBy) -> bool {
    let is_here = url.host_str().is_some_and(egress::name::is_here);
    is_here && *given_by == GivenBy::User
}

/// Texts of errors that are shown.
pub(crate) fn shown(error: &dyn std::error::Error) -> String {
    text::shown(&error.to_string())
}
