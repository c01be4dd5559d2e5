//! Tasks whose source a resolver knows.

use transfer::{Checksum, FailureKind, GivenBy, Secret, UserHost, checksum::Algorithm};

use super::*;
use crate::{
    model::{
        group::{LeftOut, LeftOutKind},
        resolution::{Item, Resolution, ResolverId},
        settings::MAX_FINITE_RETRIES,
    },
    resolver::{Link, List, ListedFile, Resolved},
};

pub(super) fn claimed(world: &mut World, n: u8) -> TaskId {
    world.create_with(n, |spec| {
        spec.request.cookies = Secret::new("session=1");
        spec.resolution = Some(Resolution {
            resolver: ResolverId::new("shelf@us"),
            item: None,
        });
    })
}

pub(super) fn link(url: &str) -> Link {
    Link {
        urls: vec![SafeUrl::parse(url).unwrap()],
        headers: vec![("X-Ticket".into(), Secret::new("t"))],
        file_name: None,
        promised_size: Some(10),
        checksum: None,
        is_single_use: false,
        is_whole_only: false,
        max_connections: Some(3),
        segments: Arc::default(),
        account: None,
    }
}

fn checksum_of(id: &str) -> Checksum {
    Checksum::compute(Algorithm::Sha256, &mut id.as_bytes()).unwrap()
}

pub(super) fn file(id: &str, size_bytes: u64) -> ListedFile {
    ListedFile {
        url: None,
        item: id.parse().unwrap(),
        name: FileName::sanitise(id),
        directories: vec![FileName::sanitise("part")],
        size_bytes: Some(size_bytes),
        checksum: Some(checksum_of(id)),
    }
}

pub(super) fn list(files: Vec<ListedFile>) -> Resolved {
    Resolved::List(List {
        left_out: Vec::new(),
        resolver: ResolverId::new("shelf@us"),
        name: "Shelf".into(),
        files,
    })
}

impl World {
    /// Answers the only open question.
    pub(super) fn answer(&mut self, outcome: Result<Resolved, Failure>) {
        let outcome = outcome.map_err(Into::into);
        let question = self.questions.pop().expect("the resolver was asked");
        self.apply(Input::Resolved(question.task, question.run, outcome, vec![]))
            .unwrap();
    }

    fn started(&self, task: TaskId) -> &Start {
        self.live.values().find(|start| start.task == task).unwrap()
    }
}

#[test]
fn a_claimed_url_is_asked_for_before_anything_is_downloaded_and_a_failure_is_the_tasks() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    assert!(world.live.is_empty());
    let failure = Failure::new(FailureKind::Plugin, "the page has changed");
    world.answer(Err(failure.clone()));
    assert_eq!(world.phase(task), Phase::Failed(Box::new(failure)));
    assert!(world.live.is_empty(), "never raw");
    world.command(Command::IgnoreResolver(task)).unwrap();
    assert!(world.questions.is_empty() && world.is_live(task));
}

