//! The interface of the site: login by JSON, tokens, files.

use serde_json::{Value, json};

use super::{
    CdnWants,
    message::{Fields, json, with_cookie},
    session::{Issued, Renewed},
    state::{CODE_TRIES, State, Wrong},
};
use crate::{reply::Reply, request::Request};

/// How long a link works, as the site says: it does so as long as its session.
const LINK_SECONDS: u64 = 600;

pub(super) fn nonce(state: &mut State) -> Reply {
    json(200, &json!({ "nonce": state.nonce() }))
}

pub(super) fn log_in(state: &mut State, request: &Request) -> Reply {
    let fields = Fields::of_body(request);
    let user = fields.get("user");
    match state.check_password(&fields) {
        Err(wrong) => refused(state, user, &wrong),
        Ok(account) if account.code.is_some() => {
            let ticket = state.secret("ticket");
            state.tickets.insert(ticket.clone(), (account.user, 0));
            json(200, &json!({ "need_code": true, "ticket": ticket }))
        }
        Ok(account) => issued(&state.begin_session(&account.user)),
    }
}

fn refused(state: &mut State, user: &str, wrong: &Wrong) -> Reply {
    let error = match wrong {
        Wrong::Captcha => "wrong_captcha",
        Wrong::Password => "wrong_password",
    };
    let mut answer = json!({ "error": error });
    if state.wants_captcha(user) {
        let id = state.captcha();
        answer["captcha_url"] = state.url(&format!("/captcha?id={id}")).into();
        answer["captcha_id"] = id.into();
    }
    json(403, &answer)
}

pub(super) fn take_code(state: &mut State, request: &Request) -> Reply {
    let fields = Fields::of_body(request);
    let ticket = fields.get("ticket");
    let Some((user, tries)) = state.tickets.remove(ticket) else {
        return json(410, &json!({ "error": "start_again" }));
    };
    let code = state.account(&user).and_then(|account| account.code.clone());
    if code.as_deref() == Some(fields.get("code").trim()) {
        return issued(&state.begin_session(&user));
    }
    if tries + 1 >= CODE_TRIES {
        return json(410, &json!({ "error": "start_again" }));
    }
    state.tickets.insert(ticket.to_owned(), (user, tries + 1));
    json(
        403,
        &json!({ "error": "wrong_code", "tries_left": CODE_TRIES - tries - 1 }),
    )
}

pub(super) fn token(state: &mut State, request: &Request) -> Reply {
    let fields = Fields::of_body(request);
    if fields.get("grant_type") == "authorization_code" {
        return match state.grants.remove(fields.get("code")) {
            Some(user) => issued(&state.begin_session(&user)),
            None => json(400, &json!({ "error": "invalid_grant" })),
        };
    }
    match state.renew_session(fields.get("refresh_token")) {
        Renewed::Issued(renewed) => issued(&renewed),
        Renewed::Reused | Renewed::Unknown => json(400, &json!({ "error": "invalid_grant" })),
    }
}

fn issued(issued: &Issued) -> Reply {
    with_cookie(json(200, &issued.tokens), "session", &issued.cookie)
}

impl State {
    /// Where a browser ends that opens the page for other programs and says yes.
    pub(super) fn authorize(&mut self, url: &str, user: &str) -> String {
        let (page, query) = url.split_once('?').expect("the page is told who asks");
        assert_eq!(page, self.url("/authorize"), "the site has no such page");
        let (fields, code) = (Fields::parse(query), self.secret("grant"));
        self.grants.insert(code.clone(), user.to_owned());
        format!(
            "{}?code={code}&state={}",
            fields.get("redirect_uri"),
            fields.get("state")
        )
    }
}

pub(super) fn me(state: &State, request: &Request) -> Reply {
    as_user(state, request, |user| {
        json(200, &json!({ "user": { "id": user, "name": state.name_of(user) } }))
    })
}

pub(super) fn files(state: &State, request: &Request) -> Reply {
    as_user(state, request, |user| {
        let file = |(id, (name, content)): (String, &(String, crate::content::Content))| json!({ "id": id, "name": name, "size": content.len() });
        let files: Vec<Value> = state.files().map(file).collect();
        let title = format!("Files of {}", state.name_of(user));
        json(200, &json!({ "title": title, "files": files }))
    })
}

pub(super) fn link(state: &mut State, request: &Request) -> Reply {
    let Some(user) = state.user_of_token(request) else {
        return unauthorized();
    };
    let fields = Fields::of_query(request);
    let id = fields.get("id");
    let Some(url) = state.file_url(id) else {
        return json(404, &json!({ "error": "no_such_file" }));
    };
    if !state.take_of_quota(&user, id) {
        return json(403, &json!({ "error": "quota", "reset_in": 3600 }));
    }
    let wants = match state.cdn_wants() {
        CdnWants::Token => "token",
        CdnWants::Cookie => "cookie",
    };
    json(200, &json!({ "url": url, "wants": wants, "expires_in": LINK_SECONDS }))
}

pub(super) fn log_out(state: &mut State, request: &Request) -> Reply {
    if state.end_session(request) {
        Reply::new(204)
    } else {
        unauthorized()
    }
}

fn as_user(state: &State, request: &Request, answer: impl FnOnce(&str) -> Reply) -> Reply {
    match state.user_of_token(request) {
        Some(user) => answer(&user),
        None => unauthorized(),
    }
}

fn unauthorized() -> Reply {
    let mut reply = json(401, &json!({ "error": "invalid_token" }));
    reply.set("WWW-Authenticate", "Bearer error=\"invalid_token\"");
    reply
}
