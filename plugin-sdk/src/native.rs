//! The host's side of the contract outside the sandbox, so that plugins can be tested like any code: the same functions
//! that are generated for guests, answered by the [`test::Host`](crate::test::Host) that is running.

#![expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "functions have the shape of the generated ones"
)]

mod secret;

/// Implements functions of the contract that each change the record behind a handle, which `change` gives to them.
macro_rules! setters {
    ($(fn $name:ident($($argument:ident: $type:ty),*) |$record:ident| $change:expr;)*) => {
        $(pub(crate) fn $name(&self, $($argument: $type),*) {
            self.change(|$record| $change);
        })*
    };
}

pub(crate) mod types {
    //! Shared values.

    pub(crate) use svc_plugin_text::Node;
}

pub(crate) mod env {
    //! Facts around the call.

    use crate::world::with_host;

    /// How long a call of a test seems to have left.
    const TIME_LEFT_MS: u32 = 10_000;

    pub(crate) fn now_ms() -> u64 {
        with_host(|host| host.now_ms)
    }

    pub(crate) fn random(len: u32) -> Vec<u8> {
        with_host(|host| host.random(len as usize))
    }

    pub(crate) fn locale() -> String {
        with_host(|host| host.locale.clone())
    }

    pub(crate) fn host_version() -> String {
        "0.0.0-test".to_owned()
    }

    pub(crate) fn setting(key: &str) -> Option<String> {
        with_host(|host| host.settings.get(key).cloned())
    }

    pub(crate) fn has_feature(name: &str) -> bool {
        with_host(|host| host.features.contains(name))
    }

    pub(crate) fn time_left_ms() -> u32 {
        TIME_LEFT_MS
    }
}

pub(crate) mod log {
    //! What plugins say.

    use crate::world::with_host;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Level {
        Debug,
        Info,
        Warn,
        Error,
    }

    pub(crate) fn write(level: Level, message: &str) {
        with_host(|host| host.log.push(format!("{level:?}: {message}")));
    }

    pub(crate) fn progress(done: u32, total: Option<u32>, note: &str) {
        let total = total.map(|total| format!("/{total}")).unwrap_or_default();
        with_host(|host| host.log.push(format!("Progress: {done}{total} {note}")));
    }
}

pub(crate) mod storage {
    //! What plugins remember; nothing expires during a test.

    use crate::world::with_host;

    pub(crate) fn get(key: &str) -> Option<Vec<u8>> {
        with_host(|host| host.storage.get(key).cloned())
    }

    pub(crate) fn set(key: &str, value: &[u8], _: Option<u32>) -> Result<(), String> {
        with_host(|host| host.storage.insert(key.to_owned(), value.to_vec()));
        Ok(())
    }

    pub(crate) fn remove(key: &str) {
        with_host(|host| host.storage.remove(key));
    }

    pub(crate) fn keys(prefix: &str) -> Vec<String> {
        with_host(|host| {
            host.storage
                .keys()
                .filter(|key| key.starts_with(prefix))
                .cloned()
                .collect()
        })
    }
}

#[cfg(feature = "serde")]
pub(crate) mod tools {
    //! What programs of the user find: what the test gives for a page.

    pub use crate::world::ToolError;
    use crate::world::with_host;

    pub(crate) fn discover(url: &str) -> Result<String, ToolError> {
        let (found, is_replayed) = with_host(|host| (host.media.get(url).cloned(), host.tape.is_some()));
        found.unwrap_or_else(|| {
            // As in the sandbox: fixtures have requests only.
            Err(if is_replayed {
                ToolError::NotAllowed("recorded calls have no programs".to_owned())
            } else {
                ToolError::Failed(format!("the test has no media of {url}"))
            })
        })
    }
}

pub(crate) mod vault {
    //! Secrets: the settings of the test, and what accounts have.

    use super::secret;
    use crate::world::with_host;
    pub use crate::world::{Encoding, Hash};

    pub(crate) fn has(account: &str, name: &str) -> bool {
        with_host(|host| host.secret(account, name).is_some_and(|value| !value.is_empty()))
    }

    pub(crate) fn forget(account: &str, name: &str) {
        with_host(|host| host.secrets.remove(&(account.to_owned(), name.to_owned())));
    }

    pub(crate) fn digest(account: &str, template: &str, hash: Hash, encoding: Encoding) -> Result<String, String> {
        let filled = secret::filled(account, template)?;
        let digest = secret::digest(hash, filled.as_bytes())?;
        Ok(secret::encode(encoding, &digest))
    }

