//! The login to the cloud, step by step.

use std::time::Duration;

use serde_json::{Value, json};
use svc_plugin::{
    http::{Request, Response},
    prelude::*,
    text::encode_segment,
    vault::{Encoding, Hash},
};

use crate::{PasswordAs, Wanted, signed};

/// How often the cloud is asked whether the code was scanned, and how often after it has complained.
const POLL: Duration = Duration::from_secs(1);
const SLOW_POLL: Duration = Duration::from_secs(5);

/// Where the cloud sends a browser at the end. Nothing listens there: the user hands the address back.
const BACK: &str = "http://127.0.0.1/svc";

const SCAN: &str = "Scan the code with the app of QR cloud.";
const CONFIRM: &str = "Confirm the login on your phone.";
const REFUSED: &str = "The login was refused on the phone. Scan this code to try again.";
const EXPIRED: &str = "The code has expired. Scan this one.";

/// The plugin; as a value, a login from its first screen to its end.
#[derive(Debug)]
pub struct QrCloud {
    slot: String,
    mode: Mode,
    stage: Stage,
}

/// What the login waits for.
#[derive(Debug)]
enum Stage {
    /// The phone.
    Scan(Code),
    /// Name and password; and the answer of the captcha with this id, if there is one.
    Password(Option<String>),
    /// The code of the second factor.
    SecondFactor,
    /// The address that a browser ends at, which has this text of ours in it.
    Browser(String),
}

/// A QR code that is shown.
#[derive(Debug)]
struct Code {
    token: String,
    url: String,
    ends_ms: u64,
}

impl Code {
    fn show(&self, screen: &mut Screen<'_>, message: &str, poll: Duration) {
        let left = Duration::from_millis(self.ends_ms.saturating_sub(env::now_ms()));
        screen.message(message).qr(&self.url, left, "QR cloud").poll_after(poll);
    }
}

impl Login for QrCloud {
    fn new(slot: &str, mode: Mode) -> Self {
        Self {
            slot: slot.to_owned(),
            mode,
            stage: Stage::Password(None),
        }
    }

    fn start(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        match self.mode {
            Mode::Qr => self.show_code(screen, SCAN),
            Mode::Password => {
                self.ask_for_password(screen, "", None);
                Ok(())
            }
            Mode::Browser => self.open_browser(screen),
            _ => Err(Error::Unsupported("QR cloud has no login by cookies".to_owned())),
        }
    }

