//! Downloads that browsers hand over.

use agent::Edition;
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use crate::{
    client::Client,
    plugins::ended,
    world::{Answer, KEY, World},
};

/// Submits a download like a browser extension.
async fn hand_over(world: &World, path: &str, body: &Value) -> Answer {
    let headers = [
        ("X-Svc-Client", "test"),
        ("X-Svc-Token", KEY),
        ("Origin", "moz-extension://a"),
        ("Content-Type", "text/plain;charset=UTF-8"),
    ];
    world.send(&format!("POST {path}"), &headers, body.to_string()).await
}

async fn urls(world: &World) -> Vec<String> {
    let tasks = world.get("/api/v1/tasks").await.json();
    let url = |task: &Value| task["url"].as_str().unwrap().to_owned();
    tasks.as_array().unwrap().iter().rev().map(url).collect()
}

async fn desktop() -> (World, Client) {
    let world = World::with_daemon(|config| config.edition = Edition::Desktop).await;
    let mut client = Client::open(&world).await;
    let on = client.call("agent.gateway.patch", json!({"apiEnabled": true})).await;
    assert_eq!(on["result"]["apiEnabled"], true, "{on}");
    client.call("system.snapshot", json!({})).await;
    (world, client)
}

/// The events of one kind, oldest first.
fn events_of(client: &Client, kind: &str) -> Vec<Value> {
    let events = client.events.iter().map(|event| &event["event"]["event"]);
    let fits = events.filter(|event| event["type"] == kind);
    fits.map(|event| event["data"].clone()).collect()
}

