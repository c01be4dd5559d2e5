//! `daemon.selection.*`

use protocol::{Method, Request, RpcError, SelectionResolveParams};

use crate::{
    call::answer::{Answer, Peer, done},
    service::Service,
};

pub(super) async fn call(
    service: &Service,
    method: Method,
    request: &Request,
    peer: &Peer,
) -> Result<Answer, RpcError> {
    match method {
        Method::SelectionSubscribe => listen(peer, true),
        Method::SelectionUnsubscribe => listen(peer, false),
        Method::SelectionResolve => {
            let SelectionResolveParams { request_id, outcome } = request.params()?;
            service.selections.resolve(&request_id, outcome)?;
            service.hub.selections_changed().await?;
            done()
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

/// The subscription of this connection; it ends with it.
fn listen(peer: &Peer, subscribes: bool) -> Result<Answer, RpcError> {
    if let Some(listener) = &peer.listener {
        listener.listen(subscribes);
    }
    done()
}
