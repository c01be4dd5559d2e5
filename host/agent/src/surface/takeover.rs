//! Downloads that browsers hand over. A server creates their tasks at once; a desktop asks its user first, unless the
//! preferences disable that.

use aria2::{KEY_FIRST, check_directory};
use axum::{Extension, Json, extract::State, http::StatusCode};
use protocol::{
    CaptureResolved, CaptureResult, CreateTaskParams, CreateTaskRequest, CreateTasksParams, CreatedTask, CreatedTasks,
    DownloadRequest, ErrorCode, MAX_REQUEST_BYTES, Method, Requester, RpcError, client::CallError,
};
use rest::{Ack, Body, Called, Gated, Problem, ResultMessage, Sent};

use crate::{
    capture::{
        kept::Kept,
        pending::{Full, Undecided},
        request::{self, Batch, Download},
    },
    gate::sender::{Authorization, Sender},
    settings::{config::Edition, preference::UNATTENDED},
    surface::state::App,
};

const NOT_PLAIN: &str = "a download with a method or a body needs the access key, or a user who is asked";

/// The size of one `task.createMany` batch in bytes; the rest of a frame is its envelope.
const MAX_BATCH_BYTES: usize = MAX_REQUEST_BYTES - 4096;

/// Submit a download from a browser.
///
/// For browser extensions and user scripts. The user may be asked before it starts.
#[utoipa::path(post, path = "/download", request_body = DownloadRequest,
    params(("X-Svc-Client" = String, Header, description = "Name of the sender; any text"),
        ("X-Svc-Token" = Option<String>, Header, description = "The access key, if there is one")),
    responses((status = 200, body = ResultMessage), Gated, Sent, Called, (status = 409, body = ResultMessage)))]
pub(crate) async fn download_create(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    Body(request): Body<DownloadRequest>,
) -> Ack {
    accept(&app, &sender, request::one(request)?).await
}

/// Submit several downloads from a browser.
///
/// As `urls`, or as `items` with options of their own. The user may be asked before they start.
#[utoipa::path(post, path = "/download/batch", request_body = Batch,
    params(("X-Svc-Client" = String, Header, description = "Name of the sender; any text"),
        ("X-Svc-Token" = Option<String>, Header, description = "The access key, if there is one")),
    responses((status = 200, body = ResultMessage), Gated, Sent, Called, (status = 409, body = ResultMessage)))]
pub(crate) async fn download_batch(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    Body(batch): Body<Batch>,
) -> Ack {
    accept(&app, &sender, batch.read()?).await
}

async fn accept(app: &App, sender: &Sender, mut download: Download) -> Ack {
    let is_silent = app.gate.settings.current().is_silent();
    let has_key = sender.authorization == Authorization::Key;
    if !has_key && makes_at_once(app, is_silent) && !download.is_plain() {
        return Err(Problem::new(StatusCode::FORBIDDEN, NOT_PLAIN));
    }
    if let Authorization::Browser(visitor) = &sender.authorization {
        confine(app, &mut download, visitor).await?;
    }
    // A request of a tool with the key is the user's own. A link from a page may be chosen by the page, whichever
    // program hands it over, and so may everything without the key.
    let is_users = has_key && !sender.is_browser && download.referrer().trim().is_empty();
    let source = if is_users { UrlSource::User } else { UrlSource::Page };
    take(app, download, source, is_silent).await?;
    Ok(Json(ResultMessage {
        success: true,
        message: "download accepted".to_owned(),
        code: None,
    }))
}

/// Restricts a browser without a key on a desktop without one: only into the save directory, overwriting nothing, and
/// owned by `visitor`.
async fn confine(app: &App, download: &mut Download, visitor: &str) -> Result<(), Problem> {
    for request in download.requests() {
        if !request.save_dir.trim().is_empty() {
            let save_dir = app.daemon.known().await?.save_dir();
            let checked = check_directory(request.save_dir.trim(), &save_dir);
            checked.map_err(|what| Problem::new(StatusCode::FORBIDDEN, format!("{KEY_FIRST}: without one, {what}")))?;
        }
    }
    download.confine(visitor);
    Ok(())
}

/// Who supplied the URLs; decides which private hosts may be contacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlSource {
    /// The user, who has the key.
    User,
    /// A page or an unauthenticated program: no private host is allowed.
    Page,
    /// As [`Self::Page`], but the user confirmed each URL: its host is allowed, and no other.
    Confirmed,
}

