//! The commands that talk to a service, as people and scripts use them.

mod add;
mod capture;
mod connection;
mod desktop;
mod doctor;
mod each;
mod import;
pub(crate) mod login;
mod logs;
mod open;
mod plugin;
mod secrets;
mod session;
mod settings;
mod setup;
mod tasks;
mod terminal;
mod watch;

use e2e::{Home, Run, Service, Svc, service::KEY};
use serde_json::Value;

/// A service and the user who sits before it. Its key is known to the user's commands by its data directory alone.
struct Desk {
    home: Home,
    service: Service,
}

impl Desk {
    /// A service with an access key.
    fn new() -> Self {
        let home = Home::new();
        let service = home.serve();
        service.wait_until_ready();
        Self { home, service }
    }

    /// `svc` with these arguments, from the user's shell.
    fn svc(&self, arguments: &[&str]) -> Svc {
        shell(&self.home).env("SVC_URL", self.service.url()).args(arguments)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.svc(arguments).run()
    }

    /// What a command prints with `--json`.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.svc(arguments).arg("--json").run();
        run.assert_success();
        serde_json::from_str(&run.stdout.join("\n")).expect("--json prints JSON")
    }

    /// Adds a paused task and gives its id.
    #[track_caller]
    fn add_paused(&self, url: &str) -> String {
        let added = self.json(&["add", "--paused", url]);
        added["taskIds"][0].as_str().expect("a task was added").to_owned()
    }
}

/// A fresh desktop and a shell of its user.
struct Fresh {
    home: Home,
    service: Service,
}

impl Fresh {
    fn new() -> Self {
        let home = Home::new();
        let service = Service::start(home.new_desktop());
        Self { home, service }
    }

    fn svc(&self, arguments: &[&str]) -> Svc {
        shell(&self.home).args(arguments)
    }
}

/// `svc` from the shell of the user of this home.
pub(crate) fn shell(home: &Home) -> Svc {
    Svc::new().env("HOME", home.path()).env("SVC_DATA_DIR", home.data())
}

/// Asserts how a command ended, and that it told nobody the key.
#[track_caller]
fn assert_ended(run: &Run, code: i32, told: &str) {
    let text = format!("{}\n{}", run.stdout.join("\n"), run.stderr);
    assert_eq!(run.code, Some(code), "{text}");
    assert!(text.contains(told), "{told:?} is not in: {text}");
    assert!(!text.contains(KEY), "the key was printed: {text}");
}
