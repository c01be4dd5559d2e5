//! Logins to accounts of plugins. Credentials go to the service only: no answer has a member for one.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a request about a login does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PluginAuthAction {
    /// Begins a login and answers with its first screen.
    Begin,
    /// Answers with the present screen, after asking the site if that is due.
    Poll,
    /// Gives what the user filled in.
    Answer,
    /// Cancels a login.
    Cancel,
    /// Ends the session of an account at its site and deletes the account. Works for a disabled plugin, too.
    Logout,
    /// With a session, answers with the present screen and never asks the site; else with the accounts of the plugin.
    Status,
}

/// Params of `daemon.plugin.auth`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginAuthRequest {
    /// `name@author`. Over REST it is in the path, and not read from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What to do.
    pub action: PluginAuthAction,
    /// The slot of the account, from the list of accounts. May be left out if the plugin has one slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// How to log in: `qr`, `password`, `cookie` or `browser`; the slot's first one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The login, as `begin` named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The site to log in to, for plugins of several sites: a URL, or a host for `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Another name of `slot`: what an earlier answer called `authRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_ref: Option<String>,
    /// The answer to a screen that asks for one thing; `poll` with it is taken as `answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Password)]
    pub input: Option<String>,
    /// The answers by the keys of the screen's fields. The address that a browser shows at the end has the key `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeMap<String, String>>,
}

impl PluginAuthRequest {
    /// A request without anything but its action.
    pub fn new(identity: Option<String>, action: PluginAuthAction) -> Self {
        Self {
            identity,
            action,
            slot: None,
            mode: None,
            session_id: None,
            site: None,
            auth_ref: None,
            input: None,
            values: None,
        }
    }
}

impl fmt::Debug for PluginAuthRequest {
    /// Answers are credentials, and so is the session's id: who has it sees the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity.as_deref().unwrap_or_default();
        write!(f, "PluginAuthRequest({identity}, {:?}, ***)", self.action)
    }
}

/// How a login is going.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum PluginAuthStatus {
    /// The user or the site is to act.
    Pending,
    /// The account can be used.
    Success,
    /// The login is over without an account, or there is no account that can be used; `message` says why.
    #[default]
    Error,
}

/// The state of a login. Contains no credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginAuthResponse {
    /// How it is going.
    pub status: PluginAuthStatus,
    /// Names the login in further requests; empty if the request was about none.
    pub session_id: String,
    /// The content of the QR code or the URL to open, for clients that read no `screen`.
    pub challenge: Option<String>,
    /// `qrcode` or `url`.
    pub challenge_type: Option<String>,
    /// What to tell the user.
    pub message: String,
    /// With `success`, the slot of the account that can be used.
    pub auth_ref: Option<String>,
    /// What to show to the user; absent once the login is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<LoginScreenDto>,
    /// The accounts that the plugin can have, and those that it has. Only `status` without a session answers with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Vec<LoginSlotDto>>,
}

/// A screen of a login. The plugin fills it in, the service limits what it can contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginScreenDto {
    /// A text for the user.
    pub message: String,
    /// A QR code for the site's own app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qr: Option<LoginQrDto>,
    /// What the user fills in; all of them are answered together.
    pub fields: Vec<LoginFieldDto>,
    /// A page for the user's browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_url: Option<LoginUrlDto>,
    /// How long to wait before the next `poll`; absent if the screen waits for the user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_after_ms: Option<u32>,
}

/// A QR code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginQrDto {
    /// Its content, to be drawn.
    pub payload: String,
    /// How long it was valid when it was made.
    pub expires_in_seconds: u32,
    /// What to do with it.
    pub hint: String,
}

/// A field of a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginFieldDto {
    /// Its key in `values`.
    pub key: String,
    /// Its name for the user.
    pub label: String,
    /// Whether what is typed must not be shown. The plugin gets its name. What is typed into another field, the plugin reads:
    /// tell users so.
    pub secret: bool,
}

