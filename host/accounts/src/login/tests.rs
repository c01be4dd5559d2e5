//! How a login goes, and that no order of inputs breaks it.

use proptest::prelude::*;

use super::*;

fn screen(make: impl FnOnce(&mut Screen)) -> Screen {
    let mut screen = Screen::default();
    make(&mut screen);
    screen
}

fn qr() -> Screen {
    screen(|screen| {
        screen.set_qr("code".to_owned(), 60, "").unwrap();
        screen.poll_after_ms = Some(2000);
    })
}

fn done() -> Screen {
    screen(|screen| screen.set_done("1", "Ann").unwrap())
}

fn form() -> Screen {
    screen(|screen| {
        screen.add_field("user".to_owned(), "", false).unwrap();
        screen.add_field("password".to_owned(), "", true).unwrap();
    })
}

fn values(values: &[(&str, &str)]) -> Vec<(String, String)> {
    let values = values.iter();
    values
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_code_is_polled_as_often_as_the_plugin_wants_until_it_is_done() {
    let (mut login, effects) = Login::begin(LoginMode::Qr, 0);
    assert_eq!(effects, [Effect::Step(Step::Start)]);
    assert!(login.apply(Input::Poll, 1).unwrap().is_empty(), "it steps already");
    assert!(login.apply(Input::Stepped(Ok(qr())), 10).unwrap().is_empty());
    assert_eq!(login.view().screen, qr());
    assert!(login.apply(Input::Poll, 2009).unwrap().is_empty(), "too early");
    assert_eq!(login.apply(Input::Poll, 2010).unwrap(), [Effect::Step(Step::Poll)]);
    let scanned = screen(|screen| screen.set_message("Scanned").unwrap());
    login.apply(Input::Stepped(Ok(scanned)), 2020).unwrap();
    assert_eq!(login.view().screen.message.as_deref(), Some("Scanned"));
    assert!(login.view().screen.qr.is_some(), "the code stays on the screen");
    assert_eq!(login.apply(Input::Poll, 4020).unwrap(), [Effect::Step(Step::Poll)]);
    let Done {
        account_id,
        display_name,
    } = done().done.unwrap();
    let stored = Done {
        account_id,
        display_name,
    };
    assert_eq!(
        login.apply(Input::Stepped(Ok(done())), 4030).unwrap(),
        [Effect::Store(stored.clone(), None)]
    );
    assert_eq!(login.view().ended, None, "not before it is stored");
    assert!(login.apply(Input::Storing, 4035).unwrap().is_empty());
    assert_eq!(login.apply(Input::Stored(Ok(())), 4040).unwrap(), [Effect::Discard]);
    assert_eq!(login.view().ended, Some(Ended::Succeeded(stored)));
    assert!(login.apply(Input::Poll, 9999).unwrap().is_empty());
    assert_eq!(login.apply(Input::Answer(Vec::new()), 9999), Err(Refusal::Over));
}

#[test]
fn secret_answers_are_kept_from_the_plugin() {
    let (mut login, _) = Login::begin(LoginMode::Password, 0);
    assert_eq!(login.apply(Input::Answer(Vec::new()), 1), Err(Refusal::Busy));
    login.apply(Input::Stepped(Ok(form())), 1).unwrap();
    for (answer, refusal) in [
        (values(&[("user", "ann")]), Refusal::Missing("password".to_owned())),
        (
            values(&[("user", "ann"), ("password", "p"), ("x", "")]),
            Refusal::UnknownField("x".to_owned()),
        ),
        (
            values(&[("user", "ann"), ("password", &"p".repeat(MAX_ANSWER_BYTES + 1))]),
            Refusal::TooLong {
                field: "password".to_owned(),
                limit: MAX_ANSWER_BYTES,
            },
        ),
    ] {
        assert_eq!(login.apply(Input::Answer(answer), 2), Err(refusal));
    }
    let answered = login.apply(Input::Answer(values(&[("user", "ann"), ("password", "hunter2")])), 3);
    let plain = values(&[("user", "ann"), ("password", "password")]);
    assert_eq!(
        answered.unwrap(),
        [
            Effect::Keep("password".to_owned(), Secret::new("hunter2")),
            Effect::Step(Step::Answer(plain))
        ]
    );
    let wrong = StepFailure::Refused("wrong password".to_owned());
    assert!(login.apply(Input::Stepped(Err(wrong)), 4).unwrap().is_empty());
    let view = login.view();
    assert_eq!(view.screen.fields, form().fields, "the user can try again");
    assert_eq!(view.screen.message.as_deref(), Some("wrong password"));
    let broken = StepFailure::Broken("it crashed".to_owned());
    login
        .apply(Input::Answer(values(&[("user", "a"), ("password", "p")])), 5)
        .unwrap();
    assert_eq!(login.apply(Input::Stepped(Err(broken)), 6).unwrap(), [Effect::Discard]);
    assert_eq!(login.view().ended, Some(Ended::Failed("it crashed".to_owned())));
}

#[test]
fn a_browser_s_address_gives_its_parameters_as_secrets() {
    let (mut login, _) = Login::begin(LoginMode::Browser, 0);
    let page = screen(|screen| {
        let prefix = Some("http://localhost/back".to_owned());
        screen.set_open_url("https://a.example/authorize", prefix).unwrap();
    });
    login.apply(Input::Stepped(Ok(page)), 1).unwrap();
    let answer = |address: &str| Input::Answer(values(&[(Screen::ADDRESS, address)]));
    let other = login.apply(answer("http://evil.example/back?code=1"), 2);
    assert_eq!(other, Err(Refusal::OtherAddress("http://localhost/back".to_owned())));
    let effects = login
        .apply(answer("http://localhost/back?code=abc&state=xyz"), 3)
        .unwrap();
    assert_eq!(
        effects,
        [
            Effect::Keep("url.code".to_owned(), Secret::new("abc")),
            Effect::Step(Step::Answer(values(&[("url.code", "url.code"), ("url.state", "xyz")])))
        ]
    );
}

#[test]
fn it_ends_when_nobody_asks_and_when_it_takes_too_long() {
    let (mut login, _) = Login::begin(LoginMode::Qr, 0);
    login.apply(Input::Stepped(Ok(qr())), 10).unwrap();
    assert!(login.apply(Input::Tick, MAX_IDLE_MS - 1).unwrap().is_empty());
    assert_eq!(login.apply(Input::Tick, MAX_IDLE_MS).unwrap(), [Effect::Discard]);
    assert_eq!(login.view().ended, Some(Ended::Expired));

    let (mut login, _) = Login::begin(LoginMode::Qr, 0);
    login.apply(Input::Stepped(Ok(qr())), 10).unwrap();
    let mut now = 0;
    while login.ended().is_none() {
        now += MAX_IDLE_MS / 2;
        if login
            .apply(Input::Poll, now)
            .unwrap()
            .contains(&Effect::Step(Step::Poll))
        {
            login.apply(Input::Stepped(Ok(qr())), now).unwrap();
        }
    }
    assert!((MAX_MS..MAX_MS + MAX_IDLE_MS).contains(&now));
}

#[test]
fn nothing_but_its_outcome_ends_the_writing_of_an_account() {
    let stored = [
        (Ok(()), Ended::Succeeded(done().done.unwrap())),
        (Err("full".to_owned()), Ended::Failed("full".to_owned())),
    ];
    for (outcome, ended) in stored {
        let (mut login, _) = Login::begin(LoginMode::Qr, 0);
        login.apply(Input::Stepped(Ok(done())), 1).unwrap();
        assert_eq!(login.expires_at(), Some(MAX_IDLE_MS));
        assert!(login.apply(Input::Storing, 2).unwrap().is_empty());
        assert_eq!(login.expires_at(), None);
        assert_eq!(login.apply(Input::Answer(Vec::new()), 3), Err(Refusal::Busy));
        for (input, now) in [(Input::Cancel, 4), (Input::Tick, MAX_MS), (Input::Poll, MAX_MS)] {
            assert!(login.apply(input, now).unwrap().is_empty());
            assert_eq!(login.ended(), None);
        }
        let told = login.apply(Input::Stored(outcome), MAX_MS + 1).unwrap();
        assert_eq!((told, login.ended()), (vec![Effect::Discard], Some(&ended)));
    }
}

fn inputs() -> impl Strategy<Value = Input> {
    let screens = prop_oneof![Just(qr()), Just(form()), Just(done()), Just(Screen::default())];
    prop_oneof![
        Just(Input::Poll),
        Just(Input::Answer(values(&[("user", "a"), ("password", "secret")]))),
        Just(Input::Answer(Vec::new())),
        Just(Input::Cancel),
        screens.prop_map(|screen| Input::Stepped(Ok(screen))),
        Just(Input::Stepped(Err(StepFailure::Refused("no".to_owned())))),
        Just(Input::Stepped(Err(StepFailure::Broken("no".to_owned())))),
        Just(Input::Storing),
        Just(Input::Stored(Ok(()))),
        Just(Input::Tick),
    ]
}

proptest! {
    /// As its driver behaves: a step's end is only told while one runs, and the storing while that runs.
    #[test]
    fn it_never_steps_twice_at_once_and_ends_for_good(
        inputs in proptest::collection::vec((inputs(), 0u64..400_000), 1..80)
    ) {
        let (mut login, effects) = Login::begin(LoginMode::Password, 0);
        let (mut stepping, mut storing, mut now) = (effects.len(), 0, 0);
        for (input, pause) in inputs {
            now += pause;
            match &input {
                Input::Stepped(_) if stepping == 0 => continue,
                Input::Stepped(_) => stepping -= 1,
                Input::Storing | Input::Stored(_) if storing == 0 => continue,
                Input::Stored(_) => storing -= 1,
                _ => {}
            }
            let ended = login.ended().cloned();
            let effects = login.apply(input, now).unwrap_or_default();
            for effect in &effects {
                match effect {
                    Effect::Step(Step::Answer(values)) => {
                        prop_assert!(values.iter().all(|(_, value)| value != "secret"));
                        stepping += 1;
                    }
                    Effect::Step(_) => stepping += 1,
                    Effect::Store(..) => storing += 1,
                    Effect::Keep(..) | Effect::TakeCookies(_) | Effect::Discard => {}
                }
            }
            prop_assert!(stepping + storing <= 1);
            if let Some(ended) = ended {
                prop_assert!(effects.is_empty());
                prop_assert_eq!(login.ended(), Some(&ended));
            }
            prop_assert_eq!(effects.contains(&Effect::Discard), login.ended().is_some() && !effects.is_empty());
        }
    }
}
