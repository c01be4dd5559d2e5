//! Endpoints as they are configured: the setting `webhook.endpoints`, its checks, and what of it is secret. Pure.

use std::{collections::BTreeMap, fmt, sync::Arc};

use egress::Reach;
use protocol::{MASKED, RecordMismatch, WebhookEndpointDto};
use transfer::{SafeUrl, Secret};

use crate::{
    event::{EventKind, Occurrence},
    header,
    redact::Secrets,
    template::{Escape, Preset, Template},
};

/// Limits of the setting. A person has a few endpoints with a token each; the whole is part of every snapshot.
pub const MAX_ENDPOINTS: usize = 32;
const MAX_SETTING_BYTES: usize = 256 * 1024;
const MAX_ID_BYTES: usize = 64;
const MAX_NAME_CHARS: usize = 128;
const MAX_URL_BYTES: usize = 4096;
const MAX_HEADERS: usize = 16;
const MAX_SECRET_BYTES: usize = 256;

/// Why the setting is refused. No variant repeats a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoints {
    /// It is no JSON array of endpoints.
    #[error("webhook.endpoints must be a JSON array of endpoints, or empty: {0}")]
    Json(String),
    /// It is too long.
    #[error("webhook.endpoints has {0} bytes; the limit is {MAX_SETTING_BYTES}: shorten templates or headers")]
    TooLong(usize),
    /// There are too many.
    #[error("there are {0} webhooks; the limit is {MAX_ENDPOINTS}: remove some")]
    TooMany(usize),
    /// Two have the same id.
    #[error("two webhooks have the id {0:?}: give each its own")]
    SameId(String),
    /// A member of an endpoint is refused.
    #[error("webhook {endpoint}, {field}: {why}")]
    Field {
        /// The id or the place of the endpoint.
        endpoint: String,
        /// The member.
        field: &'static str,
        /// What is wrong, and what to do.
        why: String,
    },
}

/// A checked endpoint.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of the user that depends on no other"
)]
pub struct Endpoint {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The body without a template.
    pub preset: Preset,
    /// Where to.
    pub url: SafeUrl,
    /// Whether it gets anything.
    pub is_enabled: bool,
    /// The kinds of events it subscribes to.
    pub events: Vec<EventKind>,
    /// Only of this queue, if not empty.
    pub queue: String,
    /// The user's header fields.
    pub headers: Vec<(String, Secret)>,
    /// The key of signatures; empty is none.
    pub sign_secret: Secret,
    /// Whether the URL may be plain HTTP.
    pub allows_http: bool,
    /// Whether the URL may lead to private addresses.
    pub allows_private: bool,
    /// Whether requests go through the proxy of the settings.
    pub uses_proxy: bool,
    /// As the user wrote it; empty is the preset's.
    template_text: String,
    /// `None` is the event's record.
    template: Option<Template>,
    secrets: Secrets,
}

impl fmt::Debug for Endpoint {
    /// Without URL, headers and secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({}, {})", self.id, self.shown_url())
    }
}

/// All endpoints. Clones share them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints(Arc<[Arc<Endpoint>]>);

