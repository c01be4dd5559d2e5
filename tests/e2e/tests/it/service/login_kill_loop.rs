//! A service that is killed while a login is stored has the whole account afterwards, or nothing of it.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use e2e::{http, service::KEY, setting};
use serde_json::{Value, json};

use super::{
    logins::{QR_CLOUD, Scene, password},
    plugin_kill_loop::moment,
};

/// Logins that are left alone, to learn how long one takes to store after the site's answer.
const MEASURED: u32 = 3;

/// The last kill comes so much later than an account is usually stored; in each further sweep as much later again.
const BEYOND: f64 = 1.5;

/// Sweeps until both ends have been met.
const SWEEPS: u64 = 6;

/// Gives the name and the password of a login in another thread, which gives how the login went.
fn answer(scene: &Scene) -> thread::JoinHandle<Option<Value>> {
    let begun = scene
        .auth(
            QR_CLOUD,
            &json!({"action": "begin", "slot": "main", "mode": "password"}),
        )
        .body;
    let request = json!({
        "action": "answer", "sessionId": begun["sessionId"], "values": {"user": "ann", "password": password("ann")},
    });
    let address = scene.service().address().to_owned();
    thread::spawn(move || {
        let key = format!("Bearer {KEY}");
        let path = format!("/api/v1/plugins/{QR_CLOUD}/auth");
        let answer = http::ask(&address, "POST", &path, &[("Authorization", &key)], Some(&request));
        answer.map(|answer| answer.body)
    })
}

fn log_out(scene: &Scene) {
    let answer = scene.auth(QR_CLOUD, &json!({"action": "logout", "slot": "main"}));
    assert_eq!(answer.body["status"], "success", "{}", answer.body);
}

/// How many accounts and secrets of accounts the database has.
fn rows(scene: &Scene) -> (u64, u64) {
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n\
                  print(*db.execute('SELECT (SELECT count(*) FROM plugin_account), \
                  (SELECT count(*) FROM plugin_secret WHERE account <> \\'\\')').fetchone())";
    let read = Command::new("python3")
        .args(["-c", script])
        .arg(scene.home.data().join("svc.db"))
        .output();
    let read = read.expect("Python is part of the system");
    let text = String::from_utf8_lossy(&read.stdout);
    let counts = text.trim().split_once(' ').unwrap_or_else(|| panic!("{read:?}"));
    (counts.0.parse().expect("a number"), counts.1.parse().expect("a number"))
}

#[test]
fn a_login_that_is_killed_at_any_moment_leaves_a_whole_account_or_none() {
    let mut scene = Scene::new();
    scene.install(QR_CLOUD);
    let mut logins = 0;
    let mut usual = Duration::ZERO;
    for _ in 0..MEASURED {
        let answering = answer(&scene);
        logins += 1;
        scene.site.wait_for("/api/login", logins);
        let began = Instant::now();
        let answered = answering.join().expect("it ends").expect("it is answered");
        assert_eq!(answered["status"], "success", "{answered}");
        usual += began.elapsed() / MEASURED;
        assert_eq!(rows(&scene).0, 1);
        log_out(&scene);
        assert_eq!(rows(&scene), (0, 0));
    }
    let (mut without, mut whole) = (0, 0);
    let (mut kill, kills) = (0, setting::kills());
    while kill < kills || ((without == 0 || whole == 0) && kill < SWEEPS * kills) {
        let after = moment(usual, BEYOND, kill, kills);
        kill += 1;
        let daemon = scene.home.daemon().expect("a daemon runs");
        let answering = answer(&scene);
        logins += 1;
        scene.site.wait_for("/api/login", logins);
        #[expect(clippy::disallowed_methods, reason = "the moment of the kill is what is tried out")]
        thread::sleep(after);
        daemon.kill();
        let answered = answering.join().expect("it ends").unwrap_or_default();
        scene.take_service().kill();
        scene.start(|svc, _| svc);
        let accounts = scene.accounts(QR_CLOUD);
        let told = format!("kill {kill}, {after:?} after the site's answer: {accounts:?}, {answered}");
        if accounts.is_empty() {
            assert_ne!(answered["status"], "success", "{told}");
            assert_eq!(rows(&scene), (0, 0), "{told}");
            without += 1;
        } else {
            let file = scene.download("3");
            scene.assert_file(&file, &scene.site.content("3"));
            log_out(&scene);
            assert_eq!(rows(&scene), (0, 0), "{told}");
            whole += 1;
        }
    }
    assert_eq!(scene.take_service().terminate().code, Some(0));
    println!(
        "{kill} kills over {:?} after the site's answer: {without} times no account, {whole} times a whole one",
        usual.mul_f64(BEYOND),
    );
    assert!(
        without > 0 && whole > 0,
        "{without} times none and {whole} times a whole account: one side was never met"
    );
}
