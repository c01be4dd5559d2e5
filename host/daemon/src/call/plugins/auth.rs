//! `daemon.plugin.auth`: logins to accounts of plugins.

use plugin_host::{
    Identity, LoginError, LoginRefusal, LoginRequest, LoginView, Plugins,
    runtime::{LoginMode, Screen},
};
use protocol::{ErrorCode, PluginAuthAction, PluginAuthRequest, PluginAuthResponse, PluginAuthStatus, RpcError};
use transfer::SafeUrl;

use crate::{
    call::{
        answer::{Answer, read},
        params::{identity, not_found},
    },
    refusal::{Refuse, chain, closing, invalid},
    service::Service,
    view::login,
};

pub(super) async fn call(service: &Service, plugins: &Plugins, request: PluginAuthRequest) -> Result<Answer, RpcError> {
    let named = given(request.identity.as_ref());
    let plugin = identity(named.ok_or_else(|| invalid("identity", "identity is missing"))?)?;
    if plugins.get(&plugin).is_none() {
        return Err(not_found(plugin.as_str()));
    }
    let is_answer = has_answers(&request);
    let answered = match request.action {
        PluginAuthAction::Begin => begin(service, plugins, &plugin, &request).await?,
        // Clients that know no `answer` send `input` with `poll`.
        PluginAuthAction::Poll if !is_answer => {
            let polled = plugins.poll_login(&plugin, session(&request)?).await;
            login::progress(polled.refused()?)
        }
        PluginAuthAction::Poll | PluginAuthAction::Answer => answer(plugins, &plugin, request).await?,
        PluginAuthAction::Cancel => {
            let cancelled = plugins.cancel_login(&plugin, session(&request)?).await;
            login::progress(cancelled.refused()?)
        }
        PluginAuthAction::Logout => log_out(service, plugins, &plugin, &request).await?,
        PluginAuthAction::Status => status(plugins, &plugin, &request).await?,
    };
    read(&answered)
}

async fn begin(
    service: &Service,
    plugins: &Plugins,
    plugin: &Identity,
    request: &PluginAuthRequest,
) -> Result<PluginAuthResponse, RpcError> {
    if has_answers(request) {
        return Err(invalid(
            "input",
            "answers belong to a screen: send them with the action answer",
        ));
    }
    let mode = given(request.mode.as_ref()).map(str::parse::<LoginMode>).transpose();
    let site = given(request.site.as_ref()).map(site).transpose()?;
    let asked = LoginRequest {
        slot: slot(request).map(str::to_owned),
        mode: mode.map_err(|error| invalid("mode", error.to_string()))?,
        site: site.map(|site| site.as_url().clone()),
        proxies: service.proxies(),
    };
    plugins.begin_login(plugin, asked).await.refused().map(login::progress)
}

async fn answer(
    plugins: &Plugins,
    plugin: &Identity,
    request: PluginAuthRequest,
) -> Result<PluginAuthResponse, RpcError> {
    let session = session(&request)?.to_owned();
    let present = plugins.login(plugin, &session).refused()?;
    let values = match present.view.ended {
        // Refused, whatever the answers are.
        Some(_) => Vec::new(),
        None => answers(request, &present)?,
    };
    let answered = plugins.answer_login(plugin, &session, values).await;
    answered.refused().map(login::progress)
}

async fn log_out(
    service: &Service,
    plugins: &Plugins,
    plugin: &Identity,
    request: &PluginAuthRequest,
) -> Result<PluginAuthResponse, RpcError> {
    let was_there = plugins.log_out(plugin, slot(request), service.proxies()).await;
    let message = if was_there.refused()? {
        "logged out"
    } else {
        "nobody was logged in"
    };
    Ok(PluginAuthResponse {
        status: PluginAuthStatus::Success,
        message: message.to_owned(),
        ..PluginAuthResponse::default()
    })
}

async fn status(
    plugins: &Plugins,
    plugin: &Identity,
    request: &PluginAuthRequest,
) -> Result<PluginAuthResponse, RpcError> {
    if given(request.session_id.as_ref()).is_some() {
        return plugins.login(plugin, session(request)?).refused().map(login::progress);
    }
    let slots = plugins.slots(plugin).await.refused()?;
    let meant = slot(request);
    Ok(login::accounts(slots, |slot| {
        meant.is_none_or(|meant| slot.id == meant)
    }))
}

