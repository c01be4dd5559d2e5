//! The pictures of galleries that only members see.
//!
//! *Owns* the login form of the site (`login`) and what its pages look like (here).
//!
//! *Never* reads a cookie or a password: cookies are in the jar of the account, the rest is sent from its vault.
//!
//! Start reading at [`MemberGallery`].

mod login;

use svc_plugin::{
    http::{Request, Response},
    prelude::*,
    text::Url,
};

pub use login::MemberGallery;

/// The account: a slot of the manifest.
const SLOT: &str = "main";

/// The most pages of one gallery.
const MAX_PAGES: usize = 50;

/// The settings.
#[derive(Debug, Settings)]
struct Site {
    #[setting(default = "https://gallery.example")]
    server: String,
}

impl Site {
    /// The URL of a path of the site.
    fn url(path: &str) -> Result<String> {
        let server = Self::read()?.server;
        Ok(format!("{}{path}", server.trim_end_matches('/')))
    }
}

/// The response to a member; others are sent to the login.
fn for_members(request: Request) -> Result<Response> {
    let response = request.account(SLOT).no_redirects().send_any()?;
    let target = response.header("location").unwrap_or_default();
    let leads_to_login = (300..400).contains(&response.status()) && target.contains("/login");
    if leads_to_login || response.status() == 403 {
        return Err(Error::LoginRequired(Some(SLOT.to_owned())));
    }
    response.successful()
}

impl Resolver for MemberGallery {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        let mut url = call.url().clone();
        for number in 0..MAX_PAGES {
            let page = for_members(http::get(&url))?;
            if number == 0
                && let Some(title) = page.select("h1")?.first()
            {
                out.title(&title.text);
            }
            add_pictures(&page, &url, out)?;
            let next = page.select("a[rel=next]")?;
            match next.first().and_then(|link| link.attribute("href")) {
                Some(next) => url = url.join(next)?,
                None => return Ok(()),
            }
        }
        out.left_out(LeftOut::TooManyFiles, "", 0);
        Ok(())
    }

    /// Asked when a picture was refused: the session has ended, or the picture is gone.
    fn link(call: &Call, entry: &str, _: Option<&str>) -> Result<Link> {
        if !MemberGallery::check(SLOT)? {
            return Err(Error::LoginRequired(Some(SLOT.to_owned())));
        }
        Ok(picture(&call.url().join(entry)?))
    }
}

fn add_pictures(page: &Response, url: &Url, out: &Listing<'_>) -> Result<()> {
    for link in page.select("a.picture")? {
        let Some(target) = link.attribute("href") else {
            continue;
        };
        let target = url.join(target)?;
        let name = target.path().last().map(String::as_str).unwrap_or_default();
        out.add(target.as_str(), name)
            .kind(FileKind::Image)
            .link(picture(&target));
    }
    Ok(())
}

/// The host sends the account's cookies with it.
fn picture(url: &Url) -> Link {
    Link::new(url).account(SLOT)
}

svc_plugin::plugin!(MemberGallery: Resolver, Login);
