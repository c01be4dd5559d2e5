//! What a login shows to the user. The plugin fills it in, within limits; the host owns it and shows it.

use plugin_package::Identity;
use url::Url;

/// The longest message or hint in bytes.
const MAX_TEXT_BYTES: usize = 2048;

/// The most bytes in a QR code (version 40, level L, bytes).
const MAX_QR_BYTES: usize = 2953;

/// The most fields of a form.
const MAX_FIELDS: usize = 16;

/// The longest key, label or name.
const MAX_NAME_BYTES: usize = 200;

/// The longest URL to open.
const MAX_URL_BYTES: usize = 8 * 1024;

/// One screen of a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Screen {
    pub message: Option<String>,
    pub qr: Option<QrCode>,
    /// What the user fills in.
    pub fields: Vec<Field>,
    pub open_url: Option<OpenUrl>,
    /// How long to wait before the next poll; the plugin is not polled if it does not say.
    pub poll_after_ms: Option<u32>,
    /// When the session of the account ends, in milliseconds of the Unix epoch.
    pub expires_ms: Option<u64>,
    /// The account, at the end of the login.
    pub done: Option<Done>,
}

/// A QR code for the site's own app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrCode {
    /// Its content.
    pub payload: String,
    /// How long it is valid.
    pub expires_in_s: u32,
    /// What to do with it.
    pub hint: String,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub key: String,
    pub label: String,
    /// Whether its value goes to the vault and never to the plugin.
    pub is_secret: bool,
}

/// A page for the user's browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenUrl {
    pub url: Url,
    /// Where the site sends the browser at the end: the user gives the address back.
    pub redirect_prefix: Option<String>,
}

/// The account that the login is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Identifies the account at its site.
    pub account_id: String,
    /// The name that users see.
    pub display_name: String,
}

/// What is wrong with a part of a screen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {reason}")]
pub struct InvalidScreen {
    pub part: &'static str,
    pub reason: String,
}

fn invalid(part: &'static str, reason: impl Into<String>) -> InvalidScreen {
    let reason = reason.into();
    InvalidScreen { part, reason }
}

/// A text for people: without control characters, which could change what a terminal shows.
fn text(part: &'static str, text: &str, limit: usize) -> Result<String, InvalidScreen> {
    if text.len() > limit {
        return Err(invalid(
            part,
            format!("it has {} bytes; the limit is {limit}", text.len()),
        ));
    }
    let is_odd = |c: char| c.is_control() && c != '\n';
    Ok(text.chars().map(|c| if is_odd(c) { '\u{fffd}' } else { c }).collect())
}

impl Screen {
    pub fn set_message(&mut self, message: &str) -> Result<(), InvalidScreen> {
        self.message = Some(text("message", message, MAX_TEXT_BYTES)?);
        Ok(())
    }

    pub fn set_qr(&mut self, payload: String, expires_in_s: u32, hint: &str) -> Result<(), InvalidScreen> {
        if payload.is_empty() || payload.len() > MAX_QR_BYTES {
            let reason = format!("it has {} bytes instead of 1 to {MAX_QR_BYTES}", payload.len());
            return Err(invalid("QR code", reason));
        }
        self.qr = Some(QrCode {
            payload,
            expires_in_s,
            hint: text("hint", hint, MAX_TEXT_BYTES)?,
        });
        Ok(())
    }

    pub fn add_field(&mut self, key: String, label: &str, is_secret: bool) -> Result<(), InvalidScreen> {
        if self.fields.len() >= MAX_FIELDS {
            return Err(invalid("fields", format!("a screen has at most {MAX_FIELDS}")));
        }
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if key.is_empty() || key.len() > MAX_NAME_BYTES || !key.chars().all(is_key) {
            return Err(invalid("key", "it is of letters, digits, _, - and ."));
        }
        if self.fields.iter().any(|field| field.key == key) {
            return Err(invalid("key", format!("two fields are called {key}")));
        }
        let label = text("label", label, MAX_NAME_BYTES)?;
        self.fields.push(Field { key, label, is_secret });
        Ok(())
    }

    pub fn set_open_url(&mut self, url: &str, redirect_prefix: Option<String>) -> Result<(), InvalidScreen> {
        let parsed = Url::parse(url).ok().filter(|_| url.len() <= MAX_URL_BYTES);
        let parsed = parsed.filter(|url| matches!(url.scheme(), "https" | "http"));
        let url = parsed.ok_or_else(|| invalid("URL", "it is no http(s) URL of a usual length"))?;
        if let Some(prefix) = &redirect_prefix {
            let is_usable = prefix.len() <= MAX_URL_BYTES && Url::parse(prefix).is_ok();
            if !is_usable {
                return Err(invalid("redirect prefix", "it is no URL"));
            }
        }
        self.open_url = Some(OpenUrl { url, redirect_prefix });
        Ok(())
    }

    pub fn set_done(&mut self, account_id: &str, display_name: &str) -> Result<(), InvalidScreen> {
        let account_id = text("account", account_id, MAX_NAME_BYTES)?;
        if account_id.is_empty() {
            return Err(invalid("account", "its id is empty"));
        }
        let display_name = text("name", display_name, MAX_NAME_BYTES)?;
        self.done = Some(Done {
            display_name: if display_name.is_empty() {
                account_id.clone()
            } else {
                display_name
            },
            account_id,
        });
        Ok(())
    }

    /// Whether the user can do something with it, or the plugin is done.
    pub(crate) fn is_useful(&self) -> bool {
        self.done.is_some() || self.qr.is_some() || !self.fields.is_empty() || self.poll_after_ms.is_some()
    }

    /// The field that a browser's address is given back in, if a page is to be opened.
    pub const ADDRESS: &str = "url";

    /// The field that takes a browser's cookies.
    pub const COOKIES: &str = "cookies";

    /// The host's own first screen of a login with a browser's cookies.
    pub fn of_cookies(plugin: &Identity) -> Self {
        Self {
            message: Some(format!(
                "Paste the cookies of the site that {plugin} is for, as a browser extension exports them (cookies.txt or JSON)."
            )),
            fields: vec![Field {
                key: Self::COOKIES.to_owned(),
                label: "Cookies".to_owned(),
                is_secret: true,
            }],
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_takes_what_people_can_use() {
        let mut screen = Screen::default();
        screen.set_message("two\nlines\u{1b}[2J").unwrap();
        assert_eq!(screen.message.as_deref(), Some("two\nlines\u{fffd}[2J"));
        screen.set_qr("https://a.example/qr?t=1".to_owned(), 60, "").unwrap();
        screen.add_field("user".to_owned(), "Name", false).unwrap();
        screen.set_done("1", "").unwrap();
        assert_eq!(screen.done.as_ref().unwrap().display_name, "1");
        assert!(screen.set_message(&"x".repeat(MAX_TEXT_BYTES + 1)).is_err());
        assert!(screen.set_qr("x".repeat(MAX_QR_BYTES + 1), 1, "").is_err());
        for key in ["", "a b", "user"] {
            assert!(screen.add_field(key.to_owned(), "", true).is_err(), "{key}");
        }
        for number in 1..MAX_FIELDS {
            screen.add_field(format!("f{number}"), "", true).unwrap();
        }
        assert!(screen.add_field("more".to_owned(), "", true).is_err());
        for url in ["javascript:alert(1)", "file:///etc/passwd", "no URL"] {
            assert!(screen.set_open_url(url, None).is_err(), "{url}");
        }
        assert!(screen.set_done("", "Ann").is_err());
    }
}
