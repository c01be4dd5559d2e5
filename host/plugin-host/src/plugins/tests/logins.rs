use std::sync::atomic::Ordering;

use accounts::Field;
use engine::{AccountUse, Resolution, ResolveRequest, Resolved as Answer, Resolver, ResolverId, Unresolved};
use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use transfer::{FailureKind, GivenBy, RequestOptions, SafeUrl};

use super::*;
use crate::{LoginEnd, LoginError, LoginRefusal, LoginRequest, LoginView, Proxies, Refusal, runtime::Event};

/// A login of a script: its lines `field NAME` and `secret-field NAME` are the form.
pub(super) struct Conversation {
    pub(super) fields: Vec<Field>,
    pub(super) call: Call,
    pub(super) slot: String,
}

pub(super) fn fields(lines: &[String]) -> Vec<Field> {
    let field = |line: &String| {
        let (kind, key) = line.split_once(' ')?;
        let is_secret = kind == "secret-field";
        (is_secret || kind == "field").then(|| Field {
            key: key.to_owned(),
            label: key.to_owned(),
            is_secret,
        })
    };
    lines.iter().filter_map(field).collect()
}

/// The session of the account in a slot, as the plugin's requests would send it.
pub(super) async fn session(call: &Call, slot: &str) -> Option<String> {
    let account = call.secrets.of_account(slot).await.unwrap()?;
    let session = account.find("session").await.unwrap()?;
    Some(session.value().expose().to_owned())
}

pub(super) async fn capture(call: &Call, slot: &str, value: &str) {
    let account = call.secrets.of_account(slot).await.unwrap().unwrap();
    let url = "https://acme.test/login".parse().unwrap();
    account.capture("session", &Secret::new(value), &url).await.unwrap();
}

impl LoginSession for Conversation {
    fn step(&mut self, step: Step) -> BoxFuture<'_, Called<Screen>> {
        Box::pin(async move {
            let mut screen = Screen {
                fields: self.fields.clone(),
                ..Screen::default()
            };
            if let Step::Answer(values) = step {
                if values.iter().any(|(_, value)| value == "mallory") {
                    return called(Err(GuestError::Forbidden("wrong password".to_owned()).into()));
                }
                capture(&self.call, &self.slot, "first-session").await;
                let told: Vec<_> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
                screen.done = Some(accounts::Done {
                    account_id: "7".to_owned(),
                    display_name: told.join(" "),
                });
            }
            called(Ok(screen))
        })
    }

    fn take_cookies(&mut self, cookies: Vec<(Url, String)>) -> BoxFuture<'_, usize> {
        Box::pin(async move { cookies.len() })
    }
}

const SHELF: &str = "exports login\nfield user\nsecret-field password\nhost https://acme.test\naccount main";

async fn with_shelf(more: &str) -> World {
    let world = World::new().await;
    let script = format!("{SHELF}\n{more}");
    let installed = world.install("acme", "1.0.0", &script).await.unwrap();
    if let Some(consent) = installed.pending_consent {
        world.plugins.consent(identity("acme"), consent).await.unwrap();
    }
    world
}

fn request() -> LoginRequest {
    LoginRequest {
        slot: None,
        mode: None,
        site: None,
        proxies: Proxies::none(),
    }
}

fn answers(user: &str) -> Vec<(String, String)> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    vec![pair("user", user), pair("password", "hunter2")]
}

async fn log_in(world: &World) -> LoginView {
    let acme = identity("acme");
    let begun = world.plugins.begin_login(&acme, request()).await.unwrap();
    assert_eq!((begun.view.screen.fields.len(), &begun.view.ended), (2, &None));
    let answered = world.plugins.answer_login(&acme, &begun.session, answers("ann")).await;
    answered.unwrap()
}

async fn link(world: &World, attempts: u32, full_accounts: Vec<engine::AccountKey>) -> Result<Answer, Unresolved> {
    link_of(world.plugins.clone(), attempts, full_accounts).await
}

async fn link_of(
    plugins: Plugins,
    attempts: u32,
    full_accounts: Vec<engine::AccountKey>,
) -> Result<Answer, Unresolved> {
    let request = ResolveRequest {
        resolution: Resolution {
            resolver: ResolverId::new("acme@test"),
            item: Some("file".parse().unwrap()),
        },
        url: SafeUrl::parse("https://acme.test/x").unwrap(),
        given_by: GivenBy::User,
        request: RequestOptions::default(),
        proxies: Proxies::none(),
        netrc: None,
        ignore_tls_errors: false,
        attempts,
        full_accounts,
    };
    Resolver::resolve(&plugins, request).await
}

