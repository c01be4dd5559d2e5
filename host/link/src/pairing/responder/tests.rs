use std::net::Ipv4Addr;

use proptest::prelude::*;
use protocol::LinkPairHelloRequest;

use super::*;
use crate::pairing::initiator::{self, Begun, Pending, Revealing};

fn identity(number: u8) -> Identity {
    Identity::from_seed(&[number; 32])
}

fn about(name: &str) -> About {
    About {
        name: name.to_owned(),
        platform: "linux".to_owned(),
        app_version: "1".to_owned(),
    }
}

fn source() -> Source {
    Source::of(Ipv4Addr::new(10, 0, 0, 9).into())
}

fn fresh(number: u8) -> Fresh {
    Fresh {
        session_id: format!("{number:032x}"),
        ephemeral: [number; 32],
        nonce: [number ^ 0xff; 32],
    }
}

/// One responder with its time.
struct Bench {
    responder: Responder,
    identity: Identity,
    now: Instant,
    sessions: u8,
}

impl Bench {
    fn new() -> Self {
        Self {
            responder: Responder::new(about("responder")),
            identity: identity(1),
            now: Instant::now(),
            sessions: 0,
        }
    }

    fn apply(&mut self, input: Input) -> Effects {
        self.responder.apply(self.now, &self.identity, input)
    }

    fn pass(&mut self, seconds: u64) -> Effects {
        self.now += Duration::from_secs(seconds);
        self.apply(Input::Tick)
    }

    fn answer(&mut self, input: Input) -> Result<Reply, Refusal> {
        let effects = self.apply(input);
        let mut answers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Answer(answer) => Some(answer),
            _ => None,
        });
        answers.next_back().expect("every request is answered")
    }

    fn code(&mut self, digits: &str) {
        self.apply(Input::NewCode(digits.to_owned()));
    }

    fn hello(&mut self, request: &LinkPairHelloRequest) -> Result<Reply, Refusal> {
        self.sessions += 1;
        let hello = Hello::read(&serde_json::to_vec(request).unwrap())?;
        let (hello, fresh) = (Box::new(hello), fresh(self.sessions + 100));
        let source = source();
        self.answer(Input::Hello { source, hello, fresh })
    }

    /// The first message of device `from`, answered.
    fn begun(&mut self, from: u8) -> (LinkPairRevealRequest, Revealing) {
        self.code("123456");
        let (request, begun) = begin(from, "123456");
        let reply = self.hello(&request).unwrap();
        let Reply::Hello(response) = reply else {
            panic!("{reply:?}")
        };
        let body = serde_json::to_vec(&response).unwrap();
        begun.answered(&identity(from), 200, &body, &[]).unwrap()
    }

    /// The second message of device `from`, answered.
    fn revealed(&mut self, from: u8) -> Pending {
        let (reveal, revealing) = self.begun(from);
        let reply = self.answer(Input::Reveal(reveal)).unwrap();
        let Reply::Reveal(response) = reply else {
            panic!("{reply:?}")
        };
        revealing
            .answered(200, &serde_json::to_vec(&response).unwrap())
            .unwrap()
    }

    fn confirm(&mut self, session: &str, confirm: bool) -> Effects {
        let session_id = session.to_owned();
        self.apply(Input::Confirm { session_id, confirm })
    }

    fn decide(&mut self, session: &str, accept: bool) -> Effects {
        let session_id = session.to_owned();
        self.apply(Input::Decide { session_id, accept })
    }
}

fn begin(from: u8, code: &str) -> (LinkPairHelloRequest, Begun) {
    initiator::begin(
        &identity(from),
        &about("initiator"),
        code,
        vec![],
        [from; 32],
        [from ^ 0x55; 32],
    )
    .unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "as effects have it")]
fn confirmed(how: Confirmed) -> Result<Reply, Refusal> {
    Ok(Reply::Confirmed(how))
}