impl Endpoints {
    /// Checks a new value of the setting. Secrets that it leaves out or that are `***` are those of the endpoint of the
    /// same id in `before`.
    pub fn check(text: &str, before: &Self) -> Result<Self, InvalidEndpoints> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_SETTING_BYTES {
            return Err(InvalidEndpoints::TooLong(text.len()));
        }
        let records: Vec<WebhookEndpointDto> = protocol::from_json(text.as_bytes())
            .map_err(|mismatch: RecordMismatch| InvalidEndpoints::Json(mismatch.to_string()))?;
        if records.len() > MAX_ENDPOINTS {
            return Err(InvalidEndpoints::TooMany(records.len()));
        }
        let mut endpoints: Vec<Arc<Endpoint>> = Vec::with_capacity(records.len());
        for (record, number) in records.into_iter().zip(1..) {
            let endpoint = Endpoint::check(record, number, before)?;
            if endpoints.iter().any(|other| other.id == endpoint.id) {
                return Err(InvalidEndpoints::SameId(endpoint.id));
            }
            endpoints.push(Arc::new(endpoint));
        }
        Ok(Self(endpoints.into()))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.0.iter()
    }

    /// The one of this id.
    pub fn get(&self, id: &str) -> Option<&Arc<Endpoint>> {
        self.0.iter().find(|endpoint| endpoint.id == id)
    }

    /// Whether any of them subscribes to events of this kind.
    pub fn want(&self, kind: EventKind) -> bool {
        self.0
            .iter()
            .any(|endpoint| endpoint.is_enabled && endpoint.events.contains(&kind))
    }

    /// The setting's value with `***` for secrets, for clients.
    pub fn shown(&self) -> String {
        self.text(|endpoint| endpoint.record(&endpoint.shown_url(), |_| MASKED.to_owned()))
    }

    /// The setting's value as it is, secrets included, to be sealed and stored.
    pub fn exposed(&self) -> String {
        self.text(|endpoint| endpoint.record(endpoint.url.expose(), |secret| secret.expose().to_owned()))
    }

    fn text(&self, record: impl Fn(&Endpoint) -> WebhookEndpointDto) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let records: Vec<_> = self.0.iter().map(|endpoint| record(endpoint)).collect();
        serde_json::to_string(&records).expect("our records always encode")
    }
}

impl Endpoint {
    /// Checks an endpoint, the `number`th of its list, against those that are stored.
    pub fn check(record: WebhookEndpointDto, number: usize, stored: &Endpoints) -> Result<Self, InvalidEndpoints> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let has_id = !record.id.is_empty() && record.id.len() <= MAX_ID_BYTES && record.id.chars().all(is_id);
        let place = if has_id { record.id.clone() } else { number.to_string() };
        let refuse = move |field: &'static str| {
            let endpoint = place.clone();
            move |why: String| InvalidEndpoints::Field { endpoint, field, why }
        };
        if !has_id {
            let why = format!("an id has 1 to {MAX_ID_BYTES} letters, digits, -, _ or .");
            return Err(refuse("id")(why));
        }
        let before = stored.get(&record.id).map(Arc::as_ref);
        let name = name(&record).map_err(refuse("name"))?;
        let preset = preset(&record.preset).map_err(refuse("preset"))?;
        let url = url(&record, preset, before).map_err(refuse("url"))?;
        let events = events(&record.events).map_err(refuse("events"))?;
        let kept = Kept { before, url: &url };
        let headers = kept.headers(record.headers).map_err(refuse("headers"))?;
        let sign_secret = kept
            .sign_secret(record.sign_secret.as_deref())
            .map_err(refuse("signSecret"))?;
        let media_type = media_type(&headers, preset).to_owned();
        let template = match (record.body_template.as_str(), preset.template()) {
            ("", None) => None,
            ("", Some(text)) => Some(Template::compile(text, Escape::of(&media_type))),
            (text, _) => Some(Template::compile(text, Escape::of(&media_type))),
        };
        let template = template.transpose().map_err(refuse("bodyTemplate"))?;
        let secrets = secrets(&url, &headers, &sign_secret);
        Ok(Self {
            id: record.id,
            name,
            preset,
            url,
            is_enabled: record.enabled,
            events,
            queue: record.queue_id.trim().to_owned(),
            headers,
            sign_secret,
            allows_http: record.allow_http,
            allows_private: record.allow_private,
            uses_proxy: record.use_proxy,
            template_text: record.body_template,
            template,
            secrets,
        })
    }

    /// Whether it subscribes to this.
    pub fn wants(&self, occurrence: &Occurrence) -> bool {
        let is_its_queue = self.queue.is_empty() || self.queue == occurrence.queue.queue_id;
        self.is_enabled && self.events.contains(&occurrence.kind) && is_its_queue
    }

    /// The URL for people: path and query are a credential at most services.
    pub fn shown_url(&self) -> String {
        shown(&self.url)
    }

    /// The addresses that it may be reached at.
    pub fn reach(&self) -> Reach {
        if self.allows_private {
            Reach::Anywhere
        } else {
            Reach::Global
        }
    }

    /// The media type of its bodies.
    pub fn media_type(&self) -> &str {
        media_type(&self.headers, self.preset)
    }

    pub(crate) fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    /// A text of a request or response for the log.
    pub(crate) fn loggable(&self, text: &str) -> String {
        self.secrets.shorten(text)
    }

    fn record(&self, url: &str, show: impl Fn(&Secret) -> String) -> WebhookEndpointDto {
        let sign_secret = if self.sign_secret.is_empty() {
            String::new()
        } else {
            show(&self.sign_secret)
        };
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), show(value)));
        WebhookEndpointDto {
            id: self.id.clone(),
            name: self.name.clone(),
            preset: self.preset.name().to_owned(),
            url: url.to_owned(),
            enabled: self.is_enabled,
            events: self.events.iter().map(|kind| kind.name().to_owned()).collect(),
            queue_id: self.queue.clone(),
            headers: Some(headers.collect()),
            body_template: self.template_text.clone(),
            sign_secret: Some(sign_secret),
            allow_http: self.allows_http,
            allow_private: self.allows_private,
            use_proxy: self.uses_proxy,
        }
    }
}

