//! Writing a plugin, from nothing to files on the disk, as a newcomer does it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use e2e::{
    Home, Service, Svc,
    service::{KEY, wait_until},
    setting,
};
use serde_json::json;
use support::{Content, Origin, Resource};

use super::{guest, plugins::Server, unpack::set_chain};

/// The files behind the URL of the new plugin.
const FILES: [(&str, &[u8]); 3] = [
    (
        "share/index.json",
        br#"{"title": "Photos", "files": ["a.bin", "more/b c.bin"]}"#,
    ),
    ("share/a.bin", &[1; 100_000]),
    ("share/more/b c.bin", &[2; 5]),
];

/// Somebody who writes a plugin.
struct Author {
    home: Home,
    /// Of the plugin. Each test has its own, since cargo keeps what the plugins of all tests become in one directory.
    name: &'static str,
}

impl Author {
    fn of(name: &'static str) -> Self {
        let home = Home::new();
        Self { home, name }
    }

    /// The folder of the plugin.
    fn folder(&self) -> PathBuf {
        self.home.path().join(self.name)
    }

    /// The plugin's identity.
    fn identity(&self) -> String {
        format!("{}@me", self.name)
    }

    /// `svc plugin` with this command, about the plugin's folder.
    fn svc(&self, command: &str) -> Svc {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut svc = Svc::new().deadline(e2e::service::PATIENCE * 10);
        for (name, value) in setting::toolchain(&scratch.join("guests")) {
            svc = svc.env(name, value);
        }
        // What one author has compiled, the next one need not.
        svc = svc.env("XDG_CACHE_HOME", scratch.join("author-cache"));
        svc.args(["plugin", command]).arg(self.folder())
    }

    /// Runs a command that succeeds, and gives what it printed.
    #[track_caller]
    fn run(&self, command: &str, arguments: &[&str]) -> String {
        let run = self.svc(command).args(arguments).run();
        assert_eq!(run.code, Some(0), "{command}: {run:?}");
        run.stdout.join("\n")
    }

