//! Login by QR code: the client polls, the phone scans and confirms.

use std::time::Instant;

use serde_json::json;

use super::{
    message::{Fields, json, with_cookie},
    state::{State, has_passed, too_many},
};
use crate::{reply::Reply, request::Request};

/// A QR code.
pub(super) struct Code {
    stage: Stage,
    ends: Instant,
    polled: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    New,
    Scanned,
    /// By the phone of this user.
    Confirmed(String),
    Cancelled,
    /// Its time is over, or its session was handed out.
    Expired,
}

pub(super) fn begin(state: &mut State) -> Reply {
    let token = state.unique();
    let lifetime = state.qr_lifetime();
    let code = Code {
        stage: Stage::New,
        ends: Instant::now() + lifetime,
        polled: None,
    };
    state.codes.insert(token.clone(), code);
    let url = state.url(&format!("/app/{token}"));
    json(
        200,
        &json!({ "token": token, "url": url, "expires_in": lifetime.as_secs() }),
    )
}

pub(super) fn poll(state: &mut State, request: &Request) -> Reply {
    let pause = state.poll_pause();
    let Some(code) = state.codes.get_mut(Fields::of_query(request).get("token")) else {
        return json(404, &json!({ "error": "unknown_token" }));
    };
    let is_too_fast = code.polled.is_some_and(|polled| !has_passed(polled + pause));
    code.polled = Some(Instant::now());
    if is_too_fast {
        return too_many("slow_down");
    }
    let stage = code.stage();
    if let Stage::Confirmed(user) = stage {
        code.stage = Stage::Expired;
        let issued = state.begin_session(&user);
        let mut answer = issued.tokens;
        answer["state"] = "confirmed".into();
        return with_cookie(json(200, &answer), "session", &issued.cookie);
    }
    let name = match stage {
        Stage::New => "new",
        Stage::Scanned => "scanned",
        Stage::Cancelled => "cancelled",
        Stage::Confirmed(_) | Stage::Expired => "expired",
    };
    json(200, &json!({ "state": name }))
}

impl Code {
    fn stage(&self) -> Stage {
        let is_open = matches!(self.stage, Stage::New | Stage::Scanned);
        if is_open && has_passed(self.ends) {
            Stage::Expired
        } else {
            self.stage.clone()
        }
    }
}

impl State {
    pub(super) fn scan(&mut self, payload: &str) {
        self.advance(payload, &Stage::New, Stage::Scanned);
    }

    pub(super) fn confirm(&mut self, payload: &str, user: &str) {
        assert!(self.account(user).is_some(), "the site has no account {user}");
        self.advance(payload, &Stage::Scanned, Stage::Confirmed(user.to_owned()));
    }

    pub(super) fn cancel(&mut self, payload: &str) {
        self.advance(payload, &Stage::Scanned, Stage::Cancelled);
    }

    pub(super) fn expire(&mut self, payload: &str) {
        self.code(payload).stage = Stage::Expired;
    }

    fn advance(&mut self, payload: &str, from: &Stage, to: Stage) {
        let code = self.code(payload);
        assert_eq!(code.stage(), *from, "the code {payload} is not at this stage");
        code.stage = to;
    }

    /// The code of a payload, which is the URL that the site has given for it.
    fn code(&mut self, payload: &str) -> &mut Code {
        let prefix = self.url("/app/");
        let token = payload.strip_prefix(&prefix);
        let token = token.unwrap_or_else(|| panic!("{payload} does not begin with {prefix}"));
        self.codes.get_mut(token).expect("the code is one of the site's")
    }
}
