//! Requests taken apart, and answers put together.

use serde_json::Value;

use crate::{
    content::Content,
    reply::Reply,
    request::{Request, percent_decoded},
    resource::{Resource, Visit},
};

/// Names and values of a form or a query.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(name), percent_decoded(value))
        };
        Self(pairs.map(pair).collect())
    }

    /// Those of the query.
    pub(super) fn of_query(request: &Request) -> Self {
        Self::parse(request.target.split_once('?').map_or("", |(_, query)| query))
    }

    /// Those of the body: a form, or the texts of a JSON object.
    pub(super) fn of_body(request: &Request) -> Self {
        let media_type = request.header("content-type").unwrap_or_default();
        if !media_type.starts_with("application/json") {
            return Self::parse(&String::from_utf8_lossy(&request.body));
        }
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let members = body.as_object().into_iter().flatten();
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        Self(members.filter_map(text).collect())
    }

    /// The value of a field; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The value of a cookie.
pub(super) fn cookie(request: &Request, name: &str) -> Option<String> {
    let fields = request.headers.iter();
    let cookies = fields.filter(|(field, _)| field.eq_ignore_ascii_case("cookie"));
    let mut pairs = cookies
        .flat_map(|(_, value)| value.split(';'))
        .filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// The token of `Authorization: Bearer`.
pub(super) fn bearer(request: &Request) -> Option<&str> {
    request.header("authorization")?.strip_prefix("Bearer ")
}

/// A JSON text.
pub(super) fn json(status: u16, value: &Value) -> Reply {
    Reply::text(status, "application/json", value.to_string())
}

/// A page.
pub(super) fn page(status: u16, title: &str, body: &str) -> Reply {
    let html = format!("<!doctype html>\n<html><head><title>{title}</title></head>\n<body>{body}</body></html>\n");
    Reply::text(status, "text/html; charset=utf-8", html)
}

/// A redirect.
pub(super) fn redirect(status: u16, location: &str) -> Reply {
    let mut reply = page(status, "Elsewhere", "");
    reply.set("Location", location);
    reply
}

/// A reply that sets a cookie for the whole site.
pub(super) fn with_cookie(mut reply: Reply, name: &str, value: &str) -> Reply {
    reply.add("Set-Cookie", format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax"));
    reply
}

/// A text in an HTML page.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A file, in the range that is asked for.
pub(super) fn file(request: &Request, content: Content, media_type: &'static str) -> Reply {
    let visit = Visit {
        nth: 0,
        connection: request.connection,
        nth_on_connection: 0,
        served: 0,
        active: 1,
    };
    let resource = Resource::new(request.path(), content).media_type(media_type);
    resource.reply(request, visit).0
}
