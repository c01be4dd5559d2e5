//! From the contract's functions to the traits of authors.

use std::{marker::PhantomData, panic};

use crate::{
    Call, Error, Feed, FeedCall, FeedHandler, Listing, Preview, Resolver, Result,
    bindings::{
        feed_handler::exports::svc::plugin::feed_handler,
        previewer::exports::svc::plugin::previewer,
        resolver::exports::svc::plugin::resolver,
        svc::plugin::{feed_sink, listing, log, types::PluginError},
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