    fn poll(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        let Stage::Scan(code) = &self.stage else {
            return Ok(());
        };
        let request = http::get(Wanted::read()?.url("/qr/state")).query("token", &code.token);
        let answer = self.captured(request).send_any()?;
        if answer.status() == 429 {
            code.show(screen, SCAN, SLOW_POLL);
            return Ok(());
        }
        let answer = answer.successful()?;
        match answer.string("/state")?.as_str() {
            "new" => code.show(screen, SCAN, POLL),
            "scanned" => code.show(screen, CONFIRM, POLL),
            "confirmed" => finish(&answer, screen)?,
            "cancelled" => self.show_code(screen, REFUSED)?,
            "expired" => self.show_code(screen, EXPIRED)?,
            state => return Err(Error::Parse(format!("the login is {state}"))),
        }
        Ok(())
    }

    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        match &self.stage {
            Stage::Scan(_) => Ok(()),
            Stage::Password(captcha) => {
                let answer = self.send_password(values, captcha.as_deref())?;
                self.take_password(&answer, screen)
            }
            Stage::SecondFactor => self.send_code(values, screen),
            Stage::Browser(state) => self.send_grant(values, state, screen),
        }
    }

    fn check(slot: &str) -> Result<bool> {
        if !vault::account(slot).has("access") {
            return Ok(false);
        }
        let answer = signed(http::get(Wanted::read()?.url("/api/me")), slot).send();
        match answer {
            Ok(_) => Ok(true),
            Err(Error::LoginRequired(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn refresh(slot: &str, screen: &mut Screen<'_>) -> Result<()> {
        vault::account(slot).require("refresh")?;
        let request = http::post(Wanted::read()?.url("/token"))
            .account(slot)
            .form([("grant_type", "refresh_token")])
            .secret_form("refresh_token", "{refresh}");
        let answer = captured(request).send_any()?;
        if answer.status() == 400 {
            return Err(Error::LoginRequired(Some(slot.to_owned())));
        }
        finish(&answer.successful()?, screen)
    }

    fn logout(slot: &str) {
        let end = || signed(http::post(Wanted::read()?.url("/logout")), slot).send();
        if let Err(error) = end() {
            log::info(format!("the cloud was not told of the logout: {error}"));
        }
    }
}

/// Keeps the tokens of the answer.
fn captured(request: Request) -> Request {
    request
        .capture_json("/access_token", "access")
        .capture_json("/refresh_token", "refresh")
}

/// Ends with what the cloud says of the account.
fn finish(answer: &Response, screen: &mut Screen<'_>) -> Result<()> {
    let lifetime = Duration::from_secs(answer.number("/expires_in")?);
    let (id, name) = (answer.string("/user/id")?, answer.string("/user/name")?);
    screen.done(&id, &name).expires_in(lifetime);
    Ok(())
}

/// A text that an answer may have.
fn optional(answer: &Response, pointer: &str) -> Result<Option<String>> {
    answer.raw_json(pointer)?.map(|_| answer.string(pointer)).transpose()
}

impl QrCloud {
    fn captured(&self, request: Request) -> Request {
        captured(request.account(&self.slot))
    }

    /// Shows a new code.
    fn show_code(&mut self, screen: &mut Screen<'_>, message: &str) -> Result<()> {
        let request = http::post(Wanted::read()?.url("/qr/new")).account(&self.slot);
        let answer = request.send()?;
        let lifetime_ms = answer.number("/expires_in")?.saturating_mul(1000);
        let code = Code {
            token: answer.string("/token")?,
            url: answer.string("/url")?,
            ends_ms: env::now_ms().saturating_add(lifetime_ms),
        };
        code.show(screen, message, POLL);
        self.stage = Stage::Scan(code);
        Ok(())
    }

    /// Asks for name and password, and for the captcha whose id and page these are.
    fn ask_for_password(&mut self, screen: &mut Screen<'_>, message: &str, captcha: Option<(String, String)>) {
        if !message.is_empty() {
            screen.message(message);
        }
        screen.field("user", "User name").secret_field("password", "Password");
        if let Some((_, page)) = &captcha {
            screen.open_url(page).field("captcha", "Answer of the captcha");
        }
        self.stage = Stage::Password(captcha.map(|(id, _)| id));
    }

    fn open_browser(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        let state = env::random(16)
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let query = format!("client_id=svc&redirect_uri={}&state={state}", encode_segment(BACK));
        let page = Wanted::read()?.url(&format!("/authorize?{query}"));
        screen.message("Log in with your browser, then paste the address that it ends at.");
        screen.open_url_until(page, BACK);
        self.stage = Stage::Browser(state);
        Ok(())
    }

    /// Trades what the browser was sent back with for tokens.
    fn send_grant(&self, values: &Answers, state: &str, screen: &mut Screen<'_>) -> Result<()> {
        if values.get("url.state") != Some(state) {
            return Err(Error::Forbidden("the address is that of another login".to_owned()));
        }
        let request = http::post(Wanted::read()?.url("/token"))
            .form([("grant_type", "authorization_code"), ("redirect_uri", BACK)])
            .secret_form("code", &values.secret("url.code")?);
        let answer = self.captured(request).send_any()?;
        if answer.status() == 400 {
            return Err(Error::Forbidden("the address has been used; log in again".to_owned()));
        }
        finish(&answer.successful()?, screen)
    }

    fn send_password(&self, values: &Answers, captcha: Option<&str>) -> Result<Response> {
        let wanted = Wanted::read()?;
        let user = values.text("user")?;
        let mut body = json!({ "user": user });
        if let Some(id) = captcha {
            body["captcha_id"] = id.into();
            body["captcha"] = values.text("captcha")?.into();
        }
        let secrets = vault::account(&self.slot);
        let template = values.secret("password")?;
        match wanted.password_as {
            PasswordAs::Plain => {}
            PasswordAs::Md5 => {
                body["password_md5"] = secrets.digest(&template, Hash::Md5, Encoding::Hex)?.into();
            }
            PasswordAs::Signature => {
                let begun = http::get(wanted.url("/api/login")).account(&self.slot).send()?;
                let nonce = begun.string("/nonce")?;
                let name = values.text("password")?;
                let signature = secrets.hmac(name, &format!("{user}:{nonce}"), Hash::Sha256, Encoding::Hex)?;
                (body["nonce"], body["signature"]) = (nonce.into(), signature.into());
            }
        }
        let request = self.posted(&wanted, "/api/login", &body);
        let request = match wanted.password_as {
            PasswordAs::Plain => request.secret_json("/password", &template),
            PasswordAs::Md5 | PasswordAs::Signature => request,
        };
        request.capture_json("/ticket", "ticket").send_any()
    }

    fn posted(&self, wanted: &Wanted, path: &str, body: &Value) -> Request {
        let request = http::post(wanted.url(path)).text(&body.to_string(), "application/json");
        self.captured(request)
    }

    fn take_password(&mut self, answer: &Response, screen: &mut Screen<'_>) -> Result<()> {
        if answer.status() == 403 {
            let message = match answer.string("/error")?.as_str() {
                "wrong_captcha" => "The answer of the captcha is wrong.",
                _ => "User name or password is wrong.",
            };
            let captcha = optional(answer, "/captcha_id")?.zip(optional(answer, "/captcha_url")?);
            self.ask_for_password(screen, message, captcha);
            return Ok(());
        }
        if !(200..300).contains(&answer.status()) {
            return Err(Error::Upstream(answer.status()));
        }
        if answer.raw_json("/need_code")?.as_deref() != Some("true") {
            return finish(answer, screen);
        }
        self.stage = Stage::SecondFactor;
        ask_for_code(screen, "Fill in the code that the app shows.");
        Ok(())
    }

    fn send_code(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        let request = self.posted(&Wanted::read()?, "/api/login/code", &json!({}));
        let answer = request
            .secret_json("/ticket", "{ticket}")
            .secret_json("/code", &values.secret("code")?)
            .send_any()?;
        match answer.status() {
            403 => {
                let left = answer.number("/tries_left")?;
                ask_for_code(screen, &format!("The code is wrong. Tries left: {left}"));
                Ok(())
            }
            410 => {
                self.ask_for_password(screen, "Too many wrong codes. Please log in again.", None);
                Ok(())
            }
            _ => {
                let answer = answer.successful()?;
                vault::account(&self.slot).forget("ticket");
                finish(&answer, screen)
            }
        }
    }
}

fn ask_for_code(screen: &mut Screen<'_>, message: &str) {
    screen.message(message).secret_field("code", "Code");
}
