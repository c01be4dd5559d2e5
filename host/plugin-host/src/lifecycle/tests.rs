use proptest::prelude::*;

use super::*;

fn needed(host: u8) -> Permissions {
    let hosts = (0..host).map(|n| format!("host https://h{n}.acme.com").parse().unwrap());
    hosts.collect()
}

fn release(version: u64, hosts: u8) -> Release {
    signed(version, hosts, None)
}

fn signed(version: u64, hosts: u8, author: Option<char>) -> Release {
    Release {
        digest: Digest::of(format!("{version} {author:?}").as_bytes()),
        version: semver::Version::new(version, 0, 0),
        needed: needed(hosts),
        installed_ms: 0,
        signed_by: author.map(key),
        proved_in: None,
    }
}

/// The public key of one of the authors `A`, `B`, …, as it is written.
fn key(author: char) -> PublicKey {
    let rest: String = [author; 53].iter().collect();
    format!("RWQ{rest}").parse().unwrap()
}

fn step(now: Option<Installation>, input: Input) -> Option<Installation> {
    apply(now, input).unwrap().0
}

fn version(release: Option<&Release>) -> Option<u64> {
    release.map(|release| release.version.major)
}

#[test]
fn a_plugin_that_needs_nothing_runs_at_once_and_any_other_waits_for_consent() {
    let free = step(None, Input::Install(release(1, 0), Source::File)).unwrap();
    assert_eq!(free.status(), Status::Enabled);
    let asking = step(None, Input::Install(release(1, 2), Source::File));
    assert_eq!(asking.as_ref().unwrap().status(), Status::PendingConsent);
    let other = apply(asking.clone(), Input::Consent(needed(1).digest()));
    assert_eq!(other.unwrap_err(), Refusal::OtherPermissions);
    let running = step(asking, Input::Consent(needed(2).digest())).unwrap();
    assert_eq!(running.status(), Status::Enabled);
    assert!(needed(2).beyond(&running.grant.allowed).is_empty());
}

#[test]
fn a_version_that_asks_for_more_is_staged_while_the_old_one_runs() {
    let now = step(None, Input::Install(release(1, 1), Source::File));
    let now = step(now, Input::Consent(needed(1).digest()));
    let now = step(now, Input::Install(release(2, 3), Source::File));
    let installation = now.clone().unwrap();
    assert_eq!(
        (
            version(installation.active.as_ref()),
            version(installation.staged.as_ref())
        ),
        (Some(1), Some(2))
    );
    let now = step(now, Input::Consent(needed(3).digest()));
    let installation = now.clone().unwrap();
    assert_eq!(
        (
            version(installation.active.as_ref()),
            version(installation.previous.as_ref())
        ),
        (Some(2), Some(1))
    );
    let back = step(now, Input::RollBack { by_user: false }).unwrap();
    assert_eq!(
        (version(back.active.as_ref()), version(back.previous.as_ref())),
        (Some(1), Some(2))
    );
    assert!(back.is_pinned);
}

#[test]
fn another_author_gets_nothing_that_was_given_to_the_one_before_until_the_user_agrees() {
    let before = step(None, Input::Install(signed(1, 1, Some('A')), market("one")));
    let before = step(before, Input::Consent(needed(1).digest()));
    for author in [Some('B'), None] {
        for input in [Input::Install, Input::Update] {
            let asked = step(before.clone(), input(signed(2, 1, author), market("one")));
            let asking = asked.clone().unwrap();
            assert_eq!(asking.active, before.clone().unwrap().active, "what runs goes on");
            assert!(asking.has_other_author(asking.staged.as_ref().unwrap(), asking.source_of_staged()));
            // The user agrees to that author, and to no other with the same wishes.
            let other = step(before.clone(), Input::Install(signed(2, 1, Some('C')), market("one"))).unwrap();
            for digest in [needed(1).digest(), other.asked().unwrap()] {
                let refused = apply(asked.clone(), Input::Consent(digest)).unwrap_err();
                assert_eq!(refused, Refusal::OtherPermissions);
            }
            let agreed = step(asked, Input::Consent(asking.asked().unwrap())).unwrap();
            assert_eq!(agreed.active.unwrap().signed_by, author.map(key));
        }
    }
    let same = step(before, Input::Update(signed(2, 1, Some('A')), market("one"))).unwrap();
    assert_eq!((version(same.active.as_ref()), same.staged), (Some(2), None));
}

