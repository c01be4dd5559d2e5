//! The management API before a real daemon.

use serde_json::json;
use support::{Content, Origin, Resource};

use crate::{
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
    assert_eq!(world.ask(&rename, r#"{"fileName":"../b"}"#).await.status, 400);
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
