//! `daemon.post.*`, and the chains that follow finished downloads. Unpacking itself is tested through the executable.

use std::fs;

use protocol::{ErrorCode, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::world::{Client, World};

async fn set_chain<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>, chain: &Value) {
    let now = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let patch = json!({"expectedRevision": now["revision"], "values": {"post_chain": chain.to_string()}});
    client.call(Method::ConfigPatch, patch).await.unwrap();
}

/// Waits for the only job of a task to end.
async fn ended<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>, task: &str) -> Value {
    loop {
        let list = client.call(Method::PostList, json!({})).await.unwrap();
        let jobs = list["jobs"].as_array().unwrap();
        let of_task: Vec<_> = jobs.iter().filter(|job| job["taskId"] == task).collect();
        assert!(of_task.len() <= 1, "{of_task:?}");
        match of_task.first() {
            Some(job) if job["state"] != "waiting" && job["state"] != "running" => return (*job).clone(),
            _ => client.until("postJobsChanged", |_| true).await,
        };
    }
}

#[tokio::test]
async fn a_chain_follows_a_finished_download_and_a_queue_has_its_own() {
    let world = World::new().await;
    let mut client = world.client().await;
    client.snapshot().await;
    let early = client.create("fake://finish/early.bin", false).await;
    client
        .until("taskChanged", |task| {
            task["taskId"] == early.as_str() && task["status"] == 3
        })
        .await;
    let md5 = json!([{"kind": "checksum", "algorithms": ["md5"]}]);
    set_chain(&mut client, &md5).await;
    let task = client.create("fake://finish/a.bin", false).await;
    let job = ended(&mut client, &task).await;
    assert_eq!((&job["state"], &job["steps"]), (&json!("done"), &md5), "{job}");
    let downloads = world.root.path().join("downloads");
    let written = fs::read_to_string(downloads.join("a.bin.md5")).unwrap();
    assert_eq!(written, "781e5e245d69b566979b86e28d23f2c7  a.bin\n");
    assert!(!downloads.join("early.bin.md5").exists(), "it was finished before");
    // A queue's own chain.
    let rename = json!([{"kind": "rename", "template": "{host}/{name}"}]);
    let queue = json!({"name": "own", "postChain": rename});
    client.call(Method::QueueCreate, queue).await.unwrap();
    let queues = client.call(Method::QueueList, json!({})).await.unwrap();
    let own = queues
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "own")
        .unwrap()
        .clone();
    assert_eq!(own["postChain"], rename);
    let request = json!({"request": {"url": "fake://finish/b.bin", "queueId": own["queueId"]}});
    let made = client.call(Method::TaskCreate, request).await.unwrap();
    let job = ended(&mut client, made["taskId"].as_str().unwrap()).await;
    assert_eq!(job["state"], "done", "{job}");
    assert!(downloads.join("finish/b.bin").exists() && !downloads.join("b.bin").exists());
    let wrong = json!({"name": "x", "postChain": [{"kind": "rename", "template": "../x"}]});
    let error = client.call(Method::QueueCreate, wrong).await.unwrap_err();
    assert_eq!(error.data.unwrap().field.as_deref(), Some("postChain"));
}

#[tokio::test]
async fn jobs_are_begun_retried_cancelled_and_forgotten_by_clients() {
    let world = World::new().await;
    let mut client = world.client().await;
    client.snapshot().await;
    let task = client.create("fake://finish/a.zip", false).await;
    client
        .until("taskChanged", |changed| {
            changed["taskId"] == task.as_str() && changed["status"] == 3
        })
        .await;
    let nothing = client
        .call(Method::PostStart, json!({"taskId": task}))
        .await
        .unwrap_err();
    assert!(nothing.message.contains("post_chain"), "{}", nothing.message);
    let unpack = json!({"taskId": task, "steps": [{"kind": "unpack"}], "passwords": ["canary-password"]});
    let started = client.call(Method::PostStart, unpack).await.unwrap();
    assert_eq!(started, json!({"jobId": 1}));
    // This daemon has no unpacker.
    let job = ended(&mut client, &task).await;
    assert_eq!(
        (&job["state"], &job["message"]),
        (&json!("failed"), &json!("this program cannot unpack archives"))
    );
    assert!(!job.to_string().contains("canary"));
    client.call(Method::PostRetry, json!({"jobId": 1})).await.unwrap();
    assert_eq!(ended(&mut client, &task).await["state"], "failed");
    let error = client.call(Method::PostCancel, json!({"jobId": 1})).await.unwrap_err();
    assert_eq!(error.data.unwrap().code, ErrorCode::Conflict);
    let error = client.call(Method::PostRetry, json!({"jobId": 9})).await.unwrap_err();
    assert_eq!(error.data.unwrap().code, ErrorCode::NotFound);
    let passwords = json!({"passwords": ["canary-one", "canary-two"]});
    client.call(Method::PostSetPasswords, passwords).await.unwrap();
    let list = client.call(Method::PostList, json!({})).await.unwrap();
    assert_eq!(list["passwords"], 2);
    assert!(!list.to_string().contains("canary"));
    // Jobs and passwords are there after a restart, sealed.
    let world = world
        .restart_with(|database| {
            let sealed: Vec<u8> = database
                .query_row("SELECT sealed FROM chain_job", [], |row| row.get(0))
                .unwrap();
            assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
        })
        .await;
    let mut client = world.client().await;
    assert_eq!(client.call(Method::PostList, json!({})).await.unwrap(), list);
    assert_eq!(
        client.call(Method::PostClear, json!({})).await.unwrap(),
        json!({"count": 1})
    );
    let started = json!({"taskId": task, "steps": [{"kind": "unpack"}]});
    let started = client.call(Method::PostStart, started).await.unwrap();
    assert_eq!(started, json!({"jobId": 2}), "numbers are not used again");
}

