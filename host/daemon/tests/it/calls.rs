//! What the methods do.

use protocol::{ErrorCode, Method, Reason, RpcError};
use serde_json::{Value, json};
use support::{Content, Origin, Proxy, Resource};

use tokio::net::TcpStream;

use crate::world::{Client, World};

fn why(error: &RpcError) -> (ErrorCode, &str) {
    let data = error.data.as_ref().expect("an application error");
    (data.code, data.field.as_deref().unwrap_or(""))
}

#[tokio::test]
async fn a_task_lives_through_its_calls() {
    let world = World::new().await;
    let mut client = world.client().await;
    let id = client.create("fake://held/a.bin", true).await;
    let task = client.call(Method::TaskGet, json!({"id": id})).await.unwrap();
    assert_eq!((&task["status"], &task["fileName"]), (&json!(2), &json!("a.bin")));
    let rename = json!({"taskId": id, "fileName": "b.bin"});
    client.call(Method::TaskRename, rename).await.unwrap();
    let bad = client
        .call(Method::TaskRename, json!({"taskId": id, "fileName": "../b"}))
        .await
        .unwrap_err();
    assert_eq!(why(&bad), (ErrorCode::InvalidArgument, "fileName"));
    client
        .call(Method::TaskChangeUrl, json!({"taskId": id, "url": "fake://held/c"}))
        .await
        .unwrap();
    let scheme = client
        .call(Method::TaskChangeUrl, json!({"taskId": id, "url": "gopher://held/c"}))
        .await
        .unwrap_err();
    assert_eq!(why(&scheme), (ErrorCode::Unsupported, "url"));
    client.call(Method::TaskDelete, json!({"taskId": id})).await.unwrap();
    let gone = client.call(Method::TaskGet, json!({"taskId": id})).await.unwrap_err();
    assert_eq!(why(&gone), (ErrorCode::NotFound, "taskId"));
    let missing = client.call(Method::TaskGet, json!({})).await.unwrap_err();
    assert_eq!(missing.code, protocol::code::INVALID_PARAMS);
}

#[tokio::test]
async fn what_was_asked_for_is_told_without_its_secrets_and_changed_field_by_field() {
    let world = World::new().await;
    let mut client = world.client().await;
    let request = json!({"url": "fake://held/a", "mirrors": ["fake://held/m"], "startPaused": true, "segments": 3,
        "maxConnections": 4, "minSplitBytes": 1_048_576, "maxTries": 2, "retryWaitSecs": 7, "useServerTime": true,
        "httpUser": "u", "httpPassword": "hidden", "cookies": "c=hidden", "headers": {"A": "b", "authorization": "hidden"}});
    let made = client
        .call(Method::TaskCreate, json!({"request": request}))
        .await
        .unwrap();
    let id = json!({"taskId": made["taskId"]});
    let told = client.call(Method::TaskRequest, id.clone()).await.unwrap();
    for name in [
        "url",
        "mirrors",
        "segments",
        "maxConnections",
        "minSplitBytes",
        "maxTries",
        "retryWaitSecs",
        "httpUser",
    ] {
        assert_eq!(told[name], request[name], "{name}");
    }
    assert_eq!(told["headers"], json!({"A": "***", "authorization": "***"}));
    assert!(!told.to_string().contains("hidden"));
    let change = json!({"segments": 5, "mirrors": [], "saveDir": "/elsewhere", "fileName": "n"});
    let mut params = id.clone();
    params["change"] = change.clone();
    client.call(Method::TaskChange, params.clone()).await.unwrap();
    let changed = client.call(Method::TaskRequest, id.clone()).await.unwrap();
    for name in ["segments", "mirrors", "saveDir", "fileName"] {
        let is_gone = change[name] == json!([]) && changed.get(name).is_none();
        assert!(changed[name] == change[name] || is_gone, "{name}");
    }
    assert_eq!((&changed["httpUser"], &changed["maxTries"]), (&json!("u"), &json!(2)));
    params["change"] = json!({"segments": 99_999});
    let error = client.call(Method::TaskChange, params.clone()).await.unwrap_err();
    assert_eq!(why(&error), (ErrorCode::InvalidArgument, "segments"));
    params["change"] = json!({"segments": "many"});
    let error = client.call(Method::TaskChange, params).await.unwrap_err();
    assert_eq!(error.code, protocol::code::INVALID_PARAMS);
    let task = client.call(Method::TaskGet, id).await.unwrap();
    assert_eq!((&task["saveDir"], task.get("mirrors")), (&json!("/elsewhere"), None));
}

