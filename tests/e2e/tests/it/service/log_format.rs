//! The form of log lines.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use e2e::{Home, Service, service::KEY};
use serde_json::Value;

#[test]
fn a_service_logs_lines_of_json_if_it_is_asked_to() {
    let home = Home::new();
    let server = home.new_server().env("SVC_TOKEN", KEY).env("SVC_LOG_LEVEL", "debug");
    let service = Service::start(server.env("SVC_LOG_FORMAT", "json"));
    service.wait_until_ready();
    service.call("GET", "/api/v1/tasks", None);
    // What is not HTTP is a line in the daemon's log.
    let mut stranger = TcpStream::connect(("127.0.0.1", home.daemon().expect("it runs").port)).expect("it listens");
    stranger.write_all(b"\0\0\0\0\r\n\r\n").expect("it is received");
    let mut answer = Vec::new();
    let _closed = stranger.read_to_end(&mut answer);
    let run = service.terminate();
    let mut texts = vec![("standard error".to_owned(), run.stderr)];
    for process in ["agent", "daemon"] {
        let log = home.data().join("logs").join(format!("{process}.log"));
        texts.push((process.to_owned(), fs::read_to_string(log).expect("it logs")));
    }
    for (name, text) in texts {
        assert!(!text.is_empty(), "{name}");
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            for part in ["time", "level", "target", "message"] {
                assert!(record[part].is_string(), "{name}: {part}: {line}");
            }
            assert!(record["fields"].is_object(), "{name}: {line}");
        }
    }
}

#[test]
fn a_log_format_that_does_not_exist_is_refused_by_name() {
    let home = Home::new();
    let run = home.new_server().env("SVC_LOG_FORMAT", "xml").run();
    assert_ne!(run.code, Some(0));
    let text = run.stderr;
    assert!(
        text.contains("SVC_LOG_FORMAT") && text.contains("text or json"),
        "{text}"
    );
}