#[tokio::test]
async fn a_server_makes_tasks_at_once() {
    let world = World::new().await;
    let one = json!({"url": "http://example.test/a", "filename": "b", "fileSize": 5, "mimeType": "text/plain",
        "referrer": "http://example.test/page", "cookies": "c=1", "headers": {"Cookie": "c=1", "X-A": "b"}});
    let taken = hand_over(&world, "/download", &one).await;
    assert_eq!(
        taken.json(),
        json!({"success": true, "message": "download accepted"}),
        "{taken:?}"
    );
    let lines = json!({"url": "http://example.test/1\nhttp://example.test/2"});
    assert_eq!(hand_over(&world, "/download", &lines).await.status, 200);
    let batch = json!({"urls": ["http://example.test/3", "http://example.test/4"]});
    assert_eq!(hand_over(&world, "/download/batch", &batch).await.status, 200);
    let items = json!({"items": [{"url": "http://example.test/5"}, {"url": ""}, 5]});
    assert_eq!(hand_over(&world, "/download/batch", &items).await.status, 200);
    let made = urls(&world).await;
    let names: Vec<_> = made.iter().map(|url| url.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a", "1", "2", "3", "4", "5"]);
    world.end().await;
}

#[tokio::test]
async fn a_web_page_where_the_browser_saw_another_type_is_not_the_file() {
    let page = Resource::new("/get", Content::bytes("<html>sign in</html>")).media_type("text/html");
    let (world, origin) = (World::new().await, Origin::start(vec![page]));
    for (number, (kind, status)) in [
        ("Application/ZIP; a=b", 4),
        ("text/html", 3),
        ("application/octet-stream", 3),
        ("nonsense", 3),
    ]
    .into_iter()
    .enumerate()
    {
        let one = json!({"url": origin.url("/get"), "mimeType": kind});
        // With the key and without an origin, as from a program of the user, which may reach this machine.
        let headers = [("X-Svc-Client", "test"), ("X-Svc-Token", KEY)];
        let taken = world.send("POST /download", &headers, one.to_string()).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        let task = &ended(&world, number + 1).await[0];
        assert_eq!(task["status"], status, "{kind}: {task}");
        assert_eq!(
            task["errorKind"],
            if status == 4 { "not-the-file" } else { "" },
            "{kind}: {task}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn a_thunder_link_is_the_url_in_it_at_every_entry() {
    let world = World::new().await;
    let link = "thunder://QUFodHRwOi8vZXhhbXBsZS50ZXN0L2ZaWg==";
    let paused = json!({"url": link, "startPaused": true}).to_string();
    assert_eq!(world.ask("POST /api/v1/tasks", paused).await.status, 200);
    let lines = json!({"url": format!("http://example.test/1\n{link}")});
    assert_eq!(hand_over(&world, "/download", &lines).await.status, 200);
    let batch = json!({"urls": [link]});
    assert_eq!(hand_over(&world, "/download/batch", &batch).await.status, 200);
    let added = world.aria2("aria2.addUri", json!([[link], {"pause": "true"}])).await;
    assert!(added.is_ok(), "{added:?}");
    let url = "http://example.test/f";
    assert_eq!(urls(&world).await, [url, "http://example.test/1", url, url, url]);
    let preview = world
        .ask("POST /api/v1/resolve/preview", json!({"url": link}).to_string())
        .await;
    assert_eq!(preview.json()["sourceUrl"], url);
    let task = world.get("/api/v1/tasks").await.json()[0]["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    let other = json!({"url": "thunder://QUFodHRwOi8vZXhhbXBsZS50ZXN0L2ZnWlo="}).to_string();
    let changed = world.ask(&format!("POST /api/v1/tasks/{task}/url"), other).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(urls(&world).await.last().unwrap(), "http://example.test/fg");
    world.end().await;
}

#[tokio::test]
async fn a_link_in_a_question_to_the_user_is_the_url_that_is_downloaded() {
    let (world, mut client) = desktop().await;
    let link = "thunder://QUFodHRwOi8vZXhhbXBsZS50ZXN0L2ZaWg==";
    let submitted = client
        .call("agent.capture.submit", json!({"request": {"url": link}}))
        .await;
    assert!(submitted["error"].is_null(), "{submitted}");
    let listed = client.call("agent.capture.list", json!({})).await;
    assert_eq!(listed["result"][0]["url"], "http://example.test/f", "{listed}");
    world.end().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let world = World::new().await;
    for (path, body, message) in [
        ("/download", json!({"url": " "}), "url is required"),
        ("/download", json!({"url": "gopher://a/"}), "not a scheme"),
        ("/download", json!([]), "must be a JSON object"),
        ("/download/batch", json!({}), "expected `urls` array or `items` array"),
        ("/download/batch", json!({"urls": []}), "urls is empty"),
        ("/download/batch", json!({"items": [5]}), "items is empty or invalid"),
        (
            "/download/batch",
            json!({"items": [{"url": ""}]}),
            "no valid urls in items",
        ),
    ] {
        let refused = hand_over(&world, path, &body).await;
        let said = refused.json()["message"].to_string();
        assert!(refused.status == 400 && said.contains(message), "{body}: {said}");
    }
    assert!(urls(&world).await.is_empty());
    for client in [None, Some(""), Some("  ")] {
        let mut headers = vec![("X-Svc-Token", KEY)];
        headers.extend(client.map(|client| ("X-Svc-Client", client)));
        let refused = world
            .send("POST /download", &headers, r#"{"url":"http://a.test/"}"#)
            .await;
        let said = refused.json()["message"].to_string();
        assert!(
            refused.status == 403 && said.contains("missing X-Svc-Client header"),
            "{said}"
        );
    }
    let wrong = world.send("POST /download", &[("X-Svc-Client", "a")], "{}").await;
    let said = wrong.json()["message"].to_string();
    assert!(
        wrong.status == 401 && said.contains("invalid or missing token"),
        "{said}"
    );
    world.end().await;
}

#[tokio::test]
async fn a_page_reaches_public_addresses_only_whatever_it_calls_itself() {
    let world = World::new().await;
    let file = |referrer: &str| json!({"url": "http://127.0.0.1:9/f", "referrer": referrer});
    for referrer in ["https://evil.example/", "http://127.0.0.1:80/page", ""] {
        assert_eq!(hand_over(&world, "/download", &file(referrer)).await.status, 200);
        let mut tasks = world.get("/api/v1/tasks").await.json();
        let id = tasks[0]["taskId"].take();
        let failure = failure(&world, id.as_str().unwrap()).await;
        assert_eq!(failure, "forbidden-redirect", "from {referrer:?}");
    }
    world.end().await;
}

/// Waits until a task has failed; returns the reason.
async fn failure(world: &World, id: &str) -> String {
    let mut client = Client::open(world).await;
    client.call("system.snapshot", json!({})).await;
    loop {
        let task = client.call("daemon.task.get", json!({"taskId": id})).await;
        let kind = task["result"]["errorKind"].as_str().unwrap().to_owned();
        if !kind.is_empty() {
            return kind;
        }
        client.next().await;
    }
}

#[tokio::test]
async fn a_desktop_asks_first() {
    let (world, mut client) = desktop().await;
    let body = json!({"url": "http://example.test/a", "filename": "n", "fileSize": 5, "cookies": "secret=1",
        "headers": {"X-A": "secret"}});
    assert_eq!(hand_over(&world, "/download", &body).await.status, 200);
    assert!(urls(&world).await.is_empty());
    let listed = client.call("agent.capture.list", json!({})).await["result"].take();
    assert_eq!(
        events_of(&client, "pendingCapturesChanged"),
        std::slice::from_ref(&listed)
    );
    let waiting = &listed[0];
    assert_eq!(waiting["url"], "http://example.test/a");
    assert_eq!(
        (&waiting["fileSize"], &waiting["hasCookies"]),
        (&json!(5), &json!(true))
    );
    assert_eq!(waiting["headerNames"], json!(["X-A"]));
    assert!(!listed.to_string().contains("secret"));
    let snapshot = client.call("system.snapshot", json!({})).await;
    assert_eq!(snapshot["result"]["body"]["snapshot"]["pendingCaptures"], listed);

    let accept = json!({"transactionId": waiting["transactionId"], "accepted": true,
        "request": {"filename": "other"}});
    let accepted = client.call("agent.capture.resolve", accept.clone()).await;
    assert_eq!(accepted["result"]["taskId"], waiting["transactionId"], "{accepted}");
    let again = client.call("agent.capture.resolve", accept).await;
    assert_eq!(again["error"]["data"]["code"], "notFound");
    assert_eq!(
        events_of(&client, "captureTasksStarted"),
        [json!([waiting["transactionId"]])]
    );
    assert_eq!(events_of(&client, "pendingCapturesChanged").last(), Some(&json!([])));
    let task = world.get("/api/v1/tasks").await.json();
    assert_eq!(task[0]["fileName"], "other");

    let request = json!({"request": {"url": "http://example.test/b"}});
    let submitted = client.call("agent.capture.submit", request).await;
    let id = &submitted["result"]["transactionIds"][0];
    let reject = json!({"transactionId": id, "accepted": false});
    let rejected = client.call("agent.capture.resolve", reject).await;
    assert_eq!(rejected["result"], json!({"accepted": false}));
    assert_eq!(urls(&world).await.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_desktop_that_is_not_to_be_disturbed_does_not_ask() {
    let (world, mut client) = desktop().await;
    let set = json!({"values": {"silent_download_enabled": true}});
    assert_eq!(client.call("agent.preferences.patch", set).await["result"]["ok"], true);
    let body = json!({"url": "http://example.test/a"});
    assert_eq!(hand_over(&world, "/download", &body).await.status, 200);
    assert_eq!(urls(&world).await, ["http://example.test/a"]);
    let asking = json!({"request": {"url": "http://example.test/b"}, "silent": false});
    let asked = client.call("agent.capture.submit", asking).await;
    assert!(asked["result"]["transactionIds"].is_array(), "{asked}");
    client
        .call("agent.gateway.patch", json!({"takeoverEnabled": false}))
        .await;
    let off = client.call("agent.capture.submit", json!({"request": body})).await;
    assert_eq!(off["result"], json!({"ignored": true}));
    assert_eq!(hand_over(&world, "/download", &body).await.status, 404);
    world.end().await;
}

#[tokio::test]
async fn a_download_that_cannot_be_made_goes_on_waiting() {
    let (mut world, mut client) = desktop().await;
    let body = json!({"url": "http://example.test/a"});
    assert_eq!(hand_over(&world, "/download", &body).await.status, 200);
    let listed = client.call("agent.capture.list", json!({})).await["result"].take();
    world.end_daemon().await;
    let accept = json!({"transactionId": listed[0]["transactionId"], "accepted": true});
    let refused = client.call("agent.capture.resolve", accept.clone()).await;
    assert_eq!(refused["error"]["data"]["code"], "unavailable");
    world.start_daemon().await;
    let accepted = client.call("agent.capture.resolve", accept).await;
    assert!(accepted["result"]["taskId"].is_string(), "{accepted}");
    world.end().await;
}
