//! Logins end to end, over HTTP only: a client of another make shows the screens of plugins to its user, who acts at the site;
//! afterwards files download that need the login, and after a logout they wait for another one.

mod scene;

use e2e::Running;
use serde_json::{Value, json};
use support::{Account, SiteOptions};

pub(crate) use scene::{CLOUD, MARKER, MEMBER_GALLERY, QR_CLOUD, Scene, password};
use scene::{ENDED, HTTP_FORM_LOGIN, SUCCESS};

/// The client's next answer with this in its message.
#[track_caller]
fn told(client: &mut Running, part: &str) -> Value {
    let has_it = |answer: &Value| answer["message"].as_str().is_some_and(|message| message.contains(part));
    client
        .wait_for(has_it)
        .unwrap_or_else(|| panic!("the client is not told: {part}"))
}

fn payload(answer: &Value) -> String {
    assert_eq!(answer["challengeType"], "qrcode", "{answer}");
    answer["challenge"]
        .as_str()
        .expect("a QR code has a content")
        .to_owned()
}

#[test]
fn a_qr_code_that_the_phone_confirms_unlocks_files_until_the_logout() {
    let scene = Scene::new();
    scene.install(QR_CLOUD);
    let before = scene.service().create(&json!({"url": format!("{CLOUD}/drive")}));
    scene.assert_waits(&before, QR_CLOUD);

    let mut client = scene
        .client(&["watch", QR_CLOUD, "--slot", "main", "--mode", "qr"])
        .spawn();
    let first = told(&mut client, "Scan the code");
    let screen = &first["screen"];
    assert_eq!(
        (&screen["qr"]["hint"], &screen["pollAfterMs"]),
        (&json!("QR cloud"), &json!(1000)),
        "{first}"
    );
    assert!(
        (1..=120).contains(&screen["qr"]["expiresInSeconds"].as_u64().expect("a number")),
        "{first}"
    );
    scene.site.expire(&payload(&first));
    let second = told(&mut client, "has expired");
    assert_ne!(payload(&second), payload(&first));
    scene.site.scan(&payload(&second));
    told(&mut client, "Confirm");
    scene.site.cancel(&payload(&second));
    let third = payload(&told(&mut client, "refused on the phone"));
    assert_eq!(scene.accounts(QR_CLOUD), []);
    scene.site.scan(&third);
    told(&mut client, "Confirm");
    scene.site.confirm(&third, "ann");
    let run = client.finish();
    let done = run.events().pop().expect("it has been answered");
    assert_eq!(
        (run.code, &done["authRef"], &done["message"]),
        (Some(SUCCESS), &json!("main"), &json!("logged in as Ann"))
    );
    assert!(done.get("screen").is_none(), "{done}");
    assert_eq!(scene.accounts(QR_CLOUD), [("main".to_owned(), "Ann".to_owned())]);

    // The download that has waited becomes one of each file, by itself.
    for task in scene.wait_for_files(3) {
        let id = match task["fileName"].as_str().expect("it has a name") {
            "report.pdf" => "1",
            "film.mkv" => "2",
            "notes.txt" => "3",
            other => panic!("the cloud has no {other}"),
        };
        scene.assert_file(task["taskId"].as_str().expect("it has an id"), &scene.site.content(id));
    }

    let (code, answer) = scene.ask(&["logout", QR_CLOUD, "--slot", "main"]);
    assert_eq!((code, &answer["message"]), (Some(SUCCESS), &json!("logged out")));
    assert_eq!((scene.site.open_sessions(), scene.accounts(QR_CLOUD)), (0, Vec::new()));
    let again = scene.download("3");
    scene.assert_waits(&again, QR_CLOUD);
    scene.log_in_ann();
    scene.assert_file(&again, &scene.site.content("3"));
    assert_eq!(scene.service().call("GET", "/api/v1/tasks", None), json!([]));
}