#[tokio::test]
async fn a_chosen_id_makes_one_task_only() {
    let world = World::new().await;
    let mut client = world.client().await;
    let id = "00000000-0000-4000-8000-000000000001";
    let request = json!({"request": {"url": "fake://held/a", "startPaused": true}, "taskId": id});
    let made = client.call(Method::TaskCreate, request.clone()).await.unwrap();
    assert_eq!(made["taskId"], id);
    let again = client.call(Method::TaskCreate, request).await.unwrap_err();
    assert_eq!(why(&again).0, ErrorCode::Conflict);
}

#[tokio::test]
async fn of_many_requests_a_bad_one_is_named_and_none_is_made() {
    let world = World::new().await;
    let mut client = world.client().await;
    let requests = json!([{"url": "fake://held/a"}, {"url": "fake://held/b", "segments": 99_999}]);
    let error = client
        .call(Method::TaskCreateMany, json!({"requests": requests}))
        .await
        .unwrap_err();
    assert_eq!(why(&error), (ErrorCode::InvalidArgument, "requests[1].segments"));
    assert_eq!(client.call(Method::TaskList, json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn the_history_of_a_task_is_paged_and_survives_a_restart() {
    let world = World::new().await;
    let mut client = world.client().await;
    let id = client.create("fake://held/a", true).await;
    for _ in 0..6 {
        for method in [Method::TaskResume, Method::TaskPause] {
            client.call(method, json!({"taskId": id})).await.unwrap();
        }
    }
    let world = world.restart().await;
    let mut client = world.client().await;
    let page = |more: Value| {
        let mut params = json!({"taskId": id, "limit": 2});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let newest = client.call(Method::TaskActivity, page(json!({}))).await.unwrap();
    let ids = |page: &Value| -> Vec<i64> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["id"].as_i64().unwrap()).collect()
    };
    assert_eq!((ids(&newest).len(), &newest["hasMore"]), (2, &json!(true)));
    let older = client
        .call(Method::TaskActivity, page(json!({"beforeId": ids(&newest)[0]})))
        .await
        .unwrap();
    assert!(ids(&older)[1] < ids(&newest)[0]);
    let newer = client
        .call(Method::TaskActivity, page(json!({"afterId": ids(&older)[1]})))
        .await
        .unwrap();
    assert_eq!(ids(&newer), ids(&newest));
    let both = client
        .call(Method::TaskActivity, page(json!({"afterId": 1, "beforeId": 2})))
        .await
        .unwrap_err();
    assert_eq!(why(&both).0, ErrorCode::InvalidArgument);
}

#[tokio::test]
async fn queues_are_made_changed_scheduled_and_deleted() {
    let world = World::new().await;
    let mut client = world.client().await;
    client
        .call(Method::QueueCreate, json!({"name": "films", "speedLimitKbps": 100}))
        .await
        .unwrap();
    let uploading = json!({"name": "shared", "uploadLimitKbps": 5});
    client.call(Method::QueueCreate, uploading).await.unwrap();
    let queues = client.call(Method::QueueList, json!({})).await.unwrap();
    let queue = queues
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "films")
        .unwrap()
        .clone();
    assert_eq!(
        (&queue["speedLimitKbps"], &queue["scheduleDays"]),
        (&json!(100), &json!(127))
    );
    let mut listed = queues.as_array().unwrap().iter();
    let shared = listed.find(|queue| queue["name"] == "shared").unwrap();
    assert_eq!(shared["uploadLimitKbps"], 5);
    let id = queue["queueId"].clone();
    let schedule = json!({"queueId": id, "enabled": true, "startTime": "23:00", "stopTime": "25:00"});
    let bad = client.call(Method::QueueSchedule, schedule).await.unwrap_err();
    assert_eq!(why(&bad), (ErrorCode::InvalidArgument, "stopTime"));
    let task = client.create("fake://held/a", true).await;
    client
        .call(Method::QueueMoveTask, json!({"taskId": task, "queueId": id}))
        .await
        .unwrap();
    client.call(Method::QueueDelete, json!({"queueId": id})).await.unwrap();
    let task = client.call(Method::TaskGet, json!({"taskId": task})).await.unwrap();
    assert_eq!(task["queueId"], "main");
    let built_in = client
        .call(Method::QueueDelete, json!({"queueId": "main"}))
        .await
        .unwrap_err();
    assert_eq!(why(&built_in).0, ErrorCode::Conflict);
}

#[tokio::test]
async fn a_configuration_patch_is_all_or_nothing_and_survives_a_restart() {
    let world = World::new().await;
    let mut client = world.client().await;
    let before = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let revision = before["revision"].as_u64().unwrap();
    let patch = |revision: u64, values: Value| json!({"expectedRevision": revision, "values": values});
    for (key, value) in [
        ("no_such", "1"),
        ("default_segments", "65"),
        ("plugin_auto_update", "x"),
    ] {
        let values = json!({"max_concurrent_tasks": "9", key: value});
        let error = client
            .call(Method::ConfigPatch, patch(revision, values))
            .await
            .unwrap_err();
        assert_eq!(why(&error), (ErrorCode::InvalidArgument, key));
    }
    assert_eq!(client.call(Method::ConfigGet, json!({})).await.unwrap(), before);
    let values = json!({"max_concurrent_tasks": "9", "plugin_auto_update": "0", "proxy_password": "secret"});
    let after = client.call(Method::ConfigPatch, patch(revision, values)).await.unwrap();
    assert_eq!(after["values"]["plugin_auto_update"], "false");
    assert_eq!(after["values"]["proxy_password"], "***");
    let stale = client
        .call(Method::ConfigPatch, patch(revision, json!({})))
        .await
        .unwrap_err();
    assert_eq!(why(&stale).0, ErrorCode::Conflict);
    assert_eq!(stale.data.unwrap().revision, after["revision"].as_u64());
    let world = world.restart().await;
    let mut client = world.client().await;
    assert_eq!(client.call(Method::ConfigGet, json!({})).await.unwrap(), after);
}

#[tokio::test]
async fn the_limits_in_force_are_told_and_those_of_the_turtle_are_switched() {
    let world = World::new().await;
    let mut client = world.client().await;
    let limits = async |client: &mut Client<TcpStream>| {
        let stats = client.call(Method::RuntimeStats, json!({})).await.unwrap();
        (
            stats["downloadLimitBps"].clone(),
            stats["uploadLimitBps"].clone(),
            stats["turtle"].clone(),
        )
    };
    let patch = async |client: &mut Client<TcpStream>, values: Value| {
        let revision = client.call(Method::ConfigGet, json!({})).await.unwrap()["revision"].clone();
        let patch = json!({"expectedRevision": revision, "values": values});
        client.call(Method::ConfigPatch, patch).await.unwrap();
    };
    let values =
        json!({"speed_limit_bytes": "900", "turtle_speed_limit_bytes": "70", "turtle_upload_limit_bytes": "8"});
    patch(&mut client, values).await;
    assert_eq!(limits(&mut client).await, (json!(900), json!(0), json!(false)));
    patch(&mut client, json!({"turtle_enabled": "true"})).await;
    assert_eq!(limits(&mut client).await, (json!(70), json!(8), json!(true)));
    let schema = client.call(Method::ConfigSchema, json!({})).await.unwrap();
    let config = client.call(Method::ConfigGet, json!({})).await.unwrap();
    assert_eq!(
        schema["settings"].as_array().unwrap().len(),
        config["values"].as_object().unwrap().len()
    );
}

#[tokio::test]
async fn unknown_settings_are_refused_together_by_name_with_those_that_exist() {
    let world = World::new().await;
    let mut client = world.client().await;
    let before = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let hostile = format!("\u{1b}[31m{}", "x".repeat(1000));
    let params = json!({
        "expectedRevision": before["revision"],
        "values": {"max_concurrent_tasks": "9", "cdn_multi_enabled": "true", (hostile): "1"},
        "unset": ["bt_enable_utp", "default_segments"],
    });
    let error = client.call(Method::ConfigPatch, params).await.unwrap_err();
    for part in [
        "cdn_multi_enabled",
        "bt_enable_utp",
        "max_concurrent_tasks",
        "plugin_auto_update",
    ] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(
        !error.message.contains('\u{1b}') && error.message.len() < 1500,
        "{}",
        error.message
    );
    assert_eq!(why(&error), (ErrorCode::InvalidArgument, "bt_enable_utp"));
    assert_eq!(error.data.unwrap().reason, Some(Reason::SettingUnknown));
    assert_eq!(client.call(Method::ConfigGet, json!({})).await.unwrap(), before);
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("key-{n}"), json!("1"))).collect();
    let params = json!({"expectedRevision": before["revision"], "values": many});
    let error = client.call(Method::ConfigPatch, params).await.unwrap_err();
    assert!(error.message.contains("and 9992 more"), "{}", error.message);
}

