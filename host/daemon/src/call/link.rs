//! `daemon.link.*`: what the agent stores for the device link. It holds keys, so only the agent of this machine may call.

use std::sync::Arc;

use protocol::{ErrorCode, LinkRows, Method, Request, RpcError};

use crate::{
    call::answer::{Answer, Peer, done, read},
    rows,
    service::Service,
};

pub(super) async fn call(
    service: &Service,
    method: Method,
    request: &Request,
    peer: &Peer,
) -> Result<Answer, RpcError> {
    if !peer.is_local_agent {
        return Err(RpcError::application(
            ErrorCode::Unauthorized,
            "only the agent of this machine may use the keys of the device link",
        ));
    }
    let vault = Arc::clone(&service.vault);
    match method {
        Method::LinkLoad => {
            let loaded = rows::load_link(&service.store, vault).await.map_err(not_stored)?;
            let rows = loaded.map_err(not_stored)?;
            read(&LinkRows { rows, now: 0 })
        }
        Method::LinkCommit => {
            let params: LinkRows = request.params()?;
            rows::commit_link(&service.store, vault, params)
                .await
                .map_err(not_stored)?;
            done()
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn not_stored(error: impl std::error::Error) -> RpcError {
    tracing::error!(%error, "what is stored for the device link cannot be used");
    RpcError::application(ErrorCode::Unavailable, error.to_string())
}
