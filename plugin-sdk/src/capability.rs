//! The traits that plugins implement, one for each capability. Optional functions have defaults.

use std::time::Duration;

use crate::{
    Answers, Error, Feed, FeedCall, HookEvent, HookKind, Link, Listing, Mode, PostCall, Result, Screen, Work, text::Url,
};

/// The arguments of a call.
#[derive(Debug)]
pub struct Call {
    url: Url,
    password: Option<String>,
}

impl Call {
    pub(crate) fn new(url: String, password: Option<String>) -> Result<Self> {
        let url = Url::parse(url)?;
        Ok(Self { url, password })
    }

    /// The URL that the user gave.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The password that the user gave for the URL, if any.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

/// Finds the files behind a URL.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// struct Acme;
///
/// impl Resolver for Acme {
///     fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
///         let id = call.url().segment(1).ok_or(Error::NotMatched)?;
///         let page = http::get(format!("https://api.acme.example/share/{id}")).send()?;
///         out.title(&page.string("/title")?);
///         for file in page.json::<Vec<ApiFile>>("/files")? {
///             out.add(&file.id, &file.name).size(file.size);
///         }
///         Ok(())
///     }
///
///     fn link(_: &Call, entry: &str, _: Option<&str>) -> Result<Link> {
///         let answer = http::post("https://api.acme.example/link").form([("id", entry)]).send()?;
///         Ok(Link::new(answer.string("/url")?).ranges(true))
///     }
/// }
///
/// #[derive(serde::Deserialize)]
/// struct ApiFile { id: String, name: String, size: u64 }
///
/// svc_plugin::plugin!(Acme: Resolver);
///
/// let host = test::Host::new()
///     .page("https://api.acme.example/share/7", test::Page::json(
///         r#"{"title": "Photos", "files": [{"id": "f1", "name": "a.jpg", "size": 5}]}"#))
///     .page("https://api.acme.example/link", test::Page::json(r#"{"url": "https://cdn.acme.example/a.jpg"}"#));
/// let listing = host.resolve::<Acme>("https://acme.example/s/7").unwrap();
/// assert_eq!(listing.entries[0].name, "a.jpg");
/// let link = host.link::<Acme>("https://acme.example/s/7", "f1", None).unwrap();
/// assert_eq!(link.url, "https://cdn.acme.example/a.jpg");
/// ```
pub trait Resolver {
    /// Adds the files behind the call's URL to `out`. Answering [`Error::NotMatched`] lets another plugin try.
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()>;

    /// Adds the files of the page that an earlier [`Listing::next_page`] named.
    fn more(call: &Call, token: &str, out: &Listing<'_>) -> Result<()> {
        let _ = (call, token, out);
        Err(Error::Unsupported("there is one page only".to_owned()))
    }