#[test]
fn both_sides_derive_the_same_digits_and_key() {
    let mut bench = Bench::new();
    let pending = bench.revealed(2);
    let shown = bench.responder.requests(bench.now, 0);
    assert_eq!((shown.len(), &shown[0].sas), (1, &pending.sas));
    assert_eq!(shown[0].peer_fingerprint, identity(2).fingerprint().as_str());
    assert_eq!(shown[0].expires_at_unix_ms, 60_000);
    let session = pending.session_id.clone();
    assert_eq!(bench.confirm(&session, true), [Effect::Wait(session.clone())]);
    let effects = bench.decide(&session, true);
    let Some(Effect::Store(_, device)) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(device.link_key, pending.device.link_key);
    assert_eq!(device.fingerprint, *identity(2).fingerprint());
    let stored = Input::Stored {
        session_id: session.clone(),
        is_stored: true,
    };
    assert_eq!(
        bench.apply(stored),
        [Effect::Settle(session.clone(), confirmed(Confirmed::Paired))]
    );
    // Its answer may have been lost.
    assert_eq!(
        bench.confirm(&session, true),
        [Effect::Answer(confirmed(Confirmed::Paired))]
    );
}

#[test]
fn the_user_may_decide_before_the_other_one_confirms() {
    let mut bench = Bench::new();
    let session = bench.revealed(2).session_id;
    assert_eq!(
        bench.decide(&session, true),
        [Effect::RequestsChanged, Effect::Answer(Ok(Reply::Ok))]
    );
    bench.pass(90);
    let effects = bench.confirm(&session, true);
    assert!(
        matches!(&effects[..], [Effect::Wait(_), Effect::Store(..)]),
        "{effects:?}"
    );
}

#[test]
fn a_rejection_and_a_timeout_are_answers_with_a_reason() {
    let mut bench = Bench::new();
    let session = bench.revealed(2).session_id;
    bench.confirm(&session, true);
    let effects = bench.decide(&session, false);
    assert_eq!(
        effects.last(),
        Some(&Effect::Settle(session.clone(), confirmed(Confirmed::Rejected)))
    );
    assert_eq!(
        bench.confirm(&session, true),
        [Effect::Answer(Err(Refusal::SessionExpired))]
    );
    let session = bench.revealed(2).session_id;
    bench.confirm(&session, true);
    assert_eq!(bench.pass(59), []);
    let effects = bench.pass(1);
    assert_eq!(
        effects.last(),
        Some(&Effect::Settle(session.clone(), confirmed(Confirmed::TimedOut)))
    );
    // A third message that comes late learns the same.
    let session = bench.revealed(2).session_id;
    bench.pass(61);
    assert_eq!(
        bench.answer(Input::Decide {
            session_id: session.clone(),
            accept: true
        }),
        Err(Refusal::SessionExpired)
    );
    assert_eq!(
        bench.confirm(&session, true),
        [Effect::Answer(confirmed(Confirmed::TimedOut))]
    );
}

#[test]
fn the_other_user_may_withdraw() {
    let mut bench = Bench::new();
    let session = bench.revealed(2).session_id;
    let effects = bench.confirm(&session, false);
    assert_eq!(effects.last(), Some(&Effect::Answer(confirmed(Confirmed::Withdrawn))));
    assert!(bench.responder.requests(bench.now, 0).is_empty());
    assert_eq!(
        bench.decide(&session, true),
        [Effect::Answer(Err(Refusal::SessionExpired))]
    );
}