fn market(id: &str) -> Source {
    Source::Market(id.parse().unwrap())
}

#[test]
fn only_the_source_that_a_plugin_came_from_updates_it() {
    let sources = [market("one"), market("two"), Source::Bundled];
    for source in &sources {
        let now = step(None, Input::Install(release(1, 0), source.clone()));
        for other in &sources {
            let refused = apply(now.clone(), Input::Install(release(2, 0), other.clone())).err();
            let expected = (source != other).then(|| Refusal::OtherSource(source.name()));
            assert_eq!(refused, expected);
        }
        // A file of the user's may take its place; nobody signed either, so the user is asked.
        let own = step(now, Input::Install(release(2, 0), Source::File)).unwrap();
        assert_eq!((&own.source, version(own.active.as_ref())), (source, Some(1)));
        let digest = own.asked().unwrap();
        assert_eq!(step(Some(own), Input::Consent(digest)).unwrap().source, Source::File);
    }
}

fn folder(path: &str) -> Folder {
    Folder {
        path: path.into(),
        version: semver::Version::new(0, 1, 0),
        needed: needed(1),
    }
}

fn is_from(installation: &Installation, path: &str) -> bool {
    installation.source == Source::Development(path.into())
}

#[test]
fn a_folder_gets_nothing_that_was_given_to_what_is_installed_until_the_user_agrees() {
    let new = step(None, Input::Develop(folder("a"))).unwrap();
    assert!(is_from(&new, "a"), "nothing was given to anybody");
    let again = step(Some(new.clone()), Input::Develop(folder("a"))).unwrap();
    assert_eq!((again.asked(), is_from(&again, "a")), (None, true));
    let waiting = step(None, Input::Install(release(1, 1), Source::File)).unwrap();
    let running = step(Some(waiting.clone()), Input::Consent(waiting.asked().unwrap())).unwrap();
    for before in [new, waiting, running] {
        let asking = step(Some(before.clone()), Input::Develop(folder("b"))).unwrap();
        assert_eq!(
            (&asking.source, &asking.active),
            (&before.source, &before.active),
            "what runs goes on"
        );
        let other = step(Some(before), Input::Develop(folder("c"))).unwrap();
        for digest in [needed(1).digest(), other.asked().unwrap()] {
            let refused = apply(Some(asking.clone()), Input::Consent(digest)).unwrap_err();
            assert_eq!(refused, Refusal::OtherPermissions);
        }
        let digest = asking.asked().unwrap();
        assert!(is_from(&step(Some(asking), Input::Consent(digest)).unwrap(), "b"));
    }
}

#[test]
fn a_package_gets_nothing_that_was_given_to_a_folder_until_the_user_agrees() {
    let developed = step(None, Input::Develop(folder("a")));
    for (author, source) in [
        (None, Source::File),
        (Some('A'), market("one")),
        (None, Source::Bundled),
    ] {
        let asking = step(developed.clone(), Input::Install(signed(1, 0, author), source.clone())).unwrap();
        assert!(is_from(&asking, "a") && asking.active.is_none(), "the folder goes on");
        let agreed = step(Some(asking.clone()), Input::Consent(asking.asked().unwrap())).unwrap();
        assert_eq!((&agreed.source, version(agreed.active.as_ref())), (&source, Some(1)));
    }
}

#[test]
fn a_plugin_is_pinned_until_the_user_replaces_it() {
    let now = step(None, Input::Install(release(1, 0), Source::File));
    let now = step(now, Input::Install(release(2, 0), Source::File));
    let pinned = step(now.clone(), Input::Pin(true));
    assert!(pinned.as_ref().unwrap().is_pinned);
    assert!(!step(pinned.clone(), Input::Pin(false)).unwrap().is_pinned);
    assert!(
        !step(pinned, Input::Install(release(3, 0), Source::File))
            .unwrap()
            .is_pinned
    );
    assert!(step(now, Input::RollBack { by_user: false }).unwrap().is_pinned);
}

#[test]
fn what_is_not_there_can_only_be_installed_or_uninstalled() {
    for input in [
        Input::Consent(Digest::of(b"")),
        Input::Switch(Switch::Off),
        Input::RollBack { by_user: true },
    ] {
        assert_eq!(apply(None, input).unwrap_err(), Refusal::NotInstalled);
    }
    assert_eq!(
        apply(None, Input::Uninstall { keeps_accounts: false }).unwrap(),
        (None, vec![])
    );
}