    pub(crate) fn hmac(account: &str, key: &str, data: &str, hash: Hash, encoding: Encoding) -> Result<String, String> {
        if hash == Hash::Md5 {
            return Err("signatures with md5 are not offered".to_owned());
        }
        let key = secret::filled(account, &format!("{{{key}}}"))?;
        let signature = secret::hmac(hash, key.as_bytes(), data.as_bytes())?;
        Ok(secret::encode(encoding, &signature))
    }

    /// Recordings have the name of what was encrypted, so that any value will do.
    pub(crate) fn rsa_encrypt(account: &str, name: &str, _: &str, _: bool, _: Encoding) -> Result<String, String> {
        secret::filled(account, &format!("{{{name}}}"))?;
        let encrypted = format!("{name}.rsa");
        with_host(|host| host.keep_secret(account, &encrypted, "encrypted"));
        Ok(encrypted)
    }
}

pub(crate) mod text {
    //! Searching and decoding, by the host's own code.

    use svc_plugin_text as search;

    pub(crate) use search::{Node, UrlParts};

    fn as_text_error<T>(result: Result<T, search::TextError>) -> Result<T, String> {
        result.map_err(|error| error.to_string())
    }

    pub(crate) fn parse_url(url: &str) -> Result<UrlParts, String> {
        as_text_error(search::parse_url(url))
    }

    pub(crate) fn join_url(base: &str, reference: &str) -> Result<String, String> {
        as_text_error(search::join_url(base, reference))
    }

    pub(crate) fn regex_find(pattern: &str, input: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        as_text_error(search::captures(pattern, input, &mut search::Work::default()))
    }

    pub(crate) fn html_select(html: &str, css: &str) -> Result<Vec<Node>, String> {
        as_text_error(search::select(html, css, &mut search::Work::default()))
    }

    pub(crate) fn base64_decode(text: &str) -> Result<Vec<u8>, String> {
        as_text_error(search::base64_decode(text))
    }

    pub(crate) fn aes_decrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, String> {
        as_text_error(search::aes_decrypt_cbc(key, iv, data))
    }

    pub(crate) fn digest(algorithm: &str, data: &[u8]) -> Result<Vec<u8>, String> {
        as_text_error(search::digest(algorithm, data))
    }
}

pub(crate) mod http {
    //! Requests, answered from the pages of the test.

    use std::cell::RefCell;

    use serde_json::{Map, Value};
    use svc_plugin_text as search;

    use super::{
        secret::{self, Capture},
        types::Node,
    };
    use crate::world::{self, with_host};

    #[derive(Debug)]
    #[expect(dead_code, reason = "not every failure can be had from pages")]
    pub(crate) enum HttpError {
        Denied(String),
        BlockedAddress,
        Timeout,
        TooLarge(u64),
        TooManyRequests,
        Tls(String),
        Network(String),
        Invalid(String),
    }

    #[derive(Clone, Copy)]
    pub(crate) enum Redirects {
        Manual,
    }

    pub(crate) enum Cookies {
        None,
        JarAndTask,
    }

    #[derive(Debug)]
    pub(crate) struct Request {
        sent: RefCell<world::Sent>,
        query: RefCell<Vec<(String, String)>>,
        follows: RefCell<bool>,
        /// The slot of its account; empty for the plugin itself.
        account: RefCell<String>,
        secrets: RefCell<Secrets>,
        captures: RefCell<Vec<(Capture, String)>>,
    }

    /// Names, or pointers, and templates.
    #[derive(Debug, Default)]
    struct Secrets {
        headers: Vec<(String, String)>,
        query: Vec<(String, String)>,
        form: Vec<(String, String)>,
        json: Vec<(String, String)>,
    }

    impl Secrets {
        /// The real host refuses to send a request with a secret that an account does not have. The plugin's own are the
        /// settings, which a test need not give.
        fn check(&self, account: &str) -> Result<(), HttpError> {
            let all = [&self.headers, &self.query, &self.form, &self.json];
            for (_, template) in all.into_iter().flatten().filter(|_| !account.is_empty()) {
                secret::filled(account, template).map_err(HttpError::Invalid)?;
            }
            Ok(())
        }

