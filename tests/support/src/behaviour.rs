//! The building blocks of misbehaviour: functions for [`crate::Resource::with`], and ways to limit when they act.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use crate::{
    reply::{End, Framing, Head, Pace, Piece, Reply},
    resource::{self, Asked, Exchange},
};

/// A behaviour that acts only in some exchanges.
pub fn when(
    applies: impl Fn(&Exchange) -> bool + Send + Sync + 'static,
    behaviour: impl Fn(&Exchange, &mut Reply) + Send + Sync + 'static,
) -> impl Fn(&Exchange, &mut Reply) + Send + Sync + 'static {
    move |exchange, reply| {
        if applies(exchange) {
            behaviour(exchange, reply);
        }
    }
}

/// Only the first request that is not a HEAD.
pub fn first(exchange: &Exchange) -> bool {
    exchange.visit.nth == 0 && exchange.request.method != "HEAD"
}

/// Every request but the first that is not a HEAD.
pub fn later(exchange: &Exchange) -> bool {
    exchange.visit.nth > 0
}

/// Every request on a connection other than the first.
pub fn other_connections(exchange: &Exchange) -> bool {
    exchange.visit.connection > 0
}

/// Requests with a range.
pub fn ranged(exchange: &Exchange) -> bool {
    exchange.request.header("range").is_some()
}

/// Requests with a range that begins after the first byte.
pub fn inner(exchange: &Exchange) -> bool {
    exchange.request.range().is_some_and(|(first, _)| first > 0)
}

/// Requests while more than `n` answers are on their way, this one included.
pub fn beyond(n: usize) -> impl Fn(&Exchange) -> bool + Send + Sync + 'static {
    move |exchange| exchange.visit.active > n
}

/// Answers with the whole file and does not say that ranges would work.
pub fn ignore_ranges(exchange: &Exchange, reply: &mut Reply) {
    if matches!(reply.status, 206 | 416) {
        reply.status = 200;
        reply.remove("Content-Range");
        reply.set_body(&exchange.version.content, 0, exchange.version.content.len());
    }
    reply.remove("Accept-Ranges");
}

/// Answers ranges with another range: `bend` gives first and last byte anew, still within the file.
pub fn other_range(bend: fn(first: u64, last: u64, total: u64) -> (u64, u64)) -> impl Fn(&Exchange, &mut Reply) {
    move |exchange, reply| {
        let content = &exchange.version.content;
        let asked = resource::asked(&exchange.request, content.len());
        if let (206, Asked::Range { first, last }) = (reply.status, asked) {
            let (first, last) = bend(first, last, content.len());
            resource::partial(reply, content, first, last);
        }
    }
}

/// Puts this text in place of the `Content-Range` of partial answers; `{first}`, `{last}` and `{total}` are filled in.
pub fn content_range(template: &'static str) -> impl Fn(&Exchange, &mut Reply) {
    move |exchange, reply| {
        let total = exchange.version.content.len();
        if let (206, Asked::Range { first, last }) = (reply.status, resource::asked(&exchange.request, total)) {
            let text = template
                .replace("{first}", &first.to_string())
                .replace("{last}", &last.to_string())
                .replace("{total}", &total.to_string())
                .replace("{total+1000}", &(total + 1000).to_string());
            reply.set("Content-Range", text);
        }
    }
}

/// Ends the response in this way after this many bytes of its body, if it has more.
pub fn cut(after: u64, end: End) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| {
        if reply.body_len() > after {
            reply.cut = Some((after, end));
            if end != End::KeepAlive && end != End::Stall {
                reply.set("Connection", "keep-alive");
            }
        }
    }
}

/// Sends nothing at all and ends like this.
pub fn silent(end: End) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| {
        reply.head = Head::Raw(Vec::new());
        reply.body = Vec::new();
        reply.framing = Framing::Length;
        reply.end = end;
    }
}

/// Sends bodies at this speed.
pub fn paced(bytes_per_second: u64) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| reply.pace = Pace::BytesPerSecond(bytes_per_second)
}

/// Sets a header field.
pub fn header(name: &'static str, value: &'static [u8]) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| reply.set(name, value)
}

/// Leaves header fields out.
pub fn without(names: &'static [&'static str]) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| names.iter().for_each(|name| reply.remove(name))
}

/// Answers with this status and a short text.
pub fn status(status: u16) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| *reply = Reply::text(status, "text/plain", format!("status {status}\n"))
}

/// Answers with this status and asks to come back later.
pub fn busy(status: u16, retry_after: &'static str) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| {
        *reply = Reply::text(status, "text/plain", "come back later\n");
        reply.set("Retry-After", retry_after);
    }
}

/// Redirects.
pub fn redirect(status: u16, location: &str) -> impl Fn(&Exchange, &mut Reply) + use<> {
    let location = location.to_owned();
    move |_, reply| {
        *reply = Reply::text(status, "text/html", "<a>moved</a>\n");
        reply.set("Location", &location);
    }
}

/// Answers 401 unless the request has these Basic credentials.
pub fn basic_auth(user: &str, password: &str) -> impl Fn(&Exchange, &mut Reply) + use<> {
    let wanted = basic(user, password);
    move |exchange, reply| {
        if exchange.request.header("authorization") != Some(wanted.as_str()) {
            *reply = Reply::text(401, "text/plain", "who are you?\n");
            reply.set("WWW-Authenticate", "Basic realm=\"files\"");
        }
    }
}

/// The value of an `Authorization` header.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes())
    )
}

/// Whether the request has this cookie.
pub fn has_cookie(exchange: &Exchange, cookie: &str) -> bool {
    exchange
        .request
        .header("cookie")
        .is_some_and(|value| value.split(';').any(|pair| pair.trim() == cookie))
}

/// Redirects to the same URL with a cookie to be brought, and answers only those who bring it.
pub fn cookie_gate(exchange: &Exchange, reply: &mut Reply) {
    if !has_cookie(exchange, "pass=granted") {
        redirect(302, &exchange.request.target)(exchange, reply);
        reply.set("Set-Cookie", "pass=granted; Path=/; HttpOnly");
    }
}

/// Answers with a page for people.
pub fn login_page(_: &Exchange, reply: &mut Reply) {
    let page =
        "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><form method=post></form></body></html>\n";
    *reply = Reply::text(200, "text/html; charset=utf-8", page);
}

/// Sends these bytes, the gzip-compressed file, whatever was asked for.
pub fn gzip(compressed: Vec<u8>) -> impl Fn(&Exchange, &mut Reply) {
    move |exchange, reply| {
        ignore_ranges(exchange, reply);
        reply.set("Content-Encoding", "gzip");
        reply.body = vec![Piece::Bytes(compressed.clone())];
    }
}

/// `bytes` in a gzip stream.
pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("writing to memory does not fail")
}

/// Frames the body in this way.
pub fn framing(framing: Framing) -> impl Fn(&Exchange, &mut Reply) {
    move |_, reply| {
        reply.framing = framing;
        if framing == Framing::Close {
            reply.end = End::Close;
        }
    }
}
