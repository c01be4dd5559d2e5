//! Asks the router for a port that leads here, so that peers can connect to us: NAT-PMP (RFC 6886) first, which is one
//! packet, then UPnP.
//!
//! A router is a device of the local network like any other, and any of them can answer. So only the address that answered
//! is asked further, only private addresses, and no answer is longer than a description of a router.

mod nat_pmp;
mod upnp;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use crate::{
    client::Client,
    session::{STOP_TIME, Shared},
    status::MappingStatus,
};

/// For how long a port is asked; it is asked again at half of that. After a crash the router forgets it by itself.
const LEASE: Duration = Duration::from_hours(1);

/// After routers that gave none.
const RETRY: Duration = Duration::from_mins(15);

/// For asking a router, all of its answers together.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A port that a router opened.
#[derive(Debug)]
struct Mapping {
    external_port: u16,
    external_address: Option<IpAddr>,
    router: Router,
}

#[derive(Debug)]
enum Router {
    NatPmp(SocketAddr),
    Upnp(upnp::Service),
}

/// Runs until the session stops.
pub(crate) async fn run(client: Client, mut shared: Shared) {
    let mut mapped: Option<Mapping> = None;
    loop {
        let is_on = shared.settings.borrow_and_update().port_mapping();
        let mut wait = RETRY;
        if is_on {
            let asking = timeout(TIMEOUT, map(&client, shared.port));
            let asked = tokio::select! {
                asked = asking => asked.unwrap_or_else(|_| Err("no router answered in time".to_owned())),
                () = shared.stop.cancelled() => Err("the session stops".to_owned()),
            };
            let status = match asked {
                Ok(mapping) => {
                    wait = LEASE / 2;
                    let status = MappingStatus {
                        external_port: Some(mapping.external_port),
                        external_address: mapping.external_address,
                        error: None,
                    };
                    mapped = Some(mapping);
                    status
                }
                Err(error) => MappingStatus {
                    error: Some(error),
                    ..MappingStatus::default()
                },
            };
            report(&shared, status);
        } else {
            unmap(&client, shared.port, mapped.take()).await;
            report(&shared, MappingStatus::default());
        }
        let has_ended = tokio::select! {
            () = shared.stop.cancelled() => true,
            changed = shared.settings.changed() => changed.is_err(),
            () = sleep(wait), if is_on => false,
        };
        if has_ended {
            unmap(&client, shared.port, mapped.take()).await;
            return;
        }
    }
}

fn report(shared: &Shared, mapping: MappingStatus) {
    shared.status.send_if_modified(|status| {
        let is_new = status.mapping != mapping;
        status.mapping = mapping;
        is_new
    });
}

/// Asks the routers for the port; the error says why none gave it.
async fn map(client: &Client, port: u16) -> Result<Mapping, String> {
    let first = match nat_pmp::gateway() {
        Some(gateway) => nat_pmp::map(gateway, port, LEASE).await,
        None => Err("the address of the router is not known".to_owned()),
    };
    match first {
        Ok(mapping) => Ok(mapping),
        Err(nat_pmp) => {
            let mapped = upnp::map(client, port, LEASE).await;
            mapped.map_err(|upnp| format!("NAT-PMP: {nat_pmp}; UPnP: {upnp}"))
        }
    }
}

/// Closes the port again, as far as the router does so in time.
async fn unmap(client: &Client, port: u16, mapping: Option<Mapping>) {
    let Some(mapping) = mapping else {
        return;
    };
    let closing = async {
        match &mapping.router {
            Router::NatPmp(gateway) => nat_pmp::unmap(*gateway, port).await,
            Router::Upnp(service) => upnp::unmap(client, service, mapping.external_port).await,
        }
    };
    // The lease ends by itself.
    let _lease_ends = timeout(STOP_TIME / 2, closing).await;
}