#[test]
fn a_reveal_is_taken_once_in_time_and_only_if_it_was_committed_to() {
    let mut bench = Bench::new();
    let (reveal, _) = bench.begun(2);
    bench.pass(29);
    assert!(bench.answer(Input::Reveal(reveal.clone())).is_ok());
    assert_eq!(bench.answer(Input::Reveal(reveal)), Err(Refusal::SessionExpired));
    assert_eq!(bench.responder.requests(bench.now, 0).len(), 1, "a replay does no harm");
    let (reveal, _) = bench.begun(2);
    bench.pass(30);
    assert_eq!(bench.answer(Input::Reveal(reveal)), Err(Refusal::SessionExpired));
    let (reveal, _) = bench.begun(2);
    let other = LinkPairRevealRequest {
        initiator_nonce: write_base64(&[9; 32]),
        ..reveal.clone()
    };
    assert_eq!(bench.answer(Input::Reveal(other)), Err(Refusal::CommitmentMismatch));
    assert_eq!(
        bench.answer(Input::Reveal(reveal)),
        Err(Refusal::SessionExpired),
        "the session is gone"
    );
}

#[test]
fn approving_or_confirming_before_the_reveal_is_refused() {
    let mut bench = Bench::new();
    let (reveal, _) = bench.begun(2);
    let session_id = reveal.session_id.clone();
    let accept = true;
    assert_eq!(
        bench.answer(Input::Decide { session_id, accept }),
        Err(Refusal::NotRevealed)
    );
    assert_eq!(
        bench.confirm(&reveal.session_id, true),
        [Effect::Answer(Err(Refusal::NotRevealed))]
    );
    assert_eq!(bench.answer(Input::Reveal(reveal)), Err(Refusal::SessionExpired));
}

#[test]
fn only_a_hello_of_the_right_version_and_shape_uses_the_code_up() {
    let mut bench = Bench::new();
    bench.code("000042");
    let (right, _) = begin(2, "000042");
    let refused = |bench: &mut Bench, change: &dyn Fn(&mut LinkPairHelloRequest)| {
        let mut request = right.clone();
        change(&mut request);
        bench.hello(&request).unwrap_err()
    };
    assert_eq!(
        refused(&mut bench, &|hello| hello.protocol_version = 1),
        Refusal::VersionMismatch
    );
    assert_eq!(
        refused(&mut bench, &|hello| hello.code = "000043".into()),
        Refusal::CodeInvalid
    );
    let bad = |refusal: Refusal| matches!(refusal, Refusal::BadPayload(_));
    assert!(bad(refused(&mut bench, &|hello| hello.code = "42".into())));
    assert!(bad(refused(&mut bench, &|hello| hello.name = "x".repeat(65))));
    assert!(bad(refused(&mut bench, &|hello| hello.name = "a\u{7}".into())));
    assert!(bad(refused(&mut bench, &|hello| hello.initiator_addrs =
        vec!["10.0.0.1:1".into(); 5])));
    assert!(bad(
        refused(&mut bench, &|hello| hello.initiator_addrs = vec!["fd00::1:1".into()])
    ));
    assert!(bad(refused(&mut bench, &|hello| hello.initiator_commit.push('='))));
    // Small order, not canonical, and one that is no point.
    let mut one = [0; 32];
    one[0] = 1;
    for weak in [[0; 32], one, [0xff; 32]] {
        assert!(bad(
            refused(&mut bench, &|hello| hello.initiator_id_pub = write_base64(&weak))
        ));
    }
    let own = initiator::begin(&identity(1), &about("self"), "000042", vec![], [3; 32], [4; 32])
        .unwrap()
        .0;
    assert_eq!(bench.hello(&own), Err(Refusal::SelfPairing));
    let missing = br#"{"code":"000042"}"#;
    assert_eq!(Hello::read(missing).unwrap_err(), Refusal::VersionMismatch);
    assert!(bench.hello(&right).is_ok(), "the code is still there");
    assert_eq!(bench.hello(&right), Err(Refusal::CodeInvalid), "and now it is used");
    bench.code("000042");
    assert_eq!(
        refused(&mut bench, &|hello| hello.name = "other".into()),
        Refusal::SignatureInvalid
    );
    assert_eq!(
        bench.hello(&right),
        Err(Refusal::CodeInvalid),
        "a wrong signature uses it up, too"
    );
    bench.code("000042");
    bench.pass(120);
    assert_eq!(bench.hello(&right), Err(Refusal::CodeInvalid), "it has expired");
}