impl UrlSource {
    fn requester(self, request: &CreateTaskRequest, created_by: &str) -> Option<Requester> {
        let user_host = match self {
            Self::User => return None,
            Self::Page => String::new(),
            Self::Confirmed => request::host(&request.url).unwrap_or_default(),
        };
        let created_by = created_by.to_owned();
        Some(Requester {
            user_host,
            created_by,
            is_host_allowed: false,
        })
    }
}

/// Whether tasks are created without asking the user.
fn makes_at_once(app: &App, is_silent: bool) -> bool {
    app.listening.edition == Edition::Headless || is_silent
}

/// `agent.capture.submit`: a program of this desktop hands over a download, for example an opened link.
pub(crate) async fn submit(
    app: &App,
    request: DownloadRequest,
    silent: Option<bool>,
) -> Result<CaptureResult, RpcError> {
    let settings = app.gate.settings.current();
    if !settings.takeover {
        return Ok(CaptureResult::Ignored(true));
    }
    let is_silent = silent.unwrap_or_else(|| settings.is_silent());
    let download = request::one(request).map_err(refused)?;
    Ok(take(app, download, UrlSource::Page, is_silent).await?)
}

/// `agent.capture.resolve`: the user's decision. An accepted download may contact the host of its URL, as if the user
/// had entered it. What cannot be created now stays pending.
pub(crate) async fn resolve(
    app: &App,
    id: &str,
    is_accepted: bool,
    edited: Option<DownloadRequest>,
) -> Result<CaptureResolved, RpcError> {
    let decision = app.pending.decide(id).map_err(|refusal| {
        let code = match refusal {
            Undecided::Unknown => ErrorCode::NotFound,
            Undecided::Busy => ErrorCode::Conflict,
        };
        RpcError::application(code, refusal.to_string()).with_field("transactionId")
    })?;
    let kept = Kept::new(app.daemon.clone());
    if !is_accepted {
        if decision.is_kept {
            kept.remove(id).await?;
        }
        decision.done();
        return Ok(CaptureResolved::default());
    }
    let mut download = decision.download.clone();
    if let Some(edited) = edited {
        download = download.edited(edited).map_err(refused)?;
    }
    match create(app, download, UrlSource::Confirmed, Some(id)).await {
        Ok(task_ids) => {
            // If this fails, the user is asked again after a restart, and accepting finds the task that exists.
            if decision.is_kept
                && let Err(error) = kept.remove(id).await
            {
                tracing::warn!(%error, "a download of a device that was accepted is still stored as waiting");
            }
            decision.done();
            Ok(CaptureResolved {
                accepted: true,
                task_id: task_ids.first().cloned(),
                task_ids,
            })
        }
        Err(Unfinished { error, rest }) => {
            if let Some(rest) = rest {
                let left = decision.download.clone().only(rest.clone());
                if decision.is_kept
                    && let Err(error) = kept.put(id, &left).await
                {
                    tracing::warn!(%error, "a download of a device of which a part was created is stored as a whole");
                }
                decision.keep(rest);
            }
            Err(error.into())
        }
    }
}

async fn take(app: &App, download: Download, source: UrlSource, is_silent: bool) -> Result<CaptureResult, CallError> {
    if makes_at_once(app, is_silent) {
        let created = create(app, download, source, None).await;
        return created
            .map(CaptureResult::TaskIds)
            .map_err(|unfinished| unfinished.error);
    }
    match app.pending.add(download) {
        Ok(id) => Ok(CaptureResult::TransactionIds(vec![id])),
        Err(Full) => Err(RpcError::application(ErrorCode::Unavailable, Full.to_string()).into()),
    }
}

/// Why not all tasks of a download were created.
struct Unfinished {
    error: CallError,
    /// What is left of it, if there are tasks of the others.
    rest: Option<Vec<CreateTaskRequest>>,
}