async fn use_of_account(world: &World) -> (AccountUse, String) {
    let Ok(Answer::Link(link)) = link(world, 0, Vec::new()).await else {
        panic!("it is a link")
    };
    let cookie = link.headers.iter().find(|(name, _)| name == "cookie");
    let cookie = cookie.expect("it has the cookies of the account").1.expose().to_owned();
    (link.account.expect("it is of an account"), cookie)
}

#[tokio::test]
async fn a_link_of_an_account_waits_for_its_login_and_has_its_cookies_and_limits_afterwards() {
    let world = with_shelf("").await;
    let mut told = world.plugins.logins();
    let missing = link(&world, 0, Vec::new()).await.unwrap_err();
    assert_eq!(missing.failure.kind, FailureKind::LoginRequired);
    assert_eq!(missing.login.expect("a login helps").slot(), "main");

    let done = log_in(&world).await;
    let Some(LoginEnd::Succeeded(done)) = done.view.ended else {
        panic!("{done:?}")
    };
    // The plugin was told the name of what the user typed as a password, and not the password.
    assert_eq!(done.display_name, "user=ann password=password");
    assert_eq!(told.recv().await.unwrap().slot, "main");
    let is_login = |entry: &JournalEntry| matches!(&entry.event, Event::LoggedIn { slot } if slot == "main");
    assert!(world.plugins.journal().events(None).iter().any(is_login));

    let (used, cookie) = use_of_account(&world).await;
    assert_eq!((used.account.account(), &*cookie), ("7", "shelf=7"));
    assert_eq!(used.limits.parallel.map(u32::from), Some(2));
    assert_eq!(used.limits.daily_bytes.map(u64::from), Some(1_000_000));
    let full = link(&world, 0, vec![used.account.clone()]).await.unwrap();
    assert_eq!(full, Answer::AccountFull(Box::new(used)));

    let world = world.restart().await;
    use_of_account(&world).await;
    assert!(
        world
            .plugins
            .log_out(&identity("acme"), None, Proxies::none())
            .await
            .unwrap()
    );
    assert!(link(&world, 0, Vec::new()).await.unwrap_err().login.is_some());
    assert!(
        !world
            .plugins
            .log_out(&identity("acme"), None, Proxies::none())
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_refused_answer_can_be_given_again_and_a_cancelled_login_leaves_nothing() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    let begun = world.plugins.begin_login(&acme, request()).await.unwrap();
    let refused = world
        .plugins
        .answer_login(&acme, &begun.session, answers("mallory"))
        .await
        .unwrap();
    let message = refused.view.screen.message.unwrap_or_default();
    assert!(message.contains("wrong password"), "{message}");
    assert_eq!((refused.view.ended, refused.view.screen.fields.len()), (None, 2));
    let incomplete = world.plugins.answer_login(&acme, &begun.session, Vec::new()).await;
    let missing = LoginRefusal::Missing("user".to_owned());
    assert!(matches!(incomplete, Err(LoginError::Refused(refusal)) if refusal == missing));

    let cancelled = world.plugins.cancel_login(&acme, &begun.session).await.unwrap();
    assert_eq!(cancelled.view.ended, Some(LoginEnd::Cancelled));
    let late = world.plugins.answer_login(&acme, &begun.session, answers("ann")).await;
    assert!(matches!(late, Err(LoginError::Refused(LoginRefusal::Over))));
    assert_eq!(world.plugins.slots(&acme).await.unwrap()[0].account, None);
}

#[tokio::test]
async fn a_plugin_has_two_logins_at_once_and_a_third_ends_the_oldest() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    let mut begun = Vec::new();
    for _ in 0..3 {
        begun.push(world.plugins.begin_login(&acme, request()).await.unwrap().session);
    }
    let ended = |session: &String| world.plugins.login(&acme, session).unwrap().view.ended;
    let ends: Vec<_> = begun.iter().map(ended).collect();
    assert_eq!(ends, [Some(LoginEnd::Cancelled), None, None]);
    assert!(matches!(
        world.plugins.login(&identity("other"), &begun[2]),
        Err(LoginError::NoSession)
    ));
}