        /// Puts them where the real host does, with their names in place of their values.
        fn put_into(&self, sent: &mut world::Sent) -> Result<(), HttpError> {
            for (name, template) in &self.query {
                let separator = if sent.url.contains('?') { "&" } else { "?" };
                sent.url.extend([separator, name, "=", &secret::shown(template)]);
            }
            for (name, template) in &self.form {
                if !sent.body.is_empty() {
                    sent.body.push(b'&');
                }
                sent.body
                    .extend(format!("{name}={}", secret::shown(template)).into_bytes());
            }
            if self.json.is_empty() {
                return Ok(());
            }
            let mut body: Value = match &sent.body[..] {
                [] => Map::new().into(),
                body => serde_json::from_slice(body).map_err(|error| HttpError::Invalid(error.to_string()))?,
            };
            for (pointer, template) in &self.json {
                secret::set_json(&mut body, pointer, secret::shown(template)).map_err(HttpError::Invalid)?;
            }
            sent.body = body.to_string().into_bytes();
            Ok(())
        }
    }

    impl Request {
        pub(crate) fn new(method: &str, url: &str) -> Self {
            Self {
                sent: RefCell::new(world::Sent {
                    method: method.to_owned(),
                    url: url.to_owned(),
                    ..world::Sent::default()
                }),
                query: RefCell::default(),
                follows: RefCell::new(true),
                account: RefCell::default(),
                secrets: RefCell::default(),
                captures: RefCell::default(),
            }
        }

        pub(crate) fn header(&self, name: &str, value: &str) {
            let header = (name.to_ascii_lowercase(), value.to_owned());
            self.sent.borrow_mut().headers.push(header);
        }

        /// A test sees which secret is sent: the template.
        pub(crate) fn secret_header(&self, name: &str, template: &str) {
            self.header(name, template);
            self.with_secrets(|secrets| &mut secrets.headers, name, template);
        }

        /// Stands at the end of the URL, where the real host puts it, with the secret as recordings have it.
        pub(crate) fn secret_query(&self, name: &str, template: &str) {
            self.with_secrets(|secrets| &mut secrets.query, name, template);
        }

        /// Stands at the end of the form, in the same way.
        pub(crate) fn secret_form(&self, name: &str, template: &str) {
            self.content_type("application/x-www-form-urlencoded");
            self.with_secrets(|secrets| &mut secrets.form, name, template);
        }

        pub(crate) fn secret_json(&self, pointer: &str, template: &str) {
            self.content_type("application/json");
            self.with_secrets(|secrets| &mut secrets.json, pointer, template);
        }

        fn with_secrets(
            &self,
            kind: impl FnOnce(&mut Secrets) -> &mut Vec<(String, String)>,
            name: &str,
            template: &str,
        ) {
            kind(&mut self.secrets.borrow_mut()).push((name.to_owned(), template.to_owned()));
        }

        /// Unless there is one already.
        fn content_type(&self, content_type: &str) {
            let has_one = |sent: &world::Sent| sent.headers.iter().any(|(name, _)| name == "content-type");
            if !has_one(&self.sent.borrow()) {
                self.header("content-type", content_type);
            }
        }

        pub(crate) fn capture_json(&self, pointer: &str, name: &str) {
            self.capture(Capture::Json(pointer.to_owned()), name);
        }

        pub(crate) fn capture_header(&self, field: &str, name: &str) {
            self.capture(Capture::Header(field.to_owned()), name);
        }

        pub(crate) fn capture_cookie(&self, cookie: &str, name: &str) {
            self.capture(Capture::Cookie(cookie.to_owned()), name);
        }

        pub(crate) fn capture_form(&self, css: &str, name: &str) {
            self.capture(Capture::Form(css.to_owned()), name);
        }

        fn capture(&self, capture: Capture, name: &str) {
            self.captures.borrow_mut().push((capture, name.to_owned()));
        }

        pub(crate) fn account(&self, slot: &str) {
            slot.clone_into(&mut self.account.borrow_mut());
        }

        pub(crate) fn query(&self, name: &str, value: &str) {
            self.query.borrow_mut().push((name.to_owned(), value.to_owned()));
        }

        pub(crate) fn body_bytes(&self, body: &[u8]) {
            self.sent.borrow_mut().body = body.to_vec();
        }

        pub(crate) fn body_text(&self, body: &str, content_type: &str) {
            self.header("content-type", content_type);
            self.body_bytes(body.as_bytes());
        }

        pub(crate) fn body_form(&self, fields: &[(String, String)]) {
            self.header("content-type", "application/x-www-form-urlencoded");
            self.body_bytes(search::form(fields).as_bytes());
        }

        pub(crate) fn timeout_ms(&self, _: u32) {}

        pub(crate) fn max_bytes(&self, _: u32) {}

