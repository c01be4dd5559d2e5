//! Downloads from a site that wants a login by form.
//!
//! *Owns* what the settings say about the site (`site`), its form (`form`), and the steps of the login (here).
//!
//! *Never* reads a password, a token of the form or a cookie: they stay in the vault and the jar of the account.
//!
//! Start reading at [`HttpFormLogin`].

mod form;
mod site;

use svc_plugin::{http::Response, prelude::*};

use crate::{
    form::Form,
    site::{Site, complaint},
};

/// The id of the only entry of a URL.
const FILE: &str = "file";

/// The secret that is the password, as the login asks for it.
const PASSWORD: &str = "{password}";

/// The plugin; as a value, a login from its first screen to its end.
#[derive(Debug)]
pub struct HttpFormLogin {
    slot: String,
    mode: Mode,
    stage: Stage,
}

/// What the login waits for.
#[derive(Debug)]
enum Stage {
    /// The cookies of a browser.
    Cookies,
    /// Name and password for this form.
    Password(Form),
    /// The code of a second factor, for this form, of this user.
    SecondFactor(Form, String),
}

/// Where the user name of an account is stored, for a login without the user.
fn user_key(slot: &str) -> String {
    format!("user.{slot}")
}

impl Login for HttpFormLogin {
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
                ask_for_cookies(screen, "Hand over the cookies of a browser that is logged in.");
                Ok(())
            }
            Mode::Password => {
                let form = load(&Site::read()?, &self.slot)?;
                self.ask_for_password(form, screen);
                Ok(())
            }
            _ => Err(Error::Unsupported("this plugin logs in by form or cookies".to_owned())),
        }
    }

    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        let site = Site::read()?;
        match &self.stage {
            Stage::Cookies if site.is_member(&self.slot)? == Some(false) => {
                ask_for_cookies(
                    screen,
                    "With these cookies, the site does not show its page for members.",
                );
                Ok(())
            }
            Stage::Cookies => finish(&self.slot, "browser", screen),
            Stage::Password(form) => {
                let user = values.text("user")?;
                let request = form.log_in(&site, &self.slot, user, &values.secret("password")?)?;
                let page = request.send_any()?;
                self.take(&site, &page, user, screen)
            }
            Stage::SecondFactor(form, user) => {
                let request = form.take_code(&site, &self.slot, &values.secret("code")?);
                let (page, user) = (request.send_any()?, user.clone());
                self.take(&site, &page, &user, screen)
            }
        }
    }

    fn check(slot: &str) -> Result<bool> {
        let site = Site::read()?;
        Ok(site.is_member(slot)?.unwrap_or_else(|| is_logged_in(slot)))
    }

    /// Repeats the login, if the user wants that.
    fn refresh(slot: &str, screen: &mut Screen<'_>) -> Result<()> {
        let site = Site::read()?;
        let required = || Error::LoginRequired(Some(slot.to_owned()));
        let user = storage::get(&user_key(slot)).and_then(|user| String::from_utf8(user).ok());
        let user = user.filter(|_| site.keep_password).ok_or_else(required)?;
        vault::account(slot).require("password")?;
        let page = load(&site, slot)?.log_in(&site, slot, &user, PASSWORD)?.send_any()?;
        if !site.has_worked(&page, slot)? {
            return Err(required());
        }
        site.forget_fields(slot);
        finish(slot, &user, screen)
    }

    fn logout(slot: &str) {
        storage::remove(&user_key(slot));
        if let Err(error) = Site::read().and_then(|site| site.end_session(slot)) {
            log::info(format!("the site was not told of the logout: {error}"));
        }
    }
}

fn ask_for_cookies(screen: &mut Screen<'_>, message: &str) {
    screen.message(message).cookie_field("Cookies");
}

/// The form of the login page.
fn load(site: &Site, slot: &str) -> Result<Form> {
    let request = http::get(&site.login_url).account(slot);
    let page = site.with_fields_captured(request).send()?;
    Form::with_password(&page, site)
}

fn is_logged_in(slot: &str) -> bool {
    storage::get(&user_key(slot)).is_some()
}

fn finish(slot: &str, user: &str, screen: &mut Screen<'_>) -> Result<()> {
    storage::set(&user_key(slot), user.as_bytes(), None)?;
    screen.done(user, user);
    Ok(())
}

impl HttpFormLogin {
    fn ask_for_password(&mut self, form: Form, screen: &mut Screen<'_>) {
        screen.field("user", "User name").secret_field("password", "Password");
        self.stage = Stage::Password(form);
    }

    /// Continues with the page that the site shows.
    fn take(&mut self, site: &Site, page: &Response, user: &str, screen: &mut Screen<'_>) -> Result<()> {
        if let Some(form) = Form::with_code(page, site)? {
            let complaint = complaint(page)?;
            screen.message(
                complaint
                    .as_deref()
                    .unwrap_or("Fill in the code that the site asks for."),
            );
            screen.secret_field("code", "Code");
            self.stage = Stage::SecondFactor(form, user.to_owned());
            return Ok(());
        }
        if site.has_worked(page, &self.slot)? {
            site.forget_fields(&self.slot);
            return finish(&self.slot, user, screen);
        }
        let complaint = complaint(page)?;
        screen.message(complaint.as_deref().unwrap_or("The site has not accepted the login."));
        // The tokens of a form often work once.
        let form = load(site, &self.slot)?;
        self.ask_for_password(form, screen);
        Ok(())
    }
}

impl Resolver for HttpFormLogin {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        let site = Site::read().map_err(|_| Error::NotMatched)?;
        if !site.covers(call.url())? {
            return Err(Error::NotMatched);
        }
        look(&site, call)?;
        let last = call.url().path().last().filter(|name| !name.is_empty());
        let name = last.map_or(call.url().host(), String::as_str);
        out.add(FILE, name).link(link(&site, call));
        Ok(())
    }

    /// Asked when the download was refused, too.
    fn link(call: &Call, _: &str, _: Option<&str>) -> Result<Link> {
        let site = Site::read()?;
        look(&site, call)?;
        Ok(link(&site, call))
    }
}

/// The host sends the account's cookies with it.
fn link(site: &Site, call: &Call) -> Link {
    Link::new(call.url()).account(&site.account)
}

/// Fails if the account may not have the file: those who are not logged in are refused, or sent to the login page.
fn look(site: &Site, call: &Call) -> Result<()> {
    let slot = &site.account;
    let required = || Err(Error::LoginRequired(Some(slot.clone())));
    if !is_logged_in(slot) {
        return required();
    }
    let head = match http::Request::new("HEAD", call.url()).account(slot).send_any() {
        Ok(head) => head,
        // The file is at another host, which the download asks for itself.
        Err(Error::Denied(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    match head.status() {
        200..300 if site.is_login_page(&head.url())? => required(),
        401 | 403 => required(),
        // Not every site says anything about a file without sending it.
        405 | 501 => Ok(()),
        _ => head.successful().map(drop),
    }
}

svc_plugin::plugin!(HttpFormLogin: Resolver, Login);