#[tokio::test]
async fn calls_that_find_a_session_expired_renew_it_once_and_are_repeated() {
    let world = with_shelf("session main\nrenews").await;
    log_in(&world).await;
    let (a, b, c) = tokio::join!(
        link(&world, 0, Vec::new()),
        link(&world, 0, Vec::new()),
        link(&world, 0, Vec::new())
    );
    assert!([a, b, c].iter().all(Result::is_ok));
    assert_eq!(world.runtime.renewals.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_wants_a_login_and_is_shown_as_expired() {
    let world = with_shelf("session main").await;
    log_in(&world).await;
    let expired = link(&world, 0, Vec::new()).await.unwrap_err();
    assert_eq!(expired.failure.kind, FailureKind::LoginRequired);
    let slots = world.plugins.slots(&identity("acme")).await.unwrap();
    assert!(slots[0].account.as_ref().is_some_and(|account| account.is_expired));
}

#[tokio::test]
async fn the_site_is_asked_about_the_session_when_a_link_of_the_account_was_refused() {
    let world = with_shelf("ended").await;
    log_in(&world).await;
    use_of_account(&world).await;
    let refused = link(&world, 1, Vec::new()).await.unwrap_err();
    assert!(refused.login.is_some(), "{refused:?}");
    assert_eq!(world.runtime.renewals.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_disabled_plugin_is_logged_out_and_an_uninstalled_one_leaves_no_account() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    log_in(&world).await;
    world.plugins.set_enabled(acme.clone(), false).await.unwrap();
    assert!(world.plugins.begin_login(&acme, request()).await.is_err());
    assert!(
        world
            .plugins
            .log_out(&acme, Some("main"), Proxies::none())
            .await
            .unwrap()
    );
    world.plugins.set_enabled(acme.clone(), true).await.unwrap();
    log_in(&world).await;
    world.plugins.uninstall(acme.clone()).await.unwrap();
    let world = world.restart().await;
    let rows = world.store.read(|connection| {
        connection.query_row(
            "SELECT (SELECT count(*) FROM plugin_account) + (SELECT count(*) FROM plugin_secret)",
            (),
            |row| row.get::<_, i64>(0),
        )
    });
    assert_eq!(rows.await.unwrap(), 0);
}

#[tokio::test]
async fn accounts_are_kept_for_the_same_author_and_deleted_for_another() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    log_in(&world).await;
    let refused = world
        .plugins
        .uninstall_keeping_accounts(acme.clone())
        .await
        .unwrap_err();
    assert!(matches!(refused, CommandError::Refused(Refusal::NoAuthor)), "{refused}");

    let rows = || {
        world.store.read(|connection| {
            connection.query_row("SELECT count(*) FROM plugin_account", (), |row| row.get::<_, i64>(0))
        })
    };
    let plugin = acme.clone();
    let keep = move |transaction: &store::sql::Transaction<'_>| accounts::keep_for(transaction, &plugin, "RWQ1");
    world.store.write(keep).await.unwrap();
    for (author, left) in [("RWQ1", 1), ("RWQ2", 1)] {
        let plugin = acme.clone();
        let take =
            move |transaction: &store::sql::Transaction<'_>| accounts::take_back(transaction, &plugin, Some(author));
        world.store.write(take).await.unwrap();
        assert_eq!(rows().await.unwrap(), left, "nothing is kept for {author} any more");
    }
    let plugin = acme.clone();
    let other = move |transaction: &store::sql::Transaction<'_>| {
        accounts::keep_for(transaction, &plugin, "RWQ1")?;
        accounts::take_back(transaction, &plugin, None)
    };
    world.store.write(other).await.unwrap();
    assert_eq!(rows().await.unwrap(), 0);
}

#[tokio::test]
async fn a_renewal_goes_on_when_the_call_that_wanted_it_is_given_up() {
    let world = with_shelf("session main\nrenews\nrenewal waits").await;
    log_in(&world).await;
    let mut calls = JoinSet::new();
    calls.spawn(link_of(world.plugins.clone(), 0, Vec::new()));
    world.runtime.begun.notified().await;
    calls.shutdown().await;
    world.runtime.go_on.notify_one();
    assert!(link(&world, 0, Vec::new()).await.is_ok());
    assert_eq!(world.runtime.renewals.load(Ordering::Relaxed), 1);
}

/// Three links, which all wait for the same thing before the script may go on with it: how often it was begun, and the
/// outcomes.
async fn three_at_once(world: &World, attempts: u32) -> (usize, Vec<Result<Answer, Unresolved>>) {
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        calls.spawn(link_of(world.plugins.clone(), attempts, Vec::new()));
    }
    world.runtime.begun.notified().await;
    let asked = world.plugins.0.logins.asked(&identity("acme"), "main");
    // One owner is the table, and one is this test.
    while Arc::strong_count(&asked) < 2 + 3 {
        tokio::task::yield_now().await;
    }
    let (mut begun, mut outcomes) = (1, Vec::new());
    world.runtime.go_on.notify_one();
    loop {
        tokio::select! {
            outcome = calls.join_next() => match outcome {
                Some(outcome) => outcomes.push(outcome.unwrap()),
                None => return (begun, outcomes),
            },
            () = world.runtime.begun.notified() => {
                begun += 1;
                world.runtime.go_on.notify_one();
            }
        }
    }
}

