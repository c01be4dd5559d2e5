//! The device link: services on one machine and in networks of their own, and a device that others wrote.

use e2e::{
    Home, Rpc, Service, binary, python,
    service::{KEY, wait_until},
    setting::kills,
};
use serde_json::{Value, json};

#[test]
fn a_device_written_from_the_text_pairs_sends_and_attacks() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    println!("{}", python::run("clients/link_peer.py", &[&service.url(), KEY]));
}

#[test]
fn a_device_in_the_middle_is_seen_or_refused_and_so_is_what_comes_late() {
    let svc = binary::path().display().to_string();
    println!("{}", python::run("clients/link_middle.py", &[&svc]));
}

#[test]
fn kills_at_every_step_leave_both_paired_or_neither_and_no_nonce_is_used_again() {
    let rounds = (kills() / 2).max(8).to_string();
    let svc = binary::path().display().to_string();
    println!("{}", python::run("clients/link_crashes.py", &[&svc, &rounds]));
}

#[test]
fn two_hosts_of_a_network_find_each_other_and_a_third_one_learns_nothing() {
    let svc = binary::path().display().to_string();
    println!("{}", python::run("clients/link_network.py", &[&svc]));
}

/// A desktop whose user is asked about downloads, killed and started again.
struct Desktop {
    home: Home,
    service: Service,
}

impl Desktop {
    fn new() -> Self {
        Self::start(Home::new())
    }

    /// It offers no management, so it is asked for what its user sees.
    fn start(home: Home) -> Self {
        let service = Service::start(home.new_open_desktop());
        wait_until("the link has what is stored", || {
            service.rpc().call("agent.link.refresh", &json!({})).is_ok()
        });
        Self { home, service }
    }

    /// Kills agent and daemon at once.
    fn killed(self) -> Self {
        let Self { home, service } = self;
        if let Some(daemon) = home.daemon() {
            daemon.kill();
        }
        service.kill();
        Self::start(home)
    }

    fn waiting(&self) -> Vec<Value> {
        let listed = ask(&mut self.service.rpc(), "agent.capture.list", &json!({}));
        listed.as_array().expect("a list").clone()
    }

    fn decide(&self, id: &str, is_accepted: bool) {
        let answer = json!({"transactionId": id, "accepted": is_accepted});
        ask(&mut self.service.rpc(), "agent.capture.resolve", &answer);
    }
}

#[track_caller]
fn ask(rpc: &mut Rpc, method: &str, params: &Value) -> Value {
    rpc.call(method, params)
        .unwrap_or_else(|error| panic!("{method}: {error:?}"))
}

/// Pairs, and gives the fingerprint of the second device.
fn pair(one: &Service, two: &Service) -> String {
    let (mut initiator, mut responder) = (one.rpc(), two.rpc());
    let made = ask(&mut responder, "agent.link.pairingCode", &json!({}));
    let begin = json!({"address": two.address(), "code": made["code"]});
    let begun = ask(&mut initiator, "agent.link.pairBegin", &begin);
    let asked = ask(&mut responder, "agent.link.requests", &json!({}));
    let approve = json!({"sessionId": asked[0]["sessionId"], "accept": true});
    ask(&mut responder, "agent.link.approve", &approve);
    let finish = json!({"token": begun["token"], "accept": true});
    let finished = ask(&mut initiator, "agent.link.pairFinish", &finish);
    let fingerprint = finished["device"]["fingerprint"].as_str();
    fingerprint.expect("they are paired").to_owned()
}

#[test]
fn what_a_desktop_received_still_awaits_its_user_after_a_kill() {
    let home = Home::new();
    let server = home.serve();
    server.wait_until_ready();
    let mut desktop = Desktop::new();
    ask(
        &mut desktop.service.rpc(),
        "agent.gateway.patch",
        &json!({"linkEnabled": true}),
    );
    let device = pair(&server, &desktop.service);
    let mut sender = server.rpc();
    let mut send = |name: &str| {
        let download = json!({"fingerprint": device, "url": format!("http://192.0.2.1/{name}"), "cookies": "a=secret-of-test",
            "shareSecrets": true});
        let sent = ask(&mut sender, "agent.link.dispatch", &download);
        sent["taskId"].as_str().expect("it arrived").to_owned()
    };
    let (accepted, rejected, kept) = (send("accepted"), send("rejected"), send("kept"));
    // Each kill follows the answer at once.
    desktop = desktop.killed();
    let waiting = desktop.waiting();
    let ids: Vec<&str> = waiting
        .iter()
        .filter_map(|shown| shown["transactionId"].as_str())
        .collect();
    assert_eq!(ids.len(), 3, "{waiting:?}");
    assert!(
        [&accepted, &rejected, &kept]
            .iter()
            .all(|id| ids.contains(&id.as_str())),
        "{waiting:?}"
    );
    let shown = waiting.iter().find(|shown| shown["transactionId"] == accepted.as_str());
    let shown = shown.expect("it is listed");
    assert_eq!(
        (&shown["url"], &shown["hasCookies"]),
        (&json!("http://192.0.2.1/accepted"), &json!(true))
    );
    assert!(
        shown["createdBy"].as_str().is_some_and(|by| by.starts_with("link:")),
        "{shown}"
    );
    desktop.decide(&accepted, true);
    desktop.decide(&rejected, false);
    desktop = desktop.killed();
    let waiting = desktop.waiting();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["transactionId"], kept.as_str());
    let task = ask(
        &mut desktop.service.rpc(),
        "daemon.task.get",
        &json!({"taskId": accepted}),
    );
    let by = task["createdBy"].as_str();
    assert!(by.is_some_and(|by| by.starts_with("link:")), "{task}");
    let unknown = desktop
        .service
        .rpc()
        .call("daemon.task.get", &json!({"taskId": rejected}));
    assert!(unknown.is_err(), "{unknown:?}");
    // It holds cookies, so it is sealed.
    assert!(
        !holds(&desktop.home.data(), b"secret-of-test"),
        "cookies are stored as they are"
    );
}

/// Whether a file below a directory has these bytes.
fn holds(directory: &std::path::Path, bytes: &[u8]) -> bool {
    let entries = std::fs::read_dir(directory).expect("it is a directory");
    entries.filter_map(Result::ok).any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        let content = std::fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}
