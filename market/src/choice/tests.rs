use jiff::ToSpan as _;

use super::*;
use crate::{
    format::record::{Revocation, VersionRange},
    verify::tests::{Pair, World, identity, now},
};

const NAME: &str = "one@acme";

fn host() -> Host {
    Host {
        version: Version::new(0, 4, 0),
        abis: vec!["0.1".parse().unwrap(), "1.2".parse().unwrap()],
    }
}

/// The version of [`NAME`] that is offered after `change`, or why none is.
fn offered(change: impl FnOnce(&mut World)) -> Result<String, Unfit> {
    let mut world = World::new();
    let client = world.client();
    change(&mut world);
    let refreshed = world.refresh(&client);
    let (id, plugin) = (identity(NAME), refreshed.index.plugin(&identity(NAME)).unwrap().clone());
    newest(&id, &plugin, &refreshed.revocations, &host()).map(|entry| entry.version.to_string())
}

fn revoke(world: &mut World, version: &str, level: Level) {
    let from: Version = version.parse().unwrap();
    let before = Version {
        pre: semver::Prerelease::EMPTY,
        ..Version::new(from.major, from.minor, from.patch + 1)
    };
    world.revocations.items.push(Revocation {
        identity: identity(NAME),
        versions: VersionRange {
            from: Some(from),
            before: Some(before),
        },
        sha256: None,
        level,
        reason: "test".to_owned(),
        since: now(),
    });
}

#[test]
fn the_highest_version_that_fits_is_offered() {
    let check = |version: &str, change: fn(&mut World)| assert_eq!(offered(change).as_deref(), Ok(version));
    check("1.10.0", |world| {
        world.add(NAME, "1.10.0");
        // Added later, for those who stay at 1.9.
        world.add(NAME, "1.9.1");
    });
    check("1.0.0", |world| _ = world.add(NAME, "2.0.0-rc.1"));
    check("1.0.0", |world| {
        world.add(NAME, "1.1.0").yanked = Some("breaks".to_owned());
    });
    check("1.0.0", |world| {
        world.add(NAME, "1.1.0").min_host = Some(Version::new(0, 5, 0));
    });
    check("1.1.0", |world| {
        world.add(NAME, "1.1.0").min_host = Some(Version::new(0, 4, 0));
    });
    check("1.0.0", |world| world.add(NAME, "1.1.0").abi = "0.2".parse().unwrap());
    check("1.0.0", |world| world.add(NAME, "1.1.0").abi = "1.3".parse().unwrap());
    check("1.1.0", |world| world.add(NAME, "1.1.0").abi = "1.0".parse().unwrap());
    check("1.0.0", |world| {
        world.author = Pair::new();
        world.add(NAME, "1.1.0");
    });
    for level in [Level::Vulnerable, Level::Malicious] {
        let version = offered(|world| {
            world.add(NAME, "1.1.0");
            revoke(world, "1.1.0", level);
        });
        assert_eq!(version.as_deref(), Ok("1.0.0"), "{level:?}");
    }
    check("1.1.0", |world| {
        world.add(NAME, "1.1.0");
        revoke(world, "1.1.0", Level::Deprecated);
    });
}

#[test]
fn when_nothing_fits_the_reason_of_the_highest_is_told() {
    let reason = offered(|world| {
        world.add(NAME, "1.1.0").min_host = Some(Version::new(9, 0, 0));
        revoke(world, "1.0.0", Level::Malicious);
    });
    assert_eq!(reason, Err(Unfit::Host(Version::new(1, 1, 0), Version::new(9, 0, 0))));
}

#[test]
fn a_revocation_reaches_pre_releases_and_single_packages() {
    let mut world = World::new();
    let client = world.client();
    let range = |from: Option<&str>, before: Option<&str>| VersionRange {
        from: from.map(|version| version.parse().unwrap()),
        before: before.map(|version| version.parse().unwrap()),
    };
    let item = |versions, sha256, level| Revocation {
        identity: identity(NAME),
        versions,
        sha256,
        level,
        reason: "test".to_owned(),
        since: now(),
    };
    world.revocations.items = vec![
        item(range(None, Some("1.4.0")), None, Level::Deprecated),
        item(range(Some("2.0.0-0"), Some("3.0.0")), None, Level::Vulnerable),
        item(range(None, None), Some(Digest::of(b"bad")), Level::Malicious),
    ];
    let revocations = world.refresh(&client).revocations;
    let level = |version: &str, bytes: &[u8]| {
        let found = revocations.of(&identity(NAME), &version.parse().unwrap(), &Digest::of(bytes));
        found.map(|revocation| revocation.level)
    };
    assert_eq!(level("1.4.0-rc.1", b""), Some(Level::Deprecated));
    assert_eq!(level("1.4.0", b""), None);
    assert_eq!(level("2.0.0-rc.1", b""), Some(Level::Vulnerable));
    assert_eq!(level("3.0.0", b""), None);
    assert_eq!(level("1.0.0", b"bad"), Some(Level::Malicious));
    let other = revocations.of(&identity("two@acme"), &Version::new(1, 0, 0), &Digest::of(b"bad"));
    assert_eq!(other, None);
    assert!(Level::Deprecated.allows_install() && !Level::Vulnerable.allows_install());
    assert!(Level::Vulnerable.allows_run() && !Level::Malicious.allows_run());
}