#[tokio::test]
async fn settings_that_older_versions_had_do_not_stop_a_start() {
    let world = World::new().await;
    let mut client = world.client().await;
    let before = client.call(Method::ConfigGet, json!({})).await.unwrap();
    let values = json!({"max_concurrent_tasks": "9"});
    let params = json!({"expectedRevision": before["revision"], "values": values});
    let after = client.call(Method::ConfigPatch, params).await.unwrap();
    let world = world
        .restart_with(|database| {
            let record = database.query_row("SELECT record FROM settings", [], |row| row.get::<_, String>(0));
            let mut record: Value = serde_json::from_str(&record.unwrap()).unwrap();
            record["upload_limit_bytes"] = json!("7");
            record["proxy_mode"] = json!("auto");
            let changed = database.execute("UPDATE settings SET record = ?1", [record.to_string()]);
            assert_eq!(changed.unwrap(), 1);
            for key in ["cdn_max_nodes", "ed2k_server_list", "bt_mse_mode", "webhook.endpoints"] {
                database
                    .execute("INSERT INTO daemon_config VALUES (?1, 'x')", [key])
                    .unwrap();
            }
        })
        .await;
    let mut client = world.client().await;
    let found = client.call(Method::ConfigGet, json!({})).await.unwrap();
    assert_eq!(found["values"]["max_concurrent_tasks"], "9");
    assert_eq!(found["values"]["proxy_mode"], "system", "what auto did");
    assert_eq!(
        found["values"].as_object().unwrap().len(),
        after["values"].as_object().unwrap().len()
    );
}