#[tokio::test]
async fn a_renewal_that_fails_is_not_repeated_by_those_who_waited_for_it() {
    let world = with_shelf("session main\nrenewal waits").await;
    log_in(&world).await;
    let (begun, outcomes) = three_at_once(&world, 0).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.as_ref().unwrap_err().login.is_some())
    );
    assert_eq!(begun, 1);
    // A call that begins later asks again: the site may have changed its mind.
    world.runtime.go_on.notify_one();
    assert!(link(&world, 0, Vec::new()).await.is_err());
    assert_eq!(world.runtime.renewals.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_a_site_gives_out_in_a_check_of_the_session_is_kept_and_it_is_checked_once() {
    let world = with_shelf("rotates\ncheck waits").await;
    log_in(&world).await;
    let (begun, outcomes) = three_at_once(&world, 1).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(begun, 1);
    let secrets = world.plugins.0.secrets_of(&identity("acme")).unwrap();
    let account = secrets.of_account("main").await.unwrap().unwrap();
    let session = account.find("session").await.unwrap().unwrap();
    assert_eq!(session.value().expose(), "rotated-session");
}

#[tokio::test]
async fn an_account_that_is_logged_out_during_its_renewal_does_not_come_back() {
    let world = with_shelf("session main\nrenews\nrenewal waits").await;
    let acme = identity("acme");
    log_in(&world).await;
    let mut calls = JoinSet::new();
    calls.spawn(link_of(world.plugins.clone(), 0, Vec::new()));
    world.runtime.begun.notified().await;
    assert!(world.plugins.log_out(&acme, None, Proxies::none()).await.unwrap());
    world.runtime.go_on.notify_one();
    assert!(calls.join_next().await.unwrap().unwrap().unwrap_err().login.is_some());
    assert_eq!(world.plugins.slots(&acme).await.unwrap()[0].account, None);
}

#[tokio::test]
async fn who_logs_in_during_a_renewal_keeps_that_account_and_calls_are_repeated_with_it() {
    for script in ["renews\nrenewal waits", "renewal waits"] {
        let world = with_shelf(script).await;
        let acme = identity("acme");
        let since = async || {
            world.plugins.slots(&acme).await.unwrap()[0]
                .account
                .as_ref()
                .unwrap()
                .since_ms
        };
        log_in(&world).await;
        let first = since().await;
        let (shared, plugin) = (Arc::clone(&world.plugins.0), acme.clone());
        let mut renewing = JoinSet::new();
        renewing.spawn(async move {
            shared
                .renew(&plugin, "main", &given("https://acme.test/x"), Instant::now())
                .await
        });
        world.runtime.begun.notified().await;
        while crate::runtime::now_ms() <= first {
            tokio::task::yield_now().await;
        }
        log_in(&world).await;
        let second = since().await;
        world.runtime.go_on.notify_one();
        assert_eq!(renewing.join_next().await.unwrap().unwrap(), Ok(true), "{script}");
        assert!(first < second && since().await == second);
        let slots = world.plugins.slots(&acme).await.unwrap();
        assert!(!slots[0].account.as_ref().unwrap().is_expired);
        let secrets = world.plugins.0.secrets_of(&acme).unwrap();
        let account = secrets.of_account("main").await.unwrap().unwrap();
        let session = account.find("session").await.unwrap().unwrap();
        assert_eq!(session.value().expose(), "first-session");
    }
}

#[tokio::test]
async fn what_a_site_was_asked_last_is_remembered_and_there_is_only_so_much_of_it() {
    let (logins, acme) = (Logins::default(), identity("acme"));
    let check = || {
        let ended = Instant::now();
        Some(crate::logins::Check {
            ended,
            is_accepted: true,
        })
    };
    let held = logins.asked(&acme, "held");
    held.lock().await.check = check();
    logins.asked(&acme, "idle").lock().await.check = check();
    let first = Arc::downgrade(&logins.asked(&acme, "0"));
    for number in 1..1000 {
        logins.asked(&acme, &number.to_string());
    }
    assert!(first.upgrade().is_none(), "it made room");
    assert!(logins.asked(&acme, "idle").lock().await.check.is_some());
    assert!(Arc::ptr_eq(&held, &logins.asked(&acme, "held")));
}

#[tokio::test]
async fn a_login_that_is_cancelled_before_it_is_written_is_not_stored_and_holds_no_secrets() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    let begun = world.plugins.begin_login(&acme, request()).await.unwrap().session;
    let turn = world.plugins.0.turn(&acme).await;
    let (plugins, plugin, session) = (world.plugins.clone(), acme.clone(), begun.clone());
    let mut answering = JoinSet::new();
    answering.spawn(async move { plugins.answer_login(&plugin, &session, answers("ann")).await });
    let is_done = || world.plugins.login(&acme, &begun).unwrap().view.screen.done.is_some();
    while !is_done() {
        tokio::task::yield_now().await;
    }
    world.plugins.cancel_login(&acme, &begun).await.unwrap();
    let session = world.plugins.0.logins.get(&acme, &begun).unwrap();
    assert_eq!(session.draft.kept_names(), Vec::<String>::new());
    drop(turn);
    let answered = answering.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(answered.view.ended, Some(LoginEnd::Cancelled));
    assert_eq!(world.plugins.slots(&acme).await.unwrap()[0].account, None);
}