#[test]
fn a_password_and_a_code_are_asked_for_until_they_are_right() {
    let scene = Scene::new();
    scene.install(QR_CLOUD);
    let right = format!("password={}", password("bob"));
    let run = scene.log_in(
        QR_CLOUD,
        "password",
        &[
            "user=bob",
            "password=wrong-one",
            "user=bob",
            &right,
            "code=111111",
            "code=424242",
        ],
    );
    let messages: Vec<_> = run.events().iter().map(|answer| answer["message"].clone()).collect();
    let expected = json!([
        "",
        "User name or password is wrong.",
        "Fill in the code that the app shows.",
        "The code is wrong. Tries left: 2",
        "logged in as Bob",
    ]);
    assert_eq!(json!(messages), expected);
    let fields = &run.events()[0]["screen"]["fields"];
    assert_eq!(
        *fields,
        json!([
            {"key": "user", "label": "User name", "secret": false},
            {"key": "password", "label": "Password", "secret": true},
        ])
    );
    let file = scene.download("1");
    scene.assert_file(&file, &scene.site.content("1"));
    // Another account of the same plugin, and neither logs the other one out.
    let ann = format!("password={}", password("ann"));
    let (code, _) = scene.ask(&[
        "watch", QR_CLOUD, "--slot", "second", "--mode", "password", "--value", "user=ann", "--value", &ann,
    ]);
    assert_eq!(code, Some(SUCCESS));
    let both = [("main", "Bob"), ("second", "Ann")].map(|(slot, name)| (slot.to_owned(), name.to_owned()));
    assert_eq!(scene.accounts(QR_CLOUD), both);
    assert_eq!(scene.ask(&["logout", QR_CLOUD, "--slot", "main"]).0, Some(SUCCESS));
    assert_eq!(scene.accounts(QR_CLOUD), both[1..]);
    let file = scene.download("3");
    scene.assert_waits(&file, QR_CLOUD);
    scene.set(QR_CLOUD, &["account=second"]);
    scene
        .service()
        .call("PUT", &format!("/api/v1/tasks/{file}/continue"), None);
    scene.assert_file(&file, &scene.site.content("3"));
}

