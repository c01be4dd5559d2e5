//! Downloads that browsers hand over. A server makes tasks of them at once; a desktop asks its user first, unless it was
//! told not to.

mod pending;
mod request;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
};
use protocol::{
    CaptureResolved, CaptureResult, CreateTaskParams, CreateTaskRequest, CreateTasksParams, CreatedTask, CreatedTasks,
    DownloadRequest, ErrorCode, MAX_REQUEST_BYTES, Method, RpcError, Stranger,
};

pub(crate) use self::pending::Pending;
use self::{
    pending::Full,
    request::{Batch, Download},
};
use crate::{
    config::Host,
    problem::{Gated, Problem, ResultMessage, Sent},
    rest::{App, extract::Body},
    session::CallError,
    settings::{self, Settings},
};

/// The preferences by which a desktop's user says that nothing is to be asked.
const SILENT: &str = "silent_download_enabled";
const UNATTENDED: &str = "silent_skip_selection";

/// Tasks made by one call to the daemon, in bytes; the rest of a frame is its envelope.
const MAX_CHUNK_BYTES: usize = MAX_REQUEST_BYTES - 4096;

type Ack = Result<Json<ResultMessage>, Problem>;

/// Hand a download over from a browser.
///
/// What extensions and user scripts send. The user may be asked before it starts.
#[utoipa::path(post, path = "/download", request_body = DownloadRequest,
    params(("X-Svc-Client" = String, Header, description = "Who hands over; any text"),
        ("X-Svc-Token" = Option<String>, Header, description = "The access key, if there is one")),
    responses((status = 200, body = ResultMessage), Gated, Sent, (status = 409, body = ResultMessage),
        (status = 500, body = ResultMessage), (status = 503, body = ResultMessage),
        (status = 504, body = ResultMessage)))]
pub(crate) async fn download_create(
    State(app): State<App>,
    headers: HeaderMap,
    Body(request): Body<DownloadRequest>,
) -> Ack {
    let page = page_host(&headers, &request.referrer);
    accept(&app, request::one(request)?, page).await
}

/// Hand several downloads over from a browser.
///
/// As `urls`, or as `items` that say more about each. The user may be asked before they start.
#[utoipa::path(post, path = "/download/batch", request_body = Batch,
    params(("X-Svc-Client" = String, Header, description = "Who hands over; any text"),
        ("X-Svc-Token" = Option<String>, Header, description = "The access key, if there is one")),
    responses((status = 200, body = ResultMessage), Gated, Sent, (status = 409, body = ResultMessage),
        (status = 500, body = ResultMessage), (status = 503, body = ResultMessage),
        (status = 504, body = ResultMessage)))]
pub(crate) async fn download_batch(State(app): State<App>, headers: HeaderMap, Body(batch): Body<Batch>) -> Ack {
    let download = batch.read()?;
    let page = page_host(&headers, download.referrer());
    accept(&app, download, page).await
}

async fn accept(app: &App, download: Download, stranger: Option<Stranger>) -> Ack {
    let settings = app.gate.vault.settings();
    take(app, download, stranger, is_silent(&settings)).await?;
    Ok(Json(ResultMessage {
        success: true,
        message: "download accepted".to_owned(),
    }))
}

/// `agent.capture.submit`: what a program of this desktop was handed, a link that was opened for example.
pub(crate) async fn submit(
    app: &App,
    request: DownloadRequest,
    silent: Option<bool>,
) -> Result<CaptureResult, RpcError> {
    let settings = app.gate.vault.settings();
    if !settings.takeover {
        return Ok(CaptureResult::Ignored(true));
    }
    let user_host = request::host(&request.referrer).unwrap_or_default();
    let is_silent = silent.unwrap_or_else(|| is_silent(&settings));
    let download = request::one(request).map_err(refused)?;
    Ok(take(app, download, Some(Stranger { user_host }), is_silent).await?)
}

/// `agent.capture.resolve`: what the user says to a download that waits. What is accepted is as if the user had asked for
/// it. It goes on waiting if it cannot be made a task now.
pub(crate) async fn resolve(
    app: &App,
    id: &str,
    is_accepted: bool,
    edited: Option<DownloadRequest>,
) -> Result<CaptureResolved, RpcError> {
    let unknown = || RpcError::application(ErrorCode::NotFound, "not found").with_field("transactionId");
    if !is_accepted {
        app.pending.remove(id).ok_or_else(unknown)?;
        return Ok(CaptureResolved::default());
    }
    let mut download = app.pending.get(id).ok_or_else(unknown)?;
    if let Some(edited) = edited {
        download = download.edited(edited).map_err(refused)?;
    }
    let task_ids = create(app, download, None, Some(id)).await.map_err(RpcError::from)?;
    app.pending.remove(id);
    Ok(CaptureResolved {
        accepted: true,
        task_id: task_ids.first().cloned(),
        task_ids,
    })
}

