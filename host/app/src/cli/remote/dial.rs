//! Opening a stream to a service: TCP, and TLS where its address says so. Never through a proxy.

use std::{io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{address::Address, error::RemoteError};
use crate::cli::UsageError;

pub(super) type Stream = Box<dyn agent::ByteStream>;

/// Whom TLS trusts: the authorities of a PEM file, else those that browsers trust.
pub(super) fn trust(ca_certificate: Option<&Path>) -> Result<Arc<ClientConfig>, UsageError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_certificate {
        let unusable =
            |why: String| UsageError::new("--ca-certificate", format!("cannot use {}: {why}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unusable("it holds no certificate".to_owned()));
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A stream to `address`, on which HTTP/1.1 is spoken.
pub(super) async fn dial(address: &Address, trust: &Arc<ClientConfig>) -> Result<Stream, RemoteError> {
    let unreachable = |source| RemoteError::Unreachable {
        address: address.to_string(),
        source,
    };
    let stream = TcpStream::connect((address.host(), address.port()))
        .await
        .map_err(unreachable)?;
    // Frames are small and answers are waited for.
    stream.set_nodelay(true).map_err(unreachable)?;
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