#[test]
fn a_captcha_is_a_page_beside_the_form() {
    let scene = Scene::new();
    scene.install(QR_CLOUD);
    let begun = scene
        .auth(
            QR_CLOUD,
            &json!({"action": "begin", "slot": "main", "mode": "password"}),
        )
        .body;
    let answer = |values: Value| {
        let request = json!({"action": "answer", "sessionId": begun["sessionId"], "values": values});
        scene.auth(QR_CLOUD, &request).body
    };
    let mut shown = Value::Null;
    for _ in 0..3 {
        shown = answer(json!({"user": "ann", "password": "wrong-one"}));
    }
    let page = shown["screen"]["openUrl"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(
        (&shown["challenge"], &shown["challengeType"]),
        (&json!(page), &json!("url"))
    );
    let solved = scene.site.captcha_answer(page);
    let done = answer(json!({"user": "ann", "password": password("ann"), "captcha": solved}));
    assert_eq!(done["status"], "success", "{done}");
}

#[test]
fn a_cancelled_login_leaves_nothing_and_a_client_in_a_hurry_does_not_hurry_the_site() {
    let scene = Scene::new();
    scene.install(QR_CLOUD);
    let (_, begun) = scene.ask(&["begin", QR_CLOUD, "--slot", "main", "--mode", "qr"]);
    let session = begun["sessionId"].as_str().expect("it has an id");
    let hasty = scene
        .client(&["watch", QR_CLOUD, "--session", session, "--hasty", "--limit", "3"])
        .run();
    assert!(hasty.events().len() > 20, "{} polls", hasty.events().len());
    let polls = scene.site.wait_for("/qr/state", 1);
    assert!(
        polls.len() <= 4 && polls.iter().all(|poll| poll.status == 200),
        "{} polls of the site",
        polls.len()
    );
    let (code, cancelled) = scene.ask(&["cancel", QR_CLOUD, "--session", session]);
    assert_eq!(
        (code, &cancelled["message"]),
        (Some(ENDED), &json!("the login was cancelled"))
    );
    scene.site.scan(&payload(&begun));
    scene.site.confirm(&payload(&begun), "ann");
    for action in ["poll", "status"] {
        assert_eq!(
            scene.ask(&[action, QR_CLOUD, "--session", session]).1["message"],
            "the login was cancelled"
        );
    }
    assert_eq!((scene.accounts(QR_CLOUD), scene.site.open_sessions()), (Vec::new(), 0));
    let late = scene.auth(
        QR_CLOUD,
        &json!({"action": "answer", "sessionId": session, "values": {"user": "ann"}}),
    );
    assert_eq!(late.status, 400, "{}", late.body);
    // The id of a login is of one plugin, and is not to be guessed.
    scene.install(MEMBER_GALLERY);
    let other = scene.auth(MEMBER_GALLERY, &json!({"action": "status", "sessionId": session}));
    assert_eq!(other.status, 400, "{}", other.body);
}

#[test]
fn cookies_of_a_browser_and_addresses_that_it_ends_at_log_in() {
    let scene = Scene::new();
    scene.install(MEMBER_GALLERY);
    scene.install(QR_CLOUD);
    let picture = format!("{CLOUD}/gallery/sea");
    let waiting = scene.service().create(&json!({"url": picture}));
    scene.assert_waits(&waiting, MEMBER_GALLERY);
    // What a browser has that has logged in to the site.
    let cookie = browser_cookie(&scene);
    let line = |value: &str| format!("cookies=cloud.test\tFALSE\t/\tFALSE\t0\tsession\t{value}");
    let run = scene.log_in(MEMBER_GALLERY, "cookie", &[&line("not-the-cookie"), &line(&cookie)]);
    let messages: Vec<_> = run.events().iter().map(|answer| answer["message"].clone()).collect();
    assert!(
        messages[1]
            .as_str()
            .is_some_and(|message| message.contains("not the cookies")),
        "{messages:?}"
    );
    scene.wait_for_files(7);

    let (_, begun) = scene.ask(&["begin", QR_CLOUD, "--slot", "main", "--mode", "browser"]);
    let page = begun["screen"]["openUrl"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{begun}"));
    assert_eq!(
        (&begun["challenge"], &begun["challengeType"]),
        (&json!(page), &json!("url"))
    );
    let session = begun["sessionId"].as_str().expect("it has an id");
    let elsewhere = [
        "answer",
        QR_CLOUD,
        "--session",
        session,
        "--input",
        "http://elsewhere.test/?code=1",
    ];
    assert_eq!(
        scene.client(&elsewhere).run().code,
        Some(4),
        "an address of another page is refused"
    );
    let address = scene.site.authorize(page, "bob");
    let (code, answer) = scene.ask(&["answer", QR_CLOUD, "--session", session, "--input", &address]);
    assert_eq!((code, &answer["message"]), (Some(SUCCESS), &json!("logged in as Bob")));
    let file = scene.download("2");
    scene.assert_file(&file, &scene.site.content("2"));
}

/// The cookie of a browser where `ann` has logged in.
pub(crate) fn browser_cookie(scene: &Scene) -> String {
    let address = format!("127.0.0.1:{}", scene.site.port());
    let body = json!({"user": "ann", "password": password("ann")});
    let answer = e2e::http::ask(&address, "POST", "/api/login", &[("Connection", "close")], Some(&body))
        .expect("the site answers");
    let set = answer.header("set-cookie").expect("it sets a cookie").to_owned();
    let value = set.strip_prefix("session=").and_then(|rest| rest.split(';').next());
    value.unwrap_or_else(|| panic!("{set}")).to_owned()
}

#[test]
fn a_session_that_has_run_out_is_renewed_once_and_one_that_the_site_ended_needs_its_user() {
    let scene = Scene::new();
    scene.install(QR_CLOUD);
    scene.log_in_ann();
    scene.site.expire_sessions();
    let files: Vec<_> = ["1", "2", "3"].map(|id| (id, scene.download(id))).into();
    for (id, task) in &files {
        scene.assert_file(task, &scene.site.content(id));
    }
    assert_eq!((scene.site.refreshes(), scene.site.reused_refresh_tokens()), (1, 0));
    scene.site.end_sessions();
    let waits = scene.download("3");
    scene.assert_waits(&waits, QR_CLOUD);
    let (code, status) = scene.ask(&["status", QR_CLOUD]);
    assert_eq!(
        (code, &status["accounts"][0]["account"]["expired"]),
        (Some(ENDED), &json!(true)),
        "{status}"
    );
    scene.log_in_ann();
    scene.assert_file(&waits, &scene.site.content("3"));
}

#[test]
fn the_limits_of_an_account_are_kept() {
    let bob = Account {
        parallel: Some(2),
        ..Account::new("bob", &password("bob"))
    };
    let options = SiteOptions {
        accounts: vec![bob],
        pace: support::Pace::BytesPerSecond(400_000),
        files: (1..=6)
            .map(|id| (format!("{id}.bin"), support::Content::seeded(id, 200_000)))
            .collect(),
        ..SiteOptions::new(MARKER)
    };
    let scene = Scene::at(options, &[]);
    scene.install(QR_CLOUD);
    scene.log_in(
        QR_CLOUD,
        "password",
        &["user=bob", &format!("password={}", password("bob"))],
    );
    let files: Vec<_> = (1..=6)
        .map(|id| (id.to_string(), scene.download(&id.to_string())))
        .collect();
    for (id, task) in &files {
        scene.assert_file(task, &scene.site.content(id));
    }
    let refused = scene.site.cdn_seen().iter().filter(|seen| seen.status == 429).count();
    assert_eq!(refused, 0, "the site had to refuse transfers");
}

#[test]
fn a_form_that_the_settings_describe_logs_in_with_a_second_factor() {
    let scene = Scene::new();
    let archive = super::guest::of(HTTP_FORM_LOGIN);
    scene.install_archive(HTTP_FORM_LOGIN, &archive);
    scene.set(
        HTTP_FORM_LOGIN,
        &[
            &format!("loginUrl={CLOUD}/login"),
            "codeField=code",
            &format!("checkUrl={CLOUD}/home"),
            &format!("logoutUrl={CLOUD}/logout"),
            &format!("downloads={CLOUD}/gallery/"),
        ],
    );
    let picture = scene
        .service()
        .create(&json!({"url": format!("{CLOUD}/gallery/sea/1.jpg")}));
    scene.assert_waits(&picture, HTTP_FORM_LOGIN);
    let right = format!("password={}", password("bob"));
    let values = ["user=bob", "password=wrong-one", "user=bob", &right, "code=424242"];
    let values = values.iter().flat_map(|value| ["--value", value]);
    let arguments = [
        "watch",
        HTTP_FORM_LOGIN,
        "--slot",
        "main",
        "--mode",
        "password",
        "--site",
        CLOUD,
    ];
    let run = scene
        .client(&arguments.into_iter().chain(values).collect::<Vec<_>>())
        .run();
    assert_eq!(run.code, Some(SUCCESS), "{run:?}");
    scene.assert_file(&picture, &scene.site.picture(1));
    assert_eq!(
        scene.ask(&["logout", HTTP_FORM_LOGIN, "--slot", "main"]).0,
        Some(SUCCESS)
    );
    assert_eq!(scene.site.open_sessions(), 0);
    let picture = scene
        .service()
        .create(&json!({"url": format!("{CLOUD}/gallery/sea/2.jpg")}));
    scene.assert_waits(&picture, HTTP_FORM_LOGIN);
}
