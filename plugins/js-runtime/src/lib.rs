//! Runs plugins that are written in JavaScript: `QuickJS` as a component with the same imports and exports as any plugin.
//! The host hands it the script in each fresh instance, before the call.
//!
//! *Owns* the engine's limits (`engine`), what scripts find (`prelude.js`), and the way between the two (`host`,
//! `steps`).
//!
//! *Never* does what a plugin could not do: it is one, only a shared one.
//!
//! Start reading at [`Plugin`], then `prelude.js`.

#[expect(unsafe_code, clippy::pedantic, reason = "generated")]
mod bindings;
mod engine;
mod host;
mod steps;

use bindings::{
    exports::svc::{
        plugin::{
            feed_handler,
            hook_handler::{self, HookEvent, HookKind, Retry},
            login, previewer, resolver,
        },
        script::script::{self, Mistake},
    },
    svc::plugin::{
        env,
        feed_sink::Sink,
        listing::{Link, Listing},
        login_ui::Screen,
        types::PluginError,
    },
};
use rquickjs::Value;
use steps::Whole;

/// What the host calls.
#[derive(Debug)]
pub struct Plugin;

impl script::Guest for Plugin {
    fn load(source: String) -> Result<Vec<String>, Mistake> {
        engine::load(source)
    }
}

impl resolver::Guest for Plugin {
    fn resolve(url: String, password: Option<String>, out: &Listing) -> Result<(), PluginError> {
        engine::call("resolve", (url, password), |answer| steps::fill(out, answer))
    }

    fn more(url: String, token: String, out: &Listing) -> Result<(), PluginError> {
        engine::call("more", (url, token), |answer| steps::fill(out, answer))
    }

    fn link_for(url: String, entry_id: String, variant_id: Option<String>) -> Result<Link, PluginError> {
        engine::call("linkFor", (url, entry_id, variant_id), link)
    }
}

impl previewer::Guest for Plugin {
    fn preview(url: String, out: &Listing) -> Result<(), PluginError> {
        engine::call("preview", (url,), |answer| steps::fill(out, answer))
    }
}

impl feed_handler::Guest for Plugin {
    fn fetch(url: String, since_ms: Option<u64>, etag: Option<String>, out: &Sink) -> Result<(), PluginError> {
        let since = since_ms.map(Whole);
        engine::call("feed", (url, since, etag), |answer| steps::fill_feed(out, answer))
    }
}

impl hook_handler::Guest for Plugin {
    fn handle(event: HookEvent) -> Result<Option<Retry>, PluginError> {
        let kind = match event.kind {
            HookKind::Start => "start",
            HookKind::MetaProbed => "metaProbed",
            HookKind::Done => "done",
            HookKind::Error => "error",
        };
        let given = [event.task_id, event.url].map(Some).into_iter();
        let texts: Vec<_> = given
            .chain([event.file_name, event.error_kind, event.message])
            .collect();
        let total = event.total_bytes.map(Whole);
        engine::call("hook", (kind, texts, total, event.attempts), |answer| {
            let wait: Option<Whole> = answer.get()?;
            Ok(wait.map(|wait| Retry { after_ms: wait.0 }))
        })
    }
}

/// A login. What the script knows of it is in the script, which lives as long as the login.
#[derive(Debug)]
pub struct Session {
    slot: String,
    mode: String,
}

impl login::Guest for Plugin {
    type Session = Session;

    fn check(slot: String, _: &Screen) -> Result<bool, PluginError> {
        engine::call("loginCheck", (slot,), flag)
    }

    fn refresh(slot: String, out: &Screen) -> Result<(), PluginError> {
        engine::call("loginRefresh", (slot,), |answer| steps::fill_screen(out, answer))
    }

    fn logout(slot: String) {
        // The host deletes the account in any case.
        let _ended: Result<(), PluginError> = engine::call("loginLogout", (slot,), |_| Ok(()));
    }
}

impl login::GuestSession for Session {
    fn new(slot: String, mode: String) -> Self {
        Self { slot, mode }
    }

    fn start(&self, out: &Screen) -> Result<(), PluginError> {
        self.step("loginStart", Vec::new(), out)
    }

    fn poll(&self, out: &Screen) -> Result<(), PluginError> {
        self.step("loginPoll", Vec::new(), out)
    }

    fn answer(&self, values: Vec<(String, String)>, out: &Screen) -> Result<(), PluginError> {
        let values = values.into_iter().map(|(key, value)| vec![key, value]);
        self.step("loginAnswer", values.collect(), out)
    }
}

impl Session {
    fn step(&self, name: &str, values: Vec<Vec<String>>, out: &Screen) -> Result<(), PluginError> {
        let arguments = (self.slot.clone(), self.mode.clone(), values);
        engine::call(name, arguments, |answer| steps::fill_screen(out, answer))
    }
}

fn flag(answer: &Value<'_>) -> rquickjs::Result<bool> {
    answer.get()
}

fn link(answer: &Value<'_>) -> rquickjs::Result<Link> {
    steps::link(&answer.get()?)
}

/// Called by `snapshot` and by nobody else; what is embedded does not have it any more.
#[expect(unsafe_code, reason = "an export of the core module, not of the component")]
#[unsafe(no_mangle)]
extern "C" fn start() {
    engine::start();
}

/// The only thing that the engine's C library wants from outside: the time, in microseconds of the Unix epoch.
#[expect(unsafe_code, reason = "the C library calls this function by its name")]
#[expect(clippy::cast_precision_loss, reason = "it is exact for the next two hundred years")]
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    env::now_ms() as f64 * 1000.0
}