    /// Runs a command that finds the plugin unfit.
    #[track_caller]
    fn run_unfit(&self, command: &str) -> String {
        let run = self.svc(command).run();
        assert_eq!(run.code, Some(34), "{command}: {run:?}");
        run.stdout.join("\n")
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.folder().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
}

/// Changes the plugin while a service runs it from its folder; a failing call becomes a fixture. Gives what was said
/// about the change.
fn develop(author: &Author, server: &Server, file: &str, title: &str) -> String {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let mut dev = author
        .svc("dev")
        .args(["--url", &service.url()])
        .env("SVC_TOKEN", KEY)
        .spawn();
    let loaded = |line: &str| line.contains(" loaded ");
    assert!(dev.wait_for_line(loaded).is_some());
    assert_eq!(preview(&service, server, "share/index.json")["name"], "Photos");
    author.replace(file, title, "\"Mine\"");
    let changed = dev.wait_for_line(loaded).unwrap();
    assert_eq!(preview(&service, server, "share/index.json")["name"], "Mine");
    author.replace(file, "\"Mine\"", title);
    assert!(dev.wait_for_line(loaded).is_some());
    let failed = preview(&service, server, "none/index.json");
    assert!(failed["error"].as_str().unwrap().contains("not found"), "{failed}");
    assert!(dev.wait_for_line(|line| line.contains("a call failed")).is_some());
    dev.interrupt();
    assert_eq!(dev.finish().code, Some(0));
    let captured = fs::read_dir(author.folder().join("fixtures/_captured")).unwrap();
    let captured = captured.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::rename(captured, author.folder().join("fixtures/missing.json")).unwrap();
    assert_eq!(service.terminate().code, Some(0));
    changed
}

fn preview(service: &Service, server: &Server, path: &str) -> serde_json::Value {
    let body = json!({"url": format!("{}{path}", server.url)});
    service.call("POST", "/api/v1/resolve/preview", Some(&body))
}

/// Packs the plugin twice, installs it with its user's consent, and downloads a group with it.
fn use_it(author: &Author, server: &Server) {
    let archive = author.home.path().join("plugin.zip");
    let pack = || {
        author.run("pack", &["-o", archive.to_str().unwrap()]);
        fs::read(&archive).unwrap()
    };
    assert!(pack() == pack(), "two archives of one folder differ");
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let identity = &author.identity();
    let consent = guest::install_archive(&service, identity, &archive);
    let agreed = guest::switch(&service, identity, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
    wait_until("the plugin previews", || {
        preview(&service, server, "share/index.json")["items"]
            .as_array()
            .map(Vec::len)
            == Some(2)
    });
    service.create(&json!({"url": format!("{}share/index.json", server.url)}));
    wait_until("all files are there", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().unwrap();
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 2 && tasks.iter().all(|task| task["status"] == 3)
    });
    for task in service.call("GET", "/api/v1/tasks", None).as_array().unwrap() {
        let path = Path::new(task["saveDir"].as_str().unwrap()).join(task["fileName"].as_str().unwrap());
        let file = FILES
            .iter()
            .find(|(name, _)| path.ends_with(name.trim_start_matches("share/")));
        let (_, bytes) = file.expect("it is one of the files");
        assert!(fs::read(&path).unwrap() == *bytes, "{}", path.display());
    }
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_newcomer_gets_from_nothing_to_files_in_rust() {
    let (author, server) = (Author::of("photo-share"), Server::with(&FILES));
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-sdk");
    author.run("new", &["--sdk", sdk.to_str().unwrap()]);
    author.run("build", &[]);
    let played = author.run("test", &["--budget"]);
    assert!(played.contains("2 played, all as recorded"), "{played}");
    assert_eq!(author.run("lint", &[]), "nothing to complain about");
    println!(
        "{}",
        develop(&author, &server, "src/lib.rs", "&index.string(\"/title\")?")
    );
    author.run(
        "test",
        &["--record", &format!("{}share/index.json", server.url), "--name", "live"],
    );
    author.run("test", &["--live", "--only", "live"]);
    use_it(&author, &server);
    author.replace("fixtures/list.json", "\"title\": \"Photos\"", "\"title\": \"Else\"");
    let failed = author.run_unfit("test");
    assert!(
        failed.contains("/title: is \"Photos\"; \"Else\" is expected"),
        "{failed}"
    );
    author.run_unfit("pack");
}

#[test]
fn a_newcomer_gets_from_nothing_to_files_in_javascript() {
    let (author, server) = (Author::of("photo-script"), Server::with(&FILES));
    author.run("new", &["--lang", "js"]);
    author.run("build", &[]);
    let played = author.run("test", &[]);
    assert!(played.contains("2 played, all as recorded"), "{played}");
    println!("{}", develop(&author, &server, "plugin.js", "index.json('/title')"));
    use_it(&author, &server);
}

#[test]
fn a_new_plugin_that_reads_feeds_does_so_in_a_service() {
    for lang in ["rust", "js"] {
        let (author, server) = (Author::of("photo-feed"), Server::with(&FILES));
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-sdk");
        author.run(
            "new",
            &["--lang", lang, "--kind", "feed", "--sdk", sdk.to_str().unwrap()],
        );
        author.run("build", &[]);
        let played = author.run("test", &[]);
        assert!(played.contains("1 played, all as recorded"), "{played}");
        assert_eq!(author.run("lint", &[]), "nothing to complain about");
        let archive = author.home.path().join("plugin.zip");
        author.run("pack", &["-o", archive.to_str().unwrap()]);
        let service = author.home.serve();
        service.wait_until_ready();
        let identity = &author.identity();
        let consent = guest::install_archive(&service, identity, &archive);
        let agreed = guest::switch(&service, identity, &json!({"enabled": true, "consent": consent}));
        assert_eq!(agreed.status, 200, "{}", agreed.body);
        wait_until("the plugin is loaded", || {
            service.call("GET", "/api/v1/plugins", None)[0]["loadStatus"] == "Loaded"
        });
        let url = format!("{}share/index.json", server.url);
        let source = json!({"url": url, "providerId": identity, "downloadAll": true});
        let asked = json!({"url": url, "source": source});
        let read = service.call("POST", "/api/v1/rss/validate", Some(&asked));
        assert_eq!(
            (&read["feedTitle"], &read["items"][1]["title"]),
            (&json!("Photos"), &json!("more/b c.bin")),
            "{read}"
        );
        assert_eq!(service.terminate().code, Some(0));
    }
}

#[test]
fn a_new_plugin_that_works_on_finished_files_does_so_in_a_service() {
    let author = Author::of("photo-notes");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-sdk");
    author.run("new", &["--kind", "post", "--sdk", sdk.to_str().unwrap()]);
    author.run("build", &[]);
    let played = author.run("test", &[]);
    assert!(played.contains("1 played, all as recorded"), "{played}");
    assert_eq!(author.run("lint", &[]), "nothing to complain about");
    let archive = author.home.path().join("plugin.zip");
    author.run("pack", &["-o", archive.to_str().unwrap()]);
    let identity = &author.identity();
    let service = guest::with_archive(&author.home, identity, &archive);
    set_chain(
        &service,
        &json!([{"kind": "plugin", "identity": identity}, {"kind": "rename", "template": "done/{name}"}]),
    );
    let origin = Origin::start(vec![Resource::new("/a.bin", Content::bytes("12345"))]);
    let url = origin.url("/a.bin");
    service.create(&json!({"url": url}));
    let done = author.home.downloads().join("done");
    wait_until("the steps are done", || done.join("a.bin.source.txt").exists());
    let note = fs::read_to_string(done.join("a.bin.source.txt")).unwrap();
    assert_eq!(note, format!("{url}\na.bin, 5 bytes\n"));
    assert_eq!(
        fs::read(done.join("a.bin")).unwrap(),
        b"12345",
        "both went to the next step"
    );
    wait_until("nothing else is left", || {
        fs::read_dir(author.home.downloads()).unwrap().count() == 1
    });
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn an_archive_whose_plugin_does_not_do_what_was_recorded_is_not_installed() {
    let author = Author::of("photo-refused");
    author.run("new", &["--lang", "js"]);
    author.replace("fixtures/list.json", "\"title\": \"Photos\"", "\"title\": \"Else\"");
    let archive = author.home.path().join("plugin.zip");
    author.run("pack", &["--no-test", "-o", archive.to_str().unwrap()]);
    let service = author.home.serve();
    service.wait_until_ready();
    let install = Svc::new()
        .args(["plugin", "install", archive.to_str().unwrap(), "--url", &service.url()])
        .env("SVC_TOKEN", KEY)
        .run();
    assert_eq!(install.code, Some(32), "{install:?}");
    for told in ["an index with two files", "/title"] {
        assert!(install.stderr.contains(told), "{install:?}");
    }
    assert_eq!(service.call("GET", "/api/v1/plugins", None), json!([]));
    assert_eq!(service.terminate().code, Some(0));
}