/// A client with 1.0.0 installed, refreshed after `change`, and what comes next `hours` after that.
fn next(change: impl FnOnce(&mut World), hours: i64) -> String {
    let mut world = World::new();
    let mut client = world.client();
    let id = identity(NAME);
    let index = client.index().unwrap().unwrap();
    let entry = &index.plugin(&id).unwrap().versions[0];
    let installed = Installed {
        identity: id.clone(),
        version: entry.version.clone(),
        sha256: entry.sha256,
    };
    client.pin(&world.downloaded(NAME));
    change(&mut world);
    let refreshed = world.refresh(&client);
    let seen = refreshed.state.time(now());
    let at = seen + hours.hours();
    match update(
        &refreshed.state,
        &refreshed.index,
        &refreshed.revocations,
        &installed,
        &host(),
        at,
    ) {
        Update::None => "none".to_owned(),
        Update::Stale => "stale".to_owned(),
        Update::Now(entry) => format!("{} now", entry.version),
        Update::At(due, entry) => format!("{} in {} h", entry.version, due.duration_since(at).as_hours()),
    }
}

#[test]
fn an_update_waits_a_day_from_when_it_was_first_seen() {
    assert_eq!(next(|_| {}, 0), "none");
    let honest: fn(&mut World) = |world| _ = world.add(NAME, "1.1.0");
    assert_eq!(next(honest, 0), "1.1.0 in 24 h");
    assert_eq!(next(honest, 23), "1.1.0 in 1 h");
    assert_eq!(next(honest, 24), "1.1.0 now");
    let backdated = |world: &mut World| world.add(NAME, "1.1.0").published = "2020-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(next(backdated, 0), "1.1.0 in 24 h");
    let postdated = |world: &mut World| world.add(NAME, "1.1.0").published = now() + 72.hours();
    assert_eq!(next(postdated, 0), "1.1.0 in 72 h");
    assert_eq!(
        next(|world| world.add(NAME, "1.1.0").published = Timestamp::MAX, 0),
        "none"
    );
}

#[test]
fn an_update_does_not_wait_if_the_installed_version_is_dangerous() {
    let change = |level| {
        move |world: &mut World| {
            world.add(NAME, "1.1.0");
            revoke(world, "1.0.0", level);
        }
    };
    assert_eq!(next(change(Level::Vulnerable), 0), "1.1.0 now");
    assert_eq!(next(change(Level::Malicious), 0), "1.1.0 now");
    assert_eq!(next(change(Level::Deprecated), 0), "1.1.0 in 24 h");
}

#[test]
fn nothing_is_decided_on_an_old_list() {
    assert_eq!(next(|world| _ = world.add(NAME, "1.1.0"), 24 * 8), "stale");
}

#[test]
fn an_update_never_goes_back() {
    let lower = |world: &mut World| {
        world.add(NAME, "0.9.0");
        world.index.plugins.get_mut(&identity(NAME)).unwrap().versions.remove(0);
    };
    assert_eq!(next(lower, 48), "none");
}

#[test]
fn a_plugin_comes_from_one_source_only() {
    let source = |text: &str| text.parse::<SourceId>().unwrap();
    let index = || World::new().client().index().unwrap().unwrap();
    let (main, other, empty) = (source("main"), source("other"), source("empty"));
    let (of_main, of_other) = (index(), index());
    let both = [(&main, &of_main), (&other, &of_other)];
    let id = identity(NAME);
    assert_eq!(source_of(&id, both[..1].to_vec(), None), Ok(&main));
    let several = Err(NoSource::Ambiguous(id.clone(), vec![main.clone(), other.clone()]));
    assert_eq!(source_of(&id, both, None), several);
    assert_eq!(source_of(&id, both, Some(&other)), Ok(&other));
    assert_eq!(
        source_of(&id, both, Some(&empty)),
        Err(NoSource::Bound(id.clone(), empty))
    );
    let unknown = identity("none@acme");
    assert_eq!(source_of(&unknown, both, None), Err(NoSource::Unknown(unknown.clone())));
}