    /// Returns the link of a file. Called when its download starts, and again when the link has expired. Plugins that
    /// give every entry its link need not implement it.
    fn link(call: &Call, entry: &str, variant: Option<&str>) -> Result<Link> {
        let _ = (call, entry, variant);
        Err(Error::Unsupported("entries come with their links".to_owned()))
    }
}

/// Takes a quick look at a URL, for the user who is about to add it: no links, half a second of work. For resolvers that
/// are slow: without this trait, previews show what [`Resolver::resolve`] lists, all pages of it.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// struct Acme;
///
/// impl Preview for Acme {
///     fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
///         let page = http::get(call.url()).send()?;
///         let heading = page.select("h1")?.into_iter().next();
///         out.title(&heading.ok_or_else(|| Error::Parse("no heading".to_owned()))?.text);
///         Ok(())
///     }
/// }
///
/// svc_plugin::plugin!(Acme: Preview);
///
/// let host = test::Host::new().page("https://acme.example/s/7", test::Page::html("<h1>Photos</h1>"));
/// assert_eq!(host.preview::<Acme>("https://acme.example/s/7").unwrap().title.as_deref(), Some("Photos"));
/// ```
pub trait Preview {
    /// Adds what can be seen at once to `out`.
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()>;
}

/// Reads the feeds that users subscribe to. The fields that a user fills in for a source (`feed.config` in the manifest)
/// are read as settings are; secret ones go to the host of the source's URL only.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// struct Acme;
///
/// impl FeedHandler for Acme {
///     fn fetch(call: &FeedCall, out: &Feed<'_>) -> Result<()> {
///         let search: String = env::setting_or("search", String::new())?;
///         let request = http::get(call.url()).query("q", &search);
///         let page = request.header("If-None-Match", call.etag().unwrap_or_default()).send()?;
///         if page.status() == 304 {
///             out.unchanged(call);
///             return Ok(());
///         }
///         out.title("Acme");
///         out.etag(page.header("etag").as_deref().unwrap_or_default());
///         for file in page.json::<Vec<ApiFile>>("/files")? {
///             out.add(&file.id, &file.name, "").enclosure(&file.url, "");
///         }
///         Ok(())
///     }
/// }
///
/// #[derive(serde::Deserialize)]
/// struct ApiFile { id: String, name: String, url: String }
///
/// svc_plugin::plugin!(Acme: FeedHandler);
///
/// let host = test::Host::new().setting("search", "photos").page("https://acme.example/new?q=photos", test::Page::json(
///     r#"{"files": [{"id": "f1", "name": "a.jpg", "url": "https://acme.example/a.jpg"}]}"#));
/// let feed = host.feed::<Acme>("https://acme.example/new").unwrap();
/// assert_eq!(feed.items[0].title, "a.jpg");
/// ```
pub trait FeedHandler {
    /// Adds what the feed says now to `out`.
    fn fetch(call: &FeedCall, out: &Feed<'_>) -> Result<()>;
}

/// Looks on while files are downloaded: those of the URLs in `hook.match` of the manifest, or else those that the plugin
/// resolves; only events that `hook.events` names. A hook has five seconds and delays no download. When more happens than
/// it can follow, the oldest is left out.
///
/// ```
/// use std::time::Duration;
///
/// use svc_plugin::prelude::*;
///
/// struct Acme;
///
/// impl HookHandler for Acme {
///     fn on_done(event: &HookEvent) -> Result<()> {
///         let name = event.file_name.as_deref().unwrap_or("a file");
///         http::post("https://api.acme.example/seen").form([("name", name)]).send()?;
///         Ok(())
///     }
///
///     fn on_error(event: &HookEvent) -> Result<Option<Duration>> {
///         // The site locks a file for a minute after somebody else has fetched it.
///         let is_locked = event.error_kind.as_deref() == Some("forbidden");
///         Ok(is_locked.then_some(Duration::from_secs(60)))
///     }
/// }
///
/// svc_plugin::plugin!(Acme: HookHandler);
///
/// let host = test::Host::new().page("https://api.acme.example/seen", test::Page::json("{}"));
/// let mut event = HookEvent::new(HookKind::Done, "https://acme.example/s/7");
/// event.file_name = Some("a.jpg".to_owned());
/// assert_eq!(host.hook::<Acme>(&event).unwrap(), None);
/// assert_eq!(host.sent()[0].body, b"name=a.jpg");
/// event.kind = HookKind::Error;
/// event.error_kind = Some("forbidden".to_owned());
/// assert_eq!(host.hook::<Acme>(&event).unwrap(), Some(Duration::from_secs(60)));
/// ```
pub trait HookHandler {
    /// The download begins, or is resumed by the user.
    fn on_start(event: &HookEvent) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Name and size of its file are known.
    fn on_meta_probed(event: &HookEvent) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Its file is complete.
    fn on_done(event: &HookEvent) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// It failed and is not retried by itself. With a duration it is tried again after that: as one of its automatic
    /// retries, so only while there are some left, and no sooner than one of these.
    fn on_error(event: &HookEvent) -> Result<Option<Duration>> {
        let _ = event;
        Ok(None)
    }