#[test]
fn an_update_puts_a_tripped_plugin_back_into_service_but_not_one_that_the_user_switched_off() {
    let now = step(None, Input::Install(release(1, 0), Source::File));
    for (switch, after) in [(Switch::Tripped, Status::Enabled), (Switch::Off, Status::Disabled)] {
        let off = step(now.clone(), Input::Switch(switch));
        let updated = step(off, Input::Install(release(2, 0), Source::File)).unwrap();
        assert_eq!(updated.status(), after);
    }
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        Just(Source::File),
        Just(Source::Bundled),
        Just(market("one")),
        Just(market("two"))
    ]
}

fn releases() -> impl Strategy<Value = Release> {
    let author = prop::option::of(prop_oneof![Just('A'), Just('B')]);
    (0..5_u64, 0..4_u8, author)
        .prop_map(|(version, hosts, author)| signed(version * 10 + u64::from(hosts), hosts, author))
}

/// Stands for whatever is asked at that moment.
fn what_is_asked() -> Digest {
    Digest::of(b"whatever is asked")
}

fn inputs() -> impl Strategy<Value = Input> {
    let folders = prop_oneof![Just("one"), Just("other")].prop_map(folder);
    prop_oneof![
        6 => (releases(), source()).prop_map(|(release, source)| Input::Install(release, source)),
        2 => (releases(), source()).prop_map(|(release, source)| Input::Update(release, source)),
        1 => any::<bool>().prop_map(Input::Pin),
        4 => (0..4_u8).prop_map(|hosts| Input::Consent(needed(hosts).digest())),
        4 => Just(Input::Consent(what_is_asked())),
        2 => prop_oneof![Just(Switch::On), Just(Switch::Off), Just(Switch::Tripped)].prop_map(Input::Switch),
        2 => any::<bool>().prop_map(|by_user| Input::RollBack { by_user }),
        1 => folders.prop_map(Input::Develop),
        1 => Just(Input::Uninstall { keeps_accounts: false }),
    ]
}

proptest! {
    #[test]
    fn what_runs_was_agreed_to_and_never_goes_away_by_itself(history in proptest::collection::vec(inputs(), 0..40)) {
        let mut now: Option<Installation> = None;
        for mut input in history {
            if let (Input::Consent(digest), Some(asked)) = (&mut input, now.as_ref().and_then(Installation::asked)) && *digest == what_is_asked() {
                *digest = asked;
            }
            let was_consent = matches!(input, Input::Consent(_));
            let is_uninstall = matches!(input, Input::Uninstall { .. });
            let changes_author = matches!(input, Input::Consent(_) | Input::RollBack { .. });
            if matches!(input, Input::Update(..)) {
                let allowed = now.as_ref().is_some_and(|now| !now.is_pinned && matches!(&input, Input::Update(_, source) if *source == now.source));
                prop_assert_eq!(allowed, apply(now.clone(), input.clone()).is_ok());
            }
            let before = now.clone();
            let Ok((next, effects)) = apply(now.clone(), input) else { continue };
            now = next;
            let Some(installation) = &now else {
                prop_assert!(is_uninstall);
                continue;
            };
            for release in [&installation.active, &installation.previous].into_iter().flatten() {
                prop_assert!(release.needed.beyond(&installation.grant.allowed).is_empty());
            }
            let active_before = before.as_ref().and_then(|before| before.active.clone());
            if let (Some(before), Some(active)) = (&active_before, &installation.active) {
                prop_assert!(changes_author || before.signed_by == active.signed_by);
            }
            if let Some(before) = before.as_ref().filter(|before| before.source.is_exclusive()) {
                prop_assert!(before.source == installation.source || !installation.source.is_exclusive());
            }
            prop_assert!(active_before.is_none() || installation.active.is_some());
            prop_assert!(active_before == installation.active || effects.contains(&Effect::Load));
            let folder_before = before.as_ref().is_some_and(Installation::is_development);
            prop_assert!(
                folder_before == installation.is_development() || before.is_none() || was_consent,
                "neither a folder nor what it replaces is what runs before the user agrees"
            );
            prop_assert!(installation.active.is_some() || installation.staged.is_some() || installation.is_development());
            let digests = [&installation.active, &installation.previous].map(|release| release.as_ref().map(|release| release.digest));
            prop_assert!(digests[0].is_none() || digests[0] != digests[1]);
        }
    }
}
