//! The functions that the prelude is given. Each is one function of the host; whatever is convenient is the prelude's.

use std::cell::RefCell;

use rquickjs::{Array, Ctx, FromJs, Function, IntoJs, Object, Result, TypedArray, Value, function::IntoJsFunc};

use crate::{
    bindings::svc::{
        plugin::{
            env,
            http::{self, HttpError, Response},
            log, storage, text,
            types::Node,
            vault::{self, Encoding, Hash},
        },
        script::answer,
    },
    steps::{self, Whole},
};

/// What is read of a body at once.
const PIECE_BYTES: u32 = 256 * 1024;

thread_local! {
    /// The responses of this call; scripts have their numbers. All of them end with the instance.
    static RESPONSES: RefCell<Vec<Response>> = const { RefCell::new(Vec::new()) };
}

/// Bytes, as a `Uint8Array`.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl<'js> FromJs<'js> for Bytes {
    #[expect(unsafe_code, reason = "a script could change the bytes under a reader")]
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let array = TypedArray::<u8>::from_js(ctx, value)?;
        // SAFETY: they are copied before any script runs again.
        let bytes = unsafe { array.as_bytes() };
        Ok(Self(bytes.unwrap_or_default().to_vec()))
    }
}

impl<'js> IntoJs<'js> for Bytes {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        TypedArray::new(ctx.clone(), self.0)?.into_js(ctx)
    }
}

/// `{ value }` or `{ error }`, for the prelude to throw: here nobody knows what is to be thrown.
struct Outcome<T, E>(std::result::Result<T, E>);

impl<'js, T: IntoJs<'js>, E: IntoJs<'js>> IntoJs<'js> for Outcome<T, E> {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        match self.0 {
            Ok(value) => object.set("value", value)?,
            Err(error) => object.set("error", error)?,
        }
        object.into_js(ctx)
    }
}

impl<'js> IntoJs<'js> for Node {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let attributes: Vec<_> = self.attrs.into_iter().map(|(name, value)| vec![name, value]).collect();
        let node = Array::new(ctx.clone())?;
        node.set(0, self.tag)?;
        node.set(1, self.text)?;
        node.set(2, self.html)?;
        node.set(3, attributes)?;
        node.into_js(ctx)
    }
}

/// Why a request has no response, as a code and a detail of `PluginError`.
impl<'js> IntoJs<'js> for HttpError {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let (code, detail) = match self {
            Self::Denied(host) => ("denied", host),
            Self::BlockedAddress => ("denied", "an address that is not public".to_owned()),
            Self::Timeout => ("network", "it took too long".to_owned()),
            Self::Tls(reason) | Self::Network(reason) => ("network", reason),
            Self::TooLarge(limit) => ("internal", format!("more than {limit} bytes")),
            Self::TooManyRequests => ("internal", "too many requests in one call".to_owned()),
            Self::Invalid(reason) => ("internal", reason),
        };
        let object = Object::new(ctx.clone())?;
        object.set("code", code)?;
        object.set("detail", detail)?;
        object.into_js(ctx)
    }
}

/// Why a body cannot be searched, as a text.
fn unreadable(error: HttpError) -> String {
    match error {
        HttpError::Invalid(reason) | HttpError::Network(reason) | HttpError::Tls(reason) => reason,
        HttpError::TooLarge(limit) => format!("it has more than {limit} bytes"),
        _ => "it cannot be read".to_owned(),
    }
}

/// All of them, by their names.
pub(crate) fn functions<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let functions = Functions {
        object: Object::new(ctx.clone())?,
    };
    functions.add("sendAll", send_all)?;
    functions.add("responseHeaders", |id: usize, name: String| {
        response(id, |it| it.header_all(&name))
    })?;
    functions.add("responseText", |id: usize| {
        response(id, |it| Outcome(it.text().map_err(unreadable)))
    })?;
    functions.add("responseBytes", |id: usize| {
        response(id, |it| Outcome(read(it).map(Bytes).map_err(unreadable)))
    })?;
    functions.add("responseJson", |id: usize, pointer: String| {
        response(id, |it| Outcome(it.json(&pointer).map_err(unreadable)))
    })?;
    functions.add("responseSelect", |id: usize, css: String| {
        response(id, |it| Outcome(it.select(&css).map_err(unreadable)))
    })?;
    functions.add("responseRegex", |id: usize, pattern: String, group: Whole| {
        let group = u32::try_from(group.0).unwrap_or(u32::MAX);
        response(id, |it| Outcome(it.regex(&pattern, group).map_err(unreadable)))
    })?;
    add_text(&functions)?;
    add_surroundings(&functions)?;
    Ok(functions.object)
}

fn add_text(functions: &Functions<'_>) -> Result<()> {
    functions.add("joinUrl", |base: String, reference: String| {
        Outcome(text::join_url(&base, &reference))
    })?;
    functions.add("pathSegments", |url: String| {
        Outcome(text::parse_url(&url).map(|parts| parts.path))
    })?;
    functions.add("select", |html: String, css: String| {
        Outcome(text::html_select(&html, &css))
    })?;
    functions.add("captures", |pattern: String, input: String| {
        Outcome(text::regex_find(&pattern, &input))
    })?;
    functions.add("base64", |input: String| {
        Outcome(text::base64_decode(&input).map(Bytes))
    })?;
    functions.add("decryptAesCbc", |key: Bytes, iv: Bytes, data: Bytes| {
        Outcome(text::aes_decrypt_cbc(&key.0, &iv.0, &data.0).map(Bytes))
    })?;
    functions.add("digest", |algorithm: String, data: Bytes| {
        Outcome(text::digest(&algorithm, &data.0).map(Bytes))
    })?;
    functions.add("filename", |name: String| text::sanitize_filename(&name))?;
    functions.add("encode", |input: String| Bytes(input.into_bytes()))?;
    functions.add("decode", |data: Bytes| String::from_utf8_lossy(&data.0).into_owned())
}