#[test]
fn guessing_is_throttled_also_for_the_right_code_and_does_not_use_it_up() {
    let mut bench = Bench::new();
    bench.code("999999");
    for guess in 0..10 {
        assert_eq!(
            bench.hello(&begin(2, &format!("{guess:06}")).0),
            Err(Refusal::CodeInvalid)
        );
    }
    assert_eq!(bench.hello(&begin(2, "999999").0), Err(Refusal::Throttled));
    bench.pass(121);
    bench.code("999999");
    assert!(bench.hello(&begin(2, "999999").0).is_ok());
}

#[test]
fn ten_thousand_hellos_leave_sixteen_sessions() {
    let mut bench = Bench::new();
    let (request, _) = begin(2, "123456");
    let hello = Hello::read(&serde_json::to_vec(&request).unwrap()).unwrap();
    for number in 0_u32..10_000 {
        if number % 10 == 0 {
            bench.code("123456");
        }
        let mut fresh = fresh(1);
        fresh.session_id = format!("{number:032x}");
        let hello = Box::new(hello.clone());
        let source = Source::of(Ipv4Addr::from_bits(number).into());
        let _refused_or_not = bench.answer(Input::Hello { source, hello, fresh });
        assert!(bench.responder.len() <= MAX_INCOMING);
    }
}

#[test]
fn a_device_in_the_middle_shows_other_digits() {
    // It has a session with each side, with keys of its own, and passes on what it can.
    let mut bench = Bench::new();
    let theirs = bench.revealed(66);
    let mut middle = Responder::new(about("responder"));
    let now = bench.now;
    let attacker = identity(66);
    middle.apply(now, &attacker, Input::NewCode("123456".to_owned()));
    let (request, begun) = begin(2, "123456");
    let hello = Box::new(Hello::read(&serde_json::to_vec(&request).unwrap()).unwrap());
    let (source, fresh) = (source(), fresh(77));
    let effects = middle.apply(now, &attacker, Input::Hello { source, hello, fresh });
    let [Effect::Answer(Ok(Reply::Hello(response)))] = &effects[..] else {
        panic!("{effects:?}")
    };
    let body = serde_json::to_vec(response).unwrap();
    // A search that found the right device before stops it here.
    let expected = [identity(1).fingerprint().clone()];
    let refused = begin(2, "123456").1.answered(&identity(2), 200, &body, &expected);
    assert_eq!(refused.unwrap_err(), initiator::InitiateError::OtherIdentity);
    let (reveal, revealing) = begun.answered(&identity(2), 200, &body, &[]).unwrap();
    let effects = middle.apply(now, &attacker, Input::Reveal(reveal));
    let Some(Effect::Answer(Ok(Reply::Reveal(response)))) = effects.last() else {
        panic!("{effects:?}")
    };
    let ours = revealing.answered(200, &serde_json::to_vec(response).unwrap()).unwrap();
    assert_ne!(ours.sas, theirs.sas);
}

#[test]
fn an_identity_that_is_put_on_anothers_session_does_not_verify() {
    // The responder's answer to somebody else, passed on as the attacker's own (unknown key share).
    let mut bench = Bench::new();
    bench.code("123456");
    let (request, begun) = begin(2, "123456");
    let Reply::Hello(mut response) = bench.hello(&request).unwrap() else {
        panic!()
    };
    response.responder_id_pub = write_base64(&identity(66).public());
    let body = serde_json::to_vec(&response).unwrap();
    let (reveal, revealing) = begun.answered(&identity(2), 200, &body, &[]).unwrap();
    let Reply::Reveal(response) = bench.answer(Input::Reveal(reveal)).unwrap() else {
        panic!()
    };
    let refused = revealing.answered(200, &serde_json::to_vec(&response).unwrap());
    assert_eq!(refused.unwrap_err(), initiator::InitiateError::SignatureInvalid);
}

