//! The address of the web interface for a browser of this user. The access key is never in it: on this machine a ticket
//! is, which the page exchanges once and within a minute, and only for a browser of the same user.

use protocol::{Method, agent::OpenTicket};
use serde::Deserialize;

use crate::service::{Client, Target, http};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetupStatus {
    setup_required: bool,
}

/// The address that opens the page at `route` (`/…`, or empty for its start). Another machine's asks for the key, and one
/// without a key for its first.
pub(crate) async fn address(target: &Target, route: &str) -> anyhow::Result<String> {
    let page = target.address.to_string();
    let page = page.trim_end_matches('/');
    if !target.address.is_loopback() || needs_setup(target).await? {
        return Ok(format!("{page}/#{route}").trim_end_matches('#').to_owned());
    }
    let mut client = Client::connect(target).await?;
    let OpenTicket { ticket, .. } = client.ask(Method::PageTicket).await?;
    Ok(format!("{page}/#open={ticket}{route}"))
}

/// Whether the page is to set the first access key: until then there are no sessions to hand out.
async fn needs_setup(target: &Target) -> anyhow::Result<bool> {
    let answer = http::send(target, ::http::Method::GET, "/api/v1/setup/status", None).await?;
    // A desktop has no set-up.
    if answer.status == ::http::StatusCode::NOT_FOUND {
        return Ok(false);
    }
    let status: SetupStatus = answer.read(target)?;
    Ok(status.setup_required)
}
