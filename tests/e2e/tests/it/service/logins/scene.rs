//! A service with plugins that log in, the site that they are for, and a client of another make that logs in for its user.

use std::path::Path;

use e2e::{
    Home, Run, Service, Svc,
    http::{self, Answer},
    python,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{LoginSite, Proxy, SiteOptions};

use super::super::{
    guest::{self, Guest},
    plugin_sites::{go_through, run},
};

/// Each secret of the site has this in it, and nothing else has.
pub(crate) const MARKER: &str = "canary4711";

/// The names that the site and its host of files go by. A program of the user's machine is at neither.
pub(crate) const CLOUD: &str = "http://cloud.test";
const CDN: &str = "http://cdn.cloud.test";

pub(crate) const QR_CLOUD: &str = "qr-cloud@example";
pub(crate) const MEMBER_GALLERY: &str = "member-gallery@example";
pub(crate) const HTTP_FORM_LOGIN: &str = "http-form-login@svc";

/// What its client ends with.
pub(crate) const SUCCESS: i32 = 0;
pub(crate) const ENDED: i32 = 3;

/// States of tasks, as REST numbers them.
pub(crate) const COMPLETED: u8 = 3;
pub(crate) const FAILED: u8 = 4;

pub(crate) struct Scene {
    pub(crate) home: Home,
    pub(crate) site: LoginSite,
    proxy: Proxy,
    service: Option<Service>,
}

impl Scene {
    /// A service without plugins.
    pub(crate) fn new() -> Self {
        Self::at(SiteOptions::new(MARKER), &[])
    }

    /// The same for such a site. These names lead to other ports of this machine.
    pub(crate) fn at(options: SiteOptions, names: &[(&str, u16)]) -> Self {
        Self::prepared(options, names, |svc, _| svc)
    }

    /// The same, where the service is started in another way.
    pub(crate) fn prepared(
        options: SiteOptions,
        names: &[(&str, u16)],
        prepare: impl FnOnce(Svc, &Home) -> Svc,
    ) -> Self {
        let site = LoginSite::with(options);
        site.go_by("cloud.test", "cdn.cloud.test");
        let own = [("cloud.test", site.port()), ("cdn.cloud.test", site.cdn_port())];
        let proxy = Proxy::http(&[&own, names].concat(), None);
        let mut scene = Self {
            home: Home::new(),
            site,
            proxy,
            service: None,
        };
        scene.start(prepare);
        go_through(scene.service(), &scene.proxy, "");
        scene
    }

    /// Starts the service, which is not running.
    pub(crate) fn start(&mut self, prepare: impl FnOnce(Svc, &Home) -> Svc) {
        assert!(self.service.is_none(), "it is running");
        let service = Service::start(prepare(self.home.new_server().env("SVC_TOKEN", KEY), &self.home));
        service.wait_until_ready();
        self.service = Some(service);
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().expect("it is running")
    }

    /// The service, to be ended by the caller.
    pub(crate) fn take_service(&mut self) -> Service {
        self.service.take().expect("it is running")
    }

    /// Installs a plugin of ours that is to know this site only, and agrees.
    pub(crate) fn install(&self, identity: &str) {
        let (name, _) = identity.split_once('@').expect("an identity names its publisher");
        let mut guest = Guest::build(name);
        guest.move_site("https://cdn.cloud.example", CDN);
        for from in ["https://cloud.example", "https://gallery.example"] {
            guest.move_site(from, CLOUD);
        }
        self.install_archive(identity, &guest.archive());
    }

    pub(crate) fn install_archive(&self, identity: &str, archive: &Path) {
        let consent = guest::install_archive(self.service(), identity, archive);
        self.agree(identity, &consent);
    }

    pub(crate) fn agree(&self, identity: &str, consent: &str) {
        let agreed = guest::switch(self.service(), identity, &json!({"enabled": true, "consent": consent}));
        assert_eq!(agreed.status, 200, "{}", agreed.body);
        wait_until("the plugin is loaded", || {
            let plugins = self.service().call("GET", "/api/v1/plugins", None);
            let mut plugins = plugins.as_array().expect("a list").iter();
            plugins.any(|plugin| plugin["identity"] == identity && plugin["loadStatus"] == "Loaded")
        });
    }

    /// Everything that the proxy was asked for.
    pub(crate) fn asked_for(&self) -> Vec<String> {
        self.proxy.requests().into_iter().map(|asked| asked.target).collect()
    }

    pub(crate) fn set(&self, plugin: &str, settings: &[&str]) {
        run(self.service(), &[&["plugin", "settings", plugin], settings].concat());
    }

    /// The client with these arguments; it runs while the test does something else.
    pub(crate) fn client(&self, arguments: &[&str]) -> Svc {
        let client = python::client("clients/login.py");
        client.args(["--url", &self.service().url()]).args(arguments)
    }

    /// What the client prints, and how it ends.
    pub(crate) fn ask(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let run = self.client(arguments).run();
        let last = run.events().pop();
        (run.code, last.unwrap_or_else(|| panic!("{run:?}")))
    }

    /// Logs in with these values.
    #[track_caller]
    pub(crate) fn log_in(&self, plugin: &str, mode: &str, values: &[&str]) -> Run {
        let values = values.iter().flat_map(|value| ["--value", value]);
        let arguments: Vec<_> = ["watch", plugin, "--slot", "main", "--mode", mode]
            .into_iter()
            .chain(values)
            .collect();
        let run = self.client(&arguments).run();
        let last = run.events().pop().unwrap_or_default();
        assert_eq!(
            (run.code, &last["status"]),
            (Some(SUCCESS), &json!("success")),
            "{run:?}"
        );
        run
    }

    /// Logs in to the cloud as `ann`.
    #[track_caller]
    pub(crate) fn log_in_ann(&self) {
        self.log_in(
            QR_CLOUD,
            "password",
            &["user=ann", &format!("password={}", password("ann"))],
        );
    }

    /// Sends a request about logins of a plugin as the client does.
    pub(crate) fn auth(&self, plugin: &str, request: &Value) -> Answer {
        let path = format!("/api/v1/plugins/{plugin}/auth");
        let key = format!("Bearer {KEY}");
        let address = self.service().address();
        http::ask(address, "POST", &path, &[("Authorization", &key)], Some(request)).expect("it answers")
    }

    /// The accounts of a plugin: slots and names.
    pub(crate) fn accounts(&self, plugin: &str) -> Vec<(String, String)> {
        let status = self.auth(plugin, &json!({"action": "status"})).body;
        let slots = status["accounts"].as_array().unwrap_or_else(|| panic!("{status}"));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let taken = slots.iter().filter(|slot| !slot["account"].is_null());
        taken
            .map(|slot| (text(&slot["slot"]), text(&slot["account"]["name"])))
            .collect()
    }

    /// Waits until the task is in this state, and gives it.
    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, state: u8) -> Value {
        let mut task = Value::Null;
        wait_until("the task is in that state", || {
            task = self.service().task(id);
            assert!(
                task["status"] == state || task["status"] != FAILED || task["errorKind"] == "login-required",
                "{task}"
            );
            task["status"] == state
        });
        task
    }

    /// Waits until there are so many downloads, and all have finished; gives them.
    #[track_caller]
    pub(crate) fn wait_for_files(&self, count: usize) -> Vec<Value> {
        let mut tasks = Vec::new();
        wait_until("the files are there", || {
            let Value::Array(now) = self.service().call("GET", "/api/v1/tasks", None) else {
                panic!("tasks are a list");
            };
            let failed = now
                .iter()
                .find(|task| task["status"] == FAILED && task["errorKind"] != "login-required");
            assert!(failed.is_none(), "{failed:?}");
            tasks = now;
            tasks.len() == count && tasks.iter().all(|task| task["status"] == COMPLETED)
        });
        tasks
    }

    /// Downloads a file of the cloud, by its id.
    #[track_caller]
    pub(crate) fn download(&self, file: &str) -> String {
        let item = json!({"resolverItem": file, "fileName": format!("file-{file}")});
        let group = json!({"sourceUrl": format!("{CLOUD}/drive"), "groupName": "Drive", "items": [item]});
        let made = self.service().call("POST", "/api/v1/groups", Some(&group));
        made["taskIds"][0]
            .as_str()
            .unwrap_or_else(|| panic!("{made}"))
            .to_owned()
    }

    /// Asserts that a download waits for a login to this plugin.
    #[track_caller]
    pub(crate) fn assert_waits(&self, id: &str, plugin: &str) {
        let task = self.wait_for(id, FAILED);
        assert_eq!(task["errorKind"], "login-required", "{task}");
        assert_eq!(
            (&task["loginNeed"]["identity"], &task["loginNeed"]["slot"]),
            (&json!(plugin), &json!("main")),
            "{task}"
        );
    }

    /// Asserts that a finished download has these bytes, and forgets it.
    #[track_caller]
    pub(crate) fn assert_file(&self, id: &str, content: &support::Content) {
        let task = self.wait_for(id, COMPLETED);
        let name = task["fileName"].as_str().expect("a finished download has a name");
        let path = Path::new(task["saveDir"].as_str().expect("it has a directory")).join(name);
        assert_eq!(content.difference(&path).expect("the file is there"), None, "{task}");
        self.service()
            .call("DELETE", &format!("/api/v1/tasks/{id}?deleteFiles=true"), None);
    }
}

/// The password of a user of the site.
pub(crate) fn password(user: &str) -> String {
    format!("{MARKER}-password-{user}")
}
