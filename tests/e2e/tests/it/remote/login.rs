//! `svc plugin login`, `accounts` and `logout`, on a terminal and in scripts, and a plugin that logs in.

use std::path::PathBuf;

use e2e::{Home, service::wait_until};
use serde_json::{Value, json};

use super::{Desk, assert_ended};
use crate::attack::scripts;

/// The plugin that logs in.
pub(crate) const PLUGIN: &str = "members@test";

const CTRL_C: &str = "\u{3}";

/// The exit code of a login that was not finished, and of one that was refused.
const UNFINISHED: i32 = 7;
const REFUSED: i32 = 24;

/// Logs in by a code that the site confirms at the first question; by a name, a password and then a code; or by a page that
/// is never finished.
const SCRIPT: &str = "
export async function resolve(call, out) { out.title('one'); }
export const preview = resolve;
export const login = {
  start(call, screen) {
    if (call.mode === 'qr') screen.qr('https://members.test/qr?t=1', 60, 'Scan it').pollAfter(500);
    else if (call.mode === 'browser') screen.openUrl('https://members.test/authorize').pollAfter(60000);
    else screen.field('user', 'Name').secretField('password', 'Password');
  },
  poll(call, screen) { if (call.mode === 'qr') screen.done('7', 'Ann'); },
  answer(call, values, screen) {
    if ('code' in values) {
      if (values.code !== '1234') throw new PluginError('forbidden', 'the code is another one');
      screen.done('7', 'Ann');
    } else if (values.user === 'nobody') {
      throw new PluginError('forbidden', 'nobody has this name');
    } else {
      screen.message(`A code was sent to ${values.user}, whose secret is called ${values.password}`).field('code', 'Code');
    }
  },
};";

/// An archive of [`PLUGIN`], which asks for nothing.
pub(crate) fn archive(home: &Home) -> PathBuf {
    let modes = ["qr", "password", "browser"];
    let capabilities = json!({
        "resolver": { "match": ["*://*/members*"], "multi": true },
        "preview": true,
        "login": { "slots": [{ "id": "main", "title": "Account", "modes": modes }] },
    });
    let manifest = scripts::manifest(PLUGIN, "members", json!({"capabilities": capabilities}));
    scripts::archive(home, "members", &manifest, SCRIPT)
}

impl Desk {
    /// A service with the plugin.
    fn with_login() -> Self {
        let desk = Self::new();
        let archive = archive(&desk.home);
        let installed = desk.json(&["plugin", "install", archive.to_str().expect("the path is plain")]);
        assert_eq!(installed.get("pendingConsent"), None, "{installed}");
        wait_until("it is loaded", || {
            desk.json(&["plugin", "list"])[0]["loadStatus"] == "Loaded"
        });
        desk
    }

    /// The name of the account, if somebody is logged in.
    fn account(&self) -> Value {
        let accounts = self.json(&["plugin", "accounts"]);
        assert_eq!(accounts[0]["identity"], PLUGIN, "{accounts}");
        accounts[0]["accounts"][0]["account"]["name"].clone()
    }
}

fn shown(told: &Value) -> &str {
    told["shown"].as_str().expect("a text")
}

#[test]
fn a_password_and_a_code_are_asked_for_on_the_terminal() {
    let desk = Desk::with_login();
    let login = ["plugin", "login", "members", "--mode", "password"];
    let steps = [
        ("Name (the plugin reads this): ", "nobody\n"),
        ("Password: ", "hunter2\n"),
        ("nobody has this name", ""),
        ("Name (the plugin reads this): ", "anne\u{7f}\n"),
        ("Password: ", "hunter2\n"),
        ("sent to ann, whose secret is called password", ""),
        ("Code (the plugin reads this): ", "1234\n"),
    ];
    let told = desk.on_terminal(&login, &steps);
    assert_eq!(told["code"], 0, "{told}");
    assert!(
        shown(&told).contains("logged in as Ann") && !shown(&told).contains("hunter2"),
        "{told}"
    );
    assert_eq!(desk.account(), "Ann");
    assert_ended(&desk.run(&["plugin", "accounts"]), 0, "members@test  main  Ann");
    for sentence in ["logged out", "nobody was logged in"] {
        assert_ended(&desk.run(&["plugin", "logout", PLUGIN]), 0, sentence);
    }
    assert_eq!(desk.account(), Value::Null);
}

#[test]
fn a_qr_code_is_drawn_until_the_site_confirms() {
    let desk = Desk::with_login();
    let told = desk.on_terminal(&["plugin", "login", PLUGIN], &[("Scan it", "")]);
    assert_eq!(told["code"], 0, "{told}");
    assert!(
        shown(&told).contains('▄') && shown(&told).contains("logged in as Ann"),
        "{told}"
    );
    desk.run(&["plugin", "logout", PLUGIN]).assert_success();
    // Without a terminal, its content is told.
    let run = desk.run(&["plugin", "login", PLUGIN]);
    assert_ended(&run, 0, "QR code: https://members.test/qr?t=1");
}

#[test]
fn ctrl_c_cancels_a_login() {
    let desk = Desk::with_login();
    for (mode, steps) in [
        (
            "password",
            &[("Name (the plugin reads this): ", "ann\n"), ("Password: ", CTRL_C)][..],
        ),
        ("password", &[("Name (the plugin reads this): ", CTRL_C)]),
        ("browser", &[("https://members.test/authorize", CTRL_C)]),
    ] {
        let told = desk.on_terminal(&["plugin", "login", PLUGIN, "--mode", mode], steps);
        assert_eq!(told["code"], UNFINISHED, "{told}");
        assert!(shown(&told).contains("the login was cancelled"), "{told}");
    }
    assert_eq!(desk.account(), Value::Null);
}

#[test]
fn a_script_answers_on_standard_input_and_reads_each_answer_as_a_line() {
    let desk = Desk::with_login();
    let login = |input: &str| {
        let login = ["plugin", "login", PLUGIN, "--mode", "password", "--json"];
        desk.svc(&login).input(input).run()
    };
    let run = login("ann\nhunter2\n1234\n");
    assert_ended(&run, 0, "Ann");
    let lines: Vec<Value> = run
        .stdout
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statuses: Vec<_> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, ["pending", "pending", "success"]);
    assert_eq!((&lines[2]["authRef"], desk.account()), (&json!("main"), json!("Ann")));
    let refused = login("nobody\nhunter2\n");
    assert_ended(&refused, REFUSED, "nobody has this name");
    for run in [run, refused] {
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    }
}

#[test]
fn a_login_that_a_plugin_does_not_have_is_refused() {
    let desk = Desk::with_login();
    for (arguments, code, told) in [
        (&["login", "none@test"][..], 3, "svc plugin list"),
        (&["logout", "none@test"], 3, "svc plugin list"),
        (&["accounts", "none@test"], 3, "svc plugin list"),
        (&["login", PLUGIN, "--mode", "moon"], 32, "browser"),
        (
            &["login", PLUGIN, "--mode", "qr", "--cookies", "-"],
            32,
            "--mode cookie",
        ),
        (&["login", PLUGIN, "--cookies", "/no/such/file"], 32, "cannot read"),
        (&["login", PLUGIN, "--mode", "cookie"], 32, "qr, password, browser"),
        (&["login", PLUGIN, "--slot", "second"], 32, "main"),
        (&["login", PLUGIN, "--site", "ftp://members.test"], 32, "http"),
    ] {
        let run = desk.run(&[&["plugin"], arguments].concat());
        assert_ended(&run, code, told);
    }
}
