//! The management API before a real daemon.

use serde_json::json;
use support::{Content, Origin, Resource, behaviour};

use crate::{
    client::Client,
    document,
    world::{PATIENCE, World},
};

#[tokio::test]
async fn a_task_is_made_read_changed_and_deleted_and_every_write_is_seen_at_once() {
    let world = World::new().await;
    let body = json!({"url": "http://127.0.0.1:9/a.bin", "startPaused": true}).to_string();
    let made = world.ask("POST /api/v1/tasks", &body).await;
    assert_eq!(made.status, 200, "{made:?}");
    let id = made.json()["taskId"].as_str().unwrap().to_owned();
    let task = world.get(&format!("/api/v1/tasks/{id}")).await.json();
    assert_eq!((&task["taskId"], &task["status"]), (&json!(id), &json!(2)));
    assert_eq!(world.get("/api/v1/tasks").await.json().as_array().unwrap().len(), 1);
    let rename = format!("POST /api/v1/tasks/{id}/rename");
    assert_eq!(world.ask(&rename, r#"{"fileName":"b.bin"}"#).await.status, 200);
    let task = world.get(&format!("/api/v1/tasks/{id}")).await.json();
    assert_eq!(task["fileName"], "b.bin");
    let bad = world.ask(&rename, r#"{"fileName":"../b"}"#).await;
    assert_eq!((bad.status, &bad.json()["code"]), (400, &json!("invalid-name")));
    assert_eq!(world.ask(&rename, "{}").await.status, 400);
    assert_eq!(
        world.ask(&format!("PUT /api/v1/tasks/{id}/pause"), "").await.status,
        200
    );
    assert_eq!(
        world
            .ask(&format!("DELETE /api/v1/tasks/{id}?deleteFiles=true"), "")
            .await
            .status,
        200
    );
    let gone = world.get(&format!("/api/v1/tasks/{id}")).await;
    assert_eq!((gone.status, gone.json()["message"].as_str()), (404, Some("not found")));
    assert_eq!(
        world.ask(&format!("PUT /api/v1/tasks/{id}/pause"), "").await.status,
        404
    );
    world.end().await;
}

#[tokio::test]
async fn a_download_is_limited_and_moved_and_a_rename_says_by_name_why_not() {
    let slow = Resource::new("/slow.bin", Content::seeded(1, 4 << 20)).with(behaviour::paced(64 * 1024));
    let origin = Origin::start(vec![slow]);
    let world = World::new().await;
    let make = async |body: serde_json::Value| {
        let made = world.ask("POST /api/v1/tasks", &body.to_string()).await.json();
        format!("/api/v1/tasks/{}", made["taskId"].as_str().unwrap())
    };
    let still = make(json!({"url": "http://127.0.0.1:9/a.bin", "startPaused": true})).await;
    for (path, body, status) in [
        ("limit", r#"{"speedLimitBytes":1000}"#, 200),
        ("limit", r#"{"speedLimitBytes":-1}"#, 400),
        ("queue", r#"{"queueId":"later"}"#, 200),
        ("queue", r#"{"queueId":"moon"}"#, 404),
    ] {
        let answer = world.ask(&format!("PUT {still}/{path}"), body).await;
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
    }
    let task = world.get(&still).await.json();
    assert_eq!(task["queueId"], "later");
    let mut client = Client::open(&world).await;
    let request = client
        .call("daemon.task.request", json!({"taskId": task["taskId"]}))
        .await;
    assert_eq!(request["result"]["speedLimitBytes"], 1000);
    assert_eq!(world.ask("PUT /api/v1/tasks/rescan", "").await.status, 200);

    let moving = make(json!({"url": origin.url("/slow.bin")})).await;
    let moves = async {
        while world.get(&moving).await.json()["downloadedBytes"] == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, moves).await.unwrap();
    let rename = format!("POST {moving}/rename");
    let active = world.ask(&rename, r#"{"fileName":"b.bin"}"#).await;
    assert_eq!((active.status, &active.json()["code"]), (409, &json!("task-active")));
    let id = moving.rsplit('/').next().unwrap();
    let refused = client
        .call("daemon.task.rename", json!({"taskId": id, "fileName": "b.bin"}))
        .await;
    assert_eq!(refused["error"]["data"]["reason"], "task-active");
    assert_eq!(world.ask(&format!("PUT {moving}/pause"), "").await.status, 200);
    std::fs::write(world.downloads().join("b.bin"), "mine").unwrap();
    let paused = async {
        loop {
            let refused = world.ask(&rename, r#"{"fileName":"b.bin"}"#).await.json();
            if refused["code"] != "task-active" {
                return refused;
            }
            tokio::task::yield_now().await;
        }
    };
    let taken = tokio::time::timeout(PATIENCE, paused).await.unwrap();
    assert_eq!(taken["code"], "target-exists", "{taken}");
    assert_eq!(world.ask(&rename, r#"{"fileName":"c.bin"}"#).await.status, 200);
    world.end().await;
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let world = World::new().await;
    for number in 0..5 {
        let body = json!({"url": format!("http://127.0.0.1:9/{number}"), "startPaused": true}).to_string();
        assert_eq!(world.ask("POST /api/v1/tasks", &body).await.status, 200);
    }
    let names = |answer: &crate::world::Answer| -> Vec<String> {
        let tasks = answer.json();
        let url = |task: &serde_json::Value| task["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        tasks.as_array().unwrap().iter().map(url).collect()
    };
    let page = world.get("/api/v1/tasks?limit=3&status=paused").await;
    assert_eq!(names(&page), ["4", "3", "2"]);
    assert_eq!(page.header("x-total-count"), Some("5"));
    let cursor = page.header("x-next-cursor").unwrap();
    let page = world.get(&format!("/api/v1/tasks?limit=3&cursor={cursor}")).await;
    assert_eq!(
        (names(&page), page.header("x-next-cursor")),
        (vec!["1".into(), "0".into()], None)
    );
    assert!(names(&world.get("/api/v1/tasks?status=1").await).is_empty());
    assert!(names(&world.get("/api/v1/tasks?queueId=later").await).is_empty());
    for bad in ["limit=0", "limit=x", "limit=1001", "status=moon", "cursor=moon"] {
        assert_eq!(world.get(&format!("/api/v1/tasks?{bad}")).await.status, 400, "{bad}");
    }
    let page = world.get("/api/v1/market?limit=3").await;
    assert_eq!(
        (page.status, page.header("x-total-count")),
        (200, Some("0")),
        "{page:?}"
    );
    for bad in ["limit=0", "cursor=moon"] {
        assert_eq!(world.get(&format!("/api/v1/market?{bad}")).await.status, 400, "{bad}");
    }
    world.end().await;
}

#[tokio::test]
async fn bad_requests_name_what_is_wrong() {
    let world = World::new().await;
    for (body, status, why) in [
        ("{}", 400, "url is required"),
        ("[]", 400, "invalid body"),
        ("{", 400, "invalid body"),
        (r#"{"url":"nonsense"}"#, 400, "url"),
        (r#"{"url":"gopher://a.test/"}"#, 400, "url"),
        (r#"{"url":"http://a.test/","queueId":"none"}"#, 400, "queueid"),
    ] {
        let answer = world.ask("POST /api/v1/tasks", body).await;
        let message = answer.json()["message"].as_str().unwrap().to_lowercase();
        assert_eq!(answer.status, status, "{body}: {message}");
        assert!(message.contains(why), "{body}: {message}");
    }
    let large = format!(r#"{{"url":"{}"}}"#, "x".repeat(4 * 1024 * 1024));
    assert_eq!(world.ask("POST /api/v1/tasks", &large).await.status, 413);
    world.end().await;
}

#[tokio::test]
async fn odd_names_and_queries_are_refused_as_described() {
    let world = World::new().await;
    for (method, path) in document::routes() {
        if path.contains('{') {
            for name in ["%ff", "%2e%2e", "%00", "a%2Fb"] {
                let path = path
                    .replace("{id}", name)
                    .replace("{site}", name)
                    .replace("{identity}", name)
                    .replace("{kind}", name);
                let answer = world.ask(&format!("{method} {path}"), "{}").await;
                assert!((400..405).contains(&answer.status), "{method} {path}: {answer:?}");
                assert_eq!(answer.json()["success"], false, "{method} {path}");
            }
        }
    }
    let odd = world.ask("DELETE /api/v1/tasks/a?deleteFiles=maybe", "").await;
    assert_eq!(odd.status, 400, "{odd:?}");
    world.end().await;
}

#[tokio::test]
async fn credentials_of_sites_come_in_and_never_go_out() {
    let world = World::new().await;
    let body = r#"{"site":"https://A.test:443/x","user":"me","pass":"hidden"}"#;
    let saved = world.ask("PUT /api/v1/site-auth", body).await;
    for (user, pass, named) in [("m\r\ne", "hidden", "user"), ("me", "hid\0den", "pass")] {
        let request = json!({"site": "https://a.test", "user": user, "pass": pass}).to_string();
        let refused = world.ask("PUT /api/v1/site-auth", request).await;
        let why = refused.json()["message"].to_string();
        assert!(
            refused.status == 400 && why.contains(named) && why.contains("control characters"),
            "{refused:?}"
        );
    }
    let entry = json!({"site": "https://a.test", "user": "me", "username": "me"});
    assert_eq!((saved.status, saved.json()), (200, entry.clone()));
    assert_eq!(world.get("/api/v1/site-auth").await.json(), json!([entry]));
    let one = "/api/v1/site-auth/https%3A%2F%2Fa.test";
    assert_eq!(world.get(one).await.json(), entry);
    assert_eq!(world.ask(&format!("DELETE {one}"), "").await.status, 200);
    assert_eq!(world.get(one).await.status, 404);
    assert_eq!(world.ask(&format!("DELETE {one}"), "").await.status, 404);
    world.end().await;
}

#[tokio::test]
async fn a_finished_file_is_fetched_by_key_token_or_a_ticket_that_works_once() {
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::seeded(1, 100_000))]);
    let world = World::new().await;
    let body = json!({"url": origin.url("/f.bin")}).to_string();
    let id = world.ask("POST /api/v1/tasks", &body).await.json()["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    let done = async {
        while world.get(&format!("/api/v1/tasks/{id}")).await.json()["status"] != 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, done).await.unwrap();
    let on_disk = std::fs::read(world.downloads().join("f.bin")).unwrap();
    let path = format!("/api/web/files/tasks/{id}");
    let whole = world.get(&path).await;
    assert!(whole.status == 200 && whole.body == on_disk);
    let get = format!("GET {path}");
    let part = world
        .send(
            &format!("{get}?token={}", crate::world::KEY),
            &[("Range", "bytes=10-19")],
            "",
        )
        .await;
    assert_eq!((part.status, part.body.as_slice()), (206, &on_disk[10..20]));
    let ticket = world
        .ask("POST /api/web/tickets", &json!({"path": path}).to_string())
        .await;
    let ticket = ticket.json()["ticket"].as_str().unwrap().to_owned();
    let once = format!("{get}?ticket={ticket}");
    assert_eq!(world.send(&once, &[], "").await.body, on_disk);
    assert_eq!(world.send(&once, &[], "").await.status, 401);
    assert_eq!(world.get("/api/web/files/tasks/..").await.status, 404);
    let blob = world.ask("POST /api/web/blobs/torrents", "bytes").await;
    assert!(blob.json()["blobId"].is_string(), "{blob:?}");
    world.end().await;
}

#[tokio::test]
async fn tasks_are_tagged_and_found_by_their_tags() {
    let world = World::new().await;
    let made = async |tags: serde_json::Value| {
        let body = json!({"url": "http://127.0.0.1:9/f", "startPaused": true, "tags": tags});
        world.ask("POST /api/v1/tasks", &body.to_string()).await
    };
    let id = made(json!(["linux", " iso ", "linux"])).await.json()["taskId"].clone();
    let id = id.as_str().unwrap();
    made(json!([])).await;
    let of = async |query: &str| {
        world
            .get(&format!("/api/v1/tasks?{query}"))
            .await
            .json()
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        world.get(&format!("/api/v1/tasks/{id}")).await.json()["tags"],
        json!(["linux", "iso"])
    );
    assert_eq!((of("tag=iso").await, of("tag=is").await, of("").await), (1, 0, 2));
    let put = format!("PUT /api/v1/tasks/{id}/tags");
    assert_eq!(world.ask(&put, r#"{"tags":["other"]}"#).await.status, 200);
    assert_eq!((of("tag=iso").await, of("tag=other&limit=1").await), (0, 1));
    let many: Vec<_> = (0..33).map(|number| number.to_string()).collect();
    for bad in [
        json!(many),
        json!(["x".repeat(65)]),
        json!([""]),
        json!(["a,b"]),
        json!(["a\nb"]),
    ] {
        assert_eq!(
            world.ask(&put, &json!({"tags": bad}).to_string()).await.status,
            400,
            "{bad}"
        );
        assert_eq!(made(bad.clone()).await.status, 400, "{bad}");
    }
    assert_eq!(of("tag=other").await, 1);
    world.end().await;
}

#[tokio::test]
async fn queues_and_groups_are_listed() {
    let world = World::new().await;
    let queues = world.get("/api/v1/queues").await.json();
    let ids: Vec<_> = queues
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["queueId"].clone())
        .collect();
    assert_eq!(ids, ["main", "later"]);
    assert_eq!(world.get("/api/v1/groups").await.json(), json!([]));
    let missing = "PUT /api/v1/groups/1b4e28ba-2fa1-41d2-883f-0016d3cca427/pause";
    assert_eq!(world.ask(missing, "").await.status, 404);
    world.end().await;
}
