//! NAT-PMP (RFC 6886).

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use egress::{Reach, udp::Datagrams};
use tokio::time::timeout;

use super::{Mapping, Router};

const PORT: u16 = 5351;

/// For each attempt; the standard's first is 250 ms, and each further one twice as long.
const TIMEOUTS: [Duration; 3] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

const ADDRESS: u8 = 0;
const MAP_TCP: u8 = 2;

/// Set in answers.
const ANSWER: u8 = 128;

/// The router of the default route.
pub(super) fn gateway() -> Option<SocketAddr> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let gateway = default_gateway(&routes)?;
    // A gateway of the provider is asked by nobody: it would open a port of its own.
    egress::address::is_private(gateway.into()).then(|| SocketAddr::new(gateway.into(), PORT))
}

/// The default route of Linux's table: destination and mask are 0; addresses are in the order of the machine's bytes.
fn default_gateway(routes: &str) -> Option<Ipv4Addr> {
    let mut rows = routes
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let gateway = rows.find_map(|row| match row[..] {
        [_, "00000000", gateway, _, _, _, _, "00000000", ..] if gateway != "00000000" => Some(gateway.to_owned()),
        _ => None,
    })?;
    let bits = u32::from_str_radix(&gateway, 16).ok()?;
    Some(Ipv4Addr::from(bits.to_ne_bytes()))
}

pub(super) async fn map(gateway: SocketAddr, port: u16, lease: Duration) -> Result<Mapping, String> {
    let request = request(port, port, u32::try_from(lease.as_secs()).unwrap_or(u32::MAX));
    let answer = ask(gateway, &request, MAP_TCP, 16).await?;
    let external_port = u16::from_be_bytes([answer[10], answer[11]]);
    if external_port == 0 {
        return Err("the router opened no port".to_owned());
    }
    let address = ask(gateway, &[0, ADDRESS], ADDRESS, 12).await.ok();
    let address = address.map(|answer| IpAddr::from([answer[8], answer[9], answer[10], answer[11]]));
    Ok(Mapping {
        external_port,
        external_address: address,
        router: Router::NatPmp(gateway),
    })
}

pub(super) async fn unmap(gateway: SocketAddr, port: u16) {
    // A lease of 0 closes the port; one that stays open ends with its lease.
    let _stays = ask(gateway, &request(port, 0, 0), MAP_TCP, 16).await;
}

fn request(port: u16, external_port: u16, lease: u32) -> Vec<u8> {
    let mut request = vec![0, MAP_TCP, 0, 0];
    request.extend_from_slice(&port.to_be_bytes());
    request.extend_from_slice(&external_port.to_be_bytes());
    request.extend_from_slice(&lease.to_be_bytes());
    request
}

/// The answer to a request, at least `length` bytes long.
async fn ask(gateway: SocketAddr, request: &[u8], operation: u8, length: usize) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let socket = Datagrams::connect(gateway, Reach::Anywhere).await.map_err(failed)?;
    let mut buffer = [0; 64];
    for limit in TIMEOUTS {
        socket.send(request).await.map_err(failed)?;
        let Ok(received) = timeout(limit, socket.receive(&mut buffer)).await else {
            continue;
        };
        let (received, _) = received.map_err(failed)?;
        let answer = &buffer[..received];
        if let Some(code) = result(answer, operation) {
            return match code {
                0 if received >= length => Ok(answer.to_vec()),
                0 => Err("the router's answer is too short".to_owned()),
                code => Err(format!("the router refuses with code {code}")),
            };
        }
    }
    Err("the router does not answer".to_owned())
}

/// The result code of an answer to this operation.
fn result(answer: &[u8], operation: u8) -> Option<u16> {
    match answer {
        [0, answered, high, low, ..] if *answered == operation | ANSWER => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_is_found() {
        let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
            eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        let expected = u32::from_str_radix("0101A8C0", 16).unwrap().to_ne_bytes();
        assert_eq!(default_gateway(routes), Some(expected.into()));
        for other in [
            "",
            "Iface\n",
            "Iface\nx\n",
            "Iface\neth0\t00000000\tzz\t3\t0\t0\t0\t00000000\t0\n",
        ] {
            assert_eq!(default_gateway(other), None);
        }
    }

    /// A router that answers each request with the next of these.
    fn router(answers: Vec<Vec<u8>>) -> (SocketAddr, tokio::task::JoinHandle<Vec<Vec<u8>>>) {
        let socket = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_address().unwrap();
        let serving = async move {
            let mut requests = Vec::new();
            for answer in answers {
                let mut buffer = [0; 64];
                let (length, from) = socket.receive(&mut buffer).await.unwrap();
                requests.push(buffer[..length].to_vec());
                socket.send_to(&answer, from, Reach::Anywhere).await.unwrap();
            }
            requests
        };
        #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
        (address, tokio::spawn(serving))
    }

    #[tokio::test]
    async fn a_router_opens_a_port() {
        let mapped = [0, 130, 0, 0, 0, 0, 0, 1, 0x1a, 0xe1, 0x1a, 0xe2, 0, 0, 14, 16].to_vec();
        let address = [0, 128, 0, 0, 0, 0, 0, 1, 203, 0, 113, 5].to_vec();
        let (gateway, serving) = router(vec![mapped, address]);
        let mapping = map(gateway, 0x1ae1, Duration::from_hours(1)).await.unwrap();
        assert_eq!(mapping.external_port, 0x1ae2);
        assert_eq!(mapping.external_address, Some("203.0.113.5".parse().unwrap()));
        let requests = serving.await.unwrap();
        assert_eq!(requests[0], [0, 2, 0, 0, 0x1a, 0xe1, 0x1a, 0xe1, 0, 0, 14, 16]);
    }

    #[tokio::test]
    async fn a_refusal_and_nonsense_open_none() {
        let (gateway, _serving) = router(vec![vec![0, 130, 0, 2]]);
        let refused = map(gateway, 1, Duration::from_hours(1)).await.unwrap_err();
        assert!(refused.contains("code 2"), "{refused}");
        let (gateway, _serving) = router(vec![b"hello".to_vec(), vec![0, 130, 0, 0], Vec::new()]);
        let refused = map(gateway, 1, Duration::from_hours(1)).await.unwrap_err();
        assert!(refused.contains("too short"), "{refused}");
    }
}