#[test]
fn what_the_user_said_of_a_site_stays_there() {
    let mut world = World::new();
    world.state.netrc = Some(Arc::default());
    let task = claimed(&mut world, 1);
    world.answer(Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
    let start = world.started(task);
    assert_eq!(start.source.request.cookies, Secret::default());
    assert_eq!(
        start.source.request.headers,
        [("X-Ticket".to_owned(), Secret::new("t"))]
    );
    let user_host = UserHost::typed(&"http://origin.test/".parse().unwrap());
    assert_eq!(start.source.given_by, GivenBy::Other { user_host });
    assert_eq!(
        start.source.netrc, None,
        "the logins of .netrc are for URLs of the user"
    );
    assert_eq!((start.connections.per_host, start.source.promised_size), (3, Some(10)));

    let own = claimed(&mut world, 2);
    world.answer(Ok(Resolved::Link(Box::new(link("http://origin.test/real")))));
    assert_eq!(world.started(own).source.request.cookies, Secret::new("session=1"));
}

#[test]
fn a_login_in_the_url_goes_to_links_of_its_origin_and_to_nobody_else() {
    let mut world = World::new();
    let started = |world: &mut World, n: u8, urls: &[&str]| {
        let task = world.create_with(n, |spec| {
            spec.urls = vec![SafeUrl::parse("http://me:pw@origin.test/share").unwrap()];
            spec.resolution = Some(Resolution {
                resolver: ResolverId::new("shelf@us"),
                item: None,
            });
        });
        let urls = urls.iter().map(|url| SafeUrl::parse(url).unwrap());
        let link = Link {
            urls: urls.collect(),
            headers: Vec::new(),
            ..link("http://origin.test/")
        };
        world.answer(Ok(Resolved::Link(Box::new(link))));
        world.started(task).source.clone()
    };
    let own = started(&mut world, 1, &["http://origin.test/f", "http://mirror.test/f"]);
    let login = own.request.credentials.unwrap();
    assert_eq!((login.user.as_str(), login.password.expose()), ("me", "pw"));
    assert_eq!(own.urls.len(), 2, "the transport keeps it from the mirror");
    assert!(own.logins.is_empty());
    for (n, url) in [
        (2, "http://cdn.test/f"),
        (3, "http://origin.test:8080/f"),
        (4, "https://origin.test/f"),
    ] {
        let other = started(&mut world, n, &[url, "http://mirror.test/f"]);
        assert_eq!(other.request.credentials, None, "{url}");
        assert_eq!(other.urls.len(), 2, "{url}");
    }
}

#[test]
fn every_origin_gets_its_own_stored_login_and_no_other() {
    let mut world = World::new();
    for (site, user) in [("http://origin.test", "own"), ("http://known.test", "known")] {
        let credentials = Credentials {
            user: user.into(),
            password: Secret::new("pw"),
        };
        world
            .command(Command::SiteSave(site.parse().unwrap(), credentials))
            .unwrap();
    }
    let user = |credentials: Option<&Credentials>| credentials.map(|it| it.user.clone());
    let mut source = |n: u8, urls: &[&str]| {
        let task = world.create_with(n, |spec| {
            spec.urls = vec![SafeUrl::parse("http://origin.test/share").unwrap()];
            spec.resolution = Some(Resolution {
                resolver: ResolverId::new("shelf@us"),
                item: None,
            });
        });
        let urls = urls.iter().map(|url| SafeUrl::parse(url).unwrap());
        let link = Link {
            urls: urls.collect(),
            ..link("http://origin.test/")
        };
        world.answer(Ok(Resolved::Link(Box::new(link))));
        world.started(task).source.clone()
    };
    let elsewhere = source(1, &["http://cdn.test/f", "http://known.test/f", "http://mirror.test/f"]);
    assert_eq!(
        elsewhere.request.credentials, None,
        "not the login of the URL that the plugin claimed"
    );
    let logins: Vec<_> = elsewhere
        .logins
        .iter()
        .map(|(origin, login)| (origin.as_str(), login.user.as_str()))
        .collect();
    assert_eq!(logins, [("http://known.test:80", "known")]);
    let known = source(2, &["http://known.test/f", "http://origin.test/f"]);
    assert_eq!(user(known.request.credentials.as_ref()).as_deref(), Some("known"));
    assert_eq!(user(known.logins.get("http://origin.test:80")).as_deref(), Some("own"));
}

#[test]
fn a_link_that_is_good_once_is_asked_for_once() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    let once = Link {
        is_single_use: true,
        ..link("http://cdn.test/f")
    };
    world.answer(Ok(Resolved::Link(Box::new(once))));
    let start = world.started(task);
    assert_eq!((start.connections.segments, start.connections.per_host), (1, 1));
    assert_eq!(start.retry.attempts, Some(1));
}