fn add_surroundings(functions: &Functions<'_>) -> Result<()> {
    functions.add("nowMs", || number(env::now_ms()))?;
    functions.add("monotonicMs", || number(env::monotonic_ms()))?;
    functions.add("timeLeftMs", env::time_left_ms)?;
    functions.add("random", |count: Whole| {
        Bytes(env::random(u32::try_from(count.0).unwrap_or(u32::MAX)))
    })?;
    functions.add("locale", env::locale)?;
    functions.add("hostVersion", env::host_version)?;
    functions.add("hasFeature", |name: String| env::has_feature(&name))?;
    functions.add("setting", |key: String| env::setting(&key))?;
    functions.add("storageGet", |key: String| storage::get(&key).map(Bytes))?;
    functions.add("storageSet", |key: String, value: Bytes, lifetime: Option<Whole>| {
        let seconds = lifetime.map(|lifetime| u32::try_from(lifetime.0).unwrap_or(u32::MAX));
        Outcome(storage::set(&key, &value.0, seconds).map(|()| true))
    })?;
    functions.add("storageRemove", |key: String| storage::remove(&key))?;
    functions.add("storageKeys", |prefix: String| storage::keys(&prefix))?;
    functions.add("vaultHas", |account: String, name: String| vault::has(&account, &name))?;
    functions.add("vaultForget", |account: String, name: String| {
        vault::forget(&account, &name);
    })?;
    functions.add(
        "vaultDigest",
        |account: String, template: String, algorithm: String, encoding: String| {
            Outcome(vault::digest(
                &account,
                &template,
                hash(&algorithm),
                self::encoding(&encoding),
            ))
        },
    )?;
    functions.add(
        "vaultHmac",
        |account: String, key: String, data: String, algorithm: String, encoding: String| {
            Outcome(vault::hmac(
                &account,
                &key,
                &data,
                hash(&algorithm),
                self::encoding(&encoding),
            ))
        },
    )?;
    functions.add("unusable", |reason: String| answer::unusable(&reason))?;
    functions.add("log", |level: String, message: String| {
        log::write(self::level(&level), &message);
    })?;
    functions.add("progress", |done: Whole, total: Option<Whole>, note: String| {
        let clamped = |number: Whole| u32::try_from(number.0).unwrap_or(u32::MAX);
        log::progress(clamped(done), total.map(clamped), &note);
    })
}

struct Functions<'js> {
    object: Object<'js>,
}

impl<'js> Functions<'js> {
    fn add<P>(&self, name: &str, function: impl IntoJsFunc<'js, P> + 'js) -> Result<()> {
        self.object
            .set(name, Function::new(self.object.ctx().clone(), function)?)
    }
}

fn send_all(noted: Vec<Array<'_>>) -> Result<Vec<Outcome<Sent, HttpError>>> {
    let requests: Vec<_> = noted
        .into_iter()
        .map(|noted| steps::request(&noted))
        .collect::<Result<_>>()?;
    let results = http::send_all(requests).into_iter();
    Ok(results.map(|result| Outcome(result.map(Sent::keep))).collect())
}

/// A response that is kept, and what every script wants to know of it.
struct Sent {
    id: usize,
    status: u16,
    url: String,
}

impl Sent {
    fn keep(response: Response) -> Self {
        let (status, url) = (response.status(), response.final_url());
        let id = RESPONSES.with_borrow_mut(|responses| {
            responses.push(response);
            responses.len() - 1
        });
        Self { id, status, url }
    }
}

impl<'js> IntoJs<'js> for Sent {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("id", self.id)?;
        object.set("status", self.status)?;
        object.set("url", self.url)?;
        object.into_js(ctx)
    }
}

fn response<T>(id: usize, look: impl FnOnce(&Response) -> T) -> T {
    RESPONSES.with_borrow(|responses| look(&responses[id]))
}

fn read(response: &Response) -> std::result::Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    loop {
        let piece = response.read(PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend(piece);
    }
}

/// As the numbers of scripts are.
#[expect(
    clippy::cast_precision_loss,
    reason = "times are exact for a quarter of a million years"
)]
fn number(whole: u64) -> f64 {
    whole as f64
}

fn level(name: &str) -> log::Level {
    match name {
        "trace" => log::Level::Trace,
        "debug" => log::Level::Debug,
        "info" => log::Level::Info,
        "warn" => log::Level::Warn,
        _ => log::Level::Error,
    }
}

/// The prelude lets no other name through.
fn hash(name: &str) -> Hash {
    match name {
        "md5" => Hash::Md5,
        "sha1" => Hash::Sha1,
        "sha512" => Hash::Sha512,
        _ => Hash::Sha256,
    }
}

fn encoding(name: &str) -> Encoding {
    match name {
        "base64" => Encoding::Base64,
        "base64url" => Encoding::Base64url,
        _ => Encoding::Hex,
    }
}
