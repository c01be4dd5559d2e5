//! `GET /files/tasks/{id}`: a finished file, whole or a range of it (RFC 9110 §14).

use std::{
    io::SeekFrom,
    path::Path as FilePath,
    time::{Duration, SystemTime},
};

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::BytesMut;
use engine::Status;
use futures_util::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::ErrorCode;
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};

use crate::{
    http::shared::{Shared, problem},
    refusal::Refuse as _,
};

/// Read size: small enough for many concurrent readers, large enough to saturate the loopback.
const CHUNK_BYTES: usize = 256 * 1024;

/// Characters that RFC 5987 allows unescaped in an extended value, beside letters and digits.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The outcome of the `Range` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requested {
    Whole,
    /// First and last byte, inclusive.
    Range(u64, u64),
    Unsatisfiable,
}

pub(crate) async fn serve(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Ok(id) = id.parse() else {
        return problem(StatusCode::NOT_FOUND, format!("task not found: {id}"));
    };
    let task = match shared.service.engine.task(id).await.refused() {
        Ok(task) => task,
        Err(error) if error.application_code() == Some(ErrorCode::NotFound) => {
            return problem(StatusCode::NOT_FOUND, error.message);
        }
        Err(error) => return problem(StatusCode::SERVICE_UNAVAILABLE, error.message),
    };
    let path = task.path.as_deref().filter(|_| task.status() == Status::Completed);
    let Some(path) = path else {
        return problem(StatusCode::CONFLICT, "the task has no finished file yet");
    };
    match open(path).await {
        Ok((file, size, modified)) => answer(&task.file_name(), file, size, modified, (&method, &headers)).await,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            problem(StatusCode::NOT_FOUND, "the task's file is gone")
        }
        Err(error) => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the task's file cannot be read: {error}"),
        ),
    }
}

async fn open(path: &FilePath) -> std::io::Result<(File, u64, SystemTime)> {
    let file = File::open(path).await?;
    let metadata = file.metadata().await?;
    if !metadata.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    Ok((file, metadata.len(), metadata.modified()?))
}

/// The last second of the year 9999.
const LATEST: Duration = Duration::from_secs(253_402_300_799);

async fn answer(
    name: &str,
    mut file: File,
    size: u64,
    modified: SystemTime,
    (method, headers): (&Method, &HeaderMap),
) -> Response {
    let age = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let tag = format!("\"{size:x}-{:x}\"", age.as_nanos());
    // A date of HTTP has four digits of a year, from 1970 on.
    let last_modified = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + age.min(LATEST));
    let requested = requested(headers, size, &tag, &last_modified);
    let (status, start, length) = match requested {
        Requested::Whole => (StatusCode::OK, 0, size),
        Requested::Range(first, last) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Requested::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    if start > 0
        && let Err(error) = file.seek(SeekFrom::Start(start)).await
    {
        return problem(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the task's file cannot be read: {error}"),
        );
    }
    let has_body = method != Method::HEAD && length > 0;
    let body = if has_body { body(file, length) } else { Body::empty() };
    let mut response = (status, body).into_response();
    let mut set = |name: header::HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::ACCEPT_RANGES, "bytes");
    set(header::ETAG, &tag);
    set(header::LAST_MODIFIED, &last_modified);
    set(header::CONTENT_LENGTH, &length.to_string());
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::CONTENT_DISPOSITION, &disposition(name));
    set(
        header::CONTENT_TYPE,
        mime_guess::from_path(name).first_or_octet_stream().as_ref(),
    );
    match requested {
        Requested::Whole => {}
        Requested::Range(first, last) => set(header::CONTENT_RANGE, &format!("bytes {first}-{last}/{size}")),
        Requested::Unsatisfiable => set(header::CONTENT_RANGE, &format!("bytes */{size}")),
    }
    response
}

/// `length` bytes of the file from its current position. A file that became shorter ends the body early, which the
/// reader notices by the length announced.
fn body(file: File, length: u64) -> Body {
    Body::from_stream(stream::try_unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return Ok::<_, std::io::Error>(None);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut bytes = BytesMut::with_capacity(most);
        let read = (&mut file).take(most as u64).read_buf(&mut bytes).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((bytes.freeze(), (file, left - read as u64))))
    }))
}

/// Evaluates `Range` and `If-Range`.
fn requested(headers: &HeaderMap, size: u64, tag: &str, last_modified: &str) -> Requested {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if text(header::IF_RANGE).is_some_and(|known| known != tag && known != last_modified) {
        return Requested::Whole;
    }
    text(header::RANGE).map_or(Requested::Whole, |range| parse(range, size))
}

/// Multiple ranges and other units get the whole file, as RFC 9110 allows.
fn parse(range: &str, size: u64) -> Requested {
    let Some((first, last)) = range
        .trim()
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return Requested::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    if [first, last]
        .iter()
        .any(|text| !text.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Requested::Whole;
    }
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first > last => Requested::Whole,
        (Ok(first), _) if first >= size => Requested::Unsatisfiable,
        (Ok(first), Ok(last)) => Requested::Range(first, last.min(size - 1)),
        (Ok(first), Err(_)) if last.is_empty() => Requested::Range(first, size - 1),
        (Err(_), Ok(0)) if first.is_empty() => Requested::Unsatisfiable,
        (Err(_), Ok(_)) if first.is_empty() && size == 0 => Requested::Unsatisfiable,
        (Err(_), Ok(suffix)) if first.is_empty() => Requested::Range(size.saturating_sub(suffix), size - 1),
        _ => Requested::Whole,
    }
}

/// The name in ASCII for old clients, and in UTF-8 (RFC 6266, RFC 5987).
fn disposition(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' => '_',
            c if c.is_ascii() && !c.is_ascii_control() => c,
            _ => '_',
        })
        .collect();
    format!(
        "attachment; filename=\"{plain}\"; filename*=UTF-8''{}",
        utf8_percent_encode(name, UNESCAPED)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_clipped_to_the_file_or_refused() {
        let check =
            |range: &str, size: u64, expect: Requested| assert_eq!(parse(range, size), expect, "{range} of {size}");
        check("bytes=0-0", 10, Requested::Range(0, 0));
        check("bytes=2-", 10, Requested::Range(2, 9));
        check("bytes=2-99", 10, Requested::Range(2, 9));
        check("bytes=-3", 10, Requested::Range(7, 9));
        check("bytes=-99", 10, Requested::Range(0, 9));
        check("bytes=10-", 10, Requested::Unsatisfiable);
        check("bytes=-0", 10, Requested::Unsatisfiable);
        check("bytes=0-", 0, Requested::Unsatisfiable);
        check("bytes=-1", 0, Requested::Unsatisfiable);
        check("bytes=3-2", 10, Requested::Whole);
        check("bytes=0-1,3-4", 10, Requested::Whole);
        check("bytes=+1-2", 10, Requested::Whole);
        check("bytes=-", 10, Requested::Whole);
        check("lines=1-2", 10, Requested::Whole);
        check("bytes=99999999999999999999-", 10, Requested::Whole);
    }

    #[test]
    fn a_name_stands_in_the_header_in_both_forms() {
        assert_eq!(
            disposition("a \"b\" ü.txt"),
            "attachment; filename=\"a _b_ _.txt\"; filename*=UTF-8''a%20%22b%22%20%C3%BC.txt"
        );
    }
}
