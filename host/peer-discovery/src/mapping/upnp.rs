//! UPnP: the service `WANIPConnection` of an Internet gateway.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use bytes::Bytes;
use egress::{Pins, Reach, Request, udp::Datagrams};
use quick_xml::{Reader, events::Event};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{Mapping, Router};
use crate::client::{Client, shown};

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1900);

/// What is searched for. Gateways of version 2 answer searches for version 1.
const DEVICE: &str = "urn:schemas-upnp-org:device:InternetGatewayDevice:1";

/// Services that open ports, without their version.
const SERVICES: [&str; 2] = [
    "urn:schemas-upnp-org:service:WANIPConnection:",
    "urn:schemas-upnp-org:service:WANPPPConnection:",
];

/// For answers to the search; devices wait up to two seconds.
const SEARCH_TIME: Duration = Duration::from_secs(3);

/// Devices that are asked.
const MAX_DEVICES: usize = 4;

/// The longest answer in bytes; descriptions have some 20 KiB.
const MAX_BYTES: usize = 256 * 1024;

/// The fault of routers that open ports only until they are closed.
const ONLY_PERMANENT: &str = "725";

/// Where a router is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    control: Url,
    kind: String,
    router: IpAddr,
}

pub(super) async fn map(client: &Client, port: u16, lease: Duration) -> Result<Mapping, String> {
    let mut failure = "no router answered".to_owned();
    for location in search().await.map_err(|error| error.to_string())? {
        match map_at(client, location, port, (lease, Reach::LocalNetwork)).await {
            Ok(mapping) => return Ok(mapping),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn map_at(
    client: &Client,
    (url, router): (Url, IpAddr),
    port: u16,
    (lease, reach): (Duration, Reach),
) -> Result<Mapping, String> {
    let description = send(client, "GET", (url.clone(), reach), &[], Bytes::new()).await?;
    let (kind, control) = service(&description).ok_or("the router has no service that opens ports")?;
    let control = url.join(&control).map_err(|error| error.to_string())?;
    if !is_of(&control, router) {
        return Err("the router names another host to be asked".to_owned());
    }
    let service = Service { control, kind, router };
    let own = own_address(router).await?;
    let add = |seconds: u64| {
        [
            ("NewRemoteHost", String::new()),
            ("NewExternalPort", port.to_string()),
            ("NewProtocol", "TCP".to_owned()),
            ("NewInternalPort", port.to_string()),
            ("NewInternalClient", own.to_string()),
            ("NewEnabled", "1".to_owned()),
            ("NewPortMappingDescription", "Svc".to_owned()),
            ("NewLeaseDuration", seconds.to_string()),
        ]
    };
    let mut added = call(client, &service, reach, "AddPortMapping", &add(lease.as_secs())).await;
    if let Err(fault) = &added
        && fault.contains(ONLY_PERMANENT)
    {
        added = call(client, &service, reach, "AddPortMapping", &add(0)).await;
    }
    added?;
    let address = call(client, &service, reach, "GetExternalIPAddress", &[]).await.ok();
    let address = address.and_then(|answer| text_of(&answer, "NewExternalIPAddress")?.parse().ok());
    Ok(Mapping {
        external_port: port,
        external_address: address,
        router: Router::Upnp(service),
    })
}

pub(super) async fn unmap(client: &Client, service: &Service, external_port: u16) {
    let arguments = [
        ("NewRemoteHost", String::new()),
        ("NewExternalPort", external_port.to_string()),
        ("NewProtocol", "TCP".to_owned()),
    ];
    // One that stays open ends with its lease.
    let _stays = call(client, service, Reach::LocalNetwork, "DeletePortMapping", &arguments).await;
}

/// Our own address on the way to a router.
async fn own_address(router: IpAddr) -> Result<IpAddr, String> {
    let socket = Datagrams::connect(SocketAddr::new(router, 9), Reach::Anywhere).await;
    let address = socket.and_then(|socket| socket.local_address());
    address.map(|address| address.ip()).map_err(|error| error.to_string())
}

/// Descriptions of gateways, and the addresses that they came from.
async fn search() -> std::io::Result<Vec<(Url, IpAddr)>> {
    let socket = Datagrams::bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let request =
        format!("M-SEARCH * HTTP/1.1\r\nHOST: {GROUP}\r\nMAN: \"ssdp:discover\"\r\nMX: 2\r\nST: {DEVICE}\r\n\r\n");
    socket.send_to_group(request.as_bytes(), GROUP).await?;
    let deadline = Instant::now() + SEARCH_TIME;
    let mut found: Vec<(Url, IpAddr)> = Vec::new();
    let mut buffer = [0; 2048];
    while found.len() < MAX_DEVICES
        && let Ok(Ok((length, from))) = timeout_at(deadline, socket.receive(&mut buffer)).await
    {
        if let Some(location) = location(&buffer[..length], from)
            && !found.iter().any(|(_, known)| *known == from.ip())
        {
            found.push((location, from.ip()));
        }
    }
    Ok(found)
}

/// Where a device that answered is described: on itself, in a private network.
fn location(answer: &[u8], from: SocketAddr) -> Option<Url> {
    let text = std::str::from_utf8(answer).ok()?;
    let mut lines = text.lines();
    lines.next().filter(|status| status.contains(" 200"))?;
    let (_, value) = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    let url = Url::parse(value.trim()).ok()?;
    (url.scheme() == "http" && egress::address::is_private(from.ip()) && is_of(&url, from.ip())).then_some(url)
}

fn is_of(url: &Url, router: IpAddr) -> bool {
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    url.scheme() == "http" && host.parse() == Ok(router)
}

/// Calls an action of the service; the answer's text.
async fn call(
    client: &Client,
    service: &Service,
    reach: Reach,
    action: &str,
    arguments: &[(&str, String)],
) -> Result<String, String> {
    let kind = quick_xml::escape::escape(service.kind.as_str());
    let arguments: String = arguments
        .iter()
        .map(|(name, value)| format!("<{name}>{}</{name}>", quick_xml::escape::escape(value.as_str())))
        .collect::<Vec<_>>()
        .concat();
    let body = format!(
        "<?xml version=\"1.0\"?>\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body><u:{action} xmlns:u=\"{kind}\">{arguments}\
         </u:{action}></s:Body></s:Envelope>\r\n"
    );
    let headers = [
        ("Content-Type".to_owned(), "text/xml; charset=\"utf-8\"".to_owned()),
        ("SOAPAction".to_owned(), format!("\"{}#{action}\"", service.kind)),
    ];
    send(client, "POST", (service.control.clone(), reach), &headers, body.into()).await
}

/// Sends a request to a router; the body of its answer, or its fault.
async fn send(
    client: &Client,
    method: &str,
    (url, reach): (Url, Reach),
    headers: &[(String, String)],
    body: Bytes,
) -> Result<String, String> {
    let pins = Pins::default();
    let sent = client.http.send(Request {
        method,
        url,
        headers,
        body,
        reach,
        pins: &pins,
        proxy: None,
    });
    let mut response = sent.await.map_err(|error| shown(&error))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| shown(&error))? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err("the router's answer is too long".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    match response.status() {
        200 => Ok(body),
        status => match text_of(&body, "errorCode") {
            Some(code) => Err(crate::tracker::text::shown(&format!(
                "the router refuses with code {code}"
            ))),
            None => Err(format!("the router answered with HTTP {status}")),
        },
    }
}

/// The type and the control URL of the first service that opens ports.
fn service(description: &str) -> Option<(String, String)> {
    let mut kind = None;
    for (name, text) in texts(description) {
        match name.as_str() {
            "service" => kind = None,
            "serviceType" => kind = SERVICES.iter().any(|known| text.starts_with(known)).then_some(text),
            "controlURL" => {
                if let Some(kind) = kind.take() {
                    return Some((kind, text));
                }
            }
            _ => {}
        }
    }
    None
}

fn text_of(document: &str, element: &str) -> Option<String> {
    texts(document).find(|(name, _)| name == element).map(|(_, text)| text)
}

/// The elements of a document in the order of their ends or texts, with their texts; up to its first error. An element that
/// begins another one has an empty text.
fn texts(document: &str) -> impl Iterator<Item = (String, String)> {
    let mut reader = Reader::from_str(document);
    let mut open: Option<String> = None;
    std::iter::from_fn(move || {
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => {
                    let name = tag.local_name().as_ref().to_owned();
                    if let Some(outer) = open.replace(name) {
                        return Some((outer, String::new()));
                    }
                }
                Event::Text(text) => {
                    let text = text.xml10_content().trim().to_owned();
                    if let Some(name) = open.take_if(|_| !text.is_empty()) {
                        return Some((name, text));
                    }
                }
                Event::End(_) => open = None,
                Event::Eof => return None,
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const DESCRIPTION: &str = r#"<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0"><device>
        <deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><serviceList><service>
        <serviceType>urn:schemas-upnp-org:service:Layer3Forwarding:1</serviceType><controlURL>/l3</controlURL></service>
        </serviceList><deviceList><device><serviceList><service>
        <serviceType>urn:schemas-upnp-org:service:WANIPConnection:2</serviceType>
        <serviceId>x</serviceId><controlURL>/ctl/IPConn</controlURL></service></serviceList></device></deviceList>
        </device></root>"#;

    #[test]
    fn the_service_that_opens_ports_is_found() {
        let (kind, control) = service(DESCRIPTION).unwrap();
        assert_eq!(kind, "urn:schemas-upnp-org:service:WANIPConnection:2");
        assert_eq!(control, "/ctl/IPConn");
        for other in ["", "<", "<root/>", "not xml", &DESCRIPTION.replace("WANIP", "LANIP")] {
            assert_eq!(service(other), None);
        }
    }

    #[test]
    fn only_the_device_that_answered_is_asked() {
        let answer = |location: &str| format!("HTTP/1.1 200 OK\r\nST: x\r\nLocation: {location}\r\n\r\n").into_bytes();
        let from = |text: &str| SocketAddr::new(text.parse().unwrap(), 1900);
        let good = answer("http://192.168.1.1:5000/root.xml");
        assert!(location(&good, from("192.168.1.1")).is_some());
        assert!(location(&good, from("192.168.1.66")).is_none());
        assert!(location(&answer("http://127.0.0.1:80/"), from("127.0.0.1")).is_none());
        assert!(location(&answer("http://93.184.216.34/"), from("93.184.216.34")).is_none());
        assert!(location(&answer("http://router/"), from("192.168.1.1")).is_none());
        assert!(
            location(
                b"NOTIFY * HTTP/1.1\r\nLocation: http://192.168.1.1/\r\n",
                from("192.168.1.1")
            )
            .is_none()
        );
    }

    /// A router on the loopback that gives requests these answers, one after the other; returns the requests.
    async fn router(answers: Vec<(u16, String)>) -> (Url, tokio::task::JoinHandle<Vec<String>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/root.xml", listener.local_addr().unwrap());
        let serving = async move {
            let mut requests = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = String::new();
                let mut buffer = [0; 4096];
                while !request.contains("\r\n\r\n")
                    || (request.starts_with("POST") && !request.contains("</s:Envelope>"))
                {
                    let length = stream.read(&mut buffer).await.unwrap();
                    request.push_str(&String::from_utf8_lossy(&buffer[..length]));
                }
                requests.push(request);
                let length = body.len();
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                let _left = stream.write_all(body.as_bytes()).await;
            }
            requests
        };
        #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
        (Url::parse(&url).unwrap(), tokio::spawn(serving))
    }

    fn client() -> Client {
        let config = egress::ClientConfig {
            user_agent: "Svc/test".to_owned(),
            tls: egress::tls::trusting_mozilla(&[]).unwrap(),
            connect_timeout: Duration::from_secs(5),
            idle_connections: 0,
            names: egress::Names::default(),
        };
        Client {
            http: egress::HttpClient::new(config).unwrap(),
            names: egress::Names::default(),
        }
    }

    async fn map_on(url: Url, reach: Reach) -> Result<Mapping, String> {
        let router = "127.0.0.1".parse().unwrap();
        map_at(&client(), (url, router), 6999, (Duration::from_hours(1), reach)).await
    }

    #[tokio::test]
    async fn a_router_opens_a_port_if_need_be_without_an_end() {
        let fault = "<s:Envelope><s:Body><s:Fault><detail><UPnPError><errorCode>725</errorCode></UPnPError></detail></s:Fault>\
            </s:Body></s:Envelope>";
        let address = "<r><NewExternalIPAddress>203.0.113.5</NewExternalIPAddress></r>";
        let answers = [(200, DESCRIPTION), (500, fault), (200, "<r/>"), (200, address)];
        let (url, serving) = router(answers.map(|(status, body)| (status, body.to_owned())).to_vec()).await;
        let mapping = map_on(url, Reach::Anywhere).await.unwrap();
        assert_eq!(
            (mapping.external_port, mapping.external_address),
            (6999, "203.0.113.5".parse().ok())
        );
        let requests = serving.await.unwrap();
        assert!(requests[1].starts_with("POST /ctl/IPConn ") && requests[1].contains("<NewLeaseDuration>3600<"));
        assert!(requests[1].contains("<NewInternalClient>127.0.0.1<"), "{}", requests[1]);
        assert!(requests[2].contains("<NewLeaseDuration>0<"), "{}", requests[2]);
    }

    #[tokio::test]
    async fn a_router_that_lies_is_asked_nothing_more() {
        let elsewhere = DESCRIPTION.replace("/ctl/IPConn", "http://192.168.1.66/ctl");
        for (body, expected) in [
            (elsewhere, "another host"),
            ("<root/>".to_owned(), "no service"),
            ("x".repeat(MAX_BYTES + 1), "too long"),
        ] {
            let (url, _serving) = router(vec![(200, body)]).await;
            let refused = map_on(url, Reach::Anywhere).await.unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        // Devices of the local network only, in earnest.
        let (url, _serving) = router(Vec::new()).await;
        assert!(
            map_on(url, Reach::LocalNetwork)
                .await
                .unwrap_err()
                .contains("not a public address")
        );
    }
}