#[test]
fn an_expired_link_is_asked_for_again_as_often_as_the_settings_allow_without_new_bytes() {
    let mut world = World::new();
    world.settings(|settings| settings.max_auto_retries = Some(2));
    let task = claimed(&mut world, 1);
    for attempt in 0..3 {
        world.answer(Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
        if attempt == 1 {
            let run = world.started(task).run;
            let progress = Progress {
                done_bytes: 5,
                ..Progress::default()
            };
            world.apply(Input::Progressed(vec![(task, run, progress)])).unwrap();
        }
        world.end(task, failed(FailureKind::Forbidden));
        assert!(matches!(world.phase(task), Phase::Retrying(_)), "attempt {attempt}");
        world.now = world.state.next_retry().unwrap();
        world.clock("2026-01-01T00:00");
    }
    world.answer(Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
    world.end(task, failed(FailureKind::Forbidden));
    assert!(matches!(world.phase(task), Phase::Failed(_)));
}

#[test]
fn a_plugin_that_asks_for_retries_without_end_is_refused_although_bytes_arrive() {
    for (setting, most) in [(Some(3), 3), (None, MAX_FINITE_RETRIES)] {
        let mut world = World::new();
        world.settings(|settings| settings.max_auto_retries = setting);
        let task = claimed(&mut world, 1);
        let fails = |world: &mut World, bytes: u64| {
            world.answer(Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
            let run = world.started(task).run;
            let progress = Progress {
                done_bytes: bytes,
                ..Progress::default()
            };
            world.apply(Input::Progressed(vec![(task, run, progress)])).unwrap();
            world.end(task, failed(FailureKind::ReadOnly));
            world.command(Command::RequestRetry(task, Duration::ZERO))
        };
        for n in 1..=most {
            assert_eq!(fails(&mut world, n.into()), Ok(Reply::Done), "request {n} of {most}");
            world.now = world.state.next_retry().unwrap();
            world.clock("2026-01-01T00:00");
        }
        assert_eq!(fails(&mut world, 100), Err(CommandError::NoRetryLeft));
        assert!(matches!(world.phase(task), Phase::Failed(_)));
        // The user starts over.
        world.command(Command::Resume(task)).unwrap();
        assert_eq!(fails(&mut world, 200), Ok(Reply::Done));
    }
}

#[test]
fn a_pause_while_the_resolver_is_asked_is_a_pause() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    world.command(Command::Pause(task)).unwrap();
    let question = world.questions.pop().unwrap();
    assert!(world.stopped.contains(&question.run));
    let late = Resolved::Link(Box::new(link("http://cdn.test/f")));
    world
        .apply(Input::Resolved(task, question.run, Ok(late), vec![]))
        .unwrap();
    assert_eq!(world.phase(task), Phase::Paused);
    assert!(world.live.is_empty());
}

#[test]
fn a_list_becomes_a_group_and_the_task_its_first_file() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    world.answer(Ok(list(vec![file("a@hd", 1), file("b", 2)])));
    let snapshot = world.state.snapshot(0);
    assert_eq!((snapshot.tasks.len(), snapshot.groups.len()), (2, 1));
    let group = Some(snapshot.groups[0].id);
    for (task, item, name) in [(&snapshot.tasks[0], "a@hd", "a@hd"), (&snapshot.tasks[1], "b", "b")] {
        let spec = task.spec();
        assert_eq!(task.group, group);
        assert_eq!(spec.resolution.unwrap().item, Some(item.parse::<Item>().unwrap()));
        assert_eq!(spec.checksum, Some(checksum_of(item)), "each is verified with its own");
        assert_eq!(task.file_name(), name);
        assert_eq!(&*task.save_dir, Path::new("/downloads/Shelf/part"));
    }
    assert_eq!(snapshot.tasks[0].id, task);
    assert_eq!(world.questions.len(), 2, "each is asked for by itself");
    assert_eq!(world.saved.tasks.len(), 2);
    let asked = world.questions[1].task;
    world.answer(Ok(list(vec![file("a", 1)])));
    assert_eq!(world.status(asked), Status::Error, "a list in a list is nonsense");
}

#[test]
fn one_file_is_no_group_and_a_huge_list_waits_for_the_user() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    world.answer(Ok(list(vec![file("only", 1)])));
    assert!(world.state.snapshot(0).groups.is_empty());
    assert_eq!(world.questions.len(), 1);
    world.answer(Ok(Resolved::Link(Box::new(link("http://cdn.test/f")))));
    assert_eq!(world.started(task).target.name, Some(FileName::sanitise("only")));

    let huge = claimed(&mut world, 2);
    world.answer(Ok(list(vec![file("a", u64::MAX), file("b", 1)])));
    assert_eq!(world.status(huge), Status::Paused);
    let waiting = world
        .state
        .snapshot(0)
        .tasks
        .iter()
        .filter(|task| task.phase == Phase::Paused)
        .count();
    assert_eq!(waiting, 2);

    let none = claimed(&mut world, 3);
    world.answer(Ok(list(vec![])));
    assert!(matches!(world.phase(none), Phase::Failed(failure) if failure.kind == FailureKind::NotFound));
}

#[test]
fn a_request_is_not_copied_into_more_memory_than_there_is() {
    let mut world = World::new();
    let task = world.create_with(1, |spec| {
        spec.request.headers = vec![("x".into(), Secret::new("y".repeat(4000)))];
        spec.resolution = Some(Resolution {
            resolver: ResolverId::new("shelf@us"),
            item: None,
        });
    });
    let files = (0..10_000).map(|n| file(&n.to_string(), 1)).collect();
    world.answer(Ok(list(files)));
    assert_eq!(world.status(task), Status::Error);
    assert_eq!(world.state.snapshot(0).tasks.len(), 1);
}

