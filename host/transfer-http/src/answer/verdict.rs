//! Checks every response against the request and the known facts of the file, before a byte of it is used. Pure.

use std::time::SystemTime;

use transfer::{Failure, FileName, Source, failure::FailureKind, validator};

use crate::{answer::disposition::Disposition, client::fetch::RangeWish, client::head::ResponseHead};

/// The known facts of the file: learned from the first response; all later ones must agree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// Size in bytes.
    pub(crate) total: Option<u64>,
    /// The entity tag, as sent, possibly weak.
    pub(crate) etag: Option<String>,
    /// The modification time, as sent.
    pub(crate) last_modified: Option<String>,
}

/// A response that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The body is the range from the requested start up to `end`.
    Part {
        /// One past the last byte of the body.
        end: u64,
        /// The file's size, if the server knows it.
        total: Option<u64>,
    },
    /// The body is the whole file from its first byte.
    Whole {
        /// Its size, if announced.
        length: Option<u64>,
    },
    /// The requested start is beyond the end of the file.
    PastEnd {
        /// The file's size, if the server sends it.
        total: Option<u64>,
    },
}

/// Why a response cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It belongs to another version of the file.
    Changed(String),
    /// The server sent the whole file although a range was requested.
    IgnoresRanges,
    /// It is an error, or violates the protocol.
    Failed(Failure),
}

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Facts {
    /// The facts in a usable response.
    pub(crate) fn of(head: &ResponseHead, verdict: Verdict) -> Self {
        // A folded header line contains line ends. Validators are sent back, so such a value must not become one.
        let text = |name| {
            head.text(name)
                .filter(|text| validator::is_comparable(text))
                .map(str::to_owned)
        };
        let total = match verdict {
            Verdict::Part { total, .. } | Verdict::PastEnd { total } => total,
            Verdict::Whole { length } => length,
        };
        Self {
            total,
            etag: text("etag"),
            last_modified: text("last-modified"),
        }
    }

    /// The entity tag, if it proves that two versions are the same byte by byte.
    pub(crate) fn strong_etag(&self) -> Option<&str> {
        self.etag
            .as_deref()
            .filter(|etag| etag.starts_with('"') && etag.len() > 2 && validator::is_entity_tag(etag))
    }

    /// The validator for `If-Range`. A weak tag may not be used there; a date may, and servers compare it exactly.
    /// Values outside the grammar are only compared, never sent.
    pub(crate) fn if_range(&self) -> Option<String> {
        let date = self
            .last_modified
            .as_deref()
            .filter(|_| self.etag.is_none() || self.strong_etag().is_some())
            .filter(|date| validator::is_date_like(date) && httpdate::parse_http_date(date).is_ok());
        self.strong_etag().or(date).map(str::to_owned)
    }

    fn has_no_validator(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Evidence that `other` describes another version of the file.
    fn contradiction(&self, other: &Self) -> Option<String> {
        let differ = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        if let (Some(known), Some(answered)) = (self.total, other.total)
            && known != answered
        {
            return Some(format!("its size was {known} bytes and is now {answered}"));
        }
        if differ(&self.etag, &other.etag) {
            // Compressing or clustered servers vary the weakness of a tag: that alone is no change.
            let plain = |tag: &Option<String>| tag.as_deref().map(|tag| tag.trim_start_matches("W/").to_owned());
            if plain(&self.etag) != plain(&other.etag) {
                return Some("its entity tag is another one".to_owned());
            }
        }
        let is_same_tag = self.strong_etag().is_some() && self.etag == other.etag;
        if !is_same_tag && differ(&self.last_modified, &other.last_modified) {
            return Some("its modification time is another one".to_owned());
        }
        None
    }
}

/// Checks the response `head` against the requested range `wish` and the `known` facts.
pub(crate) fn judge(
    wish: Option<&RangeWish>,
    known: &Facts,
    head: &ResponseHead,
    now: SystemTime,
) -> Result<Verdict, Unusable> {
    let verdict = match (head.status, wish) {
        (206, Some(wish)) => part(wish, head)?,
        (206, None) => return Err(mismatch("the server sent a part although the whole file was asked for").into()),
        (200, _) => Verdict::Whole {
            length: whole_length(head)?,
        },
        (416, Some(wish)) => {
            let total = head
                .text("content-range")
                .and_then(|text| text.trim().strip_prefix("bytes */")?.parse().ok());
            match total {
                Some(total) if total > wish.start && known.total.is_none_or(|known| known == total) => {
                    return Err(Failure::new(
                        FailureKind::RangeMismatch,
                        format!("the server refuses the range from byte {} of {total}", wish.start),
                    )
                    .into());
                }
                _ => Verdict::PastEnd { total },
            }
        }
        _ => return Err(status_failure(head, now).into()),
    };
    let answered = Facts::of(head, verdict);
    if let Some(why) = known.contradiction(&answered) {
        return Err(Unusable::Changed(why));
    }
    let wants_part = wish.is_some_and(|wish| wish.start > 0);
    match verdict {
        Verdict::Whole { .. } if wants_part => Err(Unusable::IgnoresRanges),
        Verdict::Part { .. } if answered.has_no_validator() && !known.has_no_validator() => {
            Err(Unusable::Changed("it no longer says which version it is".to_owned()))
        }
        _ => Ok(verdict),
    }
}

fn mismatch(why: impl Into<String>) -> Failure {
    Failure::new(FailureKind::RangeMismatch, why)
}

/// The announced size of a whole file; unknown if the body is encoded, because then it is the encoded size.
fn whole_length(head: &ResponseHead) -> Result<Option<u64>, Failure> {
    if head.get("transfer-encoding").is_some() || encoding(head).is_some() {
        Ok(None)
    } else {
        head.content_length()
    }
}

/// The content coding of a body, if it has one.
pub(crate) fn encoding(head: &ResponseHead) -> Option<String> {
    let codings: Vec<_> = head
        .all("content-encoding")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

fn part(wish: &RangeWish, head: &ResponseHead) -> Result<Verdict, Failure> {
    if let Some(coding) = encoding(head) {
        return Err(Failure::new(
            FailureKind::Encoding,
            format!("the server sent a part of the file in the encoding {coding:?}, which cannot be put together"),
        ));
    }
    if head.media_type().as_deref() == Some("multipart/byteranges") {
        return Err(mismatch("the server sent several ranges although one was asked for"));
    }
    let text = head
        .text("content-range")
        .ok_or_else(|| mismatch("the server sent a part without saying which"))?;
    let (start, last, total) = parse_content_range(text).ok_or_else(|| {
        mismatch(format!(
            "the server sent a part with an unusable Content-Range: {}",
            text.chars().take(60).collect::<String>().escape_debug()
        ))
    })?;
    if start != wish.start {
        return Err(mismatch(format!(
            "the server sent bytes from {start} instead of from {}",
            wish.start
        )));
    }
    let length = last - start + 1;
    if head.get("transfer-encoding").is_none() && head.content_length()?.is_some_and(|announced| announced != length) {
        return Err(mismatch(format!(
            "the server announced {length} bytes and a body of another length"
        )));
    }
    Ok(Verdict::Part { end: last + 1, total })
}

/// `bytes first-last/total` with `total` possibly `*` (RFC 9110, section 14.4).
fn parse_content_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (unit, rest) = text.trim().split_once([' ', '='])?;
    let (range, total) = rest.trim().split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let text = text.trim();
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<u64>().ok())?
    };
    let (first, last) = (number(first)?, number(last)?);
    let total = if total.trim() == "*" {
        None
    } else {
        Some(number(total)?)
    };
    let is_possible = first <= last && last < u64::MAX && total.is_none_or(|total| last < total);
    (unit.eq_ignore_ascii_case("bytes") && is_possible).then_some((first, last, total))
}

