//! Secrets in the requests of plugins: filled in if the request goes to a host that they are bound to, and replaced by
//! their names in everything that the plugin reads afterwards. Guest code never sees a value.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use plugin_host::{BoundSecret, Template, not_bound, replace, spellings};
use svc_plugin_text as search;
use transfer::Secret;
use url::Url;

use super::{Answer, FetchError, Request, header};
use crate::outside::Vault;

/// The most secret fields, and the most captures, of one request.
const MAX_FIELDS: usize = 32;

/// The shortest value that is searched for in responses: shorter ones occur in a page by chance.
const MIN_SCRUBBED_BYTES: usize = 4;

/// The position of a secret in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretPosition {
    Header,
    Query,
    Form,
}

/// A part of a request whose value contains secrets.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    position: SecretPosition,
    name: String,
    template: Template,
}

/// A value of a response to store as a secret.
#[derive(Debug, Clone)]
pub(crate) enum Capture {
    /// At this pointer of its JSON, under this name.
    Json(String, String),
    /// In this field, under this name.
    Header(String, String),
}

impl Request {
    /// Adds a part whose value the host fills in.
    pub(crate) fn add_secret(&mut self, position: SecretPosition, name: &str, template: &str) {
        if position == SecretPosition::Header && !header::guest_may_send(name) {
            self.reject(format!("the field {name} is not for plugins to set"));
        } else if self.secrets.len() >= MAX_FIELDS {
            self.reject("too many secret fields");
        } else {
            match Template::parse(template) {
                Ok(template) => self.secrets.push(Field {
                    position,
                    name: name.to_owned(),
                    template,
                }),
                Err(error) => self.reject(error.to_string()),
            }
        }
    }

    /// Adds a value to capture.
    pub(crate) fn add_capture(&mut self, capture: Capture) {
        if self.captures.len() >= MAX_FIELDS {
            self.reject("too many captures");
        } else {
            self.captures.push(capture);
        }
    }

    /// Whether its body has secrets.
    pub(crate) fn has_secret_form(&self) -> bool {
        self.secrets.iter().any(|field| field.position == SecretPosition::Form)
    }
}

/// The secrets of one request.
#[derive(Debug, Default)]
pub(crate) struct RequestSecrets {
    secrets: BTreeMap<String, BoundSecret>,
    /// Values captured from JSON, by name, in the exact bytes of the response (with quotes and escapes).
    captured: Vec<(String, Secret)>,
}

impl RequestSecrets {
    /// Finds the secrets of `request`. Fails before anything is sent if one is not bound to the host of `url`.
    pub(crate) async fn of(request: &Request, url: &Url, vault: &dyn Vault) -> Result<Self, FetchError> {
        let mut found = BTreeMap::new();
        for name in request.secrets.iter().flat_map(|field| field.template.names()) {
            if found.contains_key(name) {
                continue;
            }
            let secret = vault.find(name.to_owned()).await;
            let secret = secret.ok_or_else(|| FetchError::Invalid(format!("there is no secret {name}")))?;
            if secret.for_url(url).is_none() {
                return Err(FetchError::Secret(not_bound(name, url).to_string()));
            }
            found.insert(name.to_owned(), secret);
        }
        Ok(Self {
            secrets: found,
            captured: Vec::new(),
        })
    }

    /// Fills those of `fields` that may be sent to `url`. After a redirect there may be fewer.
    pub(crate) fn fill(&self, fields: &[Field], url: &Url) -> Vec<(SecretPosition, String, Secret)> {
        let fill = |field: &Field| {
            let value = field.template.fill(|name| self.secrets.get(name)?.for_url(url)).ok()?;
            Some((field.position, field.name.clone(), value))
        };
        fields.iter().filter_map(fill).collect()
    }

    /// The name of a secret that `target` contains but may not be sent there: some sites redirect with all parameters
    /// that they received.
    pub(crate) fn leaked_by(&self, target: &Url) -> Option<&str> {
        let mut unbound = self
            .secrets
            .iter()
            .filter(|(_, secret)| secret.for_url(target).is_none());
        let carries = |secret: &BoundSecret| {
            let mut forms = forms(secret.value().expose()).into_iter();
            forms.any(|form| target.as_str().contains(&form))
        };
        unbound
            .find(|(_, secret)| carries(secret))
            .map(|(name, _)| name.as_str())
    }

