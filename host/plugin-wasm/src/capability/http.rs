//! HTTP for plugins: builds requests and reads responses; `http::call_http` sends them.

use std::time::Duration;

use bytes::Bytes;
use plugin_host::{Denial, GuestError, PluginFault, runtime::MAX_WAIT};
use svc_plugin_text as search;
use wasmtime::component::Resource;

use super::text::nodes;
use crate::{
    capability::{
        bindings::svc::plugin::{
            http::{self, HttpError},
            types::Node,
        },
        state::CallState,
    },
    http::{
        CONNECTIONS, Cookies, FetchError, NetworkError, PER_SECOND, Request, Response,
        secret::{Capture, SecretPosition},
    },
};

/// URL, headers, secret fields and captures may each be as long as the headers of a request.
const PARTS_OF_LIMIT: usize = 4;

impl http::Host for CallState {
    async fn send(&mut self, req: Resource<Request>) -> wasmtime::Result<Result<Resource<Response>, HttpError>> {
        let request = self.table.delete(req)?;
        self.http.computing().allow(self.meter.cpu_left());
        let sent = self.http.send(request).await;
        self.charge(self.http.computing().take())?;
        match sent {
            Ok(response) => Ok(Ok(self.table.push(response)?)),
            Err(error) => Ok(Err(error.try_into()?)),
        }
    }

    async fn send_all(
        &mut self,
        reqs: Vec<Resource<Request>>,
    ) -> wasmtime::Result<Vec<Result<Resource<Response>, HttpError>>> {
        let mut requests = Vec::with_capacity(reqs.len());
        for request in reqs {
            requests.push(self.table.delete(request)?);
        }
        let mut results = Vec::with_capacity(requests.len());
        self.http.computing().allow(self.meter.cpu_left());
        let sent = self.http.send_all(requests).await;
        self.charge(self.http.computing().take())?;
        for result in sent {
            results.push(match result {
                Ok(response) => Ok(self.table.push(response)?),
                Err(error) => Err(error.try_into()?),
            });
        }
        Ok(results)
    }
}

impl CallState {
    fn request(&mut self, request: &Resource<Request>) -> wasmtime::Result<&mut Request> {
        Ok(self.table.get_mut(request)?)
    }

    /// Adds to a request, unless these parts exceed the limit. Checked at once and not when it is sent, because a call
    /// may hold many requests.
    fn extend(
        &mut self,
        request: &Resource<Request>,
        parts: [usize; 2],
        add: impl FnOnce(&mut Request),
    ) -> wasmtime::Result<()> {
        let limit = self.http.limits().header_bytes.saturating_mul(PARTS_OF_LIMIT);
        let request = self.request(request)?;
        if request.grows_by(parts[0] + parts[1], limit) {
            add(request);
        }
        Ok(())
    }

    fn set_body(&mut self, request: &Resource<Request>, body: Bytes) -> wasmtime::Result<()> {
        let limit = self.http.limits().request_bytes;
        let request = self.request(request)?;
        if body.len() > limit {
            request.body = Bytes::new();
            request.reject(format!("the body has {} bytes; the limit is {limit}", body.len()));
        } else {
            request.body = body;
        }
        Ok(())
    }
}

impl http::HostRequest for CallState {
    fn new(&mut self, method: String, url: String) -> wasmtime::Result<Resource<Request>> {
        let limit = self.http.limits().header_bytes;
        let mut request = Request::new(&method, if url.len() > limit { "" } else { &url });
        request.grows_by(url.len(), limit.saturating_mul(PARTS_OF_LIMIT));
        Ok(self.table.push(request)?)
    }

    fn header(&mut self, request: Resource<Request>, name: String, value: String) -> wasmtime::Result<()> {
        self.extend(&request, [name.len(), value.len()], |request| {
            request.set_header(&name, &value);
        })
    }

    fn query(&mut self, request: Resource<Request>, name: String, value: String) -> wasmtime::Result<()> {
        let limit = self.http.limits().header_bytes;
        self.extend(&request, [name.len(), value.len()], |request| {
            request.add_query(&name, &value);
            if request.url.as_ref().is_some_and(|url| url.as_str().len() > limit) {
                request.reject("the URL is too long");
            }
        })
    }

    fn body_bytes(&mut self, request: Resource<Request>, data: Vec<u8>) -> wasmtime::Result<()> {
        self.set_body(&request, data.into())
    }

