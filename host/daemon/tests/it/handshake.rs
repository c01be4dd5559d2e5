//! Authentication, and what is refused before and after it.

use protocol::{
    ErrorCode, Method, code,
    endpoint::{ENDPOINT_FILE, Endpoint, TOKEN_FILE},
    proof::{ProofRole, Token, nonce},
};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::world::{Client, Ended, World, hello};

#[tokio::test]
async fn an_agent_finds_the_daemon_by_its_files_and_both_prove_themselves() {
    let world = World::new().await;
    let endpoint: Endpoint = serde_json::from_slice(&std::fs::read(world.data(ENDPOINT_FILE)).unwrap()).unwrap();
    assert_eq!(endpoint.port, world.daemon.port());
    let token = Token::new(&std::fs::read_to_string(world.data(TOKEN_FILE)).unwrap());
    let mut client = world.stranger().await;
    client.prove(&token).await;
    let said = client.hello(&[]).await;
    assert_eq!(said["instanceId"], endpoint.instance_id);
    assert_eq!((&said["role"], &said["protocolVersion"]), (&json!("daemon"), &json!(1)));
}

/// Sends `first` on an unauthenticated connection and expects this error and close code.
async fn expect_refusal(first: Message, expect: i64, close: u16) {
    let world = World::new().await;
    let mut client = world.stranger().await;
    client.send(first.clone()).await;
    let error = client.reply().await.unwrap().outcome.unwrap_err();
    assert_eq!(error.code, expect, "{first:?}");
    let Err(Ended(Some((code, _)))) = client.receive().await else {
        panic!("the socket stays open after {first:?}");
    };
    assert_eq!(code, close, "{first:?}");
}

fn call(method: Method, params: &serde_json::Value) -> Message {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": method.name(), "params": params}).to_string();
    Message::Text(text.into())
}

#[tokio::test]
async fn anything_but_a_proof_is_refused_before_the_proof() {
    let proof = json!({"clientProof": "00".repeat(32)});
    expect_refusal(call(Method::SystemAuthProve, &proof), code::APPLICATION, 1008).await;
    expect_refusal(call(Method::SystemHello, &hello(1, 1, &[])), code::APPLICATION, 1008).await;
    expect_refusal(call(Method::SystemShutdown, &json!({})), code::APPLICATION, 1008).await;
    let short = json!({"clientNonce": "abc"});
    expect_refusal(call(Method::SystemAuthChallenge, &short), code::APPLICATION, 1008).await;
    let more = json!({"clientNonce": nonce().unwrap(), "more": 1});
    expect_refusal(call(Method::SystemAuthChallenge, &more), code::INVALID_PARAMS, 1008).await;
    expect_refusal(Message::Text("{".into()), code::PARSE, 1008).await;
    expect_refusal(Message::Text("[]".into()), code::INVALID_REQUEST, 1008).await;
    expect_refusal(Message::Binary(vec![1].into()), code::INVALID_REQUEST, 1003).await;
    let large = Message::Text("x".repeat(protocol::MAX_REQUEST_BYTES).into());
    expect_refusal(large, code::INVALID_REQUEST, 1009).await;
}

#[tokio::test]
async fn a_wrong_and_a_replayed_proof_are_refused() {
    let world = World::new().await;
    let token = world.daemon.token();
    let client_nonce = nonce().unwrap();
    let mut replay = "0".repeat(64);
    // The first round sends a wrong proof, the second the right proof of the first round's nonces.
    for _ in 0..2 {
        let mut client = world.stranger().await;
        let params = json!({"clientNonce": client_nonce});
        let challenge = client.call(Method::SystemAuthChallenge, params).await.unwrap();
        let (error, _) = client
            .full_call(Method::SystemAuthProve, json!({"clientProof": replay}))
            .await;
        assert_eq!(error.unwrap_err().application_code(), Some(ErrorCode::Unauthorized));
        assert_eq!(client.receive().await, Err(Ended(Some((1008, "unauthorized".into())))));
        replay = token.prove(
            ProofRole::Agent,
            &client_nonce,
            challenge["serverNonce"].as_str().unwrap(),
        );
    }
}

