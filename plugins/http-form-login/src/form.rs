//! The form of the site: which fields it has, and how it is sent.

use svc_plugin::{
    http::{Request, Response},
    prelude::*,
    text::{Node, Url},
};

use crate::site::{FIELD, Site, inputs};

/// What the guest reads in the place of a captured value begins and ends so.
const CAPTURED: (&str, &str) = ("‹secret:", "›");

/// A form of a page.
#[derive(Debug)]
pub(crate) struct Form {
    action: String,
    hidden: Vec<(String, String)>,
    inputs: Vec<Input>,
}

/// A field that the user fills in.
#[derive(Debug)]
struct Input {
    name: String,
    is_password: bool,
}

impl Form {
    /// The form with the password of a login page.
    pub(crate) fn with_password(page: &Response, site: &Site) -> Result<Self> {
        let form = Self::find(page, |form| form.password_name(site).is_some())?;
        form.ok_or_else(|| Error::Parse(format!("{} has no form with a password", page.url())))
    }

    /// The form with the code of a second factor, if the page has one.
    pub(crate) fn with_code(page: &Response, site: &Site) -> Result<Option<Self>> {
        match &site.code_field {
            Some(name) => Self::find(page, |form| form.has(name)),
            None => Ok(None),
        }
    }

    fn find(page: &Response, is_it: impl Fn(&Self) -> bool) -> Result<Option<Self>> {
        for node in page.select("form")? {
            let form = Self::of(&node, page)?;
            if is_it(&form) {
                return Ok(Some(form));
            }
        }
        Ok(None)
    }

    fn of(node: &Node, page: &Response) -> Result<Self> {
        let target = node.attribute("action").unwrap_or_default();
        let mut form = Self {
            action: Url::parse(page.url())?.join(target)?.as_str().to_owned(),
            hidden: Vec::new(),
            inputs: Vec::new(),
        };
        for input in inputs(&node.html)? {
            let Some(name) = input.attribute("name").map(str::to_owned) else {
                continue;
            };
            match input.attribute("type").unwrap_or("text").to_ascii_lowercase().as_str() {
                "hidden" => {
                    let value = input.attribute("value").unwrap_or_default().to_owned();
                    form.hidden.push((name, value));
                }
                kind @ ("text" | "email" | "tel" | "number" | "password") => form.inputs.push(Input {
                    name,
                    is_password: kind == "password",
                }),
                _ => {}
            }
        }
        Ok(form)
    }

    fn has(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }

    fn password_name<'s>(&'s self, site: &'s Site) -> Option<&'s str> {
        match &site.password_field {
            Some(name) => self.has(name).then_some(name.as_str()),
            None => self.first_password().map(|at| self.inputs[at].name.as_str()),
        }
    }

    fn first_password(&self) -> Option<usize> {
        self.inputs.iter().position(|input| input.is_password)
    }

    /// The field of the user name: the last one before the password.
    fn user_name<'s>(&'s self, site: &'s Site) -> Option<&'s str> {
        if let Some(name) = &site.user_field {
            return Some(name);
        }
        let before = self.first_password()?.checked_sub(1)?;
        Some(&self.inputs[before].name)
    }

    /// The request with name and password; `password` is the template of a secret.
    pub(crate) fn log_in(&self, site: &Site, slot: &str, user: &str, password: &str) -> Result<Request> {
        let missing = |what: &str| Error::Parse(format!("the form at {} has no {what}", self.action));
        let user_name = self.user_name(site).ok_or_else(|| missing("field for the user name"))?;
        let password_name = self
            .password_name(site)
            .ok_or_else(|| missing("field for the password"))?;
        let request = self.filled(site, slot, Some((user_name, user)));
        Ok(request.secret_form(password_name, password))
    }

    /// The request with a code, which is the template of a secret.
    pub(crate) fn take_code(&self, site: &Site, slot: &str, code: &str) -> Request {
        let name = site.code_field.as_deref().unwrap_or_default();
        self.filled(site, slot, None).secret_form(name, code)
    }

    /// The request with the hidden fields, those that the user has added, and one more.
    fn filled(&self, site: &Site, slot: &str, more: Option<(&str, &str)>) -> Request {
        let is_added = |name: &str| site.extra_fields().any(|(added, _)| added == name);
        let hidden = self.hidden.iter().filter(|(name, _)| !is_added(name));
        let (captured, plain): (Vec<_>, Vec<_>) = hidden.partition(|(name, value)| is_captured(site, name, value));
        let plain = plain.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut request = http::post(&self.action)
            .account(slot)
            .form(plain.chain(site.extra_fields()).chain(more));
        for (name, _) in captured {
            request = request.secret_form(name, &format!("{{{FIELD}{name}}}"));
        }
        site.with_success_captured(request, slot)
    }
}

/// Whether the vault has the value of a hidden field. A page could write such a value itself, so only the names count that
/// were asked for.
fn is_captured(site: &Site, name: &str, value: &str) -> bool {
    let inner = value
        .strip_prefix(CAPTURED.0)
        .and_then(|value| value.strip_suffix(CAPTURED.1));
    let is_own = inner.and_then(|inner| inner.strip_prefix(FIELD)) == Some(name);
    is_own && site.secret_fields().any(|secret| secret == name)
}
