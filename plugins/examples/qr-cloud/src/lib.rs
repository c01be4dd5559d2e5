//! The files of a cloud with accounts: login by QR code or password, tokens that are renewed, files on another host.
//!
//! *Owns* the interface of the cloud: its login (`login`) and its files (here).
//!
//! *Never* reads a password or a token: they are captured into the vault of the account, and sent from there.
//!
//! Start reading at [`QrCloud`].

mod login;

use std::time::Duration;

use svc_plugin::{http::Request, prelude::*};

pub use login::QrCloud;

/// The header that the cloud and its host of files want.
const TOKEN: (&str, &str) = ("Authorization", "Bearer {access}");

/// The settings.
#[derive(Debug, Settings)]
struct Wanted {
    #[setting(default = "https://cloud.example")]
    server: String,
    #[setting(default = "main")]
    account: String,
    #[setting(default = "plain")]
    password_as: PasswordAs,
}

/// How the cloud wants passwords.
#[derive(Debug, Clone, Copy, Settings)]
enum PasswordAs {
    Plain,
    Md5,
    Signature,
}

impl Wanted {
    /// The URL of a path of the cloud.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.trim_end_matches('/'))
    }
}

/// The same request with the token of an account.
fn signed(request: Request, slot: &str) -> Request {
    request.account(slot).secret_header(TOKEN.0, TOKEN.1)
}

/// A file as the cloud lists it.
#[derive(serde::Deserialize)]
struct File {
    id: String,
    name: String,
    size: u64,
}

impl Resolver for QrCloud {
    fn resolve(_: &Call, out: &Listing<'_>) -> Result<()> {
        let wanted = Wanted::read()?;
        vault::account(&wanted.account).require("access")?;
        let list = signed(http::get(wanted.url("/api/files")), &wanted.account).send()?;
        out.title(&list.string("/title")?);
        for file in list.json::<Vec<File>>("/files")? {
            out.add(&file.id, &file.name).size(file.size);
        }
        Ok(())
    }

    fn link(_: &Call, entry: &str, _: Option<&str>) -> Result<Link> {
        let wanted = Wanted::read()?;
        let slot = &wanted.account;
        vault::account(slot).require("access")?;
        let request = http::get(wanted.url("/api/link")).query("id", entry);
        let answer = signed(request, slot).send_any()?;
        if answer.status() == 403 && answer.string("/error")? == "quota" {
            let seconds = answer.number("/reset_in")?;
            return Err(Error::RateLimited(u32::try_from(seconds).ok()));
        }
        let answer = answer.successful()?;
        let link = Link::new(answer.string("/url")?)
            .account(slot)
            .ranges(true)
            .expires_in(Duration::from_secs(answer.number("/expires_in")?));
        Ok(match answer.string("/wants")?.as_str() {
            // The cookie of the account's session is sent without being named.
            "cookie" => link,
            _ => link.secret_header(TOKEN.0, TOKEN.1),
        })
    }
}

svc_plugin::plugin!(QrCloud: Resolver, Login);
