//! Logins, and other calls about an account. A login keeps its instance between the steps, because the plugin knows what it
//! asked the site; every step has limits of its own.

use accounts::{Screen, Step};
use plugin_host::{
    GuestError, PluginFault,
    runtime::{Called, Report, TimedOut},
};
use wasmtime::{
    Store,
    component::{Instance, Resource, ResourceAny},
};

use super::{
    Answer, Loaded,
    outcome::{self, not_exported},
};
use crate::{
    call::CallContext,
    capability::{bindings::exports::svc::plugin::login::Guest, login::ScreenHandle, state::CallState},
    limits::Limits,
};

/// A login, from its first step to its last.
#[expect(
    missing_debug_implementations,
    reason = "the store of an instance prints nothing of use"
)]
pub struct LoginSession {
    loaded: Loaded,
    slot: String,
    mode: &'static str,
    stage: Stage,
}

/// Only [`LoginSession::step`] moves it on; while a step runs it is over, so that a step whose future was dropped is the last.
#[expect(clippy::large_enum_variant, reason = "one per login")]
enum Stage {
    Begun(CallContext, Limits),
    Running {
        store: Store<CallState>,
        guest: Guest,
        session: ResourceAny,
    },
    Over,
}

impl Loaded {
    /// A login to the account of a slot. Nothing runs before the first step.
    pub fn begin_login(&self, slot: String, mode: &'static str, context: CallContext, limits: Limits) -> LoginSession {
        let limits = if self.0.script.is_some() {
            limits.of_script()
        } else {
            limits
        };
        LoginSession {
            loaded: self.clone(),
            slot,
            mode,
            stage: Stage::Begun(context, limits),
        }
    }

    /// Whether the site accepts the session of an account.
    pub(crate) async fn check_account(&self, slot: &str, context: CallContext, limits: Limits) -> Called<bool> {
        self.about_account(context, limits, async |store, guest, screen| {
            guest.call_check(store, slot, screen).await
        })
        .await
    }

    /// Renews the session of an account.
    pub(crate) async fn renew_account(&self, slot: &str, context: CallContext, limits: Limits) -> Called<Screen> {
        self.about_account(context, limits, async |store, guest, screen| {
            let renewed = guest.call_refresh(&mut *store, slot, screen).await?;
            Ok(renewed.map(|()| std::mem::take(&mut store.data_mut().screen)))
        })
        .await
    }

    /// Ends the session of an account at its site.
    pub(crate) async fn log_out(&self, slot: &str, context: CallContext, limits: Limits) -> Called<()> {
        self.about_account(context, limits, async |store, guest, _| {
            Ok(Ok(guest.call_logout(store, slot).await?))
        })
        .await
    }

    async fn about_account<T>(
        &self,
        context: CallContext,
        limits: Limits,
        work: impl AsyncFnOnce(&mut Store<CallState>, Guest, Resource<ScreenHandle>) -> wasmtime::Result<Answer<T>>,
    ) -> Called<T> {
        let Some(login) = self.0.exported("login", self.0.guest.login.as_ref()) else {
            return not_exported("login");
        };
        let (result, _, report) = self
            .call(context, limits, async |store, instance| {
                let guest = login.load(&mut *store, &instance)?;
                let screen = lend_screen(store)?;
                work(store, guest, screen).await
            })
            .await;
        Called { result, report }
    }
}

fn lend_screen(store: &mut Store<CallState>) -> wasmtime::Result<Resource<ScreenHandle>> {
    let screen = store.data_mut().table.push(ScreenHandle)?;
    Ok(Resource::new_borrow(screen.rep()))
}

impl LoginSession {
    /// Takes a step and returns its screen.
    pub async fn step(&mut self, step: Step) -> Called<Screen> {
        let (mut store, running) = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begun(context, limits) => (self.loaded.0.store(context, limits), None),
            Stage::Running {
                mut store,
                guest,
                session,
            } => {
                let host_call_bytes = store.data().limits.host_call_bytes;
                store.data_mut().begin_again();
                store.set_hostcall_fuel(host_call_bytes);
                (store, Some((guest, session)))
            }
            Stage::Over => {
                let result = Err(PluginFault::Unsupported("further steps of a login that failed"));
                let report = Report::default();
                return Called { result, report };
            }
        };
        let loaded = self.loaded.clone();
        let _ticking = loaded.0.machine.ticker.run();
        let wall = store.data().limits.wall;
        let clock = store.data().context.clock.clone();
        let stepping = clock.timeout(wall, self.run(&mut store, running, step));
        let ended = stepping.await;
        store.data().http.save_cookies().await;
        let state = store.data_mut();
        let report = state.report();
        let result = match ended {
            Ok(Ok((running, answer))) => {
                let screen = std::mem::take(&mut state.screen);
                let (guest, session) = running;
                self.stage = Stage::Running { store, guest, session };
                answer
                    .map(|()| screen)
                    .map_err(|error| PluginFault::Answer(error.into()))
            }
            Ok(Err(error)) => Err(outcome::fault(&error, &state.meter, &state.limits)),
            Err(TimedOut) => Err(PluginFault::Limit(plugin_host::Exceeded::Wall(wall))),
        };
        Called { result, report }
    }

    async fn run(
        &mut self,
        store: &mut Store<CallState>,
        running: Option<(Guest, ResourceAny)>,
        step: Step,
    ) -> wasmtime::Result<((Guest, ResourceAny), Answer<()>)> {
        let (guest, session) = match running {
            Some(running) => running,
            None => self.start(store).await?,
        };
        let screen = lend_screen(store)?;
        let handle = screen.rep();
        let calls = guest.session();
        let answer = match step {
            Step::Start => calls.call_start(&mut *store, session, screen).await?,
            Step::Poll => calls.call_poll(&mut *store, session, screen).await?,
            Step::Answer(values) => calls.call_answer(&mut *store, session, &values, screen).await?,
        };
        // The guest only borrowed it, and a login has many steps.
        store
            .data_mut()
            .table
            .delete(Resource::<ScreenHandle>::new_own(handle))?;
        Ok(((guest, session), answer))
    }

    async fn start(&mut self, store: &mut Store<CallState>) -> wasmtime::Result<(Guest, ResourceAny)> {
        let login = self.loaded.0.exported("login", self.loaded.0.guest.login.as_ref());
        let login = login.ok_or(PluginFault::NotExported("login"))?;
        store.data().http.load_cookies().await;
        let instance: Instance = self.loaded.0.guest.pre.instantiate_async(&mut *store).await?;
        if self.loaded.0.script.is_some() {
            let taken = self.loaded.0.hand_over(store, &instance).await?;
            taken.map_err(|error| PluginFault::from(GuestError::Internal(error.to_string())))?;
        }
        let guest = login.load(&mut *store, &instance)?;
        let session = guest.session().call_constructor(store, &self.slot, self.mode).await?;
        Ok((guest, session))
    }
}