#[tokio::test]
async fn after_the_proof_the_conversation_has_an_order_and_survives_mistakes() {
    let world = World::new().await;
    let mut client = world.stranger().await;
    client.prove(world.daemon.token()).await;
    let conflict = |error: protocol::RpcError| assert_eq!(error.application_code(), Some(ErrorCode::Conflict));
    conflict(client.call(Method::TaskList, json!({})).await.unwrap_err());
    let newer = client.call(Method::SystemHello, hello(2, 9, &[])).await.unwrap_err();
    assert_eq!(newer.application_code(), Some(ErrorCode::ProtocolIncompatible));
    assert!(newer.message.contains("run the same version"), "{}", newer.message);
    client.hello(&[]).await;
    conflict(client.call(Method::SystemHello, hello(1, 1, &[])).await.unwrap_err());
    let again = json!({"clientNonce": nonce().unwrap()});
    conflict(client.call(Method::SystemAuthChallenge, again).await.unwrap_err());
    client.send_text("[]").await;
    let array = client.reply().await.unwrap();
    assert_eq!(
        (array.id, array.outcome.unwrap_err().code),
        (None, code::INVALID_REQUEST)
    );
    client.send_text("{").await;
    assert_eq!(client.reply().await.unwrap().outcome.unwrap_err().code, code::PARSE);
    client.begin("daemon.task.nothing", json!({})).await;
    let unknown = client.reply().await.unwrap().outcome.unwrap_err();
    assert_eq!(unknown.code, code::METHOD_NOT_FOUND);
    assert_eq!(
        client.call(Method::SystemPing, json!({})).await.unwrap(),
        json!({"ok": true})
    );
    client.send(Message::Binary(vec![0].into())).await;
    assert!(client.reply().await.unwrap().outcome.is_err());
    assert_eq!(client.receive().await, Err(Ended(Some((1003, "binary-frame".into())))));
}

#[tokio::test]
async fn a_frame_of_a_mebibyte_is_refused_and_one_byte_less_is_not() {
    let world = World::new().await;
    let mut client = world.client().await;
    let bare = r#"{"jsonrpc":"2.0","id":9,"method":"system.ping","params":{"x":""}}"#;
    let fill = |bytes: usize| bare.replace("\"\"", &format!("\"{}\"", "y".repeat(bytes - bare.len())));
    client.send_text(fill(protocol::MAX_REQUEST_BYTES - 1)).await;
    assert!(client.reply().await.unwrap().outcome.is_ok());
    client.send_text(fill(protocol::MAX_REQUEST_BYTES)).await;
    assert_eq!(
        client.reply().await.unwrap().outcome.unwrap_err().code,
        code::INVALID_REQUEST
    );
    assert_eq!(client.receive().await, Err(Ended(Some((1009, "frame-too-big".into())))));
}

#[tokio::test]
async fn an_older_agent_comes_in_with_the_token_and_others_do_not() {
    let world = World::new().await;
    let mut client = Client::open(world.tcp().await, Some(world.daemon.token().expose())).await;
    client.hello(&[]).await;
    let upgrade = "GET /rpc HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==";
    assert_eq!(world.http(upgrade, Some("wrong"), b"").await.0, 401);
    let page = format!("{upgrade}\r\nOrigin: http://page.test");
    assert_eq!(world.http(&page, None, b"").await.0, 403);
    assert_eq!(world.http("GET /rpc HTTP/1.1", None, b"").await.0, 426);
}

#[tokio::test]
async fn a_shutdown_is_answered_then_everyone_is_told_and_all_is_awaited() {
    let world = World::new().await;
    let mut other = world.client().await;
    let mut client = world.stranger().await;
    client.prove(world.daemon.token()).await;
    let stopped = client.call(Method::SystemShutdown, json!({})).await.unwrap();
    assert_eq!(stopped, json!({"ok": true}));
    world.daemon.asked_to_stop().await;
    let data = world.data("");
    let token = world.daemon.token().clone();
    let root = world.root;
    let mut telling = tokio::task::JoinSet::new();
    telling.spawn(async move { [other.receive().await, client.receive().await] });
    world.daemon.shutdown(crate::world::PATIENCE).await;
    for end in telling.join_next().await.unwrap().unwrap() {
        assert_eq!(end, Err(Ended(Some((1001, "service-quit".into())))));
    }
    assert!(!data.join(ENDPOINT_FILE).exists());
    let locked = store::DataDir::lock(&data).expect("the directory is free");
    assert!(token.is(&std::fs::read_to_string(locked.join(TOKEN_FILE)).unwrap()));
    drop(root);
}
