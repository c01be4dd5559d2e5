//! `daemon.post.*`

use chains::{Error, Subject};
use post::job::JobId;
use protocol::{
    ErrorCode, Method, PostCleared, PostJobParams, PostPasswords, PostStartRequest, PostStarted, Request, RpcError,
};
use transfer::Secret;

use crate::{
    call::{
        answer::{Answer, done, read, wrote},
        params::{group_id, task_id},
    },
    options::optional,
    refusal::{closing, invalid},
    service::Service,
};

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let jobs = &service.jobs;
    match method {
        Method::PostList => return read(&jobs.list().await.map_err(refused)?),
        Method::PostStart => {
            let job = start(service, request.params()?).await?;
            service.hub.post_changed().await?;
            return wrote(&PostStarted { job_id: job.0 });
        }
        Method::PostCancel => jobs.cancel(job(request)?).await.map_err(refused)?,
        Method::PostRetry => jobs.retry(job(request)?).await.map_err(refused)?,
        Method::PostClear => {
            let count = jobs.clear().await.map_err(refused)?;
            service.hub.post_changed().await?;
            return wrote(&PostCleared {
                count: u32::try_from(count).unwrap_or(u32::MAX),
            });
        }
        Method::PostSetPasswords => {
            let PostPasswords { passwords } = request.params()?;
            jobs.set_passwords(secrets(passwords)?).await.map_err(refused)?;
        }
        _ => return Err(RpcError::method_not_found(method.name())),
    }
    service.hub.post_changed().await?;
    done()
}

async fn start(service: &Service, request: PostStartRequest) -> Result<JobId, RpcError> {
    let of = match (optional(&request.task_id), optional(&request.group_id)) {
        (Some(task), None) => Subject::Task(task_id(task)?),
        (None, Some(group)) => Subject::Group(group_id(group)?),
        _ => return Err(invalid("taskId", "name a task or a group, and not both")),
    };
    let steps = chains::chain(request.steps).map_err(|error| invalid("steps", error.to_string()))?;
    let passwords = secrets(request.passwords)?;
    service.jobs.begin(of, steps, passwords).await.map_err(refused)
}

fn secrets(passwords: Vec<String>) -> Result<Vec<Secret>, RpcError> {
    if passwords
        .iter()
        .any(|password| password.is_empty() || password.len() > MAX_PASSWORD_BYTES)
    {
        let message = format!("a password has 1 to {MAX_PASSWORD_BYTES} bytes");
        return Err(invalid("passwords", message));
    }
    Ok(passwords.into_iter().map(Secret::new).collect())
}

/// The longest password; RAR takes 127 characters.
const MAX_PASSWORD_BYTES: usize = 512;

fn job(request: &Request) -> Result<JobId, RpcError> {
    let PostJobParams { job_id } = request.params()?;
    Ok(JobId(job_id))
}

fn refused(error: Error) -> RpcError {
    let message = error.to_string();
    match error {
        Error::Closed => closing(),
        Error::NotSaved(_) => RpcError::application(ErrorCode::Unavailable, message),
        Error::Unknown => RpcError::application(ErrorCode::NotFound, message).with_field("taskId"),
        Error::NotFinished(_) => RpcError::application(ErrorCode::Conflict, message).with_field("taskId"),
        Error::NothingToDo(_) => invalid("steps", message),
        Error::Passwords(_) => invalid("passwords", message),
        Error::Refused(refusal) => match refusal {
            post::job::JobError::Unknown(_) => RpcError::application(ErrorCode::NotFound, message).with_field("jobId"),
            post::job::JobError::NotEnded(_) | post::job::JobError::Ended(_) => {
                RpcError::application(ErrorCode::Conflict, message).with_field("jobId")
            }
            post::job::JobError::Full => RpcError::application(ErrorCode::Unavailable, message),
            _ => invalid("steps", message),
        },
    }
}
