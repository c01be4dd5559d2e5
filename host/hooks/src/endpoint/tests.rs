//! Tests of the setting.

use serde_json::{Value, json};

use super::*;

const URL: &str = "https://hooks.example/services/T0/B0/canary-token-123";

fn endpoint(change: impl FnOnce(&mut Value)) -> Value {
    let mut endpoint = json!({
        "id": "chat", "url": URL, "signSecret": "canary-secret", "headers": {"Authorization": "Bearer canary-header"},
    });
    change(&mut endpoint);
    endpoint
}

fn check(endpoints: &[Value], before: &Endpoints) -> Result<Endpoints, String> {
    Endpoints::check(&json!(endpoints).to_string(), before).map_err(|error| error.to_string())
}

fn stored() -> Endpoints {
    check(&[endpoint(|_| {})], &Endpoints::default()).unwrap()
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    check(&[endpoint(change)], &Endpoints::default()).unwrap_err()
}

#[test]
fn what_clients_read_has_no_secret_and_changes_nothing_when_it_is_sent_back() {
    let stored = stored();
    let shown = stored.shown();
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("https://hooks.example/***"), "{shown}");
    assert!(!format!("{stored:?}").contains("canary"));
    assert_eq!(Endpoints::check(&shown, &stored).unwrap(), stored);
    assert_eq!(
        Endpoints::check(&stored.exposed(), &Endpoints::default()).unwrap(),
        stored
    );
    let left_out = endpoint(|endpoint| {
        endpoint
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key == "id" || key == "url");
    });
    assert_eq!(check(&[left_out], &stored).unwrap(), stored);
    assert_eq!(Endpoints::default().shown(), "");
}

#[test]
fn empty_values_remove_secrets() {
    let cleared = endpoint(|endpoint| {
        endpoint["signSecret"] = json!("");
        endpoint["headers"] = json!({});
    });
    let cleared = check(&[cleared], &stored()).unwrap();
    let endpoint = cleared.get("chat").unwrap();
    assert!(endpoint.sign_secret.is_empty() && endpoint.headers.is_empty());
}

#[test]
fn secrets_are_not_kept_for_another_origin() {
    for (field, value) in [
        ("signSecret", json!("***")),
        ("headers", json!({"authorization": "***"})),
    ] {
        let moved = endpoint(|endpoint| {
            endpoint["url"] = json!("https://evil.example/x");
            endpoint["signSecret"] = json!("");
            endpoint["headers"] = json!({});
            endpoint[field] = value;
        });
        let error = check(&[moved], &stored()).unwrap_err();
        assert!(error.contains("belongs to https://hooks.example:443"), "{error}");
    }
    let left_out = json!({"id": "chat", "url": "https://evil.example/x"});
    assert!(check(&[left_out], &stored()).is_err());
    // Another path of the same origin keeps them.
    let moved = json!({"id": "chat", "url": "https://hooks.example/other"});
    assert_eq!(
        check(&[moved], &stored()).unwrap().get("chat").unwrap().headers.len(),
        1
    );
    // Nothing to keep.
    assert!(refused(|endpoint| endpoint["signSecret"] = json!("***")).contains("no stored secret"));
    assert!(refused(|endpoint| endpoint["headers"]["X-A"] = json!("***")).contains("no stored value"));
    assert!(refused(|endpoint| endpoint["url"] = json!("https://a.example/***")).contains("as a whole"));
}

#[test]
fn a_refusal_names_endpoint_member_and_limit_and_repeats_no_secret() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 16] = [
        (|e| e["id"] = json!(""), "webhook 1, id: an id has 1 to 64"),
        (|e| e["id"] = json!("a b"), "webhook 1, id:"),
        (
            |e| e["name"] = json!("x".repeat(200)),
            "webhook chat, name: a name has at most 128",
        ),
        (
            |e| e["preset"] = json!("teams"),
            "webhook chat, preset: there is no such preset; there are json",
        ),
        (
            |e| e["events"] = json!(["task.done"]),
            "webhook chat, events: there is no such event; there are task.created",
        ),
        (|e| e["url"] = json!("http://hooks.example/canary"), "set allowHttp"),
        (
            |e| e["url"] = json!("ftp://hooks.example/canary"),
            "begins with https://",
        ),
        (|e| e["url"] = json!("https://127.0.0.1/canary"), "set allowPrivate"),
        (|e| e["url"] = json!("https://nas/canary"), "set allowPrivate"),
        (
            |e| e["url"] = json!("https://[::ffff:10.0.0.1]/canary"),
            "set allowPrivate",
        ),
        (
            |e| e["url"] = json!(format!("https://hooks.example/{}", "c".repeat(5000))),
            "the limit is 4096",
        ),
        (
            |e| e["headers"] = json!({"Host": "canary"}),
            "headers: the header Host is set by the service",
        ),
        (
            |e| e["headers"] = json!({"A": "canary\r\nB: c"}),
            "headers: the value of the header A has a line break",
        ),
        (|e| e["headers"] = json!({"A": "canary", "a": "canary"}), "given twice"),
        (|e| e["signSecret"] = json!("canary".repeat(50)), "the limit is 256"),
        (
            |e| e["bodyTemplate"] = json!("{{canary}"),
            "bodyTemplate: a {{ of the template",
        ),
    ];
    for (change, expected) in cases {
        let error = refused(change);
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("canary\r") && !error.contains("canary-"), "{error}");
    }
    let many: Vec<_> = (0..=MAX_HEADERS).map(|n| (format!("X-{n}"), json!("v"))).collect();
    let many: Value = Value::Object(many.into_iter().collect());
    assert!(refused(|e| e["headers"] = many).contains("17 headers; the limit is 16"));
    let telegram = refused(|e| {
        e["preset"] = json!("telegram");
        e["url"] = json!("https://api.telegram.org/bot1:canary-token/sendMessage");
    });
    assert!(telegram.contains("?chat_id="), "{telegram}");
}

#[test]
fn the_list_has_a_limit_and_no_twins() {
    let numbered = |n: usize| endpoint(|endpoint| endpoint["id"] = json!(n.to_string()));
    let many: Vec<_> = (0..=MAX_ENDPOINTS).map(numbered).collect();
    assert!(
        check(&many, &Endpoints::default())
            .unwrap_err()
            .contains("the limit is 32")
    );
    assert!(check(&many[..MAX_ENDPOINTS], &Endpoints::default()).is_ok());
    assert!(
        check(&[numbered(1), numbered(1)], &Endpoints::default())
            .unwrap_err()
            .contains("\"1\"")
    );
    assert!(Endpoints::check("{}", &Endpoints::default()).is_err());
    assert_eq!(Endpoints::check(" ", &stored()), Ok(Endpoints::default()));
}

#[test]
fn the_log_shows_no_part_of_a_credential() {
    let endpoints = stored();
    let chat = endpoints.get("chat").unwrap();
    let shown = chat.loggable("POST /services/T0/B0/canary-token-123 Bearer canary-header canary-secret");
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(chat.shown_url(), "https://hooks.example/***");
}
