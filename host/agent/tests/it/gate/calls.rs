//! Calls of aria2's clients, which carry their own key: every method in every form with every key.

use data_encoding::BASE64;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{client_async, tungstenite::Message};

use super::Setting;
use crate::world::{KEY, PATIENCE, World};

/// How a call is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Json,
    /// Alone in a batch.
    Batch,
    /// In a `system.multicall`.
    Within,
    Query,
    Socket,
    Xml,
    XmlWithin,
}

/// Where the key is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Token,
    WrongToken,
    EmptyToken,
    /// Without the `token:` prefix.
    BareToken,
    /// After the other parameters.
    LateToken,
    Header,
    WrongHeader,
    Bearer,
    Cookie,
    InUrl,
    /// On the outer `system.multicall`.
    Around,
}

const PLACES: [Place; 12] = [
    Place::Nowhere,
    Place::Token,
    Place::WrongToken,
    Place::EmptyToken,
    Place::BareToken,
    Place::LateToken,
    Place::Header,
    Place::WrongHeader,
    Place::Bearer,
    Place::Cookie,
    Place::InUrl,
    Place::Around,
];

const FORMS: [Form; 7] = [
    Form::Json,
    Form::Batch,
    Form::Within,
    Form::Query,
    Form::Socket,
    Form::Xml,
    Form::XmlWithin,
];

/// Whether a key at this place is accepted in this form.
fn is_let_in(form: Form, place: Place) -> bool {
    match place {
        Place::Token => true,
        // A page can open a WebSocket with its headers, but a token it must know.
        Place::Header => form != Form::Socket,
        _ => false,
    }
}

fn params(place: Place) -> Vec<Value> {
    match place {
        Place::Token => vec![json!(format!("token:{KEY}"))],
        Place::WrongToken => vec![json!("token:wrong-key-1")],
        Place::EmptyToken => vec![json!("token:")],
        Place::BareToken => vec![json!(KEY)],
        Place::LateToken => vec![json!([]), json!(format!("token:{KEY}"))],
        _ => Vec::new(),
    }
}

fn header(place: Place) -> Option<(&'static str, String)> {
    match place {
        Place::Header => Some(("X-Svc-Token", KEY.to_owned())),
        Place::WrongHeader => Some(("X-Svc-Token", "wrong-key-1".to_owned())),
        Place::Bearer => Some(("Authorization", format!("Bearer {KEY}"))),
        Place::Cookie => Some(("Cookie", format!("token={KEY}"))),
        _ => None,
    }
}

/// A value in XML-RPC.
fn xml(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values = values.iter().map(xml).collect::<Vec<_>>().concat();
            format!("<value><array><data>{values}</data></array></value>")
        }
        Value::Object(members) => {
            let member = |(name, value)| format!("<member><name>{name}</name>{}</member>", xml(value));
            let members = members.iter().map(member).collect::<Vec<_>>().concat();
            format!("<value><struct>{members}</struct></value>")
        }
        value => format!("<value><string>{}</string></value>", value.as_str().unwrap()),
    }
}

fn xml_call(method: &str, params: &[Value]) -> String {
    let param = |param| format!("<param>{}</param>", xml(param));
    let params = params.iter().map(param).collect::<Vec<_>>().concat();
    format!("<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>")
}

/// The parameters of a `system.multicall`.
fn within(method: &str, place: Place) -> Vec<Value> {
    let around = if place == Place::Around {
        params(Place::Token)
    } else {
        Vec::new()
    };
    let call = json!([{"methodName": method, "params": params(place)}]);
    around.into_iter().chain([call]).collect()
}

