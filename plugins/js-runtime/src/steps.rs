//! What scripts put together (requests, links, entries), replayed on the host's objects. The prelude has noted down each
//! as a list of steps: a name and its arguments, of the types that are asked for here.

use rquickjs::{Array, Ctx, Error, FromJs, IntoJs, Result, Value};

use crate::{
    bindings::svc::plugin::{
        feed_sink::{Item, Sink},
        http::{Cookies, Redirects, Request},
        listing::{Entry, FileKind, LeftOut, Link, Listing},
        login_ui::Screen,
    },
    host::Bytes,
};

/// The arguments of a step.
struct Step<'js>(Array<'js>);

impl<'js> Step<'js> {
    fn name(&self) -> Result<String> {
        self.0.get(0)
    }

    /// An argument; the first one is number 1.
    fn get<T: FromJs<'js>>(&self, index: usize) -> Result<T> {
        self.0.get(index)
    }

    fn text(&self, index: usize) -> Result<String> {
        self.0.get(index)
    }

    fn bytes(&self, index: usize) -> Result<Vec<u8>> {
        Ok(self.0.get::<Bytes>(index)?.0)
    }

    fn whole(&self, index: usize) -> Result<u64> {
        Ok(self.0.get::<Whole>(index)?.0)
    }

    /// A number where the host takes no larger ones anyway.
    fn clamped(&self, index: usize) -> Result<u32> {
        Ok(u32::try_from(self.whole(index)?).unwrap_or(u32::MAX))
    }
}

/// The prelude notes down no other steps.
fn unknown() -> Error {
    Error::new_from_js("step", "one of those that there are")
}

/// A number that the prelude has found whole and not too large to be exact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl<'js> FromJs<'js> for Whole {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the prelude has checked it"
    )]
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        Ok(Self(f64::from_js(ctx, value)? as u64))
    }
}

impl<'js> IntoJs<'js> for Whole {
    #[expect(
        clippy::cast_precision_loss,
        reason = "times are exact for the next hundred thousand years"
    )]
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        (self.0 as f64).into_js(ctx)
    }
}

fn each<'js>(steps: &Array<'js>, mut replay: impl FnMut(Step<'js>) -> Result<()>) -> Result<()> {
    for step in steps.iter() {
        replay(Step(step?))?;
    }
    Ok(())
}

/// `[method, url, steps]` as a request.
pub(crate) fn request(noted: &Array<'_>) -> Result<Request> {
    let request = Request::new(&noted.get::<String>(0)?, &noted.get::<String>(1)?);
    each(&noted.get(2)?, |step| {
        match step.name()?.as_str() {
            "header" => request.header(&step.text(1)?, &step.text(2)?),
            "query" => request.query(&step.text(1)?, &step.text(2)?),
            "bodyBytes" => request.body_bytes(&step.bytes(1)?),
            "bodyText" => request.body_text(&step.text(1)?, &step.text(2)?),
            "bodyForm" => {
                let fields: Vec<Vec<String>> = step.get(1)?;
                let fields: Vec<_> = fields.into_iter().filter_map(pair).collect();
                request.body_form(&fields);
            }
            "timeoutMs" => request.timeout_ms(step.clamped(1)?),
            "maxBytes" => request.max_bytes(step.clamped(1)?),
            "noRedirects" => request.redirects(Redirects::Manual),
            "noCookies" => request.cookies(Cookies::None),
            "taskCookies" => request.cookies(Cookies::JarAndTask),
            "account" => request.account(&step.text(1)?),
            "range" => request.range(step.whole(1)?, step.get::<Option<Whole>>(2)?.map(|last| last.0)),
            "cacheSeconds" => request.cache_seconds(step.clamped(1)?),
            "captureJson" => request.capture_json(&step.text(1)?, &step.text(2)?),
            "captureHeader" => request.capture_header(&step.text(1)?, &step.text(2)?),
            "captureCookie" => request.capture_cookie(&step.text(1)?, &step.text(2)?),
            "captureForm" => request.capture_form(&step.text(1)?, &step.text(2)?),
            "secretJson" => request.secret_json(&step.text(1)?, &step.text(2)?),
            "secretHeader" => request.secret_header(&step.text(1)?, &step.text(2)?),
            "secretQuery" => request.secret_query(&step.text(1)?, &step.text(2)?),
            "secretForm" => request.secret_form(&step.text(1)?, &step.text(2)?),
            _ => return Err(unknown()),
        }
        Ok(())
    })?;
    Ok(request)
}

fn pair(fields: Vec<String>) -> Option<(String, String)> {
    let [name, value] = fields.try_into().ok()?;
    Some((name, value))
}

/// Does with the listing what was noted.
pub(crate) fn fill(listing: &Listing, noted: &Value<'_>) -> Result<()> {
    each(&noted.get()?, |step| {
        match step.name()?.as_str() {
            "title" => listing.title(&step.text(1)?),
            "description" => listing.description(&step.text(1)?),
            "cover" => listing.cover(&step.text(1)?),
            "nextPage" => listing.next_page(&step.text(1)?),
            "askPassword" => listing.ask_password(&step.text(1)?),
            "leftOut" => listing.left_out(left_out(&step)?, &step.text(2)?, step.clamped(3)?),
            "add" => entry(&listing.add(&step.text(1)?, &step.text(2)?), &step.get(3)?)?,
            _ => return Err(unknown()),
        }
        Ok(())
    })
}

