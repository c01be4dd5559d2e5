//! The first key of a server.

use agent::Edition;

use crate::world::World;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const SETUP: &str = "POST /api/v1/setup";

#[tokio::test]
async fn the_first_key_is_set_once_from_the_machine_itself_and_works_at_once() {
    let world = World::alone(Edition::Headless, None).await;
    let status = world.send("GET /api/v1/setup/status", &[], "").await;
    assert_eq!(
        (status.status, status.json()),
        (
            200,
            serde_json::json!({"setupRequired": true, "minLength": 8, "codeRequired": false})
        )
    );
    assert!(world.agent.setup_code().is_some());
    for (body, why) in [
        ("{", "invalid body"),
        (r#"{"token":"short1"}"#, "at least 8"),
        (r#"{"token":"abcdefgh"}"#, "digit"),
        (r#"{"token":"12345678"}"#, "letter"),
    ] {
        let answer = world.send(SETUP, &[JSON], body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.json()["error"].as_str().unwrap().contains(why), "{answer:?}");
    }
    let body = r#"{"token":"first-key-1"}"#;
    assert_eq!(
        world.send(SETUP, &[("Content-Type", "text/plain")], body).await.status,
        400
    );
    let large = format!(r#"{{"token":"{}1"}}"#, "x".repeat(5000));
    assert_eq!(world.send(SETUP, &[JSON], &large).await.status, 400);
    for origin in ["https://evil.test", "null"] {
        assert_eq!(world.send(SETUP, &[JSON, ("Origin", origin)], body).await.status, 403);
    }
    let done = world.send(SETUP, &[JSON], body).await;
    assert_eq!((done.status, done.json()), (200, serde_json::json!({"ok": true})));
    assert_eq!(done.header("cache-control"), Some("no-store"));
    let again = world.send(SETUP, &[JSON], "nonsense").await;
    assert_eq!(
        (again.status, again.json()["error"].as_str()),
        (409, Some("setup already completed"))
    );
    let info = world
        .send("GET /api/v1/info", &[("X-Svc-Token", "first-key-1")], "")
        .await;
    assert_eq!(info.status, 200);
    assert!(world.agent.setup_code().is_none());
    world.end().await;
}

#[tokio::test]
async fn from_elsewhere_the_code_is_needed_and_cannot_be_guessed() {
    let world = World::alone(Edition::Headless, None).await;
    let elsewhere = [JSON, ("X-Forwarded-For", "192.0.2.1")];
    let body = r#"{"token":"first-key-1"}"#;
    assert_eq!(world.send(SETUP, &elsewhere, body).await.status, 403);
    // DNS rebinding: the page's requests have another `Host`.
    assert_eq!(
        world.send(SETUP, &[JSON, ("Host", "evil.test")], body).await.status,
        403
    );
    let code = world.agent.setup_code().unwrap().expose().to_owned();
    let right = format!(r#"{{"token":"first-key-1","code":"{code}"}}"#);
    let wrong = r#"{"token":"first-key-1","code":"AAAAA-AAAAA"}"#;
    for _ in 0..10 {
        assert_eq!(world.send(SETUP, &elsewhere, wrong).await.status, 403);
    }
    assert_eq!(world.send(SETUP, &elsewhere, &right).await.status, 429);
    world.end().await;

    let world = World::alone(Edition::Headless, None).await;
    let code = world.agent.setup_code().unwrap().expose().to_owned();
    let right = format!(r#"{{"token":"first-key-1","code":"{code}"}}"#);
    assert_eq!(world.send(SETUP, &elsewhere, &right).await.status, 200);
    world.end().await;
}