async fn answer(world: &World, form: Form, place: Place, method: &str, source: &str) -> String {
    let url = if place == Place::InUrl {
        format!("?token={KEY}")
    } else {
        String::new()
    };
    let call = |method: &str, params: Vec<Value>| json!({"id": 1, "method": method, "params": params});
    let (line, body) = match form {
        Form::Json => (format!("POST /jsonrpc{url}"), call(method, params(place)).to_string()),
        Form::Batch => (
            format!("POST /jsonrpc{url}"),
            json!([call(method, params(place))]).to_string(),
        ),
        Form::Within => {
            let call = call("system.multicall", within(method, place));
            (format!("POST /jsonrpc{url}"), call.to_string())
        }
        Form::Query => {
            let params = BASE64.encode(json!(params(place)).to_string().as_bytes());
            let params: String = url::form_urlencoded::byte_serialize(params.as_bytes()).collect();
            let url = url.replace('?', "&");
            (
                format!("GET /jsonrpc?method={method}&id=1&params={params}{url}"),
                String::new(),
            )
        }
        Form::Xml => (format!("POST /rpc{url}"), xml_call(method, &params(place))),
        Form::XmlWithin => (
            format!("POST /rpc{url}"),
            xml_call("system.multicall", &within(method, place)),
        ),
        Form::Socket => return over_a_socket(world, place, &call(method, params(place)), &url).await,
    };
    let shown = header(place);
    let mut headers = Vec::new();
    if !source.is_empty() {
        headers.push(("X-Forwarded-For", source));
    }
    headers.extend(shown.as_ref().map(|(name, value)| (*name, value.as_str())));
    let answer = world.send(&line, &headers, body).await;
    assert_eq!(answer.status, 200, "{line}: {answer:?}");
    String::from_utf8(answer.body).unwrap()
}

async fn over_a_socket(world: &World, place: Place, call: &Value, url: &str) -> String {
    let stream = TcpStream::connect(world.address()).await.unwrap();
    let mut request = http::Request::get(format!("ws://{}/jsonrpc{url}", world.address()))
        .header("Host", world.address().to_string())
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==");
    if let Some((name, value)) = header(place) {
        request = request.header(name, value);
    }
    let (mut socket, _) = client_async(request.body(()).unwrap(), stream).await.unwrap();
    socket.send(Message::text(call.to_string())).await.unwrap();
    let answer = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    answer.into_text().unwrap().as_str().to_owned()
}

/// Sends every method in every form with the key at every place; `is_open` means that no key is needed.
async fn check(world: &World, forms: &[Form], is_open: bool) {
    let mut sources = 0x0a00_0000_u32;
    // Without a key, proxies are refused and wrong keys are not counted.
    let source_of = |number: u32| {
        if is_open {
            String::new()
        } else {
            std::net::Ipv4Addr::from_bits(number).to_string()
        }
    };
    let source = source_of(sources);
    let listed = answer(world, Form::Json, Place::Nowhere, "system.listMethods", &source).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let methods: Vec<_> = listed["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(methods.len(), 36);
    for method in methods {
        // The outer `system.multicall` is always accepted; shutdown has its own test.
        if method == "system.multicall" || (is_open && method.ends_with("hutdown")) {
            continue;
        }
        for &form in forms {
            for place in PLACES {
                if is_let_in(form, place) && method.ends_with("hutdown") {
                    continue;
                }
                sources += 1;
                let source = source_of(sources);
                let answer = answer(world, form, place, method, &source).await;
                let is_free = is_open || method.starts_with("system.list");
                let is_refused = answer.contains("Unauthorized");
                assert_eq!(
                    is_refused,
                    !(is_free || is_let_in(form, place)),
                    "{method} {form:?} {place:?}: {answer}"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_call_needs_the_key_in_a_place_that_counts() {
    let world = Setting::Headless.start().await;
    let forms: Vec<_> = FORMS.into_iter().filter(|form| *form != Form::Socket).collect();
    check(&world, &forms, false).await;
    world.end().await;
}

#[tokio::test]
async fn every_call_over_a_socket_needs_its_token() {
    let listed = ["system.listMethods", "system.listNotifications"];
    for place in PLACES {
        // Wrong keys are counted, and all come from one source.
        let world = Setting::Headless.start().await;
        for method in listed.into_iter().chain(["aria2.getVersion", "aria2.addUri"]) {
            let answer = answer(&world, Form::Socket, place, method, "").await;
            let is_let_in = listed.contains(&method) || is_let_in(Form::Socket, place);
            assert_eq!(
                answer.contains("Unauthorized"),
                !is_let_in,
                "{method} {place:?}: {answer}"
            );
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_host_without_a_key_asks_for_none() {
    for setting in [Setting::FreshDesktop, Setting::OpenDropIn] {
        let world = setting.start().await;
        // Any page can cause a query, so it is not answered.
        let forms: Vec<_> = FORMS.into_iter().filter(|form| *form != Form::Query).collect();
        check(&world, &forms, true).await;
        world.end().await;
    }
}