#[tokio::test]
async fn a_login_that_is_cancelled_when_its_account_is_being_written_succeeds() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    let begun = world.plugins.begin_login(&acme, request()).await.unwrap().session;
    // The table is taken: writers wait.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let (taken, is_taken) = tokio::sync::oneshot::channel();
    let store = world.store.clone();
    let mut others = JoinSet::new();
    others.spawn(async move {
        let occupy = move |_: &store::sql::Transaction<'_>| {
            taken.send(()).unwrap();
            // It ends when the test lets it.
            let _let_go = held.recv();
            Ok(())
        };
        store.write(occupy).await.unwrap();
    });
    is_taken.await.unwrap();
    let (plugins, plugin, session) = (world.plugins.clone(), acme.clone(), begun.clone());
    let mut answering = JoinSet::new();
    answering.spawn(async move { plugins.answer_login(&plugin, &session, answers("ann")).await });
    let session = world.plugins.0.logins.get(&acme, &begun).unwrap();
    let is_free = || world.plugins.0.turn(&acme).now_or_never().is_some();
    while session.view().screen.done.is_none() || is_free() {
        tokio::task::yield_now().await;
    }
    world.plugins.cancel_login(&acme, &begun).await.unwrap();
    drop(hold);
    let answered = answering.join_next().await.unwrap().unwrap().unwrap();
    assert!(
        matches!(answered.view.ended, Some(LoginEnd::Succeeded(_))),
        "{answered:?}"
    );
    assert!(world.plugins.slots(&acme).await.unwrap()[0].account.is_some());
}

#[tokio::test]
async fn the_site_of_an_account_holds_no_login_and_no_parameters() {
    let world = with_shelf("").await;
    let acme = identity("acme");
    let asked = LoginRequest {
        site: Some(
            "https://me:hunter2@acme.test/shelf?token=hunter3#hunter4"
                .parse()
                .unwrap(),
        ),
        ..request()
    };
    let begun = world.plugins.begin_login(&acme, asked).await.unwrap();
    let answered = world.plugins.answer_login(&acme, &begun.session, answers("ann")).await;
    assert!(matches!(answered.unwrap().view.ended, Some(LoginEnd::Succeeded(_))));
    let slots = world.plugins.slots(&acme).await.unwrap();
    let site = slots[0].account.as_ref().unwrap().site.as_deref();
    assert_eq!(site, Some("https://acme.test/shelf"));
}
