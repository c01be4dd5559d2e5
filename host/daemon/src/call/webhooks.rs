//! `daemon.webhook.*`. Endpoints are changed with the setting `webhook.endpoints`.

use hooks::{Closed, Endpoint, EventKind, TestError};
use protocol::{ErrorCode, Method, Request, RpcError, WebhookSimulateParams, WebhookSimulated, WebhookTestParams};

use crate::{
    call::answer::{Answer, done, read, wrote},
    refusal::{closing, invalid},
    service::Service,
};

/// The id of a draft that has none yet.
const DRAFT: &str = "draft";

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let hooks = &service.hooks;
    match method {
        Method::WebhookGet => read(&hooks.deliveries().await.map_err(closed)?),
        Method::WebhookClearDeliveries => {
            hooks.clear().await.map_err(closed)?;
            service.hub.webhooks_changed().await?;
            done()
        }
        Method::WebhookSimulate => {
            let WebhookSimulateParams { event } = request.params()?;
            let count = hooks.simulate(kind(&event)?).await.map_err(closed)?;
            service.hub.webhooks_changed().await?;
            wrote(&WebhookSimulated { count })
        }
        Method::WebhookTest => {
            let WebhookTestParams { mut endpoint, event } = request.params()?;
            let kind = kind(&event)?;
            if endpoint.id.is_empty() {
                DRAFT.clone_into(&mut endpoint.id);
            }
            let checked = Endpoint::check(endpoint, 1, &hooks.endpoints());
            let endpoint = checked.map_err(|error| invalid("endpoint", error.to_string()))?;
            let delivery = hooks.test(endpoint, kind).await.map_err(untested)?;
            service.hub.webhooks_changed().await?;
            wrote(&delivery)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn kind(name: &str) -> Result<EventKind, RpcError> {
    match name.trim() {
        "" => Ok(EventKind::TaskCompleted),
        name => EventKind::parse(name).ok_or_else(|| {
            let message = format!("there is no such event; there are {}", EventKind::names());
            invalid("event", message)
        }),
    }
}

fn closed(Closed: Closed) -> RpcError {
    closing()
}

fn untested(error: TestError) -> RpcError {
    match error {
        TestError::Busy => RpcError::application(ErrorCode::Conflict, error.to_string()).with_retryable(true),
        TestError::Closed(_) => closing(),
    }
}