/// Creates the tasks and publishes them. A single download uses `id`, so that a retry does not create it twice.
async fn create(app: &App, download: Download, source: UrlSource, id: Option<&str>) -> Result<Vec<String>, Unfinished> {
    let unattended = app.listening.edition == Edition::Headless || app.gate.settings.current().prefers(&UNATTENDED);
    let mut ids = Vec::new();
    let created_by = download.created_by.clone();
    let by = |request: &CreateTaskRequest| source.requester(request, &created_by);
    let requests = download.into_requests();
    let id = id.filter(|_| requests.len() == 1);
    let mut left = batches(requests, by).into_iter();
    let mut failed = None;
    for (requester, requests) in left.by_ref() {
        match create_batch(app, requester, requests.clone(), (unattended, id)).await {
            Ok(made) => ids.extend(made),
            Err(error) => {
                failed = Some((error, requests));
                break;
            }
        }
    }
    app.daemon.hub.publish_captured(&ids);
    let Some((error, requests)) = failed else {
        return Ok(ids);
    };
    let rest = requests
        .into_iter()
        .chain(left.flat_map(|(_, requests)| requests))
        .collect();
    Err(Unfinished {
        error,
        rest: (!ids.is_empty()).then_some(rest),
    })
}

async fn create_batch(
    app: &App,
    requester: Option<Requester>,
    mut requests: Vec<CreateTaskRequest>,
    (unattended, id): (bool, Option<&str>),
) -> Result<Vec<String>, CallError> {
    if requests.len() > 1 {
        let params = CreateTasksParams { requests, requester };
        let CreatedTasks { task_ids, .. } = app.daemon.call(Method::TaskCreateMany, &params).await?;
        return Ok(task_ids);
    }
    let params = CreateTaskParams {
        request: requests.remove(0),
        unattended,
        task_id: id.map(ToOwned::to_owned),
        requester,
        ..CreateTaskParams::default()
    };
    match app.daemon.call::<CreatedTask>(Method::TaskCreate, &params).await {
        Ok(CreatedTask { task_id, .. }) => Ok(vec![task_id]),
        // An earlier attempt whose answer was lost made the task.
        Err(CallError::Refused(error)) if error.application_code() == Some(ErrorCode::Conflict) && id.is_some() => {
            Ok(id.map(ToOwned::to_owned).into_iter().collect())
        }
        Err(error) => Err(error),
    }
}

/// Splits requests into batches of one requester each that fit into a frame.
fn batches(
    requests: Vec<CreateTaskRequest>,
    requester: impl Fn(&CreateTaskRequest) -> Option<Requester>,
) -> Vec<(Option<Requester>, Vec<CreateTaskRequest>)> {
    let mut batches: Vec<(Option<Requester>, Vec<CreateTaskRequest>)> = Vec::new();
    let mut room = 0;
    for request in requests {
        let bytes = serde_json::to_vec(&request).map_or(0, |text| text.len() + 1);
        let requester = requester(&request);
        match batches.last_mut() {
            Some((of, batch)) if *of == requester && bytes <= room => batch.push(request),
            _ => {
                batches.push((requester, vec![request]));
                room = MAX_BATCH_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    batches
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
    fn only_a_confirmation_says_which_host_may_be_reached() {
        let request = CreateTaskRequest {
            url: "http://nas.test:81/f".into(),
            referrer: "http://router.test/".into(),
            ..CreateTaskRequest::default()
        };
        let host = |source: UrlSource| source.requester(&request, "").map(|requester| requester.user_host);
        assert_eq!(host(UrlSource::User), None);
        assert_eq!(host(UrlSource::Page).as_deref(), Some(""));
        assert_eq!(host(UrlSource::Confirmed).as_deref(), Some("nas.test"));
    }

    #[test]
    fn many_tasks_are_made_a_frame_at_a_time() {
        let request = |bytes: usize| CreateTaskRequest {
            url: "x".repeat(bytes),
            ..CreateTaskRequest::default()
        };
        let lengths = |requests: Vec<CreateTaskRequest>| -> Vec<_> {
            let batches = batches(requests, |request| UrlSource::Confirmed.requester(request, ""));
            batches.iter().map(|(_, batch)| batch.len()).collect()
        };
        assert_eq!(lengths(vec![request(10), request(10)]), [2]);
        assert_eq!(
            lengths((0..3).map(|_| request(MAX_BATCH_BYTES / 2)).collect()),
            [1, 1, 1]
        );
        assert_eq!(
            lengths((0..5).map(|_| request(MAX_BATCH_BYTES / 3)).collect()),
            [2, 2, 1]
        );
        assert!(lengths(Vec::new()).is_empty());
        let at = |host: &str| CreateTaskRequest {
            url: format!("http://{host}/"),
            ..CreateTaskRequest::default()
        };
        assert_eq!(lengths(["a", "a", "b", "a"].map(at).to_vec()), [2, 1, 1]);
    }
}