        pub(crate) fn redirects(&self, mode: Redirects) {
            *self.follows.borrow_mut() = !matches!(mode, Redirects::Manual);
        }

        pub(crate) fn cookies(&self, _: Cookies) {}

        pub(crate) fn range(&self, first: u64, last: Option<u64>) {
            let last = last.map(|last| last.to_string()).unwrap_or_default();
            self.header("range", &format!("bytes={first}-{last}"));
        }

        pub(crate) fn cache_seconds(&self, _: u32) {}
    }

    #[derive(Debug)]
    pub(crate) struct Response {
        url: String,
        page: world::Page,
        position: RefCell<usize>,
    }

    impl Response {
        pub(crate) fn status(&self) -> u16 {
            self.page.status
        }

        pub(crate) fn final_url(&self) -> String {
            self.url.clone()
        }

        pub(crate) fn header(&self, name: &str) -> Option<String> {
            let is_shown = !name.eq_ignore_ascii_case("set-cookie");
            self.page.field(name).filter(|_| is_shown).map(str::to_owned)
        }

        pub(crate) fn read(&self, max: u32) -> Result<Vec<u8>, HttpError> {
            let mut position = self.position.borrow_mut();
            let rest = &self.page.body[*position..];
            let piece = rest[..rest.len().min(max as usize)].to_vec();
            *position += piece.len();
            Ok(piece)
        }

        pub(crate) fn text(&self) -> Result<String, HttpError> {
            Ok(String::from_utf8_lossy(&self.page.body).into_owned())
        }

        pub(crate) fn select(&self, css: &str) -> Result<Vec<Node>, HttpError> {
            as_text_error(search::select(&self.text()?, css, &mut search::Work::default()))
        }

        pub(crate) fn json(&self, pointer: &str) -> Result<Option<String>, HttpError> {
            let text = self.text()?;
            as_text_error(search::json_at(&text, pointer)).map(|found| found.map(str::to_owned))
        }

        pub(crate) fn regex(&self, pattern: &str, group: u32) -> Result<Vec<String>, HttpError> {
            as_text_error(search::group(
                pattern,
                &self.text()?,
                group as usize,
                &mut search::Work::default(),
            ))
        }
    }

    fn as_text_error<T>(result: Result<T, search::TextError>) -> Result<T, HttpError> {
        result.map_err(|error| HttpError::Invalid(error.to_string()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "a guest gives its request away")]
    pub(crate) fn send(request: Request) -> Result<Response, HttpError> {
        let account = request.account.borrow();
        let secrets = request.secrets.borrow();
        secrets.check(&account)?;
        let mut sent = request.sent.borrow().clone();
        let query = request.query.borrow();
        sent.url = as_text_error(search::with_query(&sent.url, &query))?;
        secrets.put_into(&mut sent)?;
        let follows = *request.follows.borrow();
        let answered = with_host(|host| host.answer(sent, follows)).map_err(HttpError::Network)?;
        let world::Answered { url, mut page, cookies } = answered;
        secret::capture(&account, &request.captures.borrow(), &mut page, &cookies).map_err(HttpError::Invalid)?;
        let position = RefCell::new(0);
        Ok(Response { url, page, position })
    }

    pub(crate) fn send_all(requests: Vec<Request>) -> Vec<Result<Response, HttpError>> {
        requests.into_iter().map(send).collect()
    }
}

pub(crate) mod listing {
    //! The listing, as plain records that a test can look at.

    use std::{cell::RefCell, rc::Rc};

    use crate::world;
    pub use crate::world::{FileKind, LeftOut};

    #[derive(Debug, Default)]
    pub(crate) struct Listing(pub(crate) Rc<RefCell<world::Listing>>);

    impl Listing {
        setters! {
            fn title(title: &str) |listing| listing.title = Some(title.to_owned());
            fn description(text: &str) |listing| listing.description = Some(text.to_owned());
            fn cover(url: &str) |listing| listing.cover = Some(url.to_owned());
            fn next_page(token: &str) |listing| listing.next_page = Some(token.to_owned());
            fn ask_password(prompt: &str) |listing| listing.password_prompt = Some(prompt.to_owned());
            fn left_out(kind: LeftOut, name: &str, count: u32)
                |listing| listing.left_out.push(world::Omission { kind, name: name.to_owned(), count });
        }

        fn change(&self, change: impl FnOnce(&mut world::Listing)) {
            change(&mut self.0.borrow_mut());
        }