    /// Stores the values to capture from a response of `url`.
    pub(crate) async fn capture(
        &mut self,
        captures: &[Capture],
        (answer, url): (&Answer, &Url),
        vault: &dyn Vault,
    ) -> Result<(), FetchError> {
        for capture in captures {
            // Parsing a long response takes time on a thread that serves other calls as well.
            tokio::task::yield_now().await;
            let (found, name) = match capture {
                Capture::Json(pointer, name) => (json_value(&answer.body, pointer), name),
                Capture::Header(field, name) => (header_value(answer, field).map(|value| (value, None)), name),
            };
            let Some((value, written)) = found else { continue };
            let value = Secret::new(value);
            let kept = vault.capture(name.clone(), value.clone(), url.clone()).await;
            kept.map_err(FetchError::Invalid)?;
            let secret = BoundSecret::captured(value, url, Vec::new());
            self.secrets.insert(name.clone(), secret);
            self.captured
                .extend(written.map(|written| (name.clone(), Secret::new(written))));
        }
        Ok(())
    }

    /// Replaces secrets by their names in the body, the headers and the URL of a response.
    pub(crate) async fn scrub(&self, answer: &mut Answer, url: &mut Url) {
        for (name, written) in &self.captured {
            let name = format!("\"‹secret:{name}›\"");
            if let Cow::Owned(body) = replace(&answer.body, written.expose().as_bytes(), name.as_bytes()) {
                answer.body = Bytes::from(body);
            }
        }
        for (name, secret) in &self.secrets {
            tokio::task::yield_now().await;
            let name = format!("‹secret:{name}›");
            for form in forms(secret.value().expose()) {
                if let Cow::Owned(body) = replace(&answer.body, form.as_bytes(), name.as_bytes()) {
                    answer.body = Bytes::from(body);
                }
                for (_, value) in &mut answer.headers {
                    if let Cow::Owned(clean) = replace(value.as_bytes(), form.as_bytes(), name.as_bytes()) {
                        *value = String::from_utf8_lossy(&clean).into_owned();
                    }
                }
                if let Cow::Owned(clean) = replace(url.as_str().as_bytes(), form.as_bytes(), name.as_bytes()) {
                    // If the URL is invalid without the secret, keep only its site.
                    let clean = Url::parse(&String::from_utf8_lossy(&clean));
                    *url = clean.or_else(|_| url.join("/")).unwrap_or_else(|_| url.clone());
                }
            }
        }
    }
}

/// The spellings of a value (percent-encoded, JSON-escaped, …), none if it is too short to search for.
fn forms(value: &str) -> BTreeSet<String> {
    if value.len() < MIN_SCRUBBED_BYTES {
        return BTreeSet::new();
    }
    spellings(value)
}

/// The text or number at `pointer`, and its spelling.
fn json_value(body: &[u8], pointer: &str) -> Option<(String, Option<String>)> {
    let text = std::str::from_utf8(body).ok()?;
    let found = search::json_at(text, pointer).ok().flatten()?.trim();
    let value = match serde_json::from_str(found).ok()? {
        serde_json::Value::String(value) => value,
        serde_json::Value::Number(_) => found.to_owned(),
        _ => return None,
    };
    Some((value, Some(found.to_owned())))
}

fn header_value(answer: &Answer, field: &str) -> Option<String> {
    let mut headers = answer.headers.iter();
    headers
        .find(|(name, _)| name.eq_ignore_ascii_case(field))
        .map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_found_however_it_is_written() {
        let secret = BoundSecret::new(Secret::new("p/ss \"w\u{f6}rd"), Vec::new());
        let unlocked = RequestSecrets {
            secrets: [("pin".to_owned(), secret)].into(),
            captured: Vec::new(),
        };
        for text in [
            "p/ss \"wörd",
            "p%2Fss+%22w%C3%B6rd",
            "p%2Fss%20%22w%C3%B6rd",
            r#"p/ss \"wörd"#,
            r#"p\/ss \"wörd"#,
        ] {
            let mut answer = Answer {
                status: 200,
                headers: vec![("x".to_owned(), text.to_owned())],
                body: format!("<{text}><{text}>").into(),
            };
            let mut url: Url = "https://a.example/?q=p%2Fss+%22w%C3%B6rd".parse().unwrap();
            unlocked.scrub(&mut answer, &mut url).await;
            assert_eq!(&answer.body[..], "<‹secret:pin›><‹secret:pin›>".as_bytes(), "{text}");
            assert_eq!(answer.headers[0].1, "‹secret:pin›");
            assert!(!url.as_str().contains("ss"), "{url}");
        }
    }

    #[test]
    fn only_texts_and_numbers_are_captured() {
        let body = br#"{"a": "x\/y", "b": 12345, "c": [1], "d": null}"#;
        let found = |pointer| json_value(body, pointer).map(|(value, _)| value);
        assert_eq!(found("/a").as_deref(), Some("x/y"));
        assert_eq!(found("/b").as_deref(), Some("12345"));
        for pointer in ["/c", "/d", "/e", ""] {
            assert_eq!(json_value(body, pointer), None, "{pointer}");
        }
        assert_eq!(json_value(b"\xff", "/a"), None);
    }
}