fn status_failure(head: &ResponseHead, now: SystemTime) -> Failure {
    let status = head.status;
    let (kind, what) = match status {
        401 => (
            FailureKind::Unauthorized,
            "it wants a user name and password, or refuses the ones given",
        ),
        407 => (FailureKind::Unauthorized, "the proxy wants a user name and password"),
        403 | 451 => (
            FailureKind::Forbidden,
            "it refuses to give the file; it may want you to sign in, or a referrer",
        ),
        404 => (FailureKind::NotFound, "it has no such file; check the link"),
        410 => (
            FailureKind::Gone,
            "the file is gone, or the link has expired; ask for a new link",
        ),
        408 => (FailureKind::Timeout, "it did not wait for the request"),
        412 => (FailureKind::Changed, "the file changed"),
        416 => (
            FailureKind::RangeMismatch,
            "it refuses a request without a range for its range",
        ),
        425 | 429 | 503 => (FailureKind::Busy, "it is too busy or asked too often"),
        500..=599 => (FailureKind::ServerError, "it failed, which may pass"),
        _ => (FailureKind::UnexpectedStatus, "that is no answer to a download"),
    };
    Failure::new(kind, format!("the server answered with status {status}: {what}"))
        .with_retry_after(head.retry_after(now))
}

/// Why the body is not the expected file: it is a web page, most likely a sign-in page, although name or declared type
/// say otherwise, or it has another size. `name` comes from the user, the URL or an earlier run.
pub(crate) fn not_the_file(
    source: &Source,
    name: Option<&FileName>,
    head: &ResponseHead,
    total: Option<u64>,
) -> Option<Failure> {
    let is_meant_as_file = head.get("content-disposition").is_some_and(|value| {
        let disposition = Disposition::parse(value);
        disposition.is_attachment && disposition.name.is_some()
    });
    if is_page(head) && !is_meant_as_file {
        let promised = source.promised_type.clone().or_else(|| name.and_then(type_of_name));
        if let Some(promised) = promised.filter(|promised| !is_page_type(promised)) {
            return Some(Failure::new(
                FailureKind::NotTheFile,
                format!(
                    "the server answered with a web page where a file of type {promised} was promised; it may want you to sign in"
                ),
            ));
        }
    }
    match (source.promised_size, total) {
        (Some(promised), Some(answered)) if promised != answered => Some(Failure::new(
            FailureKind::NotTheFile,
            format!("the server's file has {answered} bytes where {promised} were promised"),
        )),
        _ => None,
    }
}

/// Whether a response is a web page.
pub(crate) fn is_page(head: &ResponseHead) -> bool {
    head.media_type().as_deref().is_some_and(is_page_type)
}

pub(crate) fn is_page_type(media_type: &str) -> bool {
    matches!(media_type, "text/html" | "application/xhtml+xml")
}

/// The media type implied by a name's extension. Unknown extensions, and those of pages and of scripts that generate
/// pages, imply none.
fn type_of_name(name: &FileName) -> Option<String> {
    let extension = name.as_str().rsplit_once('.')?.1;
    let guessed = mime_guess::from_ext(extension).first()?;
    let is_text = guessed.type_() == "text" || guessed.essence_str().ends_with("xml");
    let makes_pages = ["php", "asp", "aspx", "jsp", "cgi", "pl", "cfm", "do", "com"]
        .contains(&extension.to_ascii_lowercase().as_str());
    (!is_text && !makes_pages).then(|| guessed.essence_str().to_owned())
}

#[cfg(test)]
mod tests;
