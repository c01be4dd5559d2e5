//! A WebSocket of aria2's dialect: one call after the other, and between them what happened to downloads, in order.

use hyper::upgrade::Upgraded;
use protocol::close;
use tokio::time::sleep;

use super::{
    board::{Kind, Notice},
    call::{Answer, Caller},
    fault::Fault,
    json,
};
use crate::surface::http::{
    extract::FREE_TIME,
    socket::{self, End, Sender},
};

/// Why a client is cut off that sends much before its first call with the key.
const OVERDRAWN_REASON: &str = "call with the key first: before, a client may send 64 KiB";

/// Notices sent between two looks at calls.
const NOTICES_AT_ONCE: usize = 256;

/// Serves a connection until it ends, or until the dialect is switched off. A reader that falls behind is told of its gap
/// and closed; nothing is left out silently.
pub(super) async fn serve(caller: Caller, upgraded: Upgraded) {
    let (mut sender, mut frames) = socket::open(upgraded).await;
    let stop = caller.app.stop.clone();
    let vault = &caller.app.gate.vault;
    let mut settings = vault.follow();
    let mut newest = caller.app.daemon.hub.follow_notices();
    let mut cursor = *newest.borrow_and_update();
    let late = sleep(FREE_TIME);
    tokio::pin!(late);
    let end = loop {
        let step = tokio::select! {
            biased;
            () = stop.cancelled() => Err(End::Close(close::GOING_AWAY, close::SERVICE_QUIT_REASON)),
            () = caller.evicted() => Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON)),
            () = late.as_mut(), if !caller.is_authenticated() => {
                Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON))
            }
            _ = newest.changed() => send_notices(&caller, &mut sender, &mut cursor).await,
            frame = frames.next() => match frame {
                Ok(frame) => answer(&caller, &mut sender, frame.as_bytes()).await,
                // The client sent more than it may before its first call with the key.
                Err(End::Gone) if caller.is_overdrawn() => Err(End::Close(close::TOO_BIG, OVERDRAWN_REASON)),
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

/// Answers a message. What it did to downloads is told after the answer, as aria2 does.
async fn answer(caller: &Caller, sender: &mut Sender, message: &[u8]) -> Result<(), End> {
    match caller.answer(message).await {
        Ok(Answer::Whole(text)) => sender.send(text).await?,
        Ok(Answer::Streamed(pieces)) => {
            sender.feed(pieces).await?;
            sender.flush().await?;
        }
        Err(exhausted) => {
            let mut text = Vec::new();
            json::write(&mut text, json::NO_ID, Err(&Fault::new(exhausted.to_string())));
            sender.send(text).await?;
        }
    }
    if caller.must_wait() {
        return Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON));
    }
    Ok(())
}

async fn send_notices(caller: &Caller, sender: &mut Sender, cursor: &mut u64) -> Result<(), End> {
    loop {
        let hub = &caller.app.daemon.hub;
        let notices = hub.look_at_board(|_, board| board.notices_after(*cursor, NOTICES_AT_ONCE));
        let notices = notices.map_err(|_| End::Close(close::EVENT_GAP, close::EVENT_GAP_REASON))?;
        if notices.is_empty() {
            return Ok(());
        }
        for notice in notices {
            if caller.is_told(notice.gid) {
                sender.feed(socket::frames(text(notice).into())).await?;
            }
            *cursor += 1;
        }
        sender.flush().await?;
    }
}

fn text(Notice { kind, gid }: Notice) -> String {
    let name = match kind {
        Kind::Start => "Start",
        Kind::Pause => "Pause",
        Kind::Stop => "Stop",
        Kind::Complete => "Complete",
        Kind::Error => "Error",
    };
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"aria2.onDownload{name}\",\"params\":[{{\"gid\":\"{gid}\"}}]}}")
}
