//! `agent.link.*`: what the owner of this device does over `/rpc`.

use link::{Link, LinkError};
use protocol::{
    LinkAddressParams, LinkDeviceParams, LinkDevicePatch, LinkDiscoveryParams, LinkDispatchParams, LinkOutboxParams,
    LinkPairApproveRequest, LinkPairBeginParams, LinkPairFinishRequest, LinkUpdateParams, Method, OkResult,
    Request as RpcRequest, RpcError,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{settings::config::DEFAULT_PORT, surface::state::App};

/// A refusal as an answer over `/rpc`.
fn refused_call(error: &LinkError) -> RpcError {
    let kind = error.kind();
    let refused = RpcError::application(kind.code, error.to_string());
    match kind.reason {
        Some(reason) => refused.with_reason(reason),
        None => refused,
    }
}

fn encode(result: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(result).map_err(|error| RpcError::internal(error.to_string()))
}

/// `agent.link.*`
pub(crate) async fn call(app: &App, method: Method, request: &RpcRequest) -> Result<Box<RawValue>, RpcError> {
    let Some(link) = &app.link else {
        return Err(RpcError::method_not_found(method.name()));
    };
    let refused = |error: LinkError| refused_call(&error);
    match method {
        Method::LinkPairingCode => encode(&link.pairing_code().await.map_err(refused)?),
        Method::LinkStopPairing => {
            link.stop_announcing();
            encode(&OkResult::OK)
        }
        Method::LinkDiscoverySet => {
            let LinkDiscoveryParams { enabled } = request.params()?;
            if enabled {
                link.search().await.map_err(refused)?;
            } else {
                link.stop_search();
            }
            encode(&OkResult::OK)
        }
        Method::LinkDiscovered => encode(&link.discovered()),
        Method::LinkProbe => {
            let LinkAddressParams { address } = request.params()?;
            let (host, port) = split(&address)?;
            encode(&link.probe(&host, port).await.map_err(refused)?)
        }
        Method::LinkPairBegin => {
            let LinkPairBeginParams { address, code } = request.params()?;
            let (host, port) = split(&address)?;
            encode(&link.begin(&host, port, &code).await.map_err(refused)?)
        }
        Method::LinkPairFinish => {
            let LinkPairFinishRequest { token, accept } = request.params()?;
            encode(&link.finish(&token, accept).await.map_err(refused)?)
        }
        Method::LinkApprove => {
            let LinkPairApproveRequest { session_id, accept } = request.params()?;
            link.approve(session_id, accept).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        Method::LinkRequests => encode(&link.requests()),
        _ => call_device(link, method, request).await,
    }
}

/// Those about paired devices.
async fn call_device(link: &Link, method: Method, request: &RpcRequest) -> Result<Box<RawValue>, RpcError> {
    let refused = |error: LinkError| refused_call(&error);
    match method {
        Method::LinkRefresh => encode(&link.refresh().await.map_err(|error| refused(error.into()))?),
        Method::LinkRemove => {
            let LinkDeviceParams { fingerprint } = request.params()?;
            link.remove(&fingerprint).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        Method::LinkUpdate => {
            let LinkUpdateParams {
                fingerprint,
                accepts_tasks,
                allow_private,
                daily_tasks,
            } = request.params()?;
            let patch = LinkDevicePatch {
                accepts_tasks,
                allow_private,
                daily_tasks,
            };
            encode(&link.update(&fingerprint, &patch).await.map_err(refused)?)
        }
        Method::LinkDispatch => {
            let LinkDispatchParams { fingerprint, task } = request.params()?;
            encode(&link.dispatch(&fingerprint, task).await.map_err(refused)?)
        }
        Method::LinkOutbox => encode(&link.outbox().await.map_err(refused)?),
        Method::LinkOutboxRemove => {
            let LinkOutboxParams { id } = request.params()?;
            link.remove_queued(&id).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn split(address: &str) -> Result<(String, u16), RpcError> {
    link::split_address(address, DEFAULT_PORT).ok_or_else(|| {
        let message = "address must be host, host:port or http://host[:port]";
        RpcError::application(protocol::ErrorCode::InvalidArgument, message).with_field("address")
    })
}
