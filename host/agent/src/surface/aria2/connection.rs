//! A WebSocket of aria2's dialect: one call after the other, and between them what happened to downloads, in order.

use aria2::{Caller, Fault, Notices, json};
use hyper::upgrade::Upgraded;
use protocol::close;
use tokio::time::sleep;

use super::client::{GateClient, Reply, answer};
use crate::surface::{
    http::{
        extract::FREE_TIME,
        socket::{self, End, Sender},
    },
    state::App,
};

/// Why a client is cut off that sends much before its first call with the key.
const OVERDRAWN_REASON: &str = "call with the key first: before, a client may send 64 KiB";

/// Notices sent between two looks at calls.
const NOTICES_AT_ONCE: usize = 256;

/// Serves a connection until it ends, or until the dialect is switched off. A reader that falls behind is closed with
/// 4009; nothing is left out silently.
pub(super) async fn serve(app: &App, caller: Caller, client: &GateClient, upgraded: Upgraded) {
    let (mut sender, mut frames) = socket::open(upgraded).await;
    let vault = &app.gate.vault;
    let mut settings = vault.follow();
    let mut notices = Notices::of(&caller);
    let late = sleep(FREE_TIME);
    tokio::pin!(late);
    let end = loop {
        let step = tokio::select! {
            biased;
            () = app.shutdown.drain.cancelled() => Err(End::Close(close::GOING_AWAY, close::SERVICE_QUIT_REASON)),
            () = client.evicted() => Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON)),
            () = late.as_mut(), if !client.is_authenticated() => {
                Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON))
            }
            () = notices.changed() => send_notices(&mut notices, &mut sender).await,
            frame = frames.next() => match frame {
                Ok(frame) => reply(app, &caller, client, &mut sender, frame.as_bytes()).await,
                // The client sent more than it may before its first call with the key.
                Err(End::Gone) if client.is_overdrawn() => Err(End::Close(close::TOO_BIG, OVERDRAWN_REASON)),
                Err(end) => Err(end),
            },
            _ = settings.changed() => if vault.settings().jsonrpc {
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

/// Answers a message. Notifications of what it did follow the answer, as aria2 does.
async fn reply(
    app: &App,
    caller: &Caller,
    client: &GateClient,
    sender: &mut Sender,
    message: &[u8],
) -> Result<(), End> {
    match answer(app, caller, message).await {
        Ok(Reply::Whole(text)) => sender.send(text).await?,
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
