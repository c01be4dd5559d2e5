//! Logins to accounts of plugins over REST and `/rpc`, with a real daemon.

use serde_json::{Value, json};
use support::{Content, Origin, Resource};
use tokio::time::timeout;

use crate::{
    client::Client,
    plugins::ended,
    scripted::{plugin, plugin_with_login},
    world::{Answer, PATIENCE, World},
};

const INSTALL: &str = "POST /api/v1/plugins/install";
const AUTH: &str = "POST /api/v1/plugins/share@test/auth";
const CLAIMS: &str = "https://share.test/*";

/// A service with a plugin that logs in.
async fn world(script: &str) -> World {
    let world = World::new().await;
    let installed = world.ask(INSTALL, plugin_with_login(CLAIMS, script)).await;
    assert_eq!(installed.status, 200, "{installed:?}");
    world
}

async fn ask(world: &World, request: Value) -> Answer {
    world.ask(AUTH, request.to_string()).await
}

/// The answer to a request that is not refused.
async fn asked(world: &World, request: Value) -> Value {
    let answer = ask(world, request.clone()).await;
    assert_eq!(answer.status, 200, "{request}: {answer:?}");
    answer.json()
}

/// The message of a refusal with 400.
async fn refused(world: &World, request: Value) -> String {
    let answer = ask(world, request.clone()).await;
    assert_eq!(answer.status, 400, "{request}: {answer:?}");
    answer.json()["message"].as_str().unwrap().to_owned()
}

