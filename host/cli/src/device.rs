//! Paired devices by name, and downloads for them.

use command::{Exit, UsageError, terminal::printable};
use protocol::{LinkDeviceInfo, LinkDeviceTaskRequest, LinkDispatchParams, LinkDispatched, Method};

use crate::service::{Client, RemoteError, ServiceArgs};

/// Words of another device on this terminal.
pub(crate) fn plain(text: &str) -> String {
    printable(text).into_owned()
}

/// The paired device of this name, or whose fingerprint begins so.
pub(crate) async fn find(client: &mut Client, named: &str) -> anyhow::Result<LinkDeviceInfo> {
    let devices = client.snapshot().await?.linked_devices;
    let mut found: Vec<_> = devices
        .iter()
        .filter(|device| device.name.eq_ignore_ascii_case(named))
        .collect();
    if found.is_empty() && !named.is_empty() {
        found = devices
            .iter()
            .filter(|device| device.fingerprint.starts_with(named))
            .collect();
    }
    match found[..] {
        [device] => Ok(device.clone()),
        [] => Err(RemoteError::Unknown {
            what: "paired device",
            names: vec![named.to_owned()],
        }
        .into()),
        _ => {
            let problem = "several paired devices are called so; give the beginning of a fingerprint";
            Err(UsageError::new(format!("{named:?}"), problem).into())
        }
    }
}

/// Sends each URL to a device.
pub(crate) async fn send(
    service: &ServiceArgs,
    client: &mut Client,
    device: &str,
    urls: &[String],
    pattern: &LinkDeviceTaskRequest,
) -> anyhow::Result<Exit> {
    let device = find(client, device).await?;
    let mut sent = Vec::new();
    for url in urls {
        let params = LinkDispatchParams {
            fingerprint: device.fingerprint.clone(),
            task: LinkDeviceTaskRequest {
                url: url.clone(),
                ..pattern.clone()
            },
        };
        sent.push(client.call::<LinkDispatched>(Method::LinkDispatch, &params).await?);
    }
    let name = plain(&device.name);
    let lines = || {
        let line = |one: &LinkDispatched| match one {
            LinkDispatched::Created { task_id } => format!("{task_id}  on {name}"),
            LinkDispatched::Queued(queued) => format!("{}  waits: {name} is away", queued.id),
        };
        sent.iter().map(line).collect::<Vec<_>>()
    };
    service.print(&sent, lines)
}