/// Waits until the job of a task waits for files.
async fn waiting<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>, task: &str) {
    loop {
        let list = client.call(Method::PostList, json!({})).await.unwrap();
        let mut jobs = list["jobs"].as_array().unwrap().iter();
        if jobs.any(|job| job["taskId"] == task && job["state"] == "waiting") {
            return;
        }
        client.until("postJobsChanged", |_| true).await;
    }
}

async fn resume_to_its_end<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>, task: &str) {
    client.call(Method::TaskResume, json!({"taskId": task})).await.unwrap();
    let is_complete = |changed: &Value| changed["taskId"] == task && changed["status"] == 3;
    client.until("taskChanged", is_complete).await;
}

/// The tasks of two volumes: the first, whose job waits, and the second, which is paused.
async fn one_of_two_volumes<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>) -> (String, String) {
    client.snapshot().await;
    set_chain(client, &json!([{"kind": "unpack"}])).await;
    let second = client.create("fake://finish/a.part2.rar", true).await;
    let first = client.create("fake://finish/a.part1.rar", false).await;
    waiting(client, &first).await;
    (first, second)
}

#[tokio::test]
async fn the_job_that_waits_takes_the_last_volume() {
    let world = World::new().await;
    let mut client = world.client().await;
    let (first, second) = one_of_two_volumes(&mut client).await;
    resume_to_its_end(&mut client, &second).await;
    assert_eq!(
        ended(&mut client, &first).await["state"],
        "failed",
        "without an unpacker"
    );
    let list = client.call(Method::PostList, json!({})).await.unwrap();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn a_job_that_was_cancelled_while_it_waited_begins_again_only_by_a_retry() {
    let world = World::new().await;
    let mut client = world.client().await;
    let (first, second) = one_of_two_volumes(&mut client).await;
    client.call(Method::PostCancel, json!({"jobId": 1})).await.unwrap();
    resume_to_its_end(&mut client, &second).await;
    // Tasks are followed in the order in which they were completed.
    let later = client.create("fake://finish/later.zip", false).await;
    ended(&mut client, &later).await;
    let list = client.call(Method::PostList, json!({})).await.unwrap();
    let states: Vec<_> = list["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| &job["state"])
        .collect();
    assert_eq!(states, ["failed", "cancelled"]);
    // With all that has come.
    client.call(Method::PostRetry, json!({"jobId": 1})).await.unwrap();
    let job = ended(&mut client, &first).await;
    assert_eq!(job["message"], "this program cannot unpack archives", "{job}");
}

#[tokio::test]
async fn a_task_that_was_finished_while_nobody_listened_is_followed_at_the_start() {
    let world = World::new().await;
    let mut client = world.client().await;
    client.snapshot().await;
    set_chain(&mut client, &json!([{"kind": "checksum", "algorithms": ["md5"]}])).await;
    let task = client.create("fake://finish/a.bin", false).await;
    ended(&mut client, &task).await;
    let file = world.root.path().join("downloads/a.bin.md5");
    fs::remove_file(&file).unwrap();
    // A restart does nothing twice.
    let world = world.restart().await;
    let mut client = world.client().await;
    let list = client.call(Method::PostList, json!({})).await.unwrap();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1);
    assert!(!file.exists());
    // As a crash leaves it between the row of the task and that of the job, which says what was looked at as well.
    let world = world
        .restart_with(|database| {
            let before = "DELETE FROM chain_job; UPDATE chain_state SET value = 0 WHERE name = 'mark';
                          DELETE FROM chain_state WHERE name = 'seen'";
            database.execute_batch(before).unwrap();
        })
        .await;
    let mut client = world.client().await;
    client.snapshot().await;
    let job = ended(&mut client, &task).await;
    assert_eq!((&job["state"], &job["jobId"]), (&json!("done"), &json!(2)));
    assert!(file.exists());
}
