//! Files that a site lists in an `index.json` for those who have an account. Something to begin with: put your site in its
//! place.

use svc_plugin::prelude::*;

const SITE: &str = "https://files.example.org";

/// The account: a slot of the manifest.
const SLOT: &str = "main";

/// The header that the site wants, with a secret of the account in it.
const TOKEN: (&str, &str) = ("Authorization", "Bearer {access}");

/// The plugin; as a value, a login from its first screen to its end.
pub struct MyPlugin;

impl Login for MyPlugin {
    fn new(_slot: &str, _mode: Mode) -> Self {
        Self
    }

    fn start(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        screen.field("user", "User name").secret_field("password", "Password");
        Ok(())
    }

    /// Sends what the user filled in. What the site answers with is kept before the plugin reads it.
    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        let user = values.text("user")?;
        let answer = http::post(format!("{SITE}/login"))
            .account(SLOT)
            .form([("user", user)])
            .secret_form("password", &values.secret("password")?)
            .capture_json("/access", "access")
            .send_any()?;
        if answer.status() == 403 {
            screen.message("User name or password is wrong.");
            return self.start(screen);
        }
        answer.successful()?;
        screen.done(user, user);
        Ok(())
    }

    fn check(slot: &str) -> Result<bool> {
        let me = http::get(format!("{SITE}/me")).account(slot).secret_header(TOKEN.0, TOKEN.1);
        Ok(me.send_any()?.status() == 200)
    }
}

impl Resolver for MyPlugin {
    /// Lists what is behind the URL. `{"title": "Photos", "files": ["a.jpg", "more/b.jpg"]}` is two files.
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        vault::account(SLOT).require("access")?;
        let index = http::get(call.url()).account(SLOT).secret_header(TOKEN.0, TOKEN.1).send()?;
        out.title(&index.string("/title")?);
        for path in index.json::<Vec<String>>("/files")? {
            out.add_path(&path, &path);
        }
        Ok(())
    }

    /// Says where one of the files is. The host sends the token with the download.
    fn link(call: &Call, entry: &str, _variant: Option<&str>) -> Result<Link> {
        let link = Link::new(call.url().join(&text::encode_path(entry))?);
        Ok(link.account(SLOT).secret_header(TOKEN.0, TOKEN.1))
    }
}

svc_plugin::plugin!(MyPlugin: Resolver, Login);
