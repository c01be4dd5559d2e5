//! Logins: an account of a plugin comes to be, is renewed, and ends.

use std::{collections::VecDeque, future::Future, sync::Arc};

use accounts::{Account, Draft, Effect, Input, Refusal, Screen, SecretError, Step, StepFailure, View};
use engine::Proxies;
use futures_util::future::BoxFuture;
use market::Identity;
use plugin_package::{
    Manifest,
    manifest::{LoginMode, LoginSlot},
};
use tokio::{sync::broadcast, time::Instant};
use url::Url;

use crate::{
    error::{CallError, CallFailure},
    install::{Plugins, Shared},
    lifecycle::registry::Loaded,
    logins::{Beginning, Check, LoggedIn, Renewal, Session, TooMany},
    policy::{
        fault::{GuestError, PluginFault},
        grant::CallTarget,
    },
    runtime::{Call, Called, Event, Guest, LOGIN_WALL, World, now_ms},
};

/// How long before its end a session is renewed: a call that begins now should end with it.
const RENEWED_BEFORE_MS: u64 = 60_000;

/// What a user wants to log in to.
#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// The slot; the plugin's first one if left out.
    pub slot: Option<String>,
    /// The way; the slot's first one if left out.
    pub mode: Option<LoginMode>,
    /// The site, for plugins of several sites.
    pub site: Option<Url>,
    pub proxies: Proxies,
}

/// What a client sees of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginView {
    /// Names the session in further requests.
    pub session: String,
    pub slot: String,
    pub mode: LoginMode,
    pub view: View,
}

/// A slot of a plugin, and the account in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotSummary {
    pub id: String,
    pub title: String,
    pub modes: Vec<LoginMode>,
    pub account: Option<Account>,
}

/// Why a login is refused.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Call(Box<CallError>),
    #[error("the plugin {0} is not installed")]
    NotInstalled(Identity),
    #[error("the plugin {0} has no login")]
    NoLogin(Identity),
    #[error("the plugin has no slot {asked:?}; its slots are {slots}")]
    Slot { asked: String, slots: String },
    #[error("the slot {slot} has no login by {asked}; it has {modes}")]
    Mode {
        slot: String,
        asked: &'static str,
        modes: String,
    },
    #[error("there is no such login; it may be over for some minutes: begin another one")]
    NoSession,
    #[error("other plugins are logging in; finish or cancel those first")]
    TooMany,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the account cannot be stored or read")]
    Secrets(#[from] SecretError),
    #[error("plugins are shutting down")]
    Closed,
}

impl From<CallError> for LoginError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// A plugin that can log in now: its state, its code and what it declares.
type Callable = (Arc<Loaded>, Arc<dyn Guest>, Arc<Manifest>);

impl Plugins {
    /// Subscribes to logins that succeed. A subscriber that is told that it missed some must assume any.
    pub fn logins(&self) -> broadcast::Receiver<LoggedIn> {
        self.0.logins.subscribe()
    }

    /// The slots of a plugin and the accounts in them. Works for a disabled plugin, too.
    pub async fn slots(&self, plugin: &Identity) -> Result<Vec<SlotSummary>, LoginError> {
        let not_installed = || LoginError::NotInstalled(plugin.clone());
        let loaded = self.0.registry.get(plugin).ok_or_else(not_installed)?;
        let slots = loaded.manifest.iter().flat_map(|manifest| &manifest.capabilities.login);
        let mut slots: Vec<_> = slots
            .map(|slot| SlotSummary {
                id: slot.id.clone(),
                title: slot.title.clone(),
                modes: slot.modes.clone(),
                account: None,
            })
            .collect();
        for account in self.0.accounts.list(plugin).await? {
            match slots.iter_mut().find(|slot| slot.id == account.slot) {
                Some(slot) => slot.account = Some(account),
                // A slot of an earlier version: its account can be removed.
                None => slots.push(SlotSummary {
                    id: account.slot.clone(),
                    title: account.slot.clone(),
                    modes: Vec::new(),
                    account: Some(account),
                }),
            }
        }
        Ok(slots)
    }

    /// Begins a login, and waits for its first screen.
    pub async fn begin_login(&self, plugin: &Identity, request: LoginRequest) -> Result<LoginView, LoginError> {
        let (session, effects) = self.0.begin(plugin, request)?;
        let session = self.0.logins.add(session).map_err(|TooMany| LoginError::TooMany)?;
        let (shared, watched) = (Arc::clone(&self.0), Arc::clone(&session));
        self.0.spawn(async move { shared.logins.watch(&watched).await });
        self.drive(session, effects).await
    }