        pub(crate) fn add(&self, id: &str, name: &str) -> Entry {
            let mut listing = self.0.borrow_mut();
            listing.entries.push(world::Entry::new(id, name));
            Entry {
                listing: self.0.clone(),
                index: listing.entries.len() - 1,
                variant: None,
            }
        }
    }

    #[derive(Debug)]
    pub(crate) struct Entry {
        listing: Rc<RefCell<world::Listing>>,
        index: usize,
        variant: Option<usize>,
    }

    impl Entry {
        setters! {
            fn kind(kind: FileKind) |entry| entry.kind = kind;
            fn dir(folder: &str) |entry| folder.clone_into(&mut entry.folder);
            fn size(bytes: u64) |entry| entry.size = Some(bytes);
            fn modified_ms(time: u64) |entry| entry.modified_ms = Some(time);
            fn checksum(algorithm: &str, hex: &str)
                |entry| entry.checksums.push((algorithm.to_owned(), hex.to_owned()));
            fn media_type(media_type: &str) |entry| entry.media_type = Some(media_type.to_owned());
            fn thumbnail(url: &str) |entry| entry.thumbnail = Some(url.to_owned());
            fn duration_ms(duration: u64) |entry| entry.duration_ms = Some(duration);
            fn default_selected(is_selected: bool) |entry| entry.is_selected = is_selected;
            fn link(link: Link) |entry| entry.link = Some(link.0.into_inner());
        }

        fn change(&self, change: impl FnOnce(&mut world::Entry)) {
            let mut listing = self.listing.borrow_mut();
            let entry = &mut listing.entries[self.index];
            match self.variant {
                Some(variant) => change(&mut entry.variants[variant]),
                None => change(entry),
            }
        }

        pub(crate) fn add_variant(&self, id: &str, label: &str, rank: i32) -> Self {
            assert!(self.variant.is_none(), "a variant has no variants");
            let mut index = 0;
            self.change(|entry| {
                index = entry.variants.len();
                entry.variants.push(world::Entry {
                    rank,
                    ..world::Entry::new(id, label)
                });
            });
            Self {
                listing: self.listing.clone(),
                index: self.index,
                variant: Some(index),
            }
        }
    }

    #[derive(Debug)]
    pub(crate) struct Link(pub(crate) RefCell<world::Link>);

    impl Link {
        pub(crate) fn new(url: &str) -> Self {
            Self(RefCell::new(world::Link::new(url)))
        }

        fn change(&self, change: impl FnOnce(&mut world::Link)) {
            change(&mut self.0.borrow_mut());
        }

        setters! {
            fn mirror(url: &str) |link| link.mirrors.push(url.to_owned());
            fn header(name: &str, value: &str) |link| link.headers.push((name.to_owned(), value.to_owned()));
            fn secret_header(name: &str, template: &str)
                |link| link.secret_headers.push((name.to_owned(), template.to_owned()));
            fn account(slot: &str) |link| link.account = Some(slot.to_owned());
            fn range_supported(is_supported: bool) |link| link.supports_ranges = Some(is_supported);
            fn single_use(is_single_use: bool) |link| link.is_single_use = is_single_use;
            fn expires_ms(time: u64) |link| link.expires_ms = Some(time);
            fn max_connections(count: u32) |link| link.max_connections = Some(count);
            fn pair_audio(audio: Self) |link| link.audio = Some(Box::new(audio.0.into_inner()));
            fn manifest(kind: &str) |link| link.manifest = Some(kind.to_owned());
            fn segment(url: &str, part: Option<(u64, u64)>) |link| link.segments.push(world::Segment {
                url: url.to_owned(),
                part,
                cipher: link.cipher.clone(),
            });
            fn segment_key_at(url: &str, iv: &[u8])
                |link| link.cipher = Some(world::Cipher::KeyAt(url.to_owned(), iv.to_vec()));
            fn segment_key(key: &[u8], iv: &[u8])
                |link| link.cipher = Some(world::Cipher::Key(key.to_vec(), iv.to_vec()));
            fn no_segment_key() |link| link.cipher = None;
        }
    }
}

pub(crate) mod feed_sink {
    //! The feed, as plain records that a test can look at.

    use std::{cell::RefCell, rc::Rc};

    use crate::world;

    #[derive(Debug, Default)]
    pub(crate) struct Sink(pub(crate) Rc<RefCell<world::Feed>>);

