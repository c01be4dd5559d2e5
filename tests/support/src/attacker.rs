//! A host that wants secrets of others: it answers everything, and keeps whatever arrives.

use serde_json::json;

use crate::{
    recorder::{Recorder, Seen},
    reply::Reply,
    request::Place,
};

/// The host. Dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct Attacker(Recorder);

impl Attacker {
    /// Listens on a free port of 127.0.0.1; every request is answered with 200 and a small JSON text.
    pub fn start() -> Self {
        Self(Recorder::start(|_| {
            let body = json!({"ok": true, "url": "/"}).to_string();
            Reply::text(200, "application/json", body).into()
        }))
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// The URL of `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port())
    }

    /// Everything that arrived, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.0.seen()
    }

    /// Waits until there have been `n` requests for `path`, and gives them.
    pub fn wait_for(&self, path: &str, n: usize) -> Vec<Seen> {
        self.0.wait_for(path, n)
    }

    /// Where a text arrived, by request: its number and the place in it.
    pub fn received(&self, text: &str) -> Vec<(usize, Place)> {
        let seen = self.seen();
        let of_one = |(number, one): (usize, &Seen)| {
            let places = one.request.places(text).into_iter();
            places.map(|place| (number, place)).collect::<Vec<_>>()
        };
        seen.iter().enumerate().flat_map(of_one).collect()
    }
}
