//! aria2's dialect over HTTP, in all of its forms.

use data_encoding::BASE64;
use metalink_reader::{Document, File, FilePath, Preference};
use serde_json::Value;
use transfer::source::MAX_URLS;

use super::Target;
use crate::house::{Answer, House};

/// The body of a POST to `/jsonrpc`.
pub(super) fn json_rpc() -> Target {
    let house = House::desktop();
    Box::new(move |data| {
        let answer = answered(&house.ask("POST /jsonrpc", "", data));
        match (serde_json::from_slice(data), answer) {
            (Ok(Value::Array(calls)), Value::Array(answers)) => {
                assert_eq!(calls.len(), answers.len(), "each call of a batch has its answer");
                answers.iter().for_each(check);
            }
            (Ok(Value::Array(_)), answer) => panic!("a batch was answered with {answer}"),
            (_, answer) => check(&answer),
        }
    })
}

/// The query of a GET of `/jsonrpc`.
pub(super) fn json_query() -> Target {
    let house = House::server();
    Box::new(move |data| {
        let query: String = data
            .iter()
            .filter(|byte| byte.is_ascii_graphic())
            .map(|&byte| char::from(byte))
            .collect();
        let key = format!("X-Svc-Token: {}\r\n", crate::house::KEY);
        let answer = house.ask(&format!("GET /jsonrpc?{query}"), &key, b"");
        // The server of HTTP refuses what is no target of a request.
        if answer.status == 200 {
            match answer.json() {
                Value::Array(answers) => answers.iter().for_each(check),
                answer => check(&answer),
            }
        } else {
            assert!([400, 414, 429].contains(&answer.status), "{}", answer.status);
        }
    })
}

/// What calls within a call are made of.
pub(super) fn multicall() -> Target {
    let house = House::desktop();
    Box::new(move |data| {
        let call = [
            br#"{"jsonrpc":"2.0","id":1,"method":"system.multicall","params":["#,
            data,
            b"]}",
        ];
        let answer = answered(&house.ask("POST /jsonrpc", "", &call.concat()));
        check(&answer);
        if let (Ok(Value::Array(calls)), Some(Value::Array(results))) =
            (serde_json::from_slice(data), answer.get("result"))
        {
            assert_eq!(calls.len(), results.len(), "each call has its result");
            for result in results {
                let is_fault = || result["code"].is_i64() && result["message"].is_string();
                let is_result = result.as_array().is_some_and(|result| result.len() == 1);
                assert!(is_result || is_fault(), "{result}");
            }
        }
    })
}

/// The body of a POST to `/rpc`, which is XML.
pub(super) fn xml_rpc() -> Target {
    let house = House::desktop();
    Box::new(move |data| {
        let answer = house.ask("POST /rpc", "", data);
        match answer.status {
            200 => {
                let text = String::from_utf8(answer.body).expect("XML is text");
                let is_whole = text.starts_with("<?xml") && text.trim_end().ends_with("</methodResponse>");
                assert!(is_whole, "{text}");
            }
            status => assert_eq!(status, 400),
        }
    })
}

/// A metalink, as `aria2.addMetalink` gets it. What is read of it leads to no other directory.
pub(super) fn metalink() -> Target {
    let house = House::desktop();
    Box::new(move |data| {
        if let Ok(document) = Document::read(data, &Preference::default()) {
            document.files.iter().for_each(check_file);
        }
        let call = format!(
            r#"{{"id":1,"method":"aria2.addMetalink","params":["{}",{{"pause":"true"}}]}}"#,
            BASE64.encode(data)
        );
        check(&answered(&house.ask("POST /jsonrpc", "", call.as_bytes())));
    })
}

fn check_file(file: &File) {
    assert!((1..=MAX_URLS).contains(&file.urls.len()));
    let parts = file.path.directories.iter().chain([&file.path.name]);
    for part in parts.map(transfer::FileName::as_str) {
        assert!(!part.starts_with('.') && !part.contains(['/', '\\', '\0']), "{part:?}");
    }
    let text = file.path.to_string();
    assert_eq!(FilePath::parse(&text).as_ref(), Ok(&file.path), "{text}");
    if let (Some(pieces), Some(size)) = (&file.pieces, file.size) {
        assert!(pieces.fits(size));
    }
}

fn answered(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "errors are in the answer");
    answer.json()
}

/// Fails unless it is an answer of JSON-RPC as aria2 gives it.
fn check(answer: &Value) {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(answer.get("id").is_some(), "{answer}");
    match (answer.get("result"), answer.get("error")) {
        (Some(_), None) => {}
        (None, Some(error)) => {
            let code = error["code"].as_i64();
            assert!(code.is_some_and(|code| [1, -32600, -32700].contains(&code)), "{answer}");
            assert!(
                error["message"].as_str().is_some_and(|message| !message.is_empty()),
                "{answer}"
            );
        }
        _ => panic!("{answer}"),
    }
}
