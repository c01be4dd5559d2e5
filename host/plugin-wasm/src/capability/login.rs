//! The screen that a login fills in.

use accounts::{InvalidScreen, Screen};
use plugin_host::PluginFault;
use wasmtime::component::Resource;

use crate::capability::{bindings::svc::plugin::login_ui, state::CallState};

/// The guest's handle of the call's only screen.
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct ScreenHandle;

fn fault(error: InvalidScreen) -> PluginFault {
    PluginFault::InvalidOutput {
        field: error.part,
        reason: error.reason,
    }
}

impl CallState {
    fn set(&mut self, set: impl FnOnce(&mut Screen) -> Result<(), InvalidScreen>) -> wasmtime::Result<()> {
        Ok(set(&mut self.screen).map_err(fault)?)
    }
}

impl login_ui::Host for CallState {}

impl login_ui::HostScreen for CallState {
    fn message(&mut self, _: Resource<ScreenHandle>, s: String) -> wasmtime::Result<()> {
        self.set(|screen| screen.set_message(&s))
    }

    fn qr(
        &mut self,
        _: Resource<ScreenHandle>,
        payload: String,
        expires_in_s: u32,
        hint: String,
    ) -> wasmtime::Result<()> {
        self.set(|screen| screen.set_qr(payload, expires_in_s, &hint))
    }

    fn field(&mut self, _: Resource<ScreenHandle>, key: String, label: String, secret: bool) -> wasmtime::Result<()> {
        self.set(|screen| screen.add_field(key, &label, secret))
    }

    fn open_url(
        &mut self,
        _: Resource<ScreenHandle>,
        url: String,
        redirect_prefix: Option<String>,
    ) -> wasmtime::Result<()> {
        self.set(|screen| screen.set_open_url(&url, redirect_prefix))
    }

    fn poll_after_ms(&mut self, _: Resource<ScreenHandle>, ms: u32) -> wasmtime::Result<()> {
        self.screen.poll_after_ms = Some(ms);
        Ok(())
    }

    fn done(&mut self, _: Resource<ScreenHandle>, account_id: String, display_name: String) -> wasmtime::Result<()> {
        self.set(|screen| screen.set_done(&account_id, &display_name))
    }

    fn expires_ms(&mut self, _: Resource<ScreenHandle>, t: u64) -> wasmtime::Result<()> {
        self.screen.expires_ms = Some(t);
        Ok(())
    }

    fn drop(&mut self, handle: Resource<ScreenHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}