/// Polls until the login is not pending any more.
async fn polled(world: &World, session: &Value) -> Value {
    let ended = async {
        loop {
            let answer = asked(world, json!({"action": "poll", "sessionId": session})).await;
            if answer["status"] != "pending" {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.unwrap()
}

#[tokio::test]
async fn a_qr_code_is_polled_until_the_site_confirms_and_the_account_stays_until_the_logout() {
    let world = world("").await;
    assert_eq!(world.get("/api/v1/plugins").await.json()[0]["authSupported"], true);
    let slot = |account: Value| {
        json!([{
            "slot": "main", "title": "Account", "modes": ["qr", "password", "cookie", "browser"], "account": account,
        }])
    };
    let status = asked(&world, json!({"action": "status"})).await;
    assert_eq!(
        (&status["status"], &status["accounts"]),
        (&json!("error"), &slot(Value::Null))
    );

    let begun = asked(&world, json!({"action": "begin"})).await;
    let session = begun["sessionId"].clone();
    let qr = "https://share.test/qr?t=1";
    assert_eq!(
        begun,
        json!({
            "status": "pending", "sessionId": session, "challenge": qr, "challengeType": "qrcode",
            "message": "Scan it", "authRef": null,
            "screen": {
                "message": "", "qr": {"payload": qr, "expiresInSeconds": 60, "hint": "Scan it"}, "fields": [],
                "pollAfterMs": 1,
            },
        })
    );
    let looked_at = asked(&world, json!({"action": "status", "sessionId": session})).await;
    assert_eq!(looked_at, begun, "nobody asks the site");
    let done = json!({
        "status": "success", "sessionId": session, "challenge": null, "challengeType": null,
        "message": "logged in as Ann", "authRef": "main",
    });
    assert_eq!(polled(&world, &session).await, done);
    assert_eq!(polled(&world, &session).await, done, "its end can be read again");

    let status = asked(&world, json!({"action": "status", "authRef": "main"})).await;
    let since = status["accounts"][0]["account"]["since"].clone();
    assert!(since.as_i64().unwrap() > 1_700_000_000_000, "{status}");
    let account = json!({"id": "7", "name": "Ann", "since": since, "expired": false});
    assert_eq!(
        (&status["status"], &status["authRef"]),
        (&json!("success"), &json!("main"))
    );
    assert_eq!(status["accounts"], slot(account));
    let disable = "PUT /api/v1/plugins/share@test/enabled";
    assert_eq!(world.ask(disable, r#"{"enabled":false}"#).await.status, 200);
    for message in ["logged out", "nobody was logged in"] {
        let logged_out = asked(&world, json!({"action": "logout", "slot": "main"})).await;
        assert_eq!(
            (&logged_out["status"], &logged_out["message"]),
            (&json!("success"), &json!(message))
        );
    }
    let status = asked(&world, json!({"action": "status"})).await;
    assert_eq!(status["accounts"], slot(Value::Null));

    let journal = world.get("/api/v1/plugins/share@test/journal").await.json();
    let events = journal["events"].as_array().unwrap().iter();
    let of_accounts = events.filter(|event| event["event"].as_str().unwrap().starts_with("logged"));
    let of_accounts: Vec<_> = of_accounts.map(|event| (&event["event"], &event["detail"])).collect();
    assert_eq!(
        of_accounts,
        [
            (&json!("loggedIn"), &json!("main")),
            (&json!("loggedOut"), &json!("main"))
        ]
    );
    world.end().await;
}

#[tokio::test]
async fn what_is_typed_into_a_secret_field_is_in_no_answer() {
    let world = world("").await;
    let begun = asked(&world, json!({"action": "begin", "mode": "password", "slot": ""})).await;
    let session = &begun["sessionId"];
    assert_eq!(
        begun["screen"]["fields"],
        json!([
            {"key": "user", "label": "Name", "secret": false},
            {"key": "password", "label": "Password", "secret": true},
        ])
    );
    let answer = |values: Value| json!({"action": "answer", "sessionId": session, "values": values});
    for (values, named) in [
        (json!({"user": "ann"}), "password"),
        (json!({"user": "ann", "password": "hunter2-x", "pin": "1"}), "pin"),
        (json!({"user": "a".repeat(5000), "password": "hunter2-x"}), "user"),
    ] {
        let message = refused(&world, answer(values)).await;
        assert!(message.contains(named) && !message.contains("hunter2"), "{message}");
    }
    let several = json!({"action": "answer", "sessionId": session, "input": "hunter2-x"});
    assert!(refused(&world, several).await.contains("user, password"));

    let again = asked(&world, answer(json!({"user": "nobody", "password": "hunter2-x"}))).await;
    assert_eq!(
        (&again["status"], &again["screen"]["fields"]),
        (&json!("pending"), &begun["screen"]["fields"])
    );
    assert!(
        again["message"].as_str().unwrap().contains("does not know this name"),
        "{again}"
    );
    let code = asked(&world, answer(json!({"user": "ann", "password": "hunter2-x"}))).await;
    assert_eq!(
        code["message"], "password=password user=ann",
        "the plugin gets the name of the secret"
    );
    let wrong = asked(&world, json!({"action": "poll", "sessionId": session, "input": "9"})).await;
    assert_eq!(
        (&wrong["status"], &wrong["screen"]["fields"][0]["key"]),
        (&json!("pending"), &json!("code"))
    );
    let done = asked(
        &world,
        json!({"action": "answer", "sessionId": session, "input": "1234"}),
    )
    .await;
    assert_eq!((&done["status"], &done["authRef"]), (&json!("success"), &json!("main")));
    for answer in [&begun, &again, &code, &wrong, &done] {
        assert!(!answer.to_string().contains("hunter2"), "{answer}");
    }
    let over = refused(&world, json!({"action": "answer", "sessionId": session, "input": "1"})).await;
    assert!(over.contains("is over"), "{over}");
    world.end().await;
}

#[tokio::test]
async fn the_address_that_a_browser_shows_at_the_end_is_the_answer_to_its_page() {
    let world = world("").await;
    let begun = asked(&world, json!({"action": "begin", "mode": "browser"})).await;
    let page = "https://share.test/authorize";
    assert_eq!(
        (&begun["challenge"], &begun["challengeType"]),
        (&json!(page), &json!("url"))
    );
    assert_eq!(
        begun["screen"]["openUrl"],
        json!({"url": page, "redirectPrefix": "https://share.test/done"})
    );
    let answer = |address: &str| json!({"action": "answer", "sessionId": begun["sessionId"], "input": address});
    let elsewhere = refused(&world, answer("https://evil.test/done?code=hunter2")).await;
    assert!(
        elsewhere.contains("https://share.test/done") && !elsewhere.contains("hunter2"),
        "{elsewhere}"
    );
    let done = asked(&world, answer("https://share.test/done?code=hunter2&state=s")).await;
    assert_eq!(done["status"], "success", "{done}");
    world.end().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_reason() {
    let world = world("").await;
    assert_eq!(
        world
            .ask("POST /api/v1/plugins/none@test/auth", r#"{"action":"status"}"#)
            .await
            .status,
        404
    );
    for (request, word) in [
        (json!({}), "action"),
        (json!({"action": "renew"}), "action"),
        (json!({"action": "begin", "slot": "other"}), "main"),
        (
            json!({"action": "begin", "mode": "moon"}),
            "qr, password, cookie, browser",
        ),
        (json!({"action": "begin", "site": "ftp://share.test"}), "site"),
        (json!({"action": "begin", "input": "1234"}), "answer"),
        (json!({"action": "poll"}), "sessionId"),
        (json!({"action": "poll", "sessionId": "0123"}), "no such login"),
        (
            json!({"action": "answer", "sessionId": "0123", "values": {"code": "1"}}),
            "no such login",
        ),
        (
            json!({"action": "answer", "sessionId": "0123", "values": {"code": 1}}),
            "values",
        ),
        (json!({"action": "cancel"}), "sessionId"),
    ] {
        let message = refused(&world, request.clone()).await;
        assert!(message.contains(word), "{request}: {message}");
    }
    let begun = asked(&world, json!({"action": "begin"})).await;
    let cancel = json!({"action": "cancel", "sessionId": begun["sessionId"]});
    for _ in 0..2 {
        let cancelled = asked(&world, cancel.clone()).await;
        assert_eq!(
            (&cancelled["status"], &cancelled["screen"]),
            (&json!("error"), &Value::Null)
        );
        assert!(
            cancelled["message"].as_str().unwrap().contains("cancelled"),
            "{cancelled}"
        );
    }
    let disable = "PUT /api/v1/plugins/share@test/enabled";
    assert_eq!(world.ask(disable, r#"{"enabled":false}"#).await.status, 200);
    let disabled = refused(&world, json!({"action": "begin"})).await;
    assert!(disabled.contains("disabled"), "{disabled}");
    world.end().await;
}

#[tokio::test]
async fn a_login_that_fails_at_once_and_one_that_a_plugin_does_not_have_are_bad_requests() {
    let world = world("fail").await;
    let failed = refused(&world, json!({"action": "begin"})).await;
    assert!(failed.contains("as it was told"), "{failed}");
    assert_eq!(world.ask(INSTALL, plugin(CLAIMS, "")).await.status, 200);
    for action in ["begin", "logout"] {
        let message = refused(&world, json!({"action": action})).await;
        assert!(message.contains("no login"), "{action}: {message}");
    }
    let status = asked(&world, json!({"action": "status"})).await;
    assert_eq!(status["accounts"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_third_login_of_a_plugin_cancels_its_first() {
    let world = world("").await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let begun = asked(&world, json!({"action": "begin", "mode": "password"})).await;
        sessions.push(begun["sessionId"].clone());
    }
    for (session, status) in sessions.iter().zip(["error", "pending", "pending"]) {
        let answer = asked(&world, json!({"action": "status", "sessionId": session})).await;
        assert_eq!(answer["status"], status, "{answer}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_export_of_cookies_reaches_the_login_up_to_its_limit() {
    let world = world("").await;
    let begun = asked(&world, json!({"action": "begin", "mode": "cookie"})).await;
    assert_eq!(begun["screen"]["fields"][0]["key"], "cookies", "{begun}");
    let answer = |bytes: usize| {
        let line = ".share.test\tTRUE\t/\tTRUE\t0\tname\tvalue\n";
        let lines = line.repeat(bytes / line.len() + 1);
        json!({"action": "answer", "sessionId": begun["sessionId"], "values": {"cookies": lines[..bytes]}})
    };
    let too_large = refused(&world, answer(256 * 1024 + 1)).await;
    assert!(too_large.contains("256 KiB"), "{too_large}");
    let largest = ask(&world, answer(256 * 1024)).await;
    let message = largest.json()["message"].to_string();
    assert!(
        [200, 400].contains(&largest.status) && !message.contains("KiB"),
        "{largest:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn a_client_of_rpc_logs_in_the_same_way() {
    let world = world("").await;
    let mut client = Client::open(&world).await;
    let params = |action: &str| json!({"identity": "share@test", "action": action});
    let begun = client.call("daemon.plugin.auth", params("begin")).await["result"].clone();
    assert_eq!(begun["challengeType"], "qrcode", "{begun}");
    for (params, code) in [
        (json!({"action": "begin"}), "invalidArgument"),
        (json!({"identity": "none@test", "action": "begin"}), "notFound"),
        (json!({"identity": "share@test", "action": "poll"}), "invalidArgument"),
    ] {
        let refused = client.call("daemon.plugin.auth", params.clone()).await;
        assert_eq!(refused["error"]["data"]["code"], code, "{params}: {refused}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_task_that_needs_a_login_is_finished_after_it_by_itself() {
    let origin = Origin::start(vec![Resource::new("/files/a.bin", Content::seeded(1, 70_000))]);
    let world = World::new().await;
    let script = format!("members only\nlinks {}\nfile a.bin", origin.url("/files/"));
    let archive = plugin_with_login(&origin.url("/share/*"), &script);
    assert_eq!(world.ask(INSTALL, archive).await.status, 200);
    let url = json!({"url": origin.url("/share/1")}).to_string();
    assert_eq!(world.ask("POST /api/v1/tasks", url).await.status, 200);
    let waiting = ended(&world, 1).await;
    assert_eq!(
        (&waiting[0]["status"], &waiting[0]["errorKind"]),
        (&json!(4), &json!("login-required"))
    );
    assert_eq!(
        waiting[0]["loginNeed"],
        json!({"identity": "share@test", "slot": "main"}),
        "{waiting:?}"
    );

    let begun = asked(&world, json!({"action": "begin"})).await;
    assert_eq!(polled(&world, &begun["sessionId"]).await["status"], "success");
    let done = async {
        loop {
            let tasks = ended(&world, 1).await;
            if tasks[0]["status"] == 3 {
                return tasks;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, done).await.unwrap();
    assert_eq!(
        origin
            .requests()
            .iter()
            .filter(|request| request.target == "/files/a.bin")
            .count(),
        1
    );
    world.end().await;
}
