//! What the screens of a login show on a terminal, and what they ask for. Pure.

use std::time::Duration;

use command::terminal::printable;
use plugin_host::runtime::Screen;
use protocol::{LoginQrDto, LoginScreenDto};

use super::qr;

/// The pauses between polls. The service ends a login that nobody asks about for some minutes, so the longest is short.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const USUAL_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Something that the user is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// Its key in the answer.
    pub(super) key: String,
    pub(super) label: String,
    pub(super) is_secret: bool,
}

impl Question {
    /// The label, and who reads the answer: a plugin chooses what it asks for, and which of it is hidden.
    pub(super) fn prompt(&self) -> String {
        if self.is_secret {
            self.label.clone()
        } else {
            format!("{} (the plugin reads this)", self.label)
        }
    }
}

/// What a screen asks for: its fields, and the address that a browser shows at the end.
pub(super) fn questions(screen: &LoginScreenDto) -> Vec<Question> {
    let fields = screen.fields.iter().map(|field| Question {
        key: field.key.clone(),
        label: if field.label.is_empty() {
            &field.key
        } else {
            &field.label
        }
        .clone(),
        is_secret: field.secret,
    });
    let ends_otherwise = screen.poll_after_ms.is_some() || !screen.fields.is_empty();
    let page = screen.open_url.as_ref();
    let address = page.filter(|page| page.redirect_prefix.is_some() || !ends_otherwise);
    let address = address.map(|_| Question {
        key: Screen::ADDRESS.to_owned(),
        label: "Address that the browser shows at the end (it is not shown here)".to_owned(),
        // Its parameters stand for the user's password.
        is_secret: true,
    });
    fields.chain(address).collect()
}

/// How long to wait before a screen is polled.
pub(super) fn pause(screen: &LoginScreenDto) -> Duration {
    let wanted = screen.poll_after_ms.map(|pause| Duration::from_millis(pause.into()));
    wanted.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// What was shown already: polls do not repeat it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    message: String,
    qr: Option<LoginQrDto>,
    url: String,
}

impl Shown {
    /// What is new on a screen, as lines. A QR code is drawn if there is a terminal, of so many `columns`, that is wide
    /// enough; else its content is shown.
    pub(super) fn news(&mut self, screen: &LoginScreenDto, columns: Option<usize>) -> Vec<String> {
        let mut lines = Vec::new();
        if self.message != screen.message {
            self.message.clone_from(&screen.message);
            lines.extend(printed(&screen.message));
        }
        if self.qr != screen.qr {
            self.qr.clone_from(&screen.qr);
            lines.extend(screen.qr.iter().flat_map(|qr| code(qr, columns)));
        }
        let url = screen.open_url.as_ref().map_or("", |page| &page.url);
        if self.url != url {
            url.clone_into(&mut self.url);
            if !url.is_empty() {
                lines.push(format!("Open this page in a browser: {}", printable(url)));
            }
        }
        lines
    }

    /// The user has acted: a message is news again, also if it is the same.
    pub(super) fn repeat_message(&mut self) {
        self.message.clear();
    }
}

fn code(qr: &LoginQrDto, columns: Option<usize>) -> Vec<String> {
    let drawn = columns.and_then(|columns| qr::draw(&qr.payload, columns));
    let content = || vec![format!("QR code: {}", printable(&qr.payload))];
    let validity = (qr.expires_in_seconds > 0).then(|| format!("It is valid for {} s.", qr.expires_in_seconds));
    let hint = printed(&qr.hint);
    hint.chain(drawn.unwrap_or_else(content)).chain(validity).collect()
}

fn printed(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| printable(line).into_owned())
}

#[cfg(test)]
mod tests {
    use protocol::{LoginFieldDto, LoginUrlDto};

    use super::*;

    fn field(key: &str, label: &str, secret: bool) -> LoginFieldDto {
        LoginFieldDto {
            key: key.to_owned(),
            label: label.to_owned(),
            secret,
        }
    }

    fn page(redirect_prefix: Option<&str>) -> LoginUrlDto {
        LoginUrlDto {
            url: "https://a.example/authorize".to_owned(),
            redirect_prefix: redirect_prefix.map(str::to_owned),
        }
    }

    fn keys(screen: &LoginScreenDto) -> Vec<(String, bool)> {
        let questions = questions(screen).into_iter();
        questions.map(|question| (question.key, question.is_secret)).collect()
    }

    #[test]
    fn a_screen_asks_for_its_fields_and_for_the_address_that_ends_the_login() {
        let form = LoginScreenDto {
            fields: vec![field("user", "Name", false), field("password", "", true)],
            ..LoginScreenDto::default()
        };
        assert_eq!(keys(&form), [("user".to_owned(), false), ("password".to_owned(), true)]);
        let prompts: Vec<_> = questions(&form).iter().map(Question::prompt).collect();
        assert_eq!(prompts, ["Name (the plugin reads this)", "password"]);
        let address = [("url".to_owned(), true)];
        let with_prefix = LoginScreenDto {
            open_url: Some(page(Some("https://a.example/done"))),
            poll_after_ms: Some(1000),
            ..LoginScreenDto::default()
        };
        assert_eq!(keys(&with_prefix), address);
        let polled = LoginScreenDto {
            open_url: Some(page(None)),
            ..with_prefix
        };
        assert_eq!(keys(&polled), []);
        let without_an_end = LoginScreenDto {
            poll_after_ms: None,
            ..polled
        };
        assert_eq!(keys(&without_an_end), address);
    }

    #[test]
    fn a_poll_shows_what_is_new_only() {
        let mut screen = LoginScreenDto {
            message: "Scan it\u{1b}[2J\nnow".to_owned(),
            qr: Some(LoginQrDto {
                payload: "https://a.example/1".to_owned(),
                expires_in_seconds: 60,
                hint: "with the app".to_owned(),
            }),
            open_url: Some(page(None)),
            ..LoginScreenDto::default()
        };
        let mut shown = Shown::default();
        let first = shown.news(&screen, None);
        assert_eq!(
            first,
            [
                "Scan it\u{fffd}[2J",
                "now",
                "with the app",
                "QR code: https://a.example/1",
                "It is valid for 60 s.",
                "Open this page in a browser: https://a.example/authorize"
            ]
        );
        assert!(shown.news(&screen, None).is_empty());
        shown.repeat_message();
        assert_eq!(shown.news(&screen, None), first[..2]);
        screen.qr.as_mut().unwrap().payload = "https://a.example/2".to_owned();
        let drawn = shown.news(&screen, Some(80));
        let is_drawn = drawn.iter().any(|line| line.contains('▀'));
        assert!(drawn.len() > 12 && is_drawn, "{drawn:?}");
        screen.qr = None;
        assert!(shown.news(&screen, Some(80)).is_empty());
    }

    #[test]
    fn a_pause_neither_floods_nor_lets_the_login_end() {
        let paused = |poll_after_ms| {
            pause(&LoginScreenDto {
                poll_after_ms,
                ..LoginScreenDto::default()
            })
        };
        assert_eq!(paused(Some(1)), SHORTEST_PAUSE);
        assert_eq!(paused(Some(3000)), Duration::from_secs(3));
        assert_eq!(paused(None), USUAL_PAUSE);
        assert_eq!(paused(Some(u32::MAX)), LONGEST_PAUSE);
    }
}