    /// How a login goes on. Asks the site if the plugin wants to be polled now.
    pub async fn poll_login(&self, plugin: &Identity, session: &str) -> Result<LoginView, LoginError> {
        self.input(plugin, session, Input::Poll).await
    }

    /// A login as it is, without asking the site.
    pub fn login(&self, plugin: &Identity, session: &str) -> Result<LoginView, LoginError> {
        let session = self.0.logins.get(plugin, session).ok_or(LoginError::NoSession)?;
        Ok(LoginView::of(&session))
    }

    /// Gives the user's answers to the plugin; secret ones only by name.
    pub async fn answer_login(
        &self,
        plugin: &Identity,
        session: &str,
        values: Vec<(String, String)>,
    ) -> Result<LoginView, LoginError> {
        self.input(plugin, session, Input::Answer(values)).await
    }

    /// Cancels a login.
    pub async fn cancel_login(&self, plugin: &Identity, session: &str) -> Result<LoginView, LoginError> {
        self.input(plugin, session, Input::Cancel).await
    }

    /// Ends the session of an account at its site, as far as the plugin can, and deletes the account with its secrets.
    /// Returns whether there was one. Works for a disabled plugin, too, without running it.
    pub async fn log_out(&self, plugin: &Identity, slot: Option<&str>, proxies: Proxies) -> Result<bool, LoginError> {
        let slots = self.slots(plugin).await?;
        let slot = match (slot, &slots[..]) {
            (Some(slot), _) => slot.to_owned(),
            (None, [only]) => only.id.clone(),
            (None, []) => return Err(LoginError::NoLogin(plugin.clone())),
            (None, _) => return Err(unknown_slot("", slots.iter().map(|slot| &*slot.id))),
        };
        let (shared, plugin) = (Arc::clone(&self.0), plugin.clone());
        let log_out = async move { shared.log_out(&plugin, &slot, proxies).await };
        let logging_out = self.0.tasks.spawn(log_out);
        logging_out.await.map_err(|_| LoginError::Closed)?
    }

    async fn input(&self, plugin: &Identity, session: &str, input: Input) -> Result<LoginView, LoginError> {
        let session = self.0.logins.get(plugin, session).ok_or(LoginError::NoSession)?;
        let effects = session.apply(input)?;
        self.drive(session, effects).await
    }

    /// Performs effects to their end, also when the client goes away meanwhile.
    async fn drive(&self, session: Arc<Session>, effects: Vec<Effect>) -> Result<LoginView, LoginError> {
        if !effects.is_empty() {
            let (shared, driven) = (Arc::clone(&self.0), Arc::clone(&session));
            let driving = self.0.tasks.spawn(async move { shared.drive(&driven, effects).await });
            driving.await.map_err(|_| LoginError::Closed)?;
        }
        Ok(LoginView::of(&session))
    }
}

impl LoginView {
    fn of(session: &Session) -> Self {
        Self {
            session: session.id.clone(),
            slot: session.slot.id.clone(),
            mode: session.mode,
            view: session.view(),
        }
    }
}

fn unknown_slot<'s>(asked: &str, slots: impl Iterator<Item = &'s str>) -> LoginError {
    LoginError::Slot {
        asked: asked.to_owned(),
        slots: slots.collect::<Vec<_>>().join(", "),
    }
}

/// The slot and the way of a login.
fn chosen(manifest: &Manifest, request: &LoginRequest) -> Result<(LoginSlot, LoginMode), LoginError> {
    let slots = &manifest.capabilities.login;
    let slot = match (&request.slot, &slots[..]) {
        (_, []) => return Err(LoginError::NoLogin(manifest.identity.clone())),
        (None, [first, ..]) => Some(first),
        (asked, _) => slots.iter().find(|slot| Some(&slot.id) == asked.as_ref()),
    };
    let asked = request.slot.as_deref().unwrap_or_default();
    let slot = slot.ok_or_else(|| unknown_slot(asked, slots.iter().map(|slot| &*slot.id)))?;
    let mode = match request.mode {
        None => slot.modes.first().copied(),
        Some(mode) => slot.modes.iter().find(|had| **had == mode).copied(),
    };
    let mode = mode.ok_or_else(|| LoginError::Mode {
        slot: slot.id.clone(),
        asked: request.mode.map_or("", LoginMode::name),
        modes: slot.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(", "),
    })?;
    Ok((slot.clone(), mode))
}