    impl Sink {
        setters! {
            fn title(title: &str) |feed| feed.title = Some(title.to_owned());
            fn etag(etag: &str) |feed| feed.etag = Some(etag.to_owned());
            fn ttl_seconds(seconds: u32) |feed| feed.ttl_seconds = Some(seconds);
        }

        fn change(&self, change: impl FnOnce(&mut world::Feed)) {
            change(&mut self.0.borrow_mut());
        }

        pub(crate) fn add(&self, guid: &str, title: &str, link: &str) -> Item {
            let mut feed = self.0.borrow_mut();
            feed.items.push(world::Item::new(guid, title, link));
            Item {
                feed: self.0.clone(),
                index: feed.items.len() - 1,
            }
        }
    }

    #[derive(Debug)]
    pub(crate) struct Item {
        feed: Rc<RefCell<world::Feed>>,
        index: usize,
    }

    impl Item {
        setters! {
            fn published_ms(time: u64) |item| item.published_ms = Some(time);
            fn summary(text: &str) |item| item.summary = Some(text.to_owned());
            fn size(bytes: u64) |item| item.size = Some(bytes);
            fn enclosure(url: &str, media_type: &str)
                |item| item.enclosure = Some(world::Enclosure { url: url.to_owned(), media_type: media_type.to_owned() });
            fn infohash(hex: &str) |item| item.infohash = Some(hex.to_owned());
            fn resolve_with_plugin(is_wanted: bool) |item| item.resolve_with_plugin = is_wanted;
        }

        fn change(&self, change: impl FnOnce(&mut world::Item)) {
            change(&mut self.feed.borrow_mut().items[self.index]);
        }
    }
}

pub(crate) mod workspace {
    //! The files of a finished download, as the test gives them.

    use crate::world::with_host;

    /// What is behind it belongs to the host.
    #[derive(Debug)]
    pub(crate) struct Dir;

    impl Dir {
        pub(crate) fn names(&self) -> Vec<String> {
            with_host(|host| host.files.names())
        }

        pub(crate) fn archives(&self) -> Vec<String> {
            with_host(|host| host.files.archives())
        }

        pub(crate) fn size(&self, name: &str) -> Result<u64, String> {
            with_host(|host| host.files.size(name))
        }

        pub(crate) fn read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, String> {
            with_host(|host| host.files.read(name, offset, length))
        }

        pub(crate) fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
            with_host(|host| host.files.write_new(name, bytes))
        }

        pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), String> {
            with_host(|host| host.files.rename(from, to))
        }

        pub(crate) fn unpack(&self, name: &str, passwords: &[String]) -> Result<Vec<String>, String> {
            let passwords: Vec<_> = passwords.iter().map(String::as_str).collect();
            with_host(|host| host.files.unpack(name, &passwords))
        }

        pub(crate) fn remove_archive(&self, name: &str) -> Result<(), String> {
            with_host(|host| host.files.remove_archive(name))
        }

        pub(crate) fn mux(&self, video: &str, audio: &str, output: &str) -> Result<(), String> {
            with_host(|host| host.files.mux(video, audio, output))
        }
    }
}

pub(crate) mod login_ui {
    //! The screen of a login, as a plain record that a test can look at.

    use std::cell::RefCell;

    use svc_plugin_fixture::screen;

    #[derive(Debug, Default)]
    pub(crate) struct Screen(pub(crate) RefCell<screen::Screen>);

    impl Screen {
        setters! {
            fn message(text: &str) |screen| screen.message = Some(text.to_owned());
            fn qr(payload: &str, expires_in_seconds: u32, hint: &str) |screen| screen.qr = Some(screen::Qr {
                payload: payload.to_owned(),
                expires_in_seconds,
                hint: hint.to_owned(),
            });
            fn field(key: &str, label: &str, secret: bool) |screen| screen.fields.push(screen::Field {
                key: key.to_owned(),
                label: label.to_owned(),
                secret,
            });
            fn open_url(url: &str, prefix: Option<&str>) |screen| screen.open_url = Some(screen::OpenUrl {
                url: url.to_owned(),
                redirect_prefix: prefix.map(str::to_owned),
            });
            fn poll_after_ms(delay: u32) |screen| screen.poll_after_ms = Some(delay);
            fn done(account: &str, name: &str) |screen| screen.done = Some(screen::Done {
                account_id: account.to_owned(),
                name: name.to_owned(),
            });
            fn expires_ms(time: u64) |screen| screen.expires_ms = Some(time);
        }

        fn change(&self, change: impl FnOnce(&mut screen::Screen)) {
            change(&mut self.0.borrow_mut());
        }
    }
}