    fn body_text(&mut self, request: Resource<Request>, data: String, content_type: String) -> wasmtime::Result<()> {
        self.extend(&request, [content_type.len(), 0], |request| {
            request.set_header("content-type", &content_type);
        })?;
        self.set_body(&request, data.into())
    }

    fn body_form(&mut self, request: Resource<Request>, pairs: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.request(&request)?
            .set_header("content-type", "application/x-www-form-urlencoded");
        self.set_body(&request, Bytes::from(search::form(&pairs)))
    }

    fn timeout_ms(&mut self, request: Resource<Request>, ms: u32) -> wasmtime::Result<()> {
        self.request(&request)?.timeout = Some(Duration::from_millis(ms.into()));
        Ok(())
    }

    fn max_bytes(&mut self, request: Resource<Request>, n: u32) -> wasmtime::Result<()> {
        self.request(&request)?.max_bytes = Some(n.into());
        Ok(())
    }

    fn redirects(&mut self, request: Resource<Request>, mode: http::Redirects) -> wasmtime::Result<()> {
        self.request(&request)?.follows_redirects = matches!(mode, http::Redirects::Follow);
        Ok(())
    }

    fn cookies(&mut self, request: Resource<Request>, mode: http::Cookies) -> wasmtime::Result<()> {
        self.request(&request)?.cookies = match mode {
            http::Cookies::None => Cookies::None,
            http::Cookies::Jar => Cookies::Jar,
            http::Cookies::JarAndTask => Cookies::JarAndTask,
        };
        Ok(())
    }

    fn account(&mut self, request: Resource<Request>, slot: String) -> wasmtime::Result<()> {
        self.extend(&request, [slot.len(), 0], |request| {
            request.account = Some(slot).filter(|slot| !slot.is_empty());
        })
    }

    fn range(&mut self, request: Resource<Request>, first: u64, last: Option<u64>) -> wasmtime::Result<()> {
        let last = last.map(|last| last.to_string()).unwrap_or_default();
        self.request(&request)?
            .set_header("range", &format!("bytes={first}-{last}"));
        Ok(())
    }

    fn cache_seconds(&mut self, request: Resource<Request>, s: u32) -> wasmtime::Result<()> {
        self.request(&request)?.cached_for = Duration::from_secs(s.into());
        Ok(())
    }

    fn capture_json(&mut self, request: Resource<Request>, what: String, secret: String) -> wasmtime::Result<()> {
        let parts = [what.len(), secret.len()];
        self.extend(&request, parts, |request| {
            request.add_capture(Capture::Json(what, secret));
        })
    }

    fn capture_header(&mut self, request: Resource<Request>, what: String, secret: String) -> wasmtime::Result<()> {
        let parts = [what.len(), secret.len()];
        self.extend(&request, parts, |request| {
            request.add_capture(Capture::Header(what, secret));
        })
    }

    fn capture_cookie(&mut self, request: Resource<Request>, what: String, secret: String) -> wasmtime::Result<()> {
        let parts = [what.len(), secret.len()];
        self.extend(&request, parts, |request| {
            request.add_capture(Capture::Cookie(what, secret));
        })
    }

    fn capture_form(&mut self, request: Resource<Request>, what: String, secret: String) -> wasmtime::Result<()> {
        let parts = [what.len(), secret.len()];
        self.extend(&request, parts, |request| {
            request.add_capture(Capture::Form(what, secret));
        })
    }

    fn secret_header(&mut self, request: Resource<Request>, name: String, template: String) -> wasmtime::Result<()> {
        self.extend(&request, [name.len(), template.len()], |request| {
            request.add_secret(SecretPosition::Header, &name, &template);
        })
    }

    fn secret_query(&mut self, request: Resource<Request>, name: String, template: String) -> wasmtime::Result<()> {
        self.extend(&request, [name.len(), template.len()], |request| {
            request.add_secret(SecretPosition::Query, &name, &template);
        })
    }

    fn secret_form(&mut self, request: Resource<Request>, name: String, template: String) -> wasmtime::Result<()> {
        self.extend(&request, [name.len(), template.len()], |request| {
            request.set_header("content-type", "application/x-www-form-urlencoded");
            request.add_secret(SecretPosition::Form, &name, &template);
        })
    }

    fn secret_json(&mut self, request: Resource<Request>, pointer: String, template: String) -> wasmtime::Result<()> {
        self.extend(&request, [pointer.len(), template.len()], |request| {
            request.set_header("content-type", "application/json");
            request.add_secret(SecretPosition::Json, &pointer, &template);
        })
    }