fn left_out(step: &Step<'_>) -> Result<LeftOut> {
    Ok(match step.text(1)?.as_str() {
        "unreadable" => LeftOut::Unreadable,
        "tooManyFiles" => LeftOut::TooManyFiles,
        "tooManyFolders" => LeftOut::TooManyFolders,
        "tooDeep" => LeftOut::TooDeep,
        _ => return Err(unknown()),
    })
}

/// Does with an entry, or a variant of one, what was noted.
fn entry(entry: &Entry, noted: &Array<'_>) -> Result<()> {
    each(noted, |step| {
        match step.name()?.as_str() {
            "kind" => entry.kind(kind(&step)?),
            "folder" => entry.dir(&step.text(1)?),
            "size" => entry.size(step.whole(1)?),
            "modifiedMs" => entry.modified_ms(step.whole(1)?),
            "checksum" => entry.checksum(&step.text(1)?, &step.text(2)?),
            "mediaType" => entry.media_type(&step.text(1)?),
            "thumbnail" => entry.thumbnail(&step.text(1)?),
            "durationMs" => entry.duration_ms(step.whole(1)?),
            "selected" => entry.default_selected(step.get(1)?),
            "link" => entry.link(link(&step.get(1)?)?),
            "variant" => self::entry(
                &entry.add_variant(&step.text(1)?, &step.text(2)?, step.get(3)?),
                &step.get(4)?,
            )?,
            _ => return Err(unknown()),
        }
        Ok(())
    })
}

fn kind(step: &Step<'_>) -> Result<FileKind> {
    Ok(match step.text(1)?.as_str() {
        "file" => FileKind::File,
        "folder" => FileKind::Folder,
        "videoStream" => FileKind::VideoStream,
        "audioStream" => FileKind::AudioStream,
        "subtitle" => FileKind::Subtitle,
        "image" => FileKind::Image,
        _ => return Err(unknown()),
    })
}

/// `[url, steps]` as a link.
pub(crate) fn link(noted: &Array<'_>) -> Result<Link> {
    let link = Link::new(&noted.get::<String>(0)?);
    each(&noted.get(1)?, |step| {
        match step.name()?.as_str() {
            "mirror" => link.mirror(&step.text(1)?),
            "header" => link.header(&step.text(1)?, &step.text(2)?),
            "secretHeader" => link.secret_header(&step.text(1)?, &step.text(2)?),
            "account" => link.account(&step.text(1)?),
            "ranges" => link.range_supported(step.get(1)?),
            "singleUse" => link.single_use(true),
            "expiresMs" => link.expires_ms(step.whole(1)?),
            "maxConnections" => link.max_connections(step.clamped(1)?),
            "audio" => link.pair_audio(self::link(&step.get(1)?)?),
            "manifest" => link.manifest(&step.text(1)?),
            "segment" => {
                let part: Option<Vec<Whole>> = step.get(2)?;
                let part = part.and_then(|part| Some((part.first()?.0, part.get(1)?.0)));
                link.segment(&step.text(1)?, part);
            }
            "segmentKeyAt" => link.segment_key_at(&step.text(1)?, &step.bytes(2)?),
            "segmentKey" => link.segment_key(&step.bytes(1)?, &step.bytes(2)?),
            "noSegmentKey" => link.no_segment_key(),
            _ => return Err(unknown()),
        }
        Ok(())
    })?;
    Ok(link)
}

/// Does with the feed what was noted.
pub(crate) fn fill_feed(feed: &Sink, noted: &Value<'_>) -> Result<()> {
    each(&noted.get()?, |step| {
        match step.name()?.as_str() {
            "title" => feed.title(&step.text(1)?),
            "etag" => feed.etag(&step.text(1)?),
            "ttlSeconds" => feed.ttl_seconds(step.clamped(1)?),
            "add" => item(&feed.add(&step.text(1)?, &step.text(2)?, &step.text(3)?), &step.get(4)?)?,
            _ => return Err(unknown()),
        }
        Ok(())
    })
}

/// Does with the screen of a login what was noted.
pub(crate) fn fill_screen(screen: &Screen, noted: &Value<'_>) -> Result<()> {
    each(&noted.get()?, |step| {
        match step.name()?.as_str() {
            "message" => screen.message(&step.text(1)?),
            "qr" => screen.qr(&step.text(1)?, step.clamped(2)?, &step.text(3)?),
            "field" => screen.field(&step.text(1)?, &step.text(2)?, step.get(3)?),
            "openUrl" => screen.open_url(&step.text(1)?, step.get::<Option<String>>(2)?.as_deref()),
            "pollAfterMs" => screen.poll_after_ms(step.clamped(1)?),
            "done" => screen.done(&step.text(1)?, &step.text(2)?),
            "expiresMs" => screen.expires_ms(step.whole(1)?),
            _ => return Err(unknown()),
        }
        Ok(())
    })
}

/// Does with an item what was noted.
fn item(item: &Item, noted: &Array<'_>) -> Result<()> {
    each(noted, |step| {
        match step.name()?.as_str() {
            "publishedMs" => item.published_ms(step.whole(1)?),
            "summary" => item.summary(&step.text(1)?),
            "size" => item.size(step.whole(1)?),
            "enclosure" => item.enclosure(&step.text(1)?, &step.text(2)?),
            "infohash" => item.infohash(&step.text(1)?),
            "resolveWithPlugin" => item.resolve_with_plugin(true),
            _ => return Err(unknown()),
        }
        Ok(())
    })
}