async fn take(
    app: &App,
    download: Download,
    stranger: Option<Stranger>,
    is_silent: bool,
) -> Result<CaptureResult, CallError> {
    if app.listening.host == Host::Headless || is_silent {
        return create(app, download, stranger, None).await.map(CaptureResult::TaskIds);
    }
    match app.pending.add(download) {
        Ok(id) => Ok(CaptureResult::TransactionIds(vec![id])),
        Err(Full) => Err(RpcError::application(ErrorCode::Unavailable, Full.to_string()).into()),
    }
}

/// Makes the tasks and tells who watches. The only one of a download gets `id`, so that it is not made twice.
async fn create(
    app: &App,
    download: Download,
    stranger: Option<Stranger>,
    id: Option<&str>,
) -> Result<Vec<String>, CallError> {
    let unattended = app.listening.host == Host::Headless || is_on(&app.gate.vault.settings(), UNATTENDED);
    let mut ids = Vec::new();
    for mut requests in chunks(download.into_requests()) {
        if requests.len() == 1 {
            let params = CreateTaskParams {
                request: requests.remove(0),
                unattended,
                task_id: id.filter(|_| ids.is_empty()).map(ToOwned::to_owned),
                stranger: stranger.clone(),
                ..CreateTaskParams::default()
            };
            let CreatedTask { task_id, .. } = app.daemon.call(Method::TaskCreate, &params).await?;
            ids.push(task_id);
        } else {
            let stranger = stranger.clone();
            let params = CreateTasksParams { requests, stranger };
            let CreatedTasks { task_ids, .. } = app.daemon.call(Method::TaskCreateMany, &params).await?;
            ids.extend(task_ids);
        }
    }
    app.daemon.hub.captured(&ids);
    Ok(ids)
}

/// As many at once as fit into a frame.
fn chunks(requests: Vec<CreateTaskRequest>) -> Vec<Vec<CreateTaskRequest>> {
    let mut chunks: Vec<Vec<CreateTaskRequest>> = Vec::new();
    let mut room = 0;
    for request in requests {
        let bytes = serde_json::to_vec(&request).map_or(0, |text| text.len() + 1);
        match chunks.last_mut() {
            Some(chunk) if bytes <= room => chunk.push(request),
            _ => {
                chunks.push(vec![request]);
                room = MAX_CHUNK_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    chunks
}

/// Which page a download comes from; none if a program hands over what nobody found on a page. What a browser says in
/// `Origin` goes before what a script says.
fn page_host(headers: &HeaderMap, referrer: &str) -> Option<Stranger> {
    let origin = headers
        .get(header::ORIGIN)
        .map(|origin| origin.to_str().unwrap_or("null"));
    let user_host = match origin {
        None if referrer.trim().is_empty() => return None,
        Some(origin) if origin.starts_with("http") => request::host(origin),
        _ => request::host(referrer),
    };
    Some(Stranger {
        user_host: user_host.unwrap_or_default(),
    })
}

fn is_silent(settings: &Settings) -> bool {
    is_on(settings, SILENT)
}

fn is_on(settings: &Settings, preference: &str) -> bool {
    let switch = settings.preferences.values.get(preference);
    switch.and_then(settings::is_on) == Some(true)
}

fn refused(error: request::Invalid) -> RpcError {
    RpcError::application(ErrorCode::InvalidArgument, error.to_string()).with_field("request")
}

impl From<request::Invalid> for Problem {
    fn from(error: request::Invalid) -> Self {
        Self::invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_what_the_browser_says_of_it() {
        let check = |origin: Option<&str>, referrer: &str, expect: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let found = page_host(&headers, referrer).map(|stranger| stranger.user_host);
            assert_eq!(found.as_deref(), expect, "{origin:?} {referrer}");
        };
        check(None, " ", None);
        check(None, "http://NAS.test:81/page", Some("nas.test"));
        check(Some("https://page.test"), "http://127.0.0.1/", Some("page.test"));
        check(Some("chrome-extension://abc"), "http://nas.test/", Some("nas.test"));
        check(Some("chrome-extension://abc"), "", Some(""));
        check(Some("null"), "about:blank", Some(""));
    }

    #[test]
    fn many_tasks_are_made_a_frame_at_a_time() {
        let request = |bytes: usize| CreateTaskRequest {
            url: "x".repeat(bytes),
            ..CreateTaskRequest::default()
        };
        let lengths = |requests: Vec<CreateTaskRequest>| chunks(requests).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(vec![request(10), request(10)]), [2]);
        assert_eq!(
            lengths((0..3).map(|_| request(MAX_CHUNK_BYTES / 2)).collect()),
            [1, 1, 1]
        );
        assert_eq!(
            lengths((0..5).map(|_| request(MAX_CHUNK_BYTES / 3)).collect()),
            [2, 2, 1]
        );
        assert!(lengths(Vec::new()).is_empty());
    }
}
