//! The login form of the site, step by step.

use svc_plugin::{
    http::Response,
    prelude::*,
    text::{Node, Url},
};

use crate::Site;

/// The name of the form's token, there and in the vault.
const CSRF: &str = "csrf";

/// Where the token is in a form.
const CSRF_INPUT: &str = "input[name=csrf]";

/// The plugin; as a value, a login from its first screen to its end.
#[derive(Debug)]
pub struct MemberGallery {
    slot: String,
    mode: Mode,
    stage: Stage,
}

/// What the login waits for.
#[derive(Debug)]
enum Stage {
    /// The cookies of a browser.
    Cookies,
    /// Name and password, for a form with these hidden fields.
    Password(Vec<(String, String)>),
    /// The code of the second factor of this user.
    SecondFactor(String),
}

impl Login for MemberGallery {
    fn new(slot: &str, mode: Mode) -> Self {
        Self {
            slot: slot.to_owned(),
            mode,
            stage: Stage::Cookies,
        }
    }

    fn start(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        match self.mode {
            Mode::Cookie => {
                ask_for_cookies(
                    screen,
                    "Hand over the cookies of a browser that is logged in to the gallery.",
                );
                Ok(())
            }
            Mode::Password => {
                let page = self.load()?;
                self.take(&page, "", screen)
            }
            _ => Err(Error::Unsupported(
                "the gallery logs in by password or cookies".to_owned(),
            )),
        }
    }

    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        match &self.stage {
            Stage::Cookies => self.try_cookies(screen),
            Stage::Password(hidden) => {
                let user = values.text("user")?.to_owned();
                let page = self.send_password(values, hidden)?;
                self.take(&page, &user, screen)
            }
            Stage::SecondFactor(user) => {
                let (user, page) = (user.clone(), self.send_code(values)?);
                self.take(&page, &user, screen)
            }
        }
    }

    fn check(slot: &str) -> Result<bool> {
        let home = http::get(Site::url("/home")?).account(slot);
        Ok(home.no_redirects().send_any()?.status() == 200)
    }

    fn logout(slot: &str) {
        let end = || http::get(Site::url("/logout")?).account(slot).no_redirects().send_any();
        if let Err(error) = end() {
            log::info(format!("the site was not told of the logout: {error}"));
        }
    }
}

/// Ends with the name that the home page shows; without a user, that is the account's id, too.
fn finish(home: &Response, user: &str, screen: &mut Screen<'_>) -> Result<()> {
    let name = home.select(".user")?.into_iter().next();
    let name = name
        .ok_or_else(|| Error::Parse("the home page shows no user".to_owned()))?
        .text;
    screen.done(if user.is_empty() { &name } else { user }, &name);
    Ok(())
}

/// What the page complains about.
fn complaint(page: &Response) -> Result<Option<String>> {
    Ok(page.select("p.error")?.into_iter().next().map(|error| error.text))
}

/// The hidden fields of a form, without the token: that one is in the vault.
fn hidden_fields(page: &Response) -> Result<Vec<(String, String)>> {
    let inputs = page.select("form#login input[type=hidden]")?;
    let field = |input: &Node| {
        let name = input.attribute("name").filter(|name| *name != CSRF)?;
        Some((name.to_owned(), input.attribute("value").unwrap_or_default().to_owned()))
    };
    Ok(inputs.iter().filter_map(field).collect())
}

fn ask_for_cookies(screen: &mut Screen<'_>, message: &str) {
    screen.message(message).cookie_field("Cookies");
}

impl MemberGallery {
    /// The login page. The vault has its token, and the plugin reads the token's name.
    fn load(&self) -> Result<Response> {
        let request = http::get(Site::url("/login")?).account(&self.slot);
        request.capture_form(CSRF_INPUT, CSRF).send()
    }

    fn try_cookies(&self, screen: &mut Screen<'_>) -> Result<()> {
        let home = http::get(Site::url("/home")?).account(&self.slot);
        let home = home.no_redirects().send_any()?;
        if home.status() == 200 {
            return finish(&home, "", screen);
        }
        ask_for_cookies(screen, "These are not the cookies of a browser that is logged in.");
        Ok(())
    }

    fn send_password(&self, values: &Answers, hidden: &[(String, String)]) -> Result<Response> {
        let mut fields: Vec<_> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        fields.push(("user", values.text("user")?));
        fields.extend(values.get("captcha").map(|captcha| ("captcha", captcha)));
        http::post(Site::url("/login")?)
            .account(&self.slot)
            .form(fields)
            .secret_form(CSRF, "{csrf}")
            .secret_form("password", &values.secret("password")?)
            .send_any()
    }

    fn send_code(&self, values: &Answers) -> Result<Response> {
        http::post(Site::url("/login/code")?)
            .account(&self.slot)
            .secret_form(CSRF, "{csrf}")
            .secret_form("code", &values.secret("code")?)
            .send_any()
    }

    /// Continues with the page that the site shows.
    fn take(&mut self, page: &Response, user: &str, screen: &mut Screen<'_>) -> Result<()> {
        let complaint = complaint(page)?;
        if !page.select("form#second-factor")?.is_empty() {
            screen.message(complaint.as_deref().unwrap_or("Fill in the code that you were sent."));
            screen.secret_field("code", "Code");
            self.stage = Stage::SecondFactor(user.to_owned());
            return Ok(());
        }
        if !page.select("form#login")?.is_empty() {
            return self.ask_for_password(page, complaint.as_deref(), screen);
        }
        match complaint {
            None => {
                vault::account(&self.slot).forget(CSRF);
                finish(page, user, screen)
            }
            // The form is over: the login begins again, with another token.
            Some(complaint) => {
                let page = self.load()?;
                self.ask_for_password(&page, Some(&complaint), screen)
            }
        }
    }

    fn ask_for_password(&mut self, page: &Response, message: Option<&str>, screen: &mut Screen<'_>) -> Result<()> {
        if let Some(message) = message {
            screen.message(message);
        }
        screen.field("user", "User name").secret_field("password", "Password");
        if let Some(captcha) = page.select("a.captcha")?.first() {
            let target = captcha.attribute("href").unwrap_or_default();
            let target = Url::parse(page.url())?.join(target)?;
            screen.open_url(&target).field("captcha", "Answer of the captcha");
        }
        self.stage = Stage::Password(hidden_fields(page)?);
        Ok(())
    }
}