    fn drop(&mut self, request: Resource<Request>) -> wasmtime::Result<()> {
        self.table.delete(request)?;
        Ok(())
    }
}

impl http::HostResponse for CallState {
    fn status(&mut self, response: Resource<Response>) -> wasmtime::Result<u16> {
        Ok(self.table.get(&response)?.status)
    }

    fn final_url(&mut self, response: Resource<Response>) -> wasmtime::Result<String> {
        Ok(self.table.get(&response)?.final_url.to_string())
    }

    fn header(&mut self, response: Resource<Response>, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&response)?.header_all(&name).into_iter().next())
    }

    fn header_all(&mut self, response: Resource<Response>, name: String) -> wasmtime::Result<Vec<String>> {
        Ok(self.table.get(&response)?.header_all(&name))
    }

    fn read(&mut self, response: Resource<Response>, max: u32) -> wasmtime::Result<Result<Vec<u8>, HttpError>> {
        let piece = self.table.get_mut(&response)?.read(max as usize);
        Ok(Ok(piece.to_vec()))
    }

    fn text(&mut self, response: Resource<Response>) -> wasmtime::Result<Result<String, HttpError>> {
        Ok(Ok(self.table.get_mut(&response)?.text().to_string()))
    }

    async fn select(
        &mut self,
        response: Resource<Response>,
        css: String,
    ) -> wasmtime::Result<Result<Vec<Node>, HttpError>> {
        let text = self.table.get_mut(&response)?.text();
        let found = self
            .search(text.len(), move |work| search::select(&text, &css, work))
            .await?;
        Ok(found.map(nodes).map_err(invalid))
    }

    async fn json(
        &mut self,
        response: Resource<Response>,
        pointer: String,
    ) -> wasmtime::Result<Result<Option<String>, HttpError>> {
        let text = self.table.get_mut(&response)?.text();
        let find =
            move |_: &mut search::Work<'_>| search::json_at(&text, &pointer).map(|found| found.map(str::to_owned));
        let len = self.table.get(&response)?.body.len();
        let found = self.search(len, find).await?;
        Ok(found.map_err(invalid))
    }

    async fn regex(
        &mut self,
        response: Resource<Response>,
        pattern: String,
        group: u32,
    ) -> wasmtime::Result<Result<Vec<String>, HttpError>> {
        let text = self.table.get_mut(&response)?.text();
        let find = move |work: &mut search::Work<'_>| search::group(&pattern, &text, group as usize, work);
        let len = self.table.get(&response)?.body.len();
        let found = self.search(len, find).await?;
        Ok(found.map_err(invalid))
    }

    fn drop(&mut self, response: Resource<Response>) -> wasmtime::Result<()> {
        self.table.delete(response)?;
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where a closure would")]
fn invalid(error: search::TextError) -> HttpError {
    HttpError::Invalid(error.to_string())
}

/// The error for the guest; an error that ends the call is the fault of the call.
impl TryFrom<FetchError> for HttpError {
    type Error = PluginFault;

    fn try_from(error: FetchError) -> Result<Self, PluginFault> {
        Ok(match error {
            FetchError::Denied(Denial::Address(_)) => Self::BlockedAddress,
            FetchError::Denied(denial) => Self::Denied(denial.to_string()),
            FetchError::Secret(reason) => Self::Denied(reason),
            // The call cannot do without: the host logs in, or asks the user to.
            FetchError::LoginRequired(slot) => return Err(GuestError::LoginRequired(Some(slot)).into()),
            // A call without time has ended when its time was charged.
            FetchError::TooManyRequests | FetchError::TooMuchWork => Self::TooManyRequests,
            FetchError::Invalid(reason) => Self::Invalid(reason),
            FetchError::Network(NetworkError::BlockedAddress) => Self::BlockedAddress,
            FetchError::Network(NetworkError::Timeout) => Self::Timeout,
            FetchError::Network(NetworkError::TooLarge(limit)) => Self::TooLarge(limit),
            FetchError::Network(NetworkError::Tls(reason)) => Self::Tls(reason),
            FetchError::Network(NetworkError::Failed(reason)) => Self::Network(reason),
            FetchError::Network(NetworkError::NoTurn(site)) => {
                return Err(PluginFault::NoTurn {
                    site,
                    per_second: PER_SECOND,
                    at_once: CONNECTIONS,
                    waited: MAX_WAIT,
                });
            }
        })
    }
}
