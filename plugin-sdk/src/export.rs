//! From the contract's functions to the traits of authors.

use std::{cell::RefCell, marker::PhantomData, panic};

use crate::{
    Answers, Call, Error, Feed, FeedCall, FeedHandler, HookEvent, HookHandler, HookKind, Listing, Login, PostCall,
    PostProcessor, Preview, Resolver, Result, Screen, Work,
    bindings::{
        feed_handler::exports::svc::plugin::feed_handler,
        hook_handler::exports::svc::plugin::hook_handler,
        login::exports::svc::plugin::login,
        post_processor::exports::svc::plugin::post_processor,
        previewer::exports::svc::plugin::previewer,
        resolver::exports::svc::plugin::resolver,
        svc::plugin::{feed_sink, listing, log, login_ui, types::PluginError, workspace},
    },
};

/// Exports what `T` has.
#[derive(Debug)]
pub struct Exported<T>(PhantomData<T>);

impl<T: Resolver> resolver::Guest for Exported<T> {
    fn resolve(url: String, password: Option<String>, out: &listing::Listing) -> Result<(), PluginError> {
        run(url, password, |call| T::resolve(call, &Listing::new(out)))
    }

    fn more(url: String, token: String, out: &listing::Listing) -> Result<(), PluginError> {
        run(url, None, |call| T::more(call, &token, &Listing::new(out)))
    }

    fn link_for(url: String, entry_id: String, variant_id: Option<String>) -> Result<listing::Link, PluginError> {
        run(url, None, |call| T::link(call, &entry_id, variant_id.as_deref())).map(|link| link.0)
    }
}

impl<T: Preview> previewer::Guest for Exported<T> {
    fn preview(url: String, out: &listing::Listing) -> Result<(), PluginError> {
        run(url, None, |call| T::preview(call, &Listing::new(out)))
    }
}

impl<T: FeedHandler> feed_handler::Guest for Exported<T> {
    fn fetch(
        url: String,
        since_ms: Option<u64>,
        etag: Option<String>,
        out: &feed_sink::Sink,
    ) -> Result<(), PluginError> {
        log_panics();
        let call = FeedCall::new(url, since_ms, etag)?;
        Ok(T::fetch(&call, &Feed::new(out))?)
    }
}

impl<T: HookHandler> hook_handler::Guest for Exported<T> {
    fn handle(event: hook_handler::HookEvent) -> Result<Option<hook_handler::Retry>, PluginError> {
        log_panics();
        let event = HookEvent {
            kind: match event.kind {
                hook_handler::HookKind::Start => HookKind::Start,
                hook_handler::HookKind::MetaProbed => HookKind::MetaProbed,
                hook_handler::HookKind::Done => HookKind::Done,
                hook_handler::HookKind::Error => HookKind::Error,
            },
            task_id: event.task_id,
            url: event.url,
            file_name: event.file_name,
            total_bytes: event.total_bytes,
            error_kind: event.error_kind,
            message: event.message,
            attempts: event.attempts,
        };
        let retry = T::handle(&event)?;
        Ok(retry.map(|wait| hook_handler::Retry {
            after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        }))
    }
}

impl<T: PostProcessor> post_processor::Guest for Exported<T> {
    fn done(source_url: String, main: String, work: &workspace::Dir) -> Result<(), PluginError> {
        log_panics();
        let call = PostCall::new(source_url, main)?;
        Ok(T::done(&call, &Work::new(work))?)
    }
}

impl<T: Login> login::Guest for Exported<T> {
    type Session = Session<T>;

    fn check(slot: String, _: &login_ui::Screen) -> Result<bool, PluginError> {
        log_panics();
        Ok(T::check(&slot)?)
    }

    fn refresh(slot: String, out: &login_ui::Screen) -> Result<(), PluginError> {
        log_panics();
        Ok(T::refresh(&slot, &mut Screen::new(out))?)
    }

    fn logout(slot: String) {
        log_panics();
        T::logout(&slot);
    }
}

/// A login between its calls, or why there is none: a constructor of the contract cannot fail.
#[derive(Debug)]
pub struct Session<T>(Result<RefCell<T>>);

impl<T: Login> Session<T> {
    fn step(&self, work: impl FnOnce(&mut T) -> Result<()>) -> Result<(), PluginError> {
        let login = self.0.as_ref().map_err(Clone::clone)?;
        Ok(work(&mut login.borrow_mut())?)
    }
}

impl<T: Login> login::GuestSession for Session<T> {
    fn new(slot: String, mode: String) -> Self {
        log_panics();
        Self(mode.parse().map(|mode| RefCell::new(T::new(&slot, mode))))
    }

    fn start(&self, out: &login_ui::Screen) -> Result<(), PluginError> {
        self.step(|login| login.start(&mut Screen::new(out)))
    }

    fn poll(&self, out: &login_ui::Screen) -> Result<(), PluginError> {
        self.step(|login| login.poll(&mut Screen::new(out)))
    }

    fn answer(&self, values: Vec<(String, String)>, out: &login_ui::Screen) -> Result<(), PluginError> {
        self.step(|login| login.answer(&Answers::new(values), &mut Screen::new(out)))
    }
}

/// Without this, a panic would be a trap without a word.
fn log_panics() {
    panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
}

fn run<R>(url: String, password: Option<String>, work: impl FnOnce(&Call) -> Result<R>) -> Result<R, PluginError> {
    log_panics();
    let call = Call::new(url, password)?;
    Ok(work(&call)?)
}

impl From<Error> for PluginError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotMatched => Self::NotMatched,
            Error::InvalidInput(text) => Self::InvalidInput(text),
            Error::LoginRequired(slot) => Self::LoginRequired(slot),
            Error::CaptchaRequired(page) => Self::CaptchaRequired(page),
            Error::NotFound(text) => Self::NotFound(text),
            Error::Gone(text) => Self::Gone(text),
            Error::Forbidden(text) => Self::Forbidden(text),
            Error::RateLimited(seconds) => Self::RateLimited(seconds),
            Error::Upstream(status) => Self::Upstream(status),
            Error::Network(text) => Self::Network(text),
            Error::Denied(host) => Self::Denied(host),
            Error::Parse(text) => Self::Parse(text),
            Error::Unsupported(text) => Self::Unsupported(text),
            Error::Internal(text) => Self::Internal(text),
        }
    }
}

/// The randomness of the `getrandom` crate, for guests built with `--cfg getrandom_backend="custom"`.
#[cfg(feature = "getrandom")]
#[expect(unsafe_code, reason = "the crate calls this function by its name")]
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(target: *mut u8, len: usize) -> Result<(), getrandom::Error> {
    let bytes = crate::env::random(len);
    // SAFETY: the caller gives `len` bytes at `target`, and so many were asked for.
    unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), len.min(bytes.len())) };
    Ok(())
}
