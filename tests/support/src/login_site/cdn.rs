//! The host of the files: each wants the token or the cookie of a session, and is served in ranges.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{
    CdnWants,
    message::{file, json},
    state::{State, too_many},
};
use crate::{recorder::Handled, request::Request, server::lock};

/// A transfer of an account, which is over when this is dropped.
struct Transfer {
    state: Arc<Mutex<State>>,
    user: String,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        lock(&self.state).end_transfer(&self.user);
    }
}

pub(super) fn answer(shared: &Arc<Mutex<State>>, request: &Request) -> Handled {
    let mut state = lock(shared);
    let mut parts = request.path().split('/').skip(1);
    let found = match (parts.next(), parts.next()) {
        (Some("f"), Some(id)) => state.file(id).cloned(),
        _ => None,
    };
    let Some((_, content)) = found else {
        return json(404, &json!({ "error": "no_such_file" })).into();
    };
    let user = match state.cdn_wants() {
        CdnWants::Token => state.user_of_token(request),
        CdnWants::Cookie => state.user_of_cookie(request),
    };
    let Some(user) = user else {
        return json(401, &json!({ "error": "unauthorized" })).into();
    };
    if !state.begin_transfer(&user) {
        return too_many("too_many_transfers").into();
    }
    let mut reply = file(request, content, "application/octet-stream");
    reply.pace = state.pace();
    let transfer = Transfer {
        state: Arc::clone(shared),
        user,
    };
    Handled {
        reply,
        guard: Some(Box::new(transfer)),
    }
}