/// What an update may keep of the stored endpoint. Secrets belong to the origin that they were given for: under another
/// URL they would be sent to somebody else.
struct Kept<'e> {
    before: Option<&'e Endpoint>,
    url: &'e SafeUrl,
}

impl Kept<'_> {
    fn headers(&self, given: Option<BTreeMap<String, String>>) -> Result<Vec<(String, Secret)>, String> {
        let stored = self.before.map(|before| before.headers.as_slice()).unwrap_or_default();
        let Some(given) = given else {
            self.check_origin(!stored.is_empty(), "headers")?;
            return Ok(stored.to_vec());
        };
        if given.len() > MAX_HEADERS {
            return Err(format!("there are {} headers; the limit is {MAX_HEADERS}", given.len()));
        }
        let mut headers: Vec<(String, Secret)> = Vec::with_capacity(given.len());
        for (name, value) in given {
            let name = name.trim().to_owned();
            if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
                return Err("a header is given twice: names differ in more than their case".to_owned());
            }
            let value = value.trim();
            header::check(&name, value)?;
            let value = if value == MASKED {
                self.check_origin(true, "headers")?;
                let known = stored.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name));
                let known = known.ok_or_else(|| format!("the header {name} has no stored value: give its value"))?;
                known.1.clone()
            } else {
                Secret::new(value)
            };
            headers.push((name, value));
        }
        Ok(headers)
    }

    fn sign_secret(&self, given: Option<&str>) -> Result<Secret, String> {
        match given.map(str::trim) {
            None => {
                let stored = self.before.map(|before| before.sign_secret.clone()).unwrap_or_default();
                self.check_origin(!stored.is_empty(), "signSecret")?;
                Ok(stored)
            }
            Some(MASKED) => {
                let stored = self.before.filter(|before| !before.sign_secret.is_empty());
                let stored = stored.ok_or("there is no stored secret: give one, or leave it empty")?;
                self.check_origin(true, "signSecret")?;
                Ok(stored.sign_secret.clone())
            }
            Some(text) if text.len() > MAX_SECRET_BYTES => Err(format!(
                "the secret has {} bytes; the limit is {MAX_SECRET_BYTES}",
                text.len()
            )),
            Some(text) => Ok(Secret::new(text)),
        }
    }

    fn check_origin(&self, keeps: bool, what: &str) -> Result<(), String> {
        match self.before {
            Some(before) if keeps && before.url.origin() != self.url.origin() => Err(format!(
                "the stored value belongs to {}; the URL has another origin now: give {what} again, or empty",
                before.url.origin()
            )),
            _ => Ok(()),
        }
    }
}

fn name(record: &WebhookEndpointDto) -> Result<String, String> {
    let name = record.name.trim();
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(format!("a name has at most {MAX_NAME_CHARS} characters, on one line"));
    }
    Ok(if name.is_empty() {
        record.id.clone()
    } else {
        name.to_owned()
    })
}

