//! Single HTTP requests to a service: for unauthenticated endpoints and file uploads.

use std::{error::Error, io};

use bytes::Bytes;
use futures_util::future::join;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;

use super::{RemoteError, Target, dial::dial};

/// The client name and user agent of these commands.
pub(crate) const CLIENT: &str = concat!("svc/", env!("CARGO_PKG_VERSION"));

/// Limit of responses to requests that send something; all of these are short.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Sends a request with an optional JSON body and reads the response.
pub(crate) async fn send(
    target: &Target,
    method: Method,
    path: &str,
    body: Option<&serde_json::Value>,
) -> Result<Answer, RemoteError> {
    let mut request = request(target, method, path);
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    finish(
        target,
        request,
        body.map(ToString::to_string).unwrap_or_default().into(),
        MAX_ANSWER_BYTES,
    )
    .await
}

/// Uploads a file with the access key. A refusal is an error.
pub(crate) async fn upload(target: &Target, path: &str, file: Vec<u8>) -> Result<Answer, RemoteError> {
    let request = request(target, Method::POST, path)
        .header(header::AUTHORIZATION, bearer(target)?)
        .header(header::CONTENT_TYPE, "application/octet-stream");
    let answer = finish(target, request, file.into(), MAX_ANSWER_BYTES).await?;
    accepted(target, answer, "its management API, which takes files, is switched off")
}

/// Downloads with the access key. A refusal is an error.
pub(crate) async fn download(target: &Target, path: &str, max_bytes: usize) -> Result<Answer, RemoteError> {
    let request = request(target, Method::GET, path).header(header::AUTHORIZATION, bearer(target)?);
    let answer = finish(target, request, Bytes::new(), max_bytes).await?;
    accepted(target, answer, "only a server (svc serve) hands out files")
}

fn accepted(target: &Target, answer: Answer, not_found: &str) -> Result<Answer, RemoteError> {
    let address = || target.address.to_string();
    match answer.status {
        status if status.is_success() => Ok(answer),
        StatusCode::UNAUTHORIZED => Err(RemoteError::WrongKey { address: address() }),
        status => Err(RemoteError::Refused {
            address: address(),
            status: status.as_u16(),
            message: match status {
                StatusCode::NOT_FOUND => not_found.to_owned(),
                status => message(&answer.body, status),
            },
        }),
    }
}

fn request(target: &Target, method: Method, path: &str) -> request::Builder {
    Request::builder()
        .method(method)
        .uri(target.address.path(path))
        .header(header::HOST, target.address.authority())
        .header(header::USER_AGENT, CLIENT)
}

async fn finish(
    target: &Target,
    request: request::Builder,
    body: Bytes,
    max_bytes: usize,
) -> Result<Answer, RemoteError> {
    let request = request
        .body(Full::new(body))
        .expect("an address has a host and a path that fit into a request");
    target.in_time(exchange(target, request, max_bytes)).await
}

async fn exchange(target: &Target, request: Request<Full<Bytes>>, max_bytes: usize) -> Result<Answer, RemoteError> {
    let stream = dial(&target.address, &target.trust).await?;
    let greeted = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = greeted.map_err(|error| not_answered(target, &error))?;
    let exchange = async move {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| not_answered(target, &error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, max_bytes).collect().await;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.map_err(|error| not_answered(target, &*error))?.to_bytes(),
        })
    };
    // The connection task ends after the exchange has dropped its sender.
    join(exchange, connection).await.0
}

/// A connection that ends early says nothing about who answers: a service may be restarting.
fn not_answered(target: &Target, error: &(dyn Error + 'static)) -> RemoteError {
    let address = target.address.to_string();
    let is_closed = error
        .downcast_ref::<hyper::Error>()
        .is_some_and(|error| error.is_incomplete_message() || error.is_closed() || error.is_canceled());
    let broken = error.source().filter(|source| source.is::<io::Error>());
    if is_closed || broken.is_some() {
        return RemoteError::Closed {
            address,
            code: None,
            reason: broken.map(ToString::to_string),
        };
    }
    RemoteError::Foreign {
        address,
        found: error.to_string(),
    }
}

impl Answer {
    /// Deserializes the body.
    pub(crate) fn read<T: DeserializeOwned>(&self, target: &Target) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.body).map_err(|_| RemoteError::Foreign {
            address: target.address.to_string(),
            found: format!("HTTP {}", self.status),
        })
    }
}

/// The `Authorization` header.
pub(crate) fn bearer(target: &Target) -> Result<HeaderValue, RemoteError> {
    let key = target.key()?;
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose())).map_err(|_| RemoteError::NoKey {
        address: target.address.to_string(),
        detail: Some("the one given holds characters that no key has".to_owned()),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The message in the body of an error response.
pub(crate) fn message(body: &[u8], status: StatusCode) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let said = body["message"].as_str().or_else(|| body["error"].as_str());
    said.map_or_else(|| format!("HTTP {status}"), ToOwned::to_owned)
}
