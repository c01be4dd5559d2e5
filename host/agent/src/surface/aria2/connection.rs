//! A WebSocket of aria2's interface: calls one after the other, and notifications in order between them.

use aria2::{Caller, Fault, Notices, json};
use hyper::upgrade::Upgraded;
use protocol::close;
use rest::FREE_TIME;
use tokio::time::sleep;

use super::client::{GateClient, Reply, answer};
use crate::surface::{
    socket::{self, End, Sender},
    state::App,
};

/// The close reason for a client that sends much before its first call with the key.
const OVERDRAWN_REASON: &str = "call with the key first: before, a client may send 64 KiB";

/// Notifications sent before calls are polled again.
const NOTICES_AT_ONCE: usize = 256;

/// Serves a connection until it ends or the interface is switched off. A reader that falls behind is closed with 4009;
/// no notification is dropped silently.
pub(super) async fn serve(app: &App, caller: Caller, client: &GateClient, upgraded: Upgraded) {
    let (mut sender, mut frames) = socket::open(upgraded).await;
    let mut settings = app.gate.settings.follow();
    let mut notices = Notices::of(&caller);
    let late = sleep(FREE_TIME);
    tokio::pin!(late);
    let end = loop {
        let step = tokio::select! {
            biased;
            () = app.shutdown.drain.cancelled() => Err(End::Close(close::GOING_AWAY, app.shutdown.close_reason())),
            () = client.evicted() => Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON)),
            () = late.as_mut(), if !client.is_authenticated() => {
                Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON))
            }
            () = notices.changed() => send_notices(&mut notices, &mut sender).await,
            frame = frames.next() => match frame {
                Ok(frame) => reply(app, &caller, client, &mut sender, frame.as_bytes()).await,
                // The client exceeded the limit of an unauthenticated connection.
                Err(End::Gone) if client.is_overdrawn() => Err(End::Close(close::TOO_BIG, OVERDRAWN_REASON)),
                Err(end) => Err(end),
            },
            _ = settings.changed() => if app.gate.settings.current().jsonrpc {
                Ok(())
            } else {
                Err(End::Close(close::GOING_AWAY, close::SERVICE_QUIT_REASON))
            },
        };
        if let Err(end) = step {
            break end;
        }
    };
    if let End::Close(code, reason) = end {
        sender.close(code, reason, frames).await;
    }
}

/// Answers a message. Notifications of its effects follow the answer, as with aria2.
async fn reply(
    app: &App,
    caller: &Caller,
    client: &GateClient,
    sender: &mut Sender,
    message: &[u8],
) -> Result<(), End> {
    match answer(app, caller, message).await {
        Ok(Reply::Text(text)) => sender.send(text).await?,
        Ok(Reply::Streamed(pieces)) => {
            sender.feed(pieces).await?;
            sender.flush().await?;
        }
        Err(exhausted) => {
            let mut text = Vec::new();
            json::write(&mut text, json::NO_ID, Err(&Fault::new(exhausted.to_string())));
            sender.send(text).await?;
        }
    }
    if client.must_wait() {
        return Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON));
    }
    Ok(())
}

async fn send_notices(notices: &mut Notices, sender: &mut Sender) -> Result<(), End> {
    loop {
        let taken = notices.take(NOTICES_AT_ONCE);
        let taken = taken.map_err(|_| End::Close(close::EVENT_GAP, close::EVENT_GAP_REASON))?;
        let Some(taken) = taken else { return Ok(()) };
        for notice in taken {
            sender.feed(socket::frames(notice.message().into())).await?;
        }
        sender.flush().await?;
    }
}
