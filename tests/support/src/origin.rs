//! An HTTP/1.1 server on loopback that serves resources and keeps a record of every request.

use std::{
    collections::BTreeSet,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustls::ServerConfig;

use crate::{
    reply::{End, Reply},
    request::{Request, Tally},
    resource::{Resource, Visit},
    server::{Accepted, Server, lock},
    tls::{self, Certificate},
    wire::Wire,
};

/// A request that a test waits for comes sooner than this, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server. Dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct Origin {
    server: Server,
    log: Arc<Log>,
    /// The path of each resource, and how many behaviours it has.
    behaviours: Vec<(String, usize)>,
    scheme: &'static str,
    authority_pem: Option<String>,
}

impl Origin {
    /// Serves `resources` over plain HTTP on a free port of 127.0.0.1.
    pub fn start(resources: Vec<Resource>) -> Self {
        Self::listen(resources, None)
    }

    /// Serves `resources` over TLS.
    pub fn start_tls(resources: Vec<Resource>, certificate: Certificate) -> Self {
        let (config, authority_pem) = tls::config(certificate);
        let mut origin = Self::listen(resources, Some(config));
        (origin.scheme, origin.authority_pem) = ("https", Some(authority_pem));
        origin
    }

    fn listen(resources: Vec<Resource>, tls: Option<Arc<ServerConfig>>) -> Self {
        let log = Arc::<Log>::default();
        let for_connections = Arc::clone(&log);
        let behaviours = resources
            .iter()
            .map(|resource| (resource.path().to_owned(), resource.behaviours()))
            .collect();
        let server = Server::start(move |accepted| serve(accepted, &resources, &for_connections, tls.as_ref()));
        Self {
            server,
            log,
            behaviours,
            scheme: "http",
            authority_pem: None,
        }
    }

    /// The URL of `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.server.address())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// The certificate that a client has to trust, as PEM; `None` without TLS.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.log.requests).clone()
    }

    /// Behaviours and the number of those that a client has met so far: what they had changed about an answer went out.
    pub fn behaviours_met(&self) -> (usize, usize) {
        let all = self.behaviours.iter().map(|(_, count)| count).sum();
        (lock(&self.log.met).len(), all)
    }

    /// Behaviours that no client has met yet, as path and number.
    pub fn behaviours_not_met(&self) -> Vec<String> {
        let met = lock(&self.log.met);
        let all = self.behaviours.iter();
        let all = all.flat_map(|(path, count)| (0..*count).map(move |index| (path.clone(), index)));
        all.filter(|one| !met.contains(one))
            .map(|(path, index)| format!("behaviour {index} of {path}"))
            .collect()
    }

    /// Waits until there have been `n` requests, and gives them.
    pub fn wait_for_requests(&self, n: usize) -> Vec<Request> {
        let until = Instant::now() + PATIENCE;
        let mut requests = lock(&self.log.requests);
        while requests.len() < n {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{} of {n} requests came within {PATIENCE:?}",
                requests.len()
            );
            requests = self
                .log
                .grown
                .wait_timeout(requests, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        requests.clone()
    }

    /// Bytes of body put on the wire so far, over all requests.
    pub fn bytes_sent(&self) -> u64 {
        self.log.tally.bytes()
    }

    /// Waits until this many bytes of body are on the wire. False if they do not come: the client has ended.
    pub fn wait_for_bytes(&self, bytes: u64, patience: Duration) -> bool {
        self.log.tally.wait_for(bytes, patience)
    }

    /// The most connections that were open at one time.
    pub fn max_connections_seen(&self) -> usize {
        self.server.most_open()
    }
}

#[derive(Debug, Default)]
struct Log {
    requests: Mutex<Vec<Request>>,
    grown: Condvar,
    tally: Arc<Tally>,
    met: Mutex<BTreeSet<(String, usize)>>,
}

impl Log {
    fn record(&self, request: &Request) {
        lock(&self.requests).push(request.clone());
        self.grown.notify_all();
    }

    fn meet(&self, path: &str, acted: &[usize]) {
        lock(&self.met).extend(acted.iter().map(|index| (path.to_owned(), *index)));
    }

    fn served(&self, path: &str) -> u64 {
        lock(&self.requests)
            .iter()
            .filter(|request| request.path() == path)
            .map(Request::bytes_sent)
            .sum()
    }
}

fn serve(accepted: Accepted, resources: &[Resource], log: &Log, tls: Option<&Arc<ServerConfig>>) {
    let Accepted { stream, number, stop } = accepted;
    let wire = match tls {
        Some(config) => Wire::tls(stream, config),
        None => Ok(Wire::plain(stream)),
    };
    let Ok(mut wire) = wire else { return };
    let mut end = End::Close;
    let mut nth_on_connection = 0;
    while let Some(request) = Request::read(&mut wire, number, &log.tally) {
        let found = resources.iter().find(|resource| resource.path() == request.path());
        let found = found.map(|resource| (resource, resource.enter(&request)));
        // Who waits for a request finds it counted among those that are answered.
        log.record(&request);
        let Some((resource, entered)) = found else {
            let reply = Reply::text(404, "text/plain", "there is no such file\n");
            if wire.send(&request, &reply, &stop, &|| ()).is_err() || request.wants_close() {
                return;
            }
            continue;
        };
        let served = log.served(resource.path());
        let visit = Visit {
            nth: entered.nth,
            connection: number,
            nth_on_connection,
            served,
            active: entered.active,
        };
        let (reply, acted) = resource.reply(&request, visit);
        nth_on_connection += 1;
        let meet = || log.meet(resource.path(), &acted);
        let Ok(ended) = wire.send(&request, &reply, &stop, &meet) else {
            return;
        };
        drop(entered);
        if ended != End::KeepAlive {
            wire.finish(ended);
            return;
        }
        end = ended;
    }
    wire.finish(end);
}