    /// Calls the function of the event.
    #[doc(hidden)]
    fn handle(event: &HookEvent) -> Result<Option<Duration>> {
        match event.kind {
            HookKind::Start => Self::on_start(event)?,
            HookKind::MetaProbed => Self::on_meta_probed(event)?,
            HookKind::Done => Self::on_done(event)?,
            HookKind::Error => return Self::on_error(event),
        }
        Ok(None)
    }
}

/// Works on the files of finished downloads: those that its user has put it into the chain of, as a step `plugin`. It may take
/// half an hour, half a minute of it computing, and 64 MiB of memory.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// struct Acme;
///
/// impl PostProcessor for Acme {
///     fn done(call: &PostCall, work: &Work<'_>) -> Result<()> {
///         for archive in work.archives() {
///             work.unpack(&archive, &["acme.example"])?;
///             work.remove_archive(&archive)?;
///         }
///         work.write_new("source.txt", call.url().as_str())
///     }
/// }
///
/// svc_plugin::plugin!(Acme: PostProcessor);
///
/// let packed = test::Packed { directory: "photos".to_owned(), ..test::Packed::default() };
/// let host = test::Host::new().archive("photos.zip", packed);
/// let done = host.post::<Acme>("https://acme.example/s/7", "photos.zip").unwrap();
/// assert_eq!(done.unpacked, ["photos"]);
/// assert_eq!(done.removed, ["photos.zip"]);
/// assert_eq!(done.written["source.txt"], "https://acme.example/s/7");
/// ```
pub trait PostProcessor {
    /// Works on the files of a finished download. If it fails, they stay as they were.
    fn done(call: &PostCall, work: &Work<'_>) -> Result<()>;
}

/// Logs in to accounts of a site. The value is one login from its first screen to its end; requests that name the account's
/// slot ([`Request::account`](crate::http::Request::account)) have its cookies and its secrets. Nothing that the site hands
/// out needs to be seen here: it is captured into the vault and sent from there.
///
/// ```
/// use svc_plugin::prelude::*;
///
/// struct Acme {
///     slot: String,
/// }
///
/// impl Login for Acme {
///     fn new(slot: &str, _: Mode) -> Self {
///         Self { slot: slot.to_owned() }
///     }
///
///     fn start(&mut self, screen: &mut Screen<'_>) -> Result<()> {
///         screen.field("user", "User name").secret_field("password", "Password");
///         Ok(())
///     }
///
///     fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
///         let user = values.text("user")?;
///         let answer = http::post("https://api.acme.example/login")
///             .account(&self.slot)
///             .form([("user", user)])
///             .secret_form("password", &values.secret("password")?)
///             .capture_json("/token", "token")
///             .send_any()?;
///         if answer.status() == 403 {
///             screen.message("User name or password is wrong.");
///             return self.start(screen);
///         }
///         answer.successful()?;
///         screen.done(user, user);
///         Ok(())
///     }
///
///     fn check(slot: &str) -> Result<bool> {
///         let me = http::get("https://api.acme.example/me").account(slot).secret_header("Authorization", "Bearer {token}");
///         Ok(me.send_any()?.status() == 200)
///     }
/// }
///
/// svc_plugin::plugin!(Acme: Login);
///
/// let host = test::Host::new()
///     .page("https://api.acme.example/login", test::Page::json(r#"{"token": "abcdef"}"#));
/// let mut login = host.login::<Acme>("main", Mode::Password);
/// assert!(login.start().unwrap().fields[1].secret);
/// let screen = login.answer(&[("user", "ann"), ("password", "hidden")]).unwrap();
/// assert_eq!(screen.done.unwrap().account_id, "ann");
/// assert_eq!(host.sent()[0].body, "user=ann&password=‹secret:password›".as_bytes());
/// assert_eq!(host.secrets("main"), ["token"]);
/// ```
pub trait Login: Sized + 'static {
    /// A login to the account of this slot. Nothing is shown or sent yet.
    fn new(slot: &str, mode: Mode) -> Self;

    /// Shows the first screen.
    fn start(&mut self, screen: &mut Screen<'_>) -> Result<()>;

    /// Continues when the time that the screen asked for has passed ([`Screen::poll_after`]).
    fn poll(&mut self, screen: &mut Screen<'_>) -> Result<()> {
        let _ = screen;
        Ok(())
    }

    /// Continues with what the user filled in.
    ///
    /// The error of a step is shown on the screen before it, if the user can go on there, and else ends the login. If the
    /// site needs another form now (a new token, a captcha), show the fields again with a [`Screen::message`] instead.
    fn answer(&mut self, values: &Answers, screen: &mut Screen<'_>) -> Result<()> {
        let _ = (values, screen);
        Err(Error::Unsupported("this login asks for nothing".to_owned()))
    }

    /// Whether the session of an account is still good.
    fn check(slot: &str) -> Result<bool>;

    /// Gets a new session without the user. The host calls it once at a time, also if many downloads need it.
    fn refresh(slot: &str, screen: &mut Screen<'_>) -> Result<()> {
        let _ = screen;
        Err(Error::LoginRequired(Some(slot.to_owned())))
    }

    /// Ends the session at the site. The host deletes the account's secrets and cookies afterwards, even if this fails.
    fn logout(slot: &str) {
        let _ = slot;
    }
}