#[derive(Debug, Clone)]
enum Act {
    Code,
    Hello(usize),
    Reveal(usize, bool),
    Confirm(usize, bool),
    Decide(usize, bool),
    Stored(usize, bool),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Code),
        3 => (0_usize..2).prop_map(Act::Hello),
        3 => (0_usize..4, prop::bool::weighted(0.9)).prop_map(|(at, is_right)| Act::Reveal(at, is_right)),
        3 => (0_usize..4, prop::bool::weighted(0.8)).prop_map(|(at, confirm)| Act::Confirm(at, confirm)),
        3 => (0_usize..4, prop::bool::weighted(0.6)).prop_map(|(at, accept)| Act::Decide(at, accept)),
        2 => (0_usize..4, prop::bool::ANY).prop_map(|(at, is_stored)| Act::Stored(at, is_stored)),
        1 => (0_u64..70).prop_map(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Two devices pair with one responder at the same time, in any order of messages, decisions, restarts of a pairing
    /// and expiry. A device is stored only if this device's user approved its very session after it was revealed, it
    /// confirmed, and then once.
    #[test]
    fn no_interleaving_stores_a_device_that_nobody_approved(acts in prop::collection::vec(act(), 1..80)) {
        let mut bench = Bench::new();
        let mut sessions: Vec<(u8, LinkPairRevealRequest)> = Vec::new();
        let mut approved: Vec<String> = Vec::new();
        let mut confirmed: Vec<String> = Vec::new();
        let mut stored: Vec<String> = Vec::new();
        for act in acts {
            let id = |at: usize| sessions.get(at % sessions.len().max(1)).map(|(_, reveal)| reveal.session_id.clone());
            let effects = match act {
                Act::Code => { bench.code("123456"); continue }
                Act::Hello(which) => {
                    let from = [2, 3][which];
                    let (request, begun) = begin(from, "123456");
                    if let Ok(Reply::Hello(response)) = bench.hello(&request) {
                        let body = serde_json::to_vec(&response).unwrap();
                        let (reveal, _) = begun.answered(&identity(from), 200, &body, &[]).unwrap();
                        sessions.push((from, reveal));
                    }
                    continue;
                }
                Act::Reveal(at, is_right) => {
                    let Some((_, reveal)) = sessions.get(at % sessions.len().max(1)) else { continue };
                    let mut reveal = reveal.clone();
                    if !is_right {
                        reveal.initiator_nonce = write_base64(&[0; 32]);
                    }
                    bench.apply(Input::Reveal(reveal))
                }
                Act::Confirm(at, confirm) => {
                    let Some(id) = id(at) else { continue };
                    if confirm {
                        confirmed.push(id.clone());
                    }
                    bench.confirm(&id, confirm)
                }
                Act::Decide(at, accept) => {
                    let Some(id) = id(at) else { continue };
                    let is_shown = bench.responder.requests(bench.now, 0).iter().any(|request| request.session_id == id);
                    if accept && is_shown {
                        approved.push(id.clone());
                    }
                    bench.decide(&id, accept)
                }
                Act::Stored(at, is_stored) => {
                    let Some(session_id) = id(at) else { continue };
                    bench.apply(Input::Stored { session_id, is_stored })
                }
                Act::Pass(seconds) => bench.pass(seconds),
            };
            for effect in effects {
                if let Effect::Store(id, device) = effect {
                    let (from, _) = sessions.iter().find(|(_, reveal)| reveal.session_id == id).expect("a known session");
                    prop_assert!(device.fingerprint == *identity(*from).fingerprint());
                    prop_assert!(approved.contains(&id), "nobody approved {}", id);
                    prop_assert!(confirmed.contains(&id), "{} did not confirm", id);
                    prop_assert!(!stored.contains(&id), "{} is stored twice", id);
                    stored.push(id);
                }
            }
            prop_assert!(bench.responder.len() <= MAX_INCOMING);
        }
    }
}
