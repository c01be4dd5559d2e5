//! `daemon.rss.*`

use protocol::{
    ErrorCode, Method, Request, RpcError, RssCreatedSource, RssExportResponse, RssImportRequest, RssItemActionParams,
    RssItemActionRequest, RssSourceDto, RssSourceParams, RssValidateRequest,
};
use rss::state::CommandError;

use crate::{
    call::answer::{Answer, done, read, wrote},
    refusal::{closing, invalid, unknown_queue},
    service::Service,
};

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let rss = &service.rss;
    match method {
        Method::RssListSources => read(&rss.sources().await.map_err(refused)?),
        // Items name tasks, which are then known to everybody who reads that.
        Method::RssGetItems => wrote(&rss.items(source(request)?).await.map_err(refused)?),
        Method::RssCreateSource => {
            let settings: RssSourceDto = request.params()?;
            check(service, &settings).await?;
            let id = rss.create(settings).await.map_err(refused)?;
            wrote(&RssCreatedSource {
                source_id: id.to_string(),
            })
        }
        Method::RssUpdateSource => {
            let settings: RssSourceDto = request.params()?;
            check(service, &settings).await?;
            finish(rss.update(id(&settings.source_id)?, settings).await)
        }
        Method::RssDeleteSource => finish(rss.delete(source(request)?).await),
        Method::RssRefreshSource => finish(rss.refresh(source(request)?).await),
        Method::RssItemAction => {
            let RssItemActionParams {
                source_id,
                guid,
                action,
            } = request.params()?;
            finish(rss.act(id(&source_id)?, RssItemActionRequest { guid, action }).await)
        }
        Method::RssValidate => {
            let request: RssValidateRequest = request.params()?;
            read(&rss.validate(request).await.map_err(refused)?)
        }
        Method::RssImport => {
            let RssImportRequest { document } = request.params()?;
            wrote(&rss.import(document.as_bytes()).await.map_err(refused)?)
        }
        Method::RssExport => {
            let document = rss.export().await.map_err(refused)?;
            read(&RssExportResponse { document })
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

/// Checks what only the daemon knows: that the queues exist.
async fn check(service: &Service, settings: &RssSourceDto) -> Result<(), RpcError> {
    let of_rules = settings.rules.iter().enumerate();
    let of_rules = of_rules.map(|(number, rule)| (format!("rules[{number}].queueId"), rule.queue_id.as_str()));
    let named = std::iter::once(("queueId".to_owned(), settings.queue_id.as_str())).chain(of_rules);
    match unknown_queue(&service.engine, named.collect()).await? {
        Some((field, why)) => Err(invalid(&field, why)),
        None => Ok(()),
    }
}

fn source(request: &Request) -> Result<rss::model::source::SourceId, RpcError> {
    let RssSourceParams { source_id } = request.params()?;
    id(&source_id)
}

/// Text that is not an id is answered as an unknown source.
fn id(text: &str) -> Result<rss::model::source::SourceId, RpcError> {
    rss::parse_id(text).map_err(|_| {
        RpcError::application(ErrorCode::NotFound, format!("RSS source not found: {text}")).with_field("sourceId")
    })
}

fn finish(outcome: Result<(), rss::Error>) -> Result<Answer, RpcError> {
    outcome.map_err(refused)?;
    done()
}

fn refused(error: rss::Error) -> RpcError {
    let message = error.to_string();
    match error {
        rss::Error::Closed => closing(),
        rss::Error::NotSaved(_) => RpcError::application(ErrorCode::Unavailable, message),
        rss::Error::Refused(refusal) => match refusal {
            CommandError::UnknownSource(_) => {
                RpcError::application(ErrorCode::NotFound, message).with_field("sourceId")
            }
            CommandError::UnknownItem => RpcError::application(ErrorCode::NotFound, message).with_field("guid"),
            CommandError::SourceExists(_) => RpcError::application(ErrorCode::Conflict, message),
            CommandError::TooManySources(_) | CommandError::NothingToDownload => {
                RpcError::application(ErrorCode::InvalidArgument, message)
            }
            CommandError::InvalidField(field) => invalid(&field.field, message),
        },
    }
}
