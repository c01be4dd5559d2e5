//! URLs that the user did not give and that lead into the user's own network: by redirect, by a page that hands a download
//! over, by a plugin's link, through a proxy. What is attacked is a listener, which must not see a connection.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
};

use e2e::{Home, Run, Service, Svc, http, may_mount, service::KEY, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Proxy, Resource, behaviour};

use crate::{
    place::Place,
    service::plugin_sites::{go_through, with_plugin},
};

/// Something in the user's own network that the user did not name.
struct Inside(TcpListener);

impl Inside {
    fn listen(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("an address of the loopback has a free port");
        listener.set_nonblocking(true).expect("it is a socket");
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("it listens").port()
    }

    /// Asserts that no connection was made.
    #[track_caller]
    fn assert_untouched(&self) {
        let accepted = self.0.accept().map_err(|error| error.kind());
        assert!(matches!(accepted, Err(io::ErrorKind::WouldBlock)), "{accepted:?}");
    }
}

/// A file of host names in which these are this machine. Fails where this process may not put one in place: a test that
/// cannot give names other addresses has shown nothing.
#[track_caller]
fn hosts(folder: &Path, names: &[&str]) -> PathBuf {
    assert!(
        may_mount(),
        "this test gives names other addresses, so it must be run as root"
    );
    let path = folder.join("hosts");
    // Absolute names are other names to this file.
    let names: Vec<_> = names.iter().map(|name| format!("{name} {name}.")).collect();
    let text = format!("127.0.0.1 localhost {}\n", names.join(" "));
    std::fs::write(&path, text).expect("a temporary directory is writable");
    path
}

/// An origin that redirects to each of these, `/0` to the first.
fn redirecting(targets: &[String]) -> Origin {
    let resources = targets.iter().enumerate().map(|(index, target)| {
        Resource::new(&format!("/{index}"), Content::bytes("")).with(behaviour::redirect(302, target))
    });
    Origin::start(resources.collect())
}

/// Asserts that a run ended because of where a redirect leads, after the server had sent it there.
#[track_caller]
fn assert_refused(run: &Run, origin: &Origin, target: &str) {
    assert_eq!(
        run.failure().as_deref(),
        Some("forbidden-redirect"),
        "{target}: {run:?}"
    );
    assert!(!origin.requests().is_empty(), "{target}");
}

/// The task once it has ended.
fn ended(service: &Service, id: &str) -> Value {
    wait_until("the task ends", || {
        [Some(3), Some(4)].contains(&service.task(id)["status"].as_i64())
    });
    service.task(id)
}

/// Hands a download over as a browser does that found it on this page.
fn hand_over(service: &Service, url: &str, page: &str) {
    let headers = [("X-Svc-Client", "test"), ("X-Svc-Token", KEY)];
    let body = json!({"url": url, "referrer": page});
    let answer = http::ask(service.address(), "POST", "/download", &headers, Some(&body)).expect("it answers");
    // Refused at once or when its turn comes: what counts is that no connection is made.
    assert!([200, 400, 403].contains(&answer.status), "{}", answer.body);
}

/// Waits until no task is at work, and gives them all.
fn all_ended(service: &Service) -> Vec<Value> {
    let tasks = || service.call("GET", "/api/v1/tasks", None);
    wait_until("all tasks end", || {
        let tasks = tasks();
        let mut tasks = tasks.as_array().expect("a list").iter();
        tasks.all(|task| [Some(3), Some(4)].contains(&task["status"].as_i64()))
    });
    tasks().as_array().expect("a list").clone()
}

#[test]
fn a_page_cannot_hand_over_its_own_name_once_that_leads_to_this_machine() {
    let home = Home::new();
    let hosts = hosts(home.path(), &["evil.example", "rebound.evil.example"]);
    let inside = Inside::listen("127.0.0.1");
    let port = inside.port();
    let service = Service::start(home.new_server().env("SVC_TOKEN", KEY).with_hosts(&hosts));
    service.wait_until_ready();
    for (host, page) in [
        ("evil.example", "evil.example"),
        ("evil.example.", "evil.example"),
        ("evil.example", "EVIL.example."),
        ("rebound.evil.example", "evil.example"),
        ("127.0.0.1", "evil.example"),
        ("2130706433", "evil.example"),
        ("[::ffff:127.0.0.1]", "evil.example"),
        ("localhost", "evil.example"),
    ] {
        let page = format!("http://{page}:{port}/");
        hand_over(&service, &format!("http://{host}:{port}/containers/json"), &page);
    }
    for task in all_ended(&service) {
        assert_eq!(task["errorKind"], "forbidden-redirect", "{task}");
    }
    inside.assert_untouched();

    // The user may ask for the same URL, and then the name leads to this machine.
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::bytes("mine"))]);
    let id = service.create(&json!({"url": format!("http://evil.example:{}/f.bin", origin.port())}));
    let task = ended(&service, &id);
    assert_eq!(task["status"], 3, "{task}");
}

#[test]
fn a_page_on_this_machine_cannot_hand_over_another_host_of_it() {
    let home = Home::new();
    let inside = Inside::listen("127.0.0.2");
    let service = home.serve();
    service.wait_until_ready();
    let url = format!("http://127.0.0.2:{}/", inside.port());
    hand_over(&service, &url, "http://127.0.0.1:3000/");
    for task in all_ended(&service) {
        assert_eq!(task["errorKind"], "forbidden-redirect", "{task}");
    }
    inside.assert_untouched();
}