/// The target of a call about an account: its site if the plugin has several, else nothing in particular.
fn target(site: Option<Url>, proxies: Proxies) -> CallTarget {
    let nowhere = || Url::parse("about:blank").expect("it is a URL");
    CallTarget {
        proxies,
        ..CallTarget::by_user(site.unwrap_or_else(nowhere))
    }
}

impl Shared {
    fn begin(&self, plugin: &Identity, request: LoginRequest) -> Result<(Session, Vec<Effect>), LoginError> {
        let (loaded, code, manifest) = self.login_of(plugin)?;
        let (slot, mode) = chosen(&manifest, &request)?;
        let draft = Draft::new(&slot.id);
        let site = request.site.map(bare);
        let draft = match &site {
            Some(site) => draft.at_site(site),
            None => draft,
        };
        let target = target(site, request.proxies);
        let call = self.account_call(plugin, &loaded, &manifest, (&target, &draft));
        let guest = code.begin_login(call, slot.id.clone(), mode);
        let beginning = Beginning {
            plugin: plugin.clone(),
            slot,
            mode,
            target,
            code,
        };
        Ok(Session::begin(beginning, draft, guest))
    }

    /// The code of a plugin that can log in now.
    fn login_of(&self, plugin: &Identity) -> Result<Callable, LoginError> {
        let loaded = self.registry.get(plugin);
        let loaded = loaded.ok_or_else(|| LoginError::NotInstalled(plugin.clone()))?;
        let (running, manifest) = loaded.callable().map_err(|reason| failure(plugin, reason))?;
        let (code, manifest) = (Arc::clone(&running.guest), Arc::clone(manifest));
        Ok((loaded, code, manifest))
    }

    /// A call about an account. It is never recorded: its exchanges are secrets.
    fn account_call(
        &self,
        plugin: &Identity,
        loaded: &Loaded,
        manifest: &Manifest,
        (target, draft): (&CallTarget, &Draft),
    ) -> Call {
        let call = self.prepare(plugin, loaded, manifest, target, LOGIN_WALL);
        Call {
            world: World::Live,
            secrets: call.secrets.with_redactor(None).with_draft(draft.clone()),
            ..call
        }
    }

