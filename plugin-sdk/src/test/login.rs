//! Logins of plugins, step by step.

use std::collections::BTreeSet;

use svc_plugin_fixture::{
    LoginInput, LoginStep,
    screen::{Field, LoginResult, Screen},
};

use super::Host;
use crate::{Answers, Login, Mode, Result, login::COOKIES, native};

/// A login of plugin `T`, between its steps. What the user filled in is forgotten at its end, as if the slot in the manifest
/// had no `keeps`.
#[derive(Debug)]
pub struct LoginSession<'h, T> {
    host: &'h Host,
    slot: String,
    mode: Mode,
    plugin: T,
    /// Those that the user sees.
    fields: Vec<Field>,
    /// What the address begins with that a browser ends at.
    address: Option<String>,
    /// The secrets that the user filled in.
    typed: BTreeSet<String>,
}

/// The key of that address.
const ADDRESS: &str = "url";

impl Host {
    /// A login of plugin `T` to the account of a slot.
    pub fn login<T: Login>(&self, slot: &str, mode: Mode) -> LoginSession<'_, T> {
        LoginSession {
            host: self,
            slot: slot.to_owned(),
            mode,
            plugin: self.run(|| T::new(slot, mode)),
            fields: Vec::new(),
            address: None,
            typed: BTreeSet::new(),
        }
    }

    /// Asks plugin `T` whether the session of an account is good.
    pub fn check_login<T: Login>(&self, slot: &str) -> Result<bool> {
        self.run(|| T::check(slot))
    }

    /// Lets plugin `T` renew the session of an account.
    pub fn refresh_login<T: Login>(&self, slot: &str) -> Result<Screen> {
        let screen = native::login_ui::Screen::default();
        self.run(|| T::refresh(slot, &mut crate::Screen::new(&screen)))?;
        Ok(screen.0.into_inner())
    }

    /// Lets plugin `T` end the session of an account.
    pub fn logout<T: Login>(&self, slot: &str) {
        self.run(|| T::logout(slot));
    }

    /// The calls of a fixture's login.
    pub(super) fn play_login<T: Login>(&self, input: &LoginInput) -> Result<LoginResult> {
        let mut login = self.login::<T>(&input.slot, input.mode.parse()?);
        let mut screens = vec![login.start()?];
        for step in &input.steps {
            screens.push(match step {
                LoginStep::Poll => login.poll()?,
                LoginStep::Answer(values) => {
                    let values = values.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                    login.answer(&values.collect::<Vec<_>>())?
                }
            });
        }
        let mut secrets = self.secrets(&input.slot);
        secrets.retain(|name| !login.typed.contains(name));
        Ok(LoginResult {
            screens,
            valid: None,
            secrets,
        })
    }
}

impl<T: Login> LoginSession<'_, T> {
    /// Shows the first screen.
    pub fn start(&mut self) -> Result<Screen> {
        self.step(T::start)
    }

    /// Continues after a pause.
    pub fn poll(&mut self) -> Result<Screen> {
        self.step(T::poll)
    }

    /// Continues with what the user fills in: keys and values of all fields. The values of secret fields go to the vault;
    /// cookies go nowhere, as tests have no jar. The address that a browser ends at has the key `url`.
    ///
    /// # Panics
    ///
    /// If the screen has other fields, or wants another address.
    pub fn answer(&mut self, values: &[(&str, &str)]) -> Result<Screen> {
        let mut told = Vec::new();
        for field in &self.fields.clone() {
            let key = field.key.as_str();
            let value = values.iter().find(|(other, _)| *other == key);
            let (_, value) = value.unwrap_or_else(|| panic!("the field {key} is not filled in"));
            if self.mode == Mode::Cookie && key == COOKIES {
                continue;
            }
            let told_value = if field.secret { self.typed_in(key, value) } else { value };
            told.push((key.to_owned(), told_value.to_owned()));
        }
        if let (Some(prefix), Some((_, address))) = (&self.address, values.iter().find(|(key, _)| *key == ADDRESS)) {
            assert!(
                address.starts_with(prefix.as_str()),
                "{address} does not begin with {prefix}"
            );
            told.extend(self.take_address(address));
        }
        let is_field = |key: &str| self.fields.iter().any(|field| field.key == key);
        let is_field = |key: &str| is_field(key) || (key == ADDRESS && self.address.is_some());
        if let Some((key, _)) = values.iter().find(|(key, _)| !is_field(key)) {
            panic!("the screen has no field {key}; it has {:?}", self.fields);
        }
        let answers = Answers::new(told);
        self.step(|plugin, screen| plugin.answer(&answers, screen))
    }

    /// Keeps a secret; the plugin is told its name.
    fn typed_in<'k>(&mut self, key: &'k str, value: &str) -> &'k str {
        self.host.0.borrow_mut().keep_secret(&self.slot, key, value);
        self.typed.insert(key.to_owned());
        key
    }

    /// The parameters of an address: secrets, except `state`.
    fn take_address(&mut self, address: &str) -> Vec<(String, String)> {
        let parts = svc_plugin_text::parse_url(address).expect("the address is a URL");
        let taken = parts.query.into_iter().map(|(name, value)| {
            let key = format!("{ADDRESS}.{name}");
            let told = if name == "state" {
                value
            } else {
                self.typed_in(&key, &value).to_owned()
            };
            (key, told)
        });
        taken.collect()
    }

    fn step(&mut self, work: impl FnOnce(&mut T, &mut crate::Screen<'_>) -> Result<()>) -> Result<Screen> {
        let screen = native::login_ui::Screen::default();
        let plugin = &mut self.plugin;
        self.host.run(|| work(plugin, &mut crate::Screen::new(&screen)))?;
        let screen = screen.0.into_inner();
        // Nothing, or a message alone, leaves the rest of the screen before in its place.
        let is_empty = Screen {
            message: None,
            ..screen.clone()
        } == Screen::default();
        if !is_empty {
            self.fields.clone_from(&screen.fields);
            self.address = screen.open_url.as_ref().and_then(|page| page.redirect_prefix.clone());
        }
        if screen.done.is_some() {
            let mut state = self.host.0.borrow_mut();
            for name in std::mem::take(&mut self.typed) {
                state.secrets.remove(&(self.slot.clone(), name));
            }
        }
        Ok(screen)
    }
}
