//! Pages of the site around the login.

use serde_json::json;

use super::{
    message::{Fields, escaped, json, page, redirect, with_cookie},
    state::State,
};
use crate::{reply::Reply, request::Request};

pub(super) fn captcha(state: &State, request: &Request) -> Reply {
    match state.captcha_question(Fields::of_query(request).get("id")) {
        Some(question) => page(200, "Captcha", &format!("<p class=\"question\">{question}</p>")),
        None => page(404, "Captcha", "<p>There is no such captcha.</p>"),
    }
}

pub(super) fn home(state: &State, request: &Request) -> Reply {
    match state.user_of_cookie(request) {
        Some(user) => {
            let name = escaped(&state.name_of(&user));
            let body = format!("<p class=\"user\">{name}</p><a class=\"logout\" href=\"/logout\">Log out</a>");
            page(200, "Home", &body)
        }
        None => to_login(request),
    }
}

/// Where those go who are not logged in.
pub(super) fn to_login(request: &Request) -> Reply {
    redirect(302, &format!("/login?next={}", request.path()))
}

pub(super) fn log_out(state: &mut State, request: &Request) -> Reply {
    state.end_session(request);
    let mut reply = with_cookie(redirect(303, "/login"), "session", "");
    reply.set("Set-Cookie", "session=; Path=/; Max-Age=0");
    reply
}

/// What careless sites have: it leads wherever the parameter `to` says, with the status `status`, and hands on all other
/// parameters as they are.
pub(super) fn go(request: &Request) -> Reply {
    let fields = Fields::of_query(request);
    let mut target = fields.get("to").to_owned();
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let is_own = |pair: &&str| pair.starts_with("to=") || pair.starts_with("status=");
    for pair in query.split('&').filter(|pair| !is_own(pair)) {
        target.push(if target.contains('?') { '&' } else { '?' });
        target.push_str(pair);
    }
    redirect(fields.get("status").parse().unwrap_or(302), &target)
}

/// What many sites do in some answer: it shows what it was sent.
pub(super) fn echo(request: &Request) -> Reply {
    let headers = request.headers.iter().map(|(name, value)| json!([name, value]));
    let value = json!({
        "target": request.target,
        "headers": headers.collect::<Vec<_>>(),
        "body": String::from_utf8_lossy(&request.body),
    });
    json(200, &value)
}