    /// Performs the effects of a login until it waits for the user or is over.
    async fn drive(&self, session: &Session, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            let input = match effect {
                Effect::Keep(name, value) => {
                    let is_kept = session.slot.keeps.contains(&name);
                    let kept = session.draft.type_in(&name, value, is_kept);
                    kept.err()
                        .map(|error| Input::Stepped(Err(StepFailure::Broken(error.to_string()))))
                }
                Effect::TakeCookies(cookies) => {
                    let taken = self.take_cookies(session, cookies.expose()).await;
                    taken
                        .err()
                        .map(|reason| Input::Stepped(Err(StepFailure::Refused(reason))))
                }
                Effect::Step(step) => Some(Input::Stepped(self.step(session, step).await)),
                Effect::Store(done, expires_ms) => {
                    let account = Account {
                        slot: session.slot.id.clone(),
                        id: done.account_id,
                        name: done.display_name,
                        since_ms: now_ms(),
                        is_expired: false,
                        expires_ms,
                        site: has_host(&session.target.url).then(|| session.target.url.to_string()),
                        renewals: 0,
                    };
                    Some(Input::Stored(self.store_account(session, account).await))
                }
                // The draft is closed with the session, and `Logins::watch` drops the instance.
                Effect::Discard => None,
            };
            let Some(input) = input else { continue };
            let is_failure = matches!(input, Input::Stepped(Err(_)));
            let next = session.apply(input).unwrap_or_default();
            if is_failure {
                effects.clear();
            }
            effects.extend(next);
        }
    }

    /// Takes a step, unless another version of the plugin runs meanwhile.
    async fn step(&self, session: &Session, step: Step) -> Result<Screen, StepFailure> {
        let is_current = self.registry.get(&session.plugin).is_some_and(|loaded| {
            let callable = loaded.callable();
            callable.is_ok_and(|(running, _)| Arc::ptr_eq(&running.guest, &session.code))
        });
        if !is_current {
            let reason = "the plugin was changed or switched off meanwhile; begin the login again";
            return Err(StepFailure::Broken(reason.to_owned()));
        }
        let name = match step {
            Step::Start => "login.start",
            Step::Poll => "login.poll",
            Step::Answer(_) => "login.answer",
        };
        let mut guest = session.guest.lock().await;
        let stepping = async {
            let guest = guest.as_mut()?;
            let called = tokio::time::timeout(LOGIN_WALL + super::GRACE, guest.step(step)).await;
            called.ok()
        };
        let over = StepFailure::Broken("the login is over".to_owned());
        let called = tokio::select! {
            called = stepping => called.ok_or(over)?,
            () = session.ended.cancelled() => return Err(over),
            () = self.stop.cancelled() => return Err(over),
        };
        let id = self.next_call_id();
        self.record_call(&session.plugin, id, name, &called);
        called.result.map_err(|fault| match fault {
            PluginFault::Answer(answer) => StepFailure::Refused(answer.to_string()),
            fault => StepFailure::Broken(fault.to_string()),
        })
    }

    async fn take_cookies(&self, session: &Session, text: &str) -> Result<(), String> {
        let cookies = super::cookies::read(text)?;
        let mut guest = session.guest.lock().await;
        let taken = match guest.as_mut() {
            Some(guest) => guest.take_cookies(cookies).await,
            None => 0,
        };
        match taken {
            0 => Err("none of the cookies are for a site that this plugin may contact".to_owned()),
            _ => Ok(()),
        }
    }

    async fn store_account(&self, session: &Session, account: Account) -> Result<(), String> {
        let slot = account.slot.clone();
        // As every change of what is installed: an account is stored for a plugin that is there.
        let _turn = self.turn(&session.plugin).await;
        // Cancelled while it waited for its turn: `keep` refuses the draft. After this nothing cancels it.
        let _no_effects = session.apply(Input::Storing);
        match self.accounts.keep(&session.plugin, account, &session.draft).await {
            Ok(true) => {}
            Ok(false) => return Err("the plugin was uninstalled meanwhile".to_owned()),
            Err(SecretError::Over) => return Err(SecretError::Over.to_string()),
            Err(error) => return Err(format!("the account could not be stored: {error}")),
        }
        session.code.forget_account(&slot);
        self.journal
            .record(&session.plugin, Event::LoggedIn { slot: slot.clone() });
        self.logins.tell(&session.plugin, &slot);
        Ok(())
    }

    async fn log_out(&self, plugin: &Identity, slot: &str, proxies: Proxies) -> Result<bool, LoginError> {
        let Some(account) = self.accounts.find(plugin, slot).await? else {
            return Ok(false);
        };
        if let Ok((loaded, code, manifest)) = self.login_of(plugin) {
            let target = target(site_of(&account), proxies);
            let draft = Draft::renewal(slot);
            let call = self.account_call(plugin, &loaded, &manifest, (&target, &draft));
            let ended = self.account_step(plugin, "login.logout", call, |call| code.log_out(call, slot.to_owned()));
            if let Err(error) = ended.await {
                tracing::info!(%plugin, slot, %error, "the account is deleted; its site was not told");
            }
        }
        if !self.accounts.log_out(plugin, &account).await? {
            return Ok(false);
        }
        if let Some(loaded) = self.registry.get(plugin)
            && let Ok(running) = &loaded.running
        {
            running.guest.forget_account(slot);
        }
        let (slot, by_user) = (slot.to_owned(), true);
        self.journal.record(plugin, Event::LoggedOut { slot, by_user });
        Ok(true)
    }

    /// A call about an account, within its time.
    async fn account_step<'g, T>(
        &self,
        plugin: &Identity,
        action: &'static str,
        call: Call,
        make: impl FnOnce(Call) -> BoxFuture<'g, Called<T>>,
    ) -> Result<T, PluginFault> {
        let (id, clock) = (call.id, call.clock.clone());
        let slot = self.stop.run_until_cancelled(self.slots.take(plugin)).await;
        let _slot = slot.and_then(Result::ok).ok_or(PluginFault::Overloaded)?;
        let called = self.run_call(make(call), LOGIN_WALL, &clock).await;
        let called = called.ok_or(PluginFault::Overloaded)?;
        self.record_call(plugin, id, action, &called);
        called.result
    }

    /// The slot whose account a failed call lacked, if there is one. The error names the slot afterwards, also if the
    /// plugin did not.
    pub(super) fn account_of(&self, error: &mut CallError) -> Option<String> {
        let CallFailure::Fault(PluginFault::Answer(GuestError::LoginRequired(slot))) = &mut error.reason else {
            return None;
        };
        let loaded = self.registry.get(&error.plugin)?;
        let manifest = loaded.manifest.as_ref()?;
        let slots = &manifest.capabilities.login;
        if slot.is_none() && slots.len() == 1 {
            *slot = slots.first().map(|slot| slot.id.clone());
        }
        let slot = slot.as_ref()?;
        slots.iter().any(|had| had.id == *slot).then(|| slot.clone())
    }

    /// Renews the session of an account that a call found expired, once for all calls that found so. Returns whether the
    /// call is worth repeating; the error is for the task if the renewal itself may succeed later. A renewal goes on when
    /// the call is given up: the site may have taken back what the account had.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        plugin: &Identity,
        slot: &str,
        given: &CallTarget,
        since: Instant,
    ) -> Result<bool, CallError> {
        let (shared, of, slot, proxies) = (Arc::clone(self), plugin.clone(), slot.to_owned(), given.proxies.clone());
        let renewal = async move { shared.renew_now(&of, &slot, proxies, since).await };
        self.to_its_end(plugin, renewal).await
    }

    /// Waits for `work`, which continues if the caller is cancelled.
    async fn to_its_end<T: Send + 'static>(
        &self,
        plugin: &Identity,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        match self.tasks.spawn(work).await {
            Ok(done) => done,
            Err(_shut_down) => Err(failure(plugin, CallFailure::Closed)),
        }
    }

    async fn renew_now(
        &self,
        plugin: &Identity,
        slot: &str,
        proxies: Proxies,
        since: Instant,
    ) -> Result<bool, CallError> {
        let asked = self.logins.asked(plugin, slot);
        let mut last = asked.lock().await;
        if let Some(renewal) = last.renewal.as_ref().filter(|renewal| renewal.ended >= since) {
            let is_renewed = renewal.outcome == Ok(true) || self.was_logged_in_anew(plugin, &renewal.account).await;
            return if is_renewed { Ok(true) } else { renewal.outcome.clone() };
        }
        let (Ok(callable), Ok(Some(account))) = (self.login_of(plugin), self.accounts.find(plugin, slot).await) else {
            return Ok(false);
        };
        let outcome = self.renew_account(plugin, callable, &account, proxies).await;
        last.renewal = Some(Renewal {
            ended: Instant::now(),
            account,
            outcome: outcome.clone(),
        });
        outcome
    }

    async fn renew_account(
        &self,
        plugin: &Identity,
        (loaded, code, manifest): Callable,
        account: &Account,
        proxies: Proxies,
    ) -> Result<bool, CallError> {
        let slot = &*account.slot;
        let target = target(site_of(account), proxies);
        let draft = Draft::renewal(slot);
        let call = self.account_call(plugin, &loaded, &manifest, (&target, &draft));
        let id = call.id;
        let renewal = self.account_step(plugin, "login.refresh", call, |call| {
            code.renew_account(call, slot.to_owned())
        });
        let fault = match renewal.await {
            Ok(screen) => {
                let renewal = Account {
                    is_expired: false,
                    expires_ms: screen.expires_ms,
                    ..account.clone()
                };
                let kept = self.accounts.keep(plugin, renewal, &draft).await;
                code.forget_account(slot);
                return Ok(match kept {
                    Ok(true) => true,
                    Ok(false) => self.was_logged_in_anew(plugin, account).await,
                    Err(error) => {
                        tracing::warn!(%plugin, slot, %error, "the renewed session of an account could not be stored");
                        false
                    }
                });
            }
            Err(fault) => fault,
        };
        let is_over = matches!(
            fault,
            PluginFault::Answer(GuestError::LoginRequired(_) | GuestError::Unsupported(_) | GuestError::Forbidden(_))
                | PluginFault::NotExported(_)
        );
        if !is_over {
            return Err(CallError {
                version: Some(manifest.version.to_string()),
                call: Some(id),
                ..failure(plugin, fault.into())
            });
        }
        if self.was_logged_in_anew(plugin, account).await {
            return Ok(true);
        }
        if let Err(error) = self.accounts.expire(plugin, account).await {
            tracing::warn!(%plugin, slot, %error, "it is not noted that a site ended the session of an account");
        }
        if !account.is_expired {
            let (slot, by_user) = (slot.to_owned(), false);
            self.journal.record(plugin, Event::LoggedOut { slot, by_user });
        }
        Ok(false)
    }

    /// Whether another login has taken the place of `before`: a call that failed with that one is worth repeating.
    async fn was_logged_in_anew(&self, plugin: &Identity, before: &Account) -> bool {
        let found = self.accounts.find(plugin, &before.slot).await.ok().flatten();
        found.is_some_and(|account| !account.is_expired && !account.is_of_same_login(before))
    }

    /// Renews the sessions of accounts that are about to end.
    pub(super) async fn renew_due(self: &Arc<Self>, plugin: &Identity, given: &CallTarget) {
        let has_login = self.registry.get(plugin).is_some_and(|loaded| {
            let manifest = loaded.manifest.as_ref();
            manifest.is_some_and(|manifest| !manifest.capabilities.login.is_empty())
        });
        if !has_login {
            return;
        }
        let now = u64::try_from(now_ms()).unwrap_or_default();
        let is_due = |account: &Account| {
            let expires = account.expires_ms.filter(|_| !account.is_expired);
            expires.is_some_and(|expires| expires <= now + RENEWED_BEFORE_MS)
        };
        let accounts = self.accounts.list(plugin).await.unwrap_or_default();
        for account in accounts.iter().filter(|account| is_due(account)) {
            // If it fails, the call finds out.
            let _renewed = self.renew(plugin, &account.slot, given, Instant::now()).await;
        }
    }

    /// Whether the site still accepts the account whose link was refused; if not, its session is renewed. The task that
    /// was refused needs a login if that fails.
    pub(super) async fn confirm_login(
        self: &Arc<Self>,
        plugin: &Identity,
        slot: &str,
        given: &CallTarget,
    ) -> Result<(), CallError> {
        let since = Instant::now();
        let (shared, of, at, proxies) = (Arc::clone(self), plugin.clone(), slot.to_owned(), given.proxies.clone());
        let check = async move { shared.check_now(&of, &at, proxies, since).await };
        if self.to_its_end(plugin, check).await? || self.renew(plugin, slot, given, since).await? {
            return Ok(());
        }
        Err(login_required(plugin, slot))
    }

    /// Asks the site whether it accepts the session of an account, once for all who wait for that, and keeps what the site
    /// gives out meanwhile, which may be instead of what the account had.
    async fn check_now(
        &self,
        plugin: &Identity,
        slot: &str,
        proxies: Proxies,
        since: Instant,
    ) -> Result<bool, CallError> {
        let asked = self.logins.asked(plugin, slot);
        let mut last = asked.lock().await;
        if let Some(check) = last.check.as_ref().filter(|check| check.ended >= since) {
            return Ok(check.is_accepted);
        }
        let (Ok((loaded, code, manifest)), Ok(Some(account))) =
            (self.login_of(plugin), self.accounts.find(plugin, slot).await)
        else {
            return Err(login_required(plugin, slot));
        };
        let target = target(site_of(&account), proxies);
        let draft = Draft::renewal(slot);
        let call = self.account_call(plugin, &loaded, &manifest, (&target, &draft));
        let check = self.account_step(plugin, "login.check", call, |call| {
            code.check_account(call, slot.to_owned())
        });
        let checked = check.await;
        if checked.is_ok() && !draft.is_empty() {
            if let Err(error) = self.accounts.keep(plugin, account, &draft).await {
                tracing::warn!(%plugin, slot, %error, "what a site gave out in a check of an account could not be stored");
            }
            code.forget_account(slot);
        }
        let is_accepted = match checked {
            Ok(is_accepted) => is_accepted,
            Err(PluginFault::Answer(GuestError::LoginRequired(_))) => false,
            // What cannot be checked now may be right.
            Err(_) => true,
        };
        let ended = Instant::now();
        last.check = Some(Check { ended, is_accepted });
        Ok(is_accepted)
    }
}

pub(super) fn login_required(plugin: &Identity, slot: &str) -> CallError {
    let fault = PluginFault::from(GuestError::LoginRequired(Some(slot.to_owned())));
    failure(plugin, fault.into())
}

/// A failure without a call.
fn failure(plugin: &Identity, reason: CallFailure) -> CallError {
    CallError {
        plugin: plugin.clone(),
        version: None,
        call: None,
        reason,
        grantable: Vec::new(),
    }
}

/// A site as it is stored and shown: without what an address may hold of a login.
fn bare(mut site: Url) -> Url {
    // A URL that cannot have a login has none.
    let _none_to_remove = site.set_username("").and_then(|()| site.set_password(None));
    site.set_query(None);
    site.set_fragment(None);
    site
}

fn has_host(url: &Url) -> bool {
    url.host().is_some()
}

fn site_of(account: &Account) -> Option<Url> {
    account.site.as_ref()?.parse().ok()
}