#[tokio::test]
async fn passwords_of_sites_are_told_to_the_agent_only() {
    let world = World::new().await;
    let mut client = world.client().await;
    let save = json!({"site": "Example.TEST:443", "user": "u", "pass": "p"});
    let entry = client.call(Method::SiteAuthSave, save).await.unwrap();
    assert_eq!(
        entry,
        json!({"site": "https://example.test", "user": "u", "username": "u"})
    );
    let get = json!({"site": "example.test"});
    let found = client.call(Method::SiteAuthGet, get).await.unwrap();
    assert_eq!(found["pass"], "p");
    let unmatched = json!({"url": "http://example.test/x"});
    assert_eq!(
        client.call(Method::SiteAuthMatch, unmatched).await.unwrap(),
        Value::Null
    );
    let unknown = client
        .call(Method::SiteAuthDelete, json!({"site": "other.test"}))
        .await
        .unwrap_err();
    assert_eq!(why(&unknown), (ErrorCode::NotFound, "site"));
    assert_eq!(client.call(Method::SiteAuthClear, json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn every_secret_is_sealed_with_a_new_key_and_still_there_after_a_restart() {
    let world = World::new().await;
    let key = || std::fs::read(world.data("vault.key")).unwrap();
    let before = key();
    let mut client = world.client().await;
    let task = json!({"request": {"url": "fake://held/a", "cookies": "sid=1", "startPaused": true}});
    client.call(Method::TaskCreate, task).await.unwrap();
    let login = json!({"site": "example.test", "user": "u", "pass": "hidden"});
    client.call(Method::SiteAuthSave, login).await.unwrap();
    let cookies = json!({"cookies": "example.test\tFALSE\t/\tFALSE\t0\tname\tvalue"});
    let stored = client.call(Method::SiteCookiesImport, cookies).await.unwrap();
    assert_eq!(stored, json!([{"site": "example.test", "count": 1}]));
    let revision = client.call(Method::ConfigGet, json!({})).await.unwrap()["revision"].clone();
    let endpoint = json!([{"id": "own", "url": "https://hooks.example/1", "signSecret": "s", "enabled": false}]);
    let values = json!({"proxy_password": "pw", "webhook.endpoints": endpoint.to_string()});
    let patch = json!({"expectedRevision": revision, "values": values});
    let saved = client.call(Method::ConfigPatch, patch).await.unwrap();
    assert_eq!(
        client.call(Method::VaultRotate, json!({})).await.unwrap(),
        json!({"values": 5})
    );
    assert_ne!(key(), before);

    let world = world.restart().await;
    let mut client = world.client().await;
    let found = client
        .call(Method::SiteAuthGet, json!({"site": "example.test"}))
        .await
        .unwrap();
    assert_eq!(found["pass"], "hidden");
    let cookies = client.call(Method::SiteCookiesList, json!({})).await.unwrap();
    assert_eq!(cookies, json!([{"site": "example.test", "count": 1}]));
    let config = client.call(Method::ConfigGet, json!({})).await.unwrap();
    assert_eq!(config["values"], saved["values"]);
    let rotated = client.call(Method::VaultRotate, json!({})).await.unwrap();
    assert_eq!(rotated, json!({"values": 5}));
}

/// A rotation that misses a column would leave values that nothing opens.
#[tokio::test]
async fn every_column_of_bytes_is_known_as_sealed_or_plain() {
    /// Ids, identifiers of feeds, what plugins remember (not secret: they read it), and signed files of the market.
    const PLAIN: [&str; 14] = [
        "daemon_activity.task",
        "deleted_feed_task.id",
        "market_source.plugins",
        "market_source.revocations",
        "plugin_storage.value",
        "rss_item.source",
        "rss_pruned.mark",
        "rss_pruned.source",
        "rss_source.id",
        "task.id",
        "task.task_group",
        "task_group.id",
        "task_history.task",
        "vault.sealed",
    ];
    let world = World::new().await;
    let check = world.restart_with(|database| {
        let sql = "SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
                   WHERE tables.type = 'table' AND columns.type = 'BLOB'";
        let mut statement = database.prepare(sql).unwrap();
        let found = statement.query_map([], |row| row.get(0)).unwrap();
        let mut found: Vec<String> = found.map(Result::unwrap).collect();
        found.retain(|column| !PLAIN.contains(&column.as_str()));
        found.sort();
        let sealed = engine::SEALED.into_iter().chain(rss::SEALED);
        let sealed = sealed.chain(plugin_host::SEALED).chain(daemon::SEALED).chain(chains::SEALED);
        let mut sealed: Vec<_> = sealed.map(|column| format!("{}.{}", column.table, column.column)).collect();
        sealed.sort();
        assert_eq!(found, sealed, "list a new one in SEALED of its crate, or here");
    });
    check.await;
}

#[tokio::test]
async fn a_group_goes_with_its_tasks() {
    let world = World::new().await;
    let mut client = world.client().await;
    let requests =
        json!([{"url": "fake://held/a", "startPaused": true}, {"url": "fake://held/b", "startPaused": true}]);
    let made = client
        .call(
            Method::GroupCreateTasks,
            json!({"groupName": "g", "requests": requests}),
        )
        .await
        .unwrap();
    let groups = client.call(Method::GroupList, json!({})).await.unwrap();
    assert_eq!(groups[0]["name"], "g");
    let group = json!({"groupId": made["groupId"]});
    client.call(Method::GroupResume, group.clone()).await.unwrap();
    client.call(Method::GroupPause, group.clone()).await.unwrap();
    client.call(Method::GroupDelete, group).await.unwrap();
    assert_eq!(client.call(Method::TaskList, json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn a_proxy_is_tested_by_a_request_through_it() {
    let world = World::new().await;
    let mut client = world.client().await;
    let origin = Origin::start(vec![Resource::new("/page", Content::seeded(1, 10))]);
    let url = format!("http://page.test:{}/page", origin.port());
    let names = [("page.test", origin.port())];
    let login = Some(("me", "pw"));
    let cases = [
        ("http", Proxy::http(&names, login), "pw", "wrong"),
        ("socks5", Proxy::socks5(&names, login), "pw", "wrong"),
        ("socks4", Proxy::socks4(&names), "", "pw"),
    ];
    for (kind, proxy, right, wrong) in cases {
        let params = |password: &str, url: &str| {
            let user = if password.is_empty() { "" } else { "me" };
            json!({"proxyType": kind, "host": "127.0.0.1", "port": proxy.port().to_string(), "username": user,
                "password": password, "url": url})
        };
        let before = origin.requests().len();
        let tested = client.call(Method::ConfigProxyTest, params(right, &url)).await;
        assert!(tested.unwrap()["latencyMs"].is_u64(), "{kind}");
        assert_eq!(origin.requests().len(), before + 1, "{kind}: a real request arrives");
        let refused = client
            .call(Method::ConfigProxyTest, params(wrong, &url))
            .await
            .unwrap_err();
        let code = if kind == "socks4" {
            ErrorCode::InvalidArgument
        } else {
            ErrorCode::Unavailable
        };
        assert_eq!(why(&refused).0, code, "{kind}: {}", refused.message);
        assert!(!refused.message.contains("pw"), "{}", refused.message);
        assert_eq!(origin.requests().len(), before + 1, "{kind}");
        let away = client
            .call(Method::ConfigProxyTest, params(right, "http://nowhere.invalid/"))
            .await;
        assert_eq!(
            why(&away.unwrap_err()).0,
            ErrorCode::Unavailable,
            "{kind}: what cannot be reached is no success"
        );
    }
    for (params, field) in [
        (json!({"proxyType": "ftp", "host": "p"}), "proxyType"),
        (json!({"proxyType": "http", "host": ""}), "host"),
        (json!({"proxyType": "http", "host": "a b"}), "host"),
        (json!({"proxyType": "http", "host": "p/path"}), "host"),
        (json!({"proxyType": "http", "host": "me@p"}), "host"),
        (json!({"proxyType": "http", "host": "p", "port": "70000"}), "port"),
        (
            json!({"proxyType": "http", "host": "p", "url": "file:///etc/passwd"}),
            "url",
        ),
    ] {
        let error = client.call(Method::ConfigProxyTest, params).await.unwrap_err();
        assert_eq!(why(&error), (ErrorCode::InvalidArgument, field), "{}", error.message);
    }
}

#[tokio::test]
async fn the_slow_lane_has_sixteen_places_and_blocks_nobody() {
    let world = World::new().await;
    let mut client = world.client().await;
    // It accepts nothing itself, so that every test of it waits for a greeting that does not come.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let params = json!({"proxyType": "socks5", "host": "127.0.0.1", "port": port});
    for _ in 0..protocol::SLOW_LANE {
        client.begin(Method::ConfigProxyTest.name(), params.clone()).await;
    }
    let full = client.call(Method::ConfigProxyTest, params).await.unwrap_err();
    assert_eq!(why(&full).0, ErrorCode::Unavailable);
    assert!(full.data.unwrap().retryable);
    client.create("fake://held/a", true).await;
    drop(silent);
    for _ in 0..protocol::SLOW_LANE {
        assert!(client.reply().await.unwrap().outcome.is_err());
    }
}

#[tokio::test]
async fn directories_are_listed_without_files() {
    let world = World::new().await;
    let root = world.root.path();
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    let mut client = world.client().await;
    let listed = client.call(Method::FsList, json!({"path": root})).await.unwrap();
    let names: Vec<_> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(names, [&json!("data"), &json!("sub")]);
    let relative = client.call(Method::FsList, json!({"path": "x"})).await.unwrap_err();
    assert_eq!(why(&relative), (ErrorCode::InvalidArgument, "path"));
    let missing = client
        .call(Method::FsList, json!({"path": root.join("no")}))
        .await
        .unwrap_err();
    assert_eq!(why(&missing), (ErrorCode::NotFound, "path"));
}
