//! What other devices send: messages of the pairing, plaintexts of the data plane, and sealed requests.

use link::{
    Info, Task, Unpair,
    constants::{MAX_FILE_NAME_BYTES, MAX_URL_BYTES},
    crypto::{
        identity::Fingerprint,
        seal::{Envelope, Keys},
    },
    pairing::hello::Hello,
    plane::{self, Headers},
};

use super::Target;

/// Whatever is read fulfils the limits, and is read again as the same.
pub(super) fn bodies() -> Target {
    Box::new(|input| {
        let _refused_or_not = Hello::read(input);
        let _refused_or_not = Unpair::read(input);
        if let Ok(task) = Task::read(input) {
            assert!(!task.url.is_empty() && task.url.len() <= MAX_URL_BYTES);
            assert!(!task.url.contains([' ', '\n', '\r', '\0']));
            assert!(task.file_name.len() <= MAX_FILE_NAME_BYTES && !task.file_name.contains(['/', '\\', '\0']));
            let text = serde_json::to_vec(&task).expect("a task encodes");
            assert_eq!(Task::read(&text).as_ref(), Ok(&task));
        }
        if let Ok(info) = Info::read(input) {
            let text = serde_json::to_vec(&info).expect("device info encodes");
            assert_eq!(Info::read(&text).as_ref(), Ok(&info));
        }
    })
}

/// A request of somebody without the key: lines of headers, an empty line, a body. Nothing of it is taken as authenticated.
pub(super) fn sealed() -> Target {
    let keys = Keys::of(&[7; 32]).expect("the keys derive");
    let receiver = Fingerprint::read(&"b".repeat(64)).expect("it has the form of one");
    Box::new(move |input| {
        let split = input.windows(2).position(|pair| pair == b"\n\n");
        let (head, body) = split.map_or((input, &[][..]), |at| (&input[..at], &input[at + 2..]));
        let head = String::from_utf8_lossy(head);
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let headers = Headers {
            enc: header("enc"),
            device: header("device"),
            timestamp: header("ts"),
            nonce: header("nonce"),
            tag: header("tag"),
        };
        let Ok(shaped) = plane::shaped(&headers, 1_000_000) else {
            return;
        };
        let envelope = Envelope {
            method: "POST",
            path: "/api/v1/link/tasks",
            sender: &shaped.device,
            receiver: &receiver,
            nonce: shaped.nonce,
        };
        assert!(plane::authenticated(&keys, &envelope, &shaped, body).is_err());
        assert!(keys.open_request(&envelope, body).is_err());
        assert!(keys.open_response(&envelope, body).is_err());
        let random = [9; 12];
        let request = keys.seal_request(&envelope, random, body);
        assert_eq!(keys.open_request(&envelope, &request).as_deref(), Ok(body));
        assert!(keys.open_response(&envelope, &request).is_err());
        let tag = keys.tag(&envelope, shaped.timestamp, &request);
        assert!(keys.verifies(&envelope, shaped.timestamp, &request, &tag));
        assert!(!keys.verifies(&envelope, shaped.timestamp, body, &tag));
    })
}
