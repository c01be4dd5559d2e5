//! The form of the login: hidden fields, a cookie for those who are not logged in, a second factor.

use super::{
    PasswordAs,
    message::{Fields, cookie, escaped, page, redirect, with_cookie},
    state::{CODE_TRIES, State, Wrong},
};
use crate::{reply::Reply, request::Request};

/// Somebody who sees the form.
pub(super) struct Visitor {
    csrf: String,
    /// The user whose password was right, and the wrong codes since.
    waits_for_code: Option<(String, u32)>,
}

pub(super) fn show(state: &mut State, request: &Request) -> Reply {
    if state.user_of_cookie(request).is_some() {
        return redirect(303, "/home");
    }
    let known = cookie(request, "visitor").filter(|visitor| state.visitors.contains_key(visitor));
    let is_known = known.is_some();
    let visitor = known.unwrap_or_else(|| {
        let csrf = state.secret("csrf");
        let visitor = state.secret("visitor");
        let new = Visitor {
            csrf,
            waits_for_code: None,
        };
        state.visitors.insert(visitor.clone(), new);
        visitor
    });
    let reply = form(state, &visitor, None, "");
    if is_known {
        return reply;
    }
    with_cookie(reply, "visitor", &visitor)
}

pub(super) fn log_in(state: &mut State, request: &Request) -> Reply {
    let fields = Fields::of_body(request);
    let Some(visitor) = checked(state, request, &fields) else {
        return refused();
    };
    if fields.get("lang") != "en" {
        return page(400, "Log in", "<p class=\"error\">A hidden field is missing.</p>");
    }
    let user = fields.get("user").to_owned();
    match state.check_password(&fields) {
        Err(Wrong::Captcha) => form(state, &visitor, Some(&user), "Please solve the captcha."),
        Err(Wrong::Password) => form(state, &visitor, Some(&user), "User name or password is wrong."),
        Ok(account) if account.code.is_some() => {
            if let Some(visitor) = state.visitors.get_mut(&visitor) {
                visitor.waits_for_code = Some((user, 0));
            }
            code_form(state, &visitor, "")
        }
        Ok(account) => welcome(state, &visitor, &account.user),
    }
}

pub(super) fn take_code(state: &mut State, request: &Request) -> Reply {
    let fields = Fields::of_body(request);
    let checked = checked(state, request, &fields);
    let waits = checked.and_then(|visitor| {
        let waits_for_code = state.visitors.get(&visitor)?.waits_for_code.clone()?;
        Some((visitor, waits_for_code))
    });
    let Some((visitor, (user, tries))) = waits else {
        return refused();
    };
    let code = state.account(&user).and_then(|account| account.code.clone());
    if code.as_deref() == Some(fields.get("code").trim()) {
        return welcome(state, &visitor, &user);
    }
    let waits_for_code = (tries + 1 < CODE_TRIES).then_some((user, tries + 1));
    let is_over = waits_for_code.is_none();
    if let Some(visitor) = state.visitors.get_mut(&visitor) {
        visitor.waits_for_code = waits_for_code;
    }
    if is_over {
        return page(
            403,
            "Log in",
            "<p class=\"error\">Too many wrong codes. Please start again.</p>",
        );
    }
    code_form(state, &visitor, "The code is wrong.")
}

/// The visitor of a request, if the hidden field is theirs.
fn checked(state: &State, request: &Request, fields: &Fields) -> Option<String> {
    let visitor = cookie(request, "visitor")?;
    let known = state.visitors.get(&visitor)?;
    (known.csrf == fields.get("csrf")).then_some(visitor)
}

fn refused() -> Reply {
    page(
        403,
        "Log in",
        "<p class=\"error\">The form has expired. Please reload it.</p>",
    )
}

fn welcome(state: &mut State, visitor: &str, user: &str) -> Reply {
    state.visitors.remove(visitor);
    let issued = state.begin_session(user);
    with_cookie(redirect(303, "/home"), "session", &issued.cookie)
}

fn csrf_input(state: &State, visitor: &str) -> String {
    let csrf = state.visitors.get(visitor).map_or("", |visitor| visitor.csrf.as_str());
    format!("<input type=\"hidden\" name=\"csrf\" value=\"{}\">", escaped(csrf))
}

fn error_line(error: &str) -> String {
    if error.is_empty() {
        return String::new();
    }
    format!("<p class=\"error\">{error}</p>")
}

/// The form; `user` is the one who has failed to log in.
fn form(state: &mut State, visitor: &str, user: Option<&str>, error: &str) -> Reply {
    let password = match state.password_as() {
        PasswordAs::Plain => "<input type=\"password\" name=\"password\">".to_owned(),
        PasswordAs::Md5 => {
            "<input type=\"password\" id=\"password\"><input type=\"hidden\" name=\"password_md5\">".to_owned()
        }
        PasswordAs::Signature => format!(
            "<input type=\"hidden\" name=\"nonce\" value=\"{}\"><input type=\"hidden\" name=\"signature\">",
            state.nonce()
        ),
    };
    let captcha = if user.is_some_and(|user| state.wants_captcha(user)) {
        let id = state.captcha();
        format!(
            "<a class=\"captcha\" href=\"/captcha?id={id}\">Captcha</a>\
             <input type=\"hidden\" name=\"captcha_id\" value=\"{id}\"><input name=\"captcha\">"
        )
    } else {
        String::new()
    };
    let body = format!(
        "{}<form id=\"login\" method=\"post\" action=\"/login\">\n{}\n\
         <input type=\"hidden\" name=\"lang\" value=\"en\">\n<input name=\"user\" value=\"{}\">\n{password}\n{captcha}\n\
         <button>Log in</button></form>",
        error_line(error),
        csrf_input(state, visitor),
        escaped(user.unwrap_or_default()),
    );
    page(200, "Log in", &body)
}

fn code_form(state: &State, visitor: &str, error: &str) -> Reply {
    let body = format!(
        "{}<form id=\"second-factor\" method=\"post\" action=\"/login/code\">\n{}\n<input name=\"code\">\n\
         <button>Continue</button></form>",
        error_line(error),
        csrf_input(state, visitor),
    );
    page(200, "Your code", &body)
}
