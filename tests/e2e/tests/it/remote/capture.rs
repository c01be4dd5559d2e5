//! `svc capture`: a desktop's user answers for what a browser handed over.

use e2e::http;
use serde_json::{Value, json};

use super::{Fresh, assert_ended};

impl Fresh {
    fn hand_over(&self, url: &str) {
        let body = json!({"url": url, "cookies": "sid=marked-cookie", "referrer": "http://page.test/"});
        let answer = http::ask(
            self.service.address(),
            "POST",
            "/download",
            &[("X-Svc-Client", "test")],
            Some(&body),
        );
        assert_eq!(answer.map(|answer| answer.status), Some(200));
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.svc(arguments).arg("--json").run();
        run.assert_success();
        let text = run.stdout.join("\n");
        assert!(!text.contains("marked-cookie"), "{text}");
        serde_json::from_str(&text).expect("--json prints JSON")
    }
}

#[test]
fn what_a_browser_handed_over_waits_is_accepted_or_rejected() {
    let desk = Fresh::new();
    let svc = |arguments: &[&str]| desk.svc(arguments).run();
    assert_ended(&svc(&["info"]), 0, "Svc");
    for name in ["one", "two", "three"] {
        desk.hand_over(&format!("http://127.0.0.1:9/{name}.iso"));
    }
    let waiting = desk.json(&["capture", "list"]);
    let id = |place: usize| {
        waiting[place]["transactionId"]
            .as_str()
            .expect("it has an id")
            .to_owned()
    };
    assert_ended(&svc(&["capture"]), 0, "three.iso");
    assert_ended(&svc(&["capture", "reject", &id(0)]), 0, "rejected 1 download");
    let made = desk.json(&["capture", "accept", &id(1)[..8], "--out", "other.iso"]);
    let tasks = desk.json(&["list"]);
    assert_eq!(made["taskIds"][0], tasks[0]["taskId"]);
    assert_eq!(tasks[0]["fileName"], "other.iso", "{tasks}");
    assert_ended(&svc(&["capture", "accept", &id(0)]), 3, "svc capture");
    assert_ended(&svc(&["capture", "accept"]), 32, "--all");
    assert_ended(&svc(&["capture", "reject", "--all"]), 0, "rejected 1 download");
    assert_eq!(desk.json(&["capture"]), json!([]));
}
