//! What comes over a WebSocket: frames as they are, or messages in good frames, to aria2's dialect and to `/rpc`.

use super::Target;
use crate::house::House;

/// The first byte says what the rest is; a byte that no text has stands between messages.
const BETWEEN: u8 = 0xff;

const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"system.hello","params":{"clientName":"a","clientVersion":"1","minProtocolVersion":1,"maxProtocolVersion":1,"requestedRole":"agent"}}"#;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// Bytes behind an upgrade.
pub(super) fn socket() -> Target {
    let (desktop, server) = (House::desktop(), House::server());
    Box::new(move |data| {
        let Some((&kind, data)) = data.split_first() else {
            return;
        };
        let is_rpc = kind & 2 != 0;
        // It would look for a proxy elsewhere.
        if is_rpc && (contains(data, b"proxyTest") || contains(data, b"\\u")) {
            return;
        }
        let (house, path) = if is_rpc {
            (&server, "/rpc")
        } else {
            (&desktop, "/jsonrpc")
        };
        let mut bytes = Vec::new();
        if is_rpc {
            bytes.extend(frame(TEXT, HELLO));
        }
        if kind & 1 == 0 {
            bytes.extend_from_slice(data);
        } else {
            bytes.extend(
                data.split(|&byte| byte == BETWEEN)
                    .flat_map(|message| frame(TEXT, message)),
            );
            bytes.extend(frame(CLOSE, b""));
        }
        house.upgrade(path, &bytes);
    })
}

fn contains(data: &[u8], word: &[u8]) -> bool {
    data.windows(word.len()).any(|window| window == word)
}

/// A whole frame as clients send it. Its mask is zero.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(0x80 | u8::try_from(length).expect("it is below 126")),
        Ok(length) => {
            frame.push(0x80 | 0x7e);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 0x7f);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(payload);
    frame
}