fn preset(name: &str) -> Result<Preset, String> {
    match name.trim() {
        "" => Ok(Preset::Json),
        name => Preset::parse(name).ok_or_else(|| {
            let known = Preset::ALL.map(Preset::name).join(", ");
            format!("there is no such preset; there are {known}")
        }),
    }
}

fn events(names: &[String]) -> Result<Vec<EventKind>, String> {
    if names.is_empty() {
        return Ok(EventKind::USUAL.to_vec());
    }
    let kinds = names.iter().map(|name| EventKind::parse(name.trim()));
    let kinds: Option<Vec<_>> = kinds.collect();
    let mut kinds = kinds.ok_or_else(|| format!("there is no such event; there are {}", EventKind::names()))?;
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

fn url(record: &WebhookEndpointDto, preset: Preset, before: Option<&Endpoint>) -> Result<SafeUrl, String> {
    let url = match before {
        Some(before) if record.url.trim() == before.shown_url() => before.url.clone(),
        _ => SafeUrl::parse(&record.url).map_err(|error| error.to_string())?,
    };
    if url.as_url().path() == format!("/{MASKED}") {
        return Err("the stored URL belongs to another host: give the new URL as a whole".to_owned());
    }
    if url.expose().len() > MAX_URL_BYTES {
        return Err(format!(
            "the URL has {} bytes; the limit is {MAX_URL_BYTES}",
            url.expose().len()
        ));
    }
    match url.scheme() {
        "https" => {}
        "http" if record.allow_http => {}
        "http" => {
            return Err("plain HTTP shows everybody on the way what is sent: use https, or set allowHttp".to_owned());
        }
        _ => return Err("a webhook's URL begins with https:// or http://".to_owned()),
    }
    if !record.allow_private
        && let Err(forbidden) = Reach::Global.check(url.as_url())
    {
        return Err(format!(
            "{} is no public address: set allowPrivate if it is meant",
            forbidden.host
        ));
    }
    let has_chat = || url.as_url().query_pairs().any(|(name, _)| name == "chat_id");
    if preset == Preset::Telegram && record.body_template.is_empty() && !has_chat() {
        return Err("Telegram needs the chat in the URL: append ?chat_id= and its number".to_owned());
    }
    Ok(url)
}

fn media_type(headers: &[(String, Secret)], preset: Preset) -> &str {
    let own = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    own.map_or(preset.media_type(), |(_, value)| value.expose())
}

fn shown(url: &SafeUrl) -> String {
    let plain = url.without_login();
    let is_whole = plain == *url && url.as_url().path() == "/" && url.as_url().query().is_none();
    if is_whole {
        return url.to_string();
    }
    let url = url.as_url();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}/{MASKED}", url.scheme(), url.host_str().unwrap_or(""))
}

/// Everything of an endpoint that could be shown to it only: header values and their parts, the signing secret, the login,
/// the path and the query of its URL with their parts.
fn secrets(url: &SafeUrl, headers: &[(String, Secret)], sign_secret: &Secret) -> Secrets {
    let mut all = vec![sign_secret.expose().to_owned()];
    for (name, value) in headers {
        // It decides how a body is written, and shows in every response's body that is typed alike.
        if !name.eq_ignore_ascii_case("content-type") {
            all.push(value.expose().to_owned());
            all.extend(value.expose().split([' ', ',', ';', '=']).map(ToOwned::to_owned));
        }
    }
    if let Some(login) = url.credentials() {
        all.extend([login.user, login.password.expose().to_owned()]);
    }
    let url = url.as_url();
    let parts = url.path_segments().into_iter().flatten();
    // `services`, `webhooks` and `sendMessage` are no secrets, and tokens are longer.
    all.extend(parts.filter(|part| part.len() >= 12).map(ToOwned::to_owned));
    all.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    let as_sent = url.query().unwrap_or("").split('&');
    all.extend(as_sent.filter_map(|pair| pair.split_once('=').map(|(_, value)| value.to_owned())));
    Secrets::new(all)
}

#[cfg(test)]
mod tests;
