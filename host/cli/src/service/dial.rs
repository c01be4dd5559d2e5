//! Opens a stream to a service: TCP, with TLS if its address requires it. Never through a proxy.

use std::{io, path::Path, sync::Arc, time::Duration};

use command::UsageError;
use egress::{DialError, Names, Reach, tls};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio_rustls::TlsConnector;

use super::{Address, RemoteError};

pub(crate) type Stream = Box<dyn agent::ByteStream>;

/// The limit for resolving the name and for connecting, each.
const PATIENCE: Duration = Duration::from_secs(30);

/// The trusted certificate authorities: of a PEM file, else those of browsers.
pub(crate) fn trust(ca_certificate: Option<&Path>) -> Result<Arc<ClientConfig>, UsageError> {
    let mut config = match ca_certificate {
        Some(path) => {
            let config = tls::trusting_file(path);
            config.map_err(|error| {
                let why = format!("cannot use {}: {}", path.display(), error.why);
                UsageError::new("--ca-certificate", why)
            })?
        }
        None => tls::trusting_mozilla(&[]).expect("nothing is added to what is built in"),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Opens an HTTP/1.1 stream to `address`.
pub(crate) async fn dial(address: &Address, trust: &Arc<ClientConfig>) -> Result<Stream, RemoteError> {
    let unreachable = |source| RemoteError::Unreachable {
        address: address.to_string(),
        source,
    };
    // The user chose the service, so private addresses are allowed.
    let target = (address.host(), address.port());
    let stream = egress::dial(&Names::default(), target, Reach::Anywhere, PATIENCE).await;
    let stream = stream.map_err(|error| unreachable(cause(error)))?;
    if !address.is_secure() {
        return Ok(Box::new(stream));
    }
    let insecure = |source| RemoteError::Insecure {
        address: address.to_string(),
        source,
    };
    let name = ServerName::try_from(address.host().to_owned());
    let name = name.map_err(|error| insecure(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let stream = TlsConnector::from(Arc::clone(trust))
        .connect(name, stream)
        .await
        .map_err(insecure)?;
    Ok(Box::new(stream))
}

fn cause(error: DialError) -> io::Error {
    match error {
        DialError::Unknown { source, .. } | DialError::Refused { source, .. } => source,
        DialError::SlowLookup { .. } | DialError::SlowAnswer { .. } => {
            io::Error::new(io::ErrorKind::TimedOut, error.to_string())
        }
        DialError::Forbidden(_) => io::Error::other(error.to_string()),
    }
}