#[test]
fn one_file_of_a_list_that_leaves_others_out_is_a_group_that_says_so() {
    let mut world = World::new();
    let task = claimed(&mut world, 1);
    let Resolved::List(mut answer) = list(vec![file("a", 1)]) else {
        unreachable!("it is a list")
    };
    answer.left_out = vec![LeftOut {
        kind: LeftOutKind::Unreadable,
        name: "folder".to_owned(),
        count: 1,
    }];
    let left_out = answer.left_out.clone();
    world.answer(Ok(Resolved::List(answer)));
    let snapshot = world.state.snapshot(0);
    assert_eq!(snapshot.groups[0].spec.left_out, left_out);
    assert_eq!(world.state.task(task).unwrap().group, Some(snapshot.groups[0].id));
}

fn jar(domain: &str) -> Arc<CookieJar> {
    let line = format!("{domain}\tTRUE\t/\tFALSE\t0\tname\tvalue");
    Arc::new(CookieJar::parse(&line, 0).unwrap())
}

#[test]
fn stored_cookies_go_with_urls_of_their_site_and_with_no_link_elsewhere() {
    let mut world = World::new();
    let sites = ["origin.test", "known.test", "127.0.0.1"];
    let stored = sites.map(|site| (site.parse().unwrap(), jar(site))).to_vec();
    world.command(Command::CookiesSave(stored)).unwrap();
    let of = |source: &transfer::Source| source.site_cookies.keys().cloned().collect::<Vec<_>>();
    let urls = |texts: &[&str]| texts.iter().map(|url| SafeUrl::parse(url).unwrap()).collect::<Vec<_>>();

    let plain = world.create_with(1, |spec| {
        spec.urls = urls(&[
            "http://a.b.origin.test:8080/f",
            "https://known.test/f",
            "http://evilorigin.test/f",
            "http://test/f",
            "http://127.0.0.1/f",
            "http://7.0.0.1/f",
        ]);
    });
    assert_eq!(
        of(&world.started(plain).source),
        [
            "http://127.0.0.1:80",
            "http://a.b.origin.test:8080",
            "https://known.test:443"
        ]
    );

    // A resolver's links get those of the site that the user named, and of no other one that the resolver names.
    let task = world.create_with(2, |spec| {
        spec.urls = urls(&["http://origin.test/share"]);
        spec.resolution = Some(Resolution {
            resolver: ResolverId::new("shelf@us"),
            item: None,
        });
    });
    let link = Link {
        urls: urls(&["http://cdn.origin.test/f", "http://known.test/f"]),
        ..link("http://origin.test/")
    };
    world.answer(Ok(Resolved::Link(Box::new(link))));
    assert_eq!(of(&world.started(task).source), ["http://cdn.origin.test:80"]);
}

#[test]
fn cookies_of_a_site_are_replaced_removed_and_bounded() {
    let mut world = World::new();
    let site: CookieSite = "origin.test".parse().unwrap();
    for domain in ["origin.test", "www.origin.test"] {
        let stored = vec![(site.clone(), jar(domain))];
        world.command(Command::CookiesSave(stored)).unwrap();
        assert_eq!(world.saved.cookies[&site], jar(domain));
        assert_eq!(world.state.cookie_sites().len(), 1);
    }
    world.command(Command::CookiesDelete(site.clone())).unwrap();
    assert!(world.saved.cookies.is_empty());
    assert_eq!(
        world.command(Command::CookiesDelete(site)),
        Err(CommandError::UnknownCookieSite("origin.test".into()))
    );
    let many = |count: usize| {
        (0..count)
            .map(|n| (format!("s{n}.test").parse().unwrap(), jar("a.test")))
            .collect()
    };
    world.command(Command::CookiesSave(many(1000))).unwrap();
    world.command(Command::CookiesSave(many(1000))).unwrap();
    assert_eq!(
        world.command(Command::CookiesSave(many(1001))),
        Err(CommandError::TooManyCookieSites(1000))
    );
    world.command(Command::CookiesClear).unwrap();
    assert!(world.saved.cookies.is_empty() && world.state.cookie_sites().is_empty());
}
