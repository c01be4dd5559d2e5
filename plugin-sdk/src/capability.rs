//! The traits that plugins implement, one for each capability. Optional functions have defaults.

use crate::{Error, Feed, FeedCall, Link, Listing, Result, text::Url};

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