/// A page for the user's browser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginUrlDto {
    /// Its address.
    pub url: String,
    /// What the address begins with that the browser shows at the end. That address is the answer, with the key `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_prefix: Option<String>,
}

/// An account that a plugin can have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginSlotDto {
    /// The id in the plugin's manifest, and the `authRef` of its account.
    pub slot: String,
    /// The display name.
    pub title: String,
    /// How to log in: `qr`, `password`, `cookie`, `browser`. Empty if the plugin does not have this slot any more.
    pub modes: Vec<String>,
    /// The account; `null` if nobody is logged in.
    pub account: Option<LoginAccountDto>,
}

/// An account that somebody is logged in to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginAccountDto {
    /// Identifies it at its site.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The time of the login in Unix milliseconds.
    pub since: i64,
    /// Whether the site has ended its session: another login is needed.
    pub expired: bool,
    /// The site, for plugins of several sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_request_prints_neither_what_is_typed_nor_the_session() {
        let request = PluginAuthRequest {
            session_id: Some("5e551011".to_owned()),
            input: Some("hunter2".to_owned()),
            values: Some(BTreeMap::from([("password".to_owned(), "hunter3".to_owned())])),
            ..PluginAuthRequest::new(Some("acme@us".to_owned()), PluginAuthAction::Answer)
        };
        assert_eq!(format!("{request:?}"), "PluginAuthRequest(acme@us, Answer, ***)");
        let sent = serde_json::to_value(&request).unwrap();
        assert_eq!(
            sent,
            json!({
                "identity": "acme@us", "action": "answer", "sessionId": "5e551011", "input": "hunter2",
                "values": {"password": "hunter3"},
            })
        );
        assert_eq!(serde_json::from_value::<PluginAuthRequest>(sent).unwrap(), request);
    }

    #[test]
    fn members_without_a_value_may_be_null() {
        let read = |text: &str| crate::from_json::<PluginAuthRequest>(text.as_bytes());
        let request = read(r#"{"action": "begin", "slot": null, "input": null, "values": null}"#).unwrap();
        assert_eq!(request, PluginAuthRequest::new(None, PluginAuthAction::Begin));
        for text in [
            "{}",
            r#"{"action": "renew"}"#,
            r#"{"action": "answer", "values": {"pin": 1234}}"#,
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(!refused.contains("1234"), "{refused}");
        }
    }

    #[test]
    fn an_answer_always_has_the_members_that_older_clients_read() {
        let answer = PluginAuthResponse {
            status: PluginAuthStatus::Pending,
            session_id: "s".to_owned(),
            screen: Some(LoginScreenDto {
                qr: Some(LoginQrDto {
                    payload: "https://a.example/qr".to_owned(),
                    expires_in_seconds: 60,
                    hint: String::new(),
                }),
                poll_after_ms: Some(2000),
                ..LoginScreenDto::default()
            }),
            ..PluginAuthResponse::default()
        };
        let sent = serde_json::to_value(&answer).unwrap();
        assert_eq!(
            sent,
            json!({
                "status": "pending", "sessionId": "s", "challenge": null, "challengeType": null, "message": "",
                "authRef": null,
                "screen": {
                    "message": "", "qr": {"payload": "https://a.example/qr", "expiresInSeconds": 60, "hint": ""},
                    "fields": [], "pollAfterMs": 2000,
                },
            })
        );
        assert_eq!(serde_json::from_value::<PluginAuthResponse>(sent).unwrap(), answer);
    }

    #[test]
    fn a_slot_without_an_account_says_so() {
        let slot = LoginSlotDto {
            slot: "main".to_owned(),
            title: "Account".to_owned(),
            modes: vec!["qr".to_owned()],
            account: None,
        };
        let sent = serde_json::to_value(&slot).unwrap();
        assert_eq!((&sent["account"], sent.as_object().unwrap().len()), (&Value::Null, 4));
    }
}