#[test]
fn a_redirect_leads_into_no_private_network_however_the_address_is_written() {
    let place = Place::new();
    let hosts = hosts(&place.aside(""), &["public.example", "rebound.example"]);
    let inside = Inside::listen("127.0.0.1");
    let port = inside.port();
    let targets = [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.0.1",
        "0",
        "0.0.0.0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "router",
        "rebound.example",
        "rebound.example.",
    ];
    let targets = targets.map(|host| format!("http://{host}:{port}/latest/meta-data"));
    let origin = redirecting(&targets);
    for (index, target) in targets.iter().enumerate() {
        let url = format!("http://public.example:{}/{index}", origin.port());
        let run = Svc::get(place.path()).arg(url).with_hosts(&hosts).run();
        assert_refused(&run, &origin, target);
    }
    assert_eq!(origin.requests().len(), targets.len(), "every redirect was met");
    inside.assert_untouched();
}

#[test]
fn a_host_of_this_machine_leads_to_no_other_network_and_to_no_port_of_another_protocol() {
    let place = Place::new();
    let targets = [
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.100.100.200/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://router.local/",
        "http://127.0.0.1:22/",
        "http://127.0.0.1:6667/",
    ]
    .map(str::to_owned);
    let origin = redirecting(&targets);
    for (index, target) in targets.iter().enumerate() {
        let run = Svc::get(place.path()).arg(origin.url(&format!("/{index}"))).run();
        assert_refused(&run, &origin, target);
    }
    assert_eq!(origin.requests().len(), targets.len(), "every redirect was met");
}

/// Asserts that a proxy is asked for the URL of the user and never for what that redirects to.
#[track_caller]
fn assert_not_asked(hosts: &Path, scheme: &str, targets: &[String]) {
    let place = Place::new();
    let origin = redirecting(targets);
    let names = [("public.example", origin.port())];
    let proxy = match scheme {
        "http" => Proxy::http(&names, None),
        _ => Proxy::socks5(&names, None),
    };
    let through = format!("{scheme}://127.0.0.1:{}", proxy.port());
    for (index, target) in targets.iter().enumerate() {
        let run = Svc::get(place.path())
            .args(["--proxy", &through])
            .arg(format!("http://public.example/{index}"))
            .with_hosts(hosts);
        assert_refused(&run.run(), &origin, target);
    }
    assert_eq!(origin.requests().len(), targets.len(), "every redirect was met");
    let asked = proxy.requests();
    assert!(
        asked.iter().all(|asked| asked.target.contains("public.example")),
        "{asked:?}"
    );
}

#[test]
fn no_proxy_is_asked_for_what_leads_into_the_own_network() {
    let place = Place::new();
    let hosts = hosts(&place.aside(""), &["inside.example"]);
    let inside = Inside::listen("127.0.0.1");
    let targets = |hosts: &[&str]| {
        let urls = hosts
            .iter()
            .flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:{}/x", inside.port())));
        urls.collect::<Vec<_>>()
    };
    let spelled = [
        "127.0.0.1",
        "2130706433",
        "[::1]",
        "localhost",
        "x.localhost.",
        "router",
        "db.internal",
    ];
    assert_not_asked(&hosts, "socks5", &targets(&spelled));
    assert_not_asked(&hosts, "http", &targets(&spelled));
    assert_not_asked(&hosts, "http", &targets(&["inside.example"]));
    inside.assert_untouched();
}

/// A plugin that asks `asked`, unless that is empty, and gives `link`.
fn script(asked: &str, link: &str) -> String {
    format!(
        "export async function resolve(call, out) {{
            await http.get(call.url).send();
            if ({asked:?}) await http.get({asked:?}).send();
            out.add('file', 'file.bin').link({link:?});
        }}
        export const preview = resolve;"
    )
}

#[test]
fn a_plugin_leads_to_no_private_host_but_the_one_that_the_user_gave() {
    let inside = Inside::listen("127.0.0.2");
    let url = format!("http://127.0.0.2:{}/x", inside.port());
    let page = || Resource::new("/page", Content::bytes("a page"));
    for link in [url.clone(), url.replace("127.0.0.2", "localhost")] {
        let origin = Origin::start(vec![page()]);
        let home = Home::new();
        let service = with_plugin(&home, &json!({"inputHost": true}), &script("", &link));
        let id = service.create(&json!({"url": origin.url("/page")}));
        let task = ended(&service, &id);
        assert_eq!(task["errorKind"], "forbidden-redirect", "{task}");
        assert_eq!(origin.requests().len(), 1, "the plugin was at work");
    }
    inside.assert_untouched();
}

#[test]
fn a_plugin_asks_no_proxy_for_what_leads_into_the_own_network() {
    let home = Home::new();
    let hosts = hosts(home.path(), &["inside.example"]);
    let inside = Inside::listen("127.0.0.1");
    let origin = Origin::start(vec![
        Resource::new("/page", Content::bytes("a page")),
        Resource::new("/file.bin", Content::bytes("a file")),
    ]);
    let proxy = Proxy::http(&[("public.example", origin.port())], None);
    let inside_url = format!("http://inside.example:{}", inside.port());
    let permissions = json!({"inputHost": true, "hosts": [inside_url]});
    let plugin = script(&format!("{inside_url}/x"), "http://public.example/file.bin");
    drop(with_plugin(&home, &permissions, &plugin).terminate());

    let service = Service::start(home.new_server().with_hosts(&hosts));
    service.wait_until_ready();
    go_through(&service, &proxy, "");
    let id = service.create(&json!({"url": "http://public.example/page"}));
    let task = ended(&service, &id);
    assert_eq!(task["status"], 4, "{task}");
    let asked = proxy.requests();
    assert!(!asked.is_empty(), "the plugin was at work: {task}");
    assert!(
        asked.iter().all(|asked| asked.target.contains("public.example")),
        "{asked:?}"
    );
    inside.assert_untouched();
}
