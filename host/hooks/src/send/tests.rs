//! Tests of requests, against a receiver of a few lines.

use std::net::SocketAddr;

use protocol::WebhookEndpointDto;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use uuid::Uuid;

use super::*;
use crate::{endpoint::Endpoints, state::DeliveryId};

fn sender() -> Sender {
    Sender::new(Names::default(), Arc::new(|_: &SafeUrl| None))
}

fn attempt(url: String, change: impl FnOnce(&mut WebhookEndpointDto)) -> Attempt {
    let mut record = WebhookEndpointDto {
        id: "e".to_owned(),
        url,
        headers: Some([("X-Own".to_owned(), "own-value".to_owned())].into()),
        sign_secret: Some("key".to_owned()),
        allow_http: true,
        allow_private: true,
        ..WebhookEndpointDto::default()
    };
    change(&mut record);
    Attempt {
        delivery: DeliveryId(Uuid::nil()),
        endpoint: Arc::new(Endpoint::check(record, 1, &Endpoints::default()).unwrap()),
        event: "task.completed",
        body: "{\"a\":1}".into(),
    }
}

/// Answers one request with `answer`, and gives the request.
async fn receive(listener: TcpListener, answer: String) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"{\"a\":1}") {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the request breaks off");
        request.extend_from_slice(&piece[..count]);
    }
    // The sender may have enough before all of it is sent.
    let _read_or_not = stream.write_all(answer.as_bytes()).await;
    String::from_utf8(request).unwrap()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn exchange(answer: String) -> (Outcome, String) {
    let (listener, address) = listener().await;
    let attempt = attempt(format!("http://{address}/hook"), |_| {});
    let sender = sender();
    tokio::join!(sender.send(&attempt), receive(listener, answer))
}

#[tokio::test]
async fn a_delivery_says_what_it_is_and_is_signed() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".to_owned();
    let (outcome, request) = exchange(answer).await;
    assert_eq!(
        outcome,
        Outcome::Answered {
            status: 200,
            body: "ok".to_owned()
        }
    );
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    let field = |name: &str| {
        let mut lines = request.lines();
        let line = lines.find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")));
        line.map(|line| line[name.len() + 2..].to_owned()).unwrap_or_default()
    };
    assert_eq!(field("x-svc-event"), "task.completed");
    assert_eq!(field("x-svc-delivery"), Uuid::nil().to_string());
    assert_eq!(field("content-type"), "application/json");
    assert_eq!(field("x-own"), "own-value");
    let signature = field("x-svc-signature");
    let time: i64 = signature[2..].split(',').next().unwrap().parse().unwrap();
    assert_eq!(signature, sign::signature("key", time, "{\"a\":1}"));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_a_long_body_is_not_read_to_its_end() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned();
    let (outcome, _) = exchange(answer).await;
    assert!(matches!(outcome, Outcome::Answered { status: 302, .. }), "{outcome:?}");
    let endless = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    let (outcome, _) = exchange(endless).await;
    let Outcome::Answered { status: 200, body } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(body.len(), MAX_ANSWER_BYTES);
}

#[tokio::test]
async fn private_targets_are_refused_also_behind_a_public_name() {
    /// Every name leads to this machine.
    struct Here;

    impl egress::Lookup for Here {
        fn lookup<'a>(
            &'a self,
            _name: &'a str,
        ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<std::net::IpAddr>>> + Send + 'a>> {
            Box::pin(async { Ok(vec![std::net::IpAddr::from([127, 0, 0, 1])]) })
        }
    }

    let (listener, address) = listener().await;
    let names = Names::by(Here);
    let sender = Sender::new(names, Arc::new(|_: &SafeUrl| None));
    let port = address.port();
    let public = attempt(format!("http://hooks.example:{port}/hook"), |record| {
        record.allow_private = false;
    });
    let outcome = sender.send(&public).await;
    let Outcome::Refused(why) = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        why.contains("hooks.example is no public address: set allowPrivate"),
        "{why}"
    );
    let connected = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connected.is_err(), "a connection was made");
    let allowed = attempt(format!("http://hooks.example:{port}/hook"), |_| {});
    let answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned();
    let (outcome, _) = tokio::join!(sender.send(&allowed), receive(listener, answer));
    assert!(matches!(outcome, Outcome::Answered { status: 204, .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_costs_ten_seconds() {
    let (listener, address) = listener().await;
    let attempt = attempt(format!("http://{address}/hook"), |_| {});
    let sender = sender();
    let begun = tokio::time::Instant::now();
    let hanging = async {
        let accepted = listener.accept().await;
        std::future::pending::<()>().await;
        drop(accepted);
    };
    let outcome = tokio::select! {
        outcome = sender.send(&attempt) => outcome,
        () = hanging => unreachable!(),
    };
    assert!(matches!(outcome, Outcome::NoAnswer(_)), "{outcome:?}");
    assert!(
        begun.elapsed() <= TIMEOUT + Duration::from_millis(100),
        "{:?}",
        begun.elapsed()
    );
}
