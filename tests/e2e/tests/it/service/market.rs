//! The market, end to end: sources made by the real tools and served by a real web server, authors with keys of their own,
//! and a service that installs from them.

mod bundled;
mod day;
mod kill_loop;
mod lies;
pub(crate) mod shop;
mod stock;

use e2e::{Run, Service, Svc, service::KEY};
use serde_json::{Value, json};

/// `svc market` with these words, against a service.
fn market(service: &Service, words: &[&str]) -> Run {
    let svc = Svc::new().arg("market").args(words).args(["--url", &service.url()]);
    svc.env("SVC_TOKEN", KEY).deadline(e2e::service::PATIENCE).run()
}

/// The same, for what succeeds; the answer is what was printed.
#[track_caller]
pub(super) fn run(service: &Service, words: &[&str]) -> String {
    let run = market(service, words);
    assert_eq!(run.code, Some(0), "{words:?}: {run:?}");
    run.stdout.join("\n")
}

/// The plugin, as the service tells of it; `null` if it is not installed.
fn plugin(service: &Service, identity: &str) -> Value {
    let plugins = service.call("GET", "/api/v1/plugins", None);
    let mut plugins = plugins.as_array().expect("a list").iter();
    let found = plugins.find(|plugin| plugin["identity"] == identity);
    found.cloned().unwrap_or_default()
}

/// The plugin, as the market offers it.
#[track_caller]
fn offer(service: &Service, identity: &str) -> Value {
    let offers = service.call("GET", "/api/v1/market", None);
    let mut offers = offers.as_array().expect("a list").iter();
    let found = offers.find(|offer| offer["pluginId"] == identity);
    found.unwrap_or_else(|| panic!("nobody offers {identity}")).clone()
}

/// The source, as the service tells of it.
fn source(service: &Service, id: &str) -> Value {
    let sources = service.call("GET", "/api/v1/market/sources", None);
    let mut sources = sources.as_array().expect("a list").iter();
    sources.find(|source| source["id"] == id).cloned().unwrap_or_default()
}

/// What a preview of the URL says.
fn preview(service: &Service, url: &str) -> Value {
    service.call("POST", "/api/v1/resolve/preview", Some(&json!({ "url": url })))
}