/// What is given; clients may send an empty text for nothing.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn slot(request: &PluginAuthRequest) -> Option<&str> {
    given(request.slot.as_ref()).or_else(|| given(request.auth_ref.as_ref()))
}

fn session(request: &PluginAuthRequest) -> Result<&str, RpcError> {
    let session = given(request.session_id.as_ref());
    session.ok_or_else(|| invalid("sessionId", "sessionId is missing; begin answers with it"))
}

/// A URL, or a host.
fn site(text: &str) -> Result<SafeUrl, RpcError> {
    let url = if text.contains("://") {
        SafeUrl::parse(text)
    } else {
        SafeUrl::parse(&format!("https://{text}"))
    };
    let url = url.map_err(|error| invalid("site", error.to_string()))?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err(invalid("site", "site must be a URL of http or https, or a host"))
    }
}

fn has_answers(request: &PluginAuthRequest) -> bool {
    let is_filled = request.values.as_ref().is_some_and(|values| !values.is_empty());
    is_filled || given(request.input.as_ref()).is_some()
}

/// The answers by their keys. An `input` is for the only thing that the screen asks for.
fn answers(request: PluginAuthRequest, present: &LoginView) -> Result<Vec<(String, String)>, RpcError> {
    let values = request.values.unwrap_or_default();
    let Some(input) = request.input.filter(|input| !input.is_empty()) else {
        return Ok(values.into_iter().collect());
    };
    if !values.is_empty() {
        return Err(invalid("input", "send either input or values"));
    }
    let screen = &present.view.screen;
    let key = match (&screen.fields[..], &screen.open_url) {
        ([field], _) => &field.key,
        ([], Some(_)) => Screen::ADDRESS,
        (fields, _) => {
            let keys: Vec<_> = fields.iter().map(|field| &*field.key).collect();
            let message = match &keys[..] {
                [] => "the screen asks for nothing; poll it".to_owned(),
                keys => format!(
                    "the screen asks for several things: send values with {}",
                    keys.join(", ")
                ),
            };
            return Err(invalid("input", message));
        }
    };
    Ok(vec![(key.to_owned(), input)])
}

impl<T> Refuse<T> for Result<T, LoginError> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| refusal(&error))
    }
}

fn refusal(error: &LoginError) -> RpcError {
    let message = chain(error);
    match error {
        LoginError::NotInstalled(plugin) => not_found(plugin.as_str()),
        LoginError::NoLogin(_) => RpcError::application(ErrorCode::Unsupported, message),
        LoginError::Slot { .. } => invalid("slot", message),
        LoginError::Mode { .. } => invalid("mode", message),
        LoginError::NoSession => invalid("sessionId", message),
        LoginError::TooMany => RpcError::application(ErrorCode::Conflict, message).with_retryable(true),
        LoginError::Refused(LoginRefusal::Busy) => {
            RpcError::application(ErrorCode::Conflict, message).with_retryable(true)
        }
        LoginError::Call(_) | LoginError::Refused(LoginRefusal::Over) => {
            RpcError::application(ErrorCode::Conflict, message)
        }
        LoginError::Refused(
            LoginRefusal::UnknownField(_)
            | LoginRefusal::Missing(_)
            | LoginRefusal::TooLong { .. }
            | LoginRefusal::OtherAddress(_),
        ) => invalid("values", message),
        LoginError::Secrets(_) => RpcError::application(ErrorCode::Unavailable, message),
        LoginError::Closed => closing(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_url_or_a_host() {
        for (text, url) in [
            ("https://forum.example/board/", "https://forum.example/board/"),
            ("http://forum.example:8080", "http://forum.example:8080/"),
            ("forum.example", "https://forum.example/"),
            ("forum.example:8443", "https://forum.example:8443/"),
        ] {
            assert_eq!(site(text).unwrap().expose(), url, "{text}");
        }
        for text in ["ftp://forum.example", "file:///etc/passwd", "a b", "https://"] {
            assert!(site(text).is_err(), "{text}");
        }
    }
}
