//! The certificates that TLS trusts: the system's, those of a file, or any, for tasks with `ignore_tls_errors`.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

pub use rustls::ClientConfig;
use rustls::{
    CertificateError, ConfigBuilder, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme, WantsVerifier,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};

/// A file of certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificate file {} cannot be used: {why}", path.display())]
pub struct CertificateFileError {
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// Client configurations, created on first use: reading the system's certificates takes milliseconds.
#[derive(Debug)]
pub struct Tls {
    own_roots: Option<Arc<GivenCertificates>>,
    verifying: OnceLock<Arc<ClientConfig>>,
    accepting_any: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// Trusts the certificates in `ca_certificate` (PEM) instead of the system's, if there is one.
    pub fn new(ca_certificate: Option<&Path>) -> Result<Self, CertificateFileError> {
        let own_roots = ca_certificate.map(GivenCertificates::read).transpose()?;
        Ok(Self {
            own_roots: own_roots.map(Arc::new),
            verifying: OnceLock::new(),
            accepting_any: OnceLock::new(),
        })
    }

    /// The configuration to connect with; `ignore_errors` accepts any certificate.
    pub fn config(&self, ignore_errors: bool) -> Arc<ClientConfig> {
        let cell = if ignore_errors {
            &self.accepting_any
        } else {
            &self.verifying
        };
        Arc::clone(cell.get_or_init(|| {
            let mut config = if ignore_errors {
                let verifier = Arc::new(AcceptAny(Arc::new(ring::default_provider())));
                builder()
                    .dangerous()
                    .with_custom_certificate_verifier(verifier)
                    .with_no_client_auth()
            } else if let Some(given) = &self.own_roots {
                trusting(Arc::clone(given))
            } else {
                trusting_system()
            };
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        }))
    }
}

/// Trusts the system's certificates, as downloads do.
pub fn trusting_system() -> ClientConfig {
    builder().with_root_certificates(system_roots()).with_no_client_auth()
}

/// Trusts the certificates that browsers trust and `more` (DER), whatever the system trusts.
pub fn trusting_mozilla(more: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = mozilla_roots();
    for root in more {
        roots.add(CertificateDer::from(root.as_slice()).into_owned())?;
    }
    Ok(builder().with_root_certificates(roots).with_no_client_auth())
}

fn trusting(given: Arc<GivenCertificates>) -> ClientConfig {
    builder()
        .dangerous()
        .with_custom_certificate_verifier(given)
        .with_no_client_auth()
}

/// Trusts the certificates in a PEM file and no others.
pub fn trusting_file(path: &Path) -> Result<ClientConfig, CertificateFileError> {
    Ok(trusting(Arc::new(GivenCertificates::read(path)?)))
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
}

/// The system's certificates; those of Mozilla if the system has none, as in a minimal container.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let (_added, _unusable) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { mozilla_roots() } else { roots }
}

fn mozilla_roots() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

/// The certificates of a file that the user names. Each is trusted as an authority, and as that of a server which presents
/// exactly it: a certificate that a server signed for itself often says that it is an authority, and none may present
/// that as its own otherwise.
#[derive(Debug)]
struct GivenCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl GivenCertificates {
    fn read(path: &Path) -> Result<Self, CertificateFileError> {
        let unusable = |why: String| CertificateFileError {
            path: path.to_owned(),
            why,
        };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let certificates = certificates.map_err(|error| unusable(error.to_string()))?;
        if certificates.is_empty() {
            return Err(unusable("it holds no certificate".to_owned()));
        }
        Self::new(certificates).map_err(unusable)
    }

    fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self {
            authorities: authorities.map_err(|error| error.to_string())?,
            certificates,
        })
    }
}

impl ServerCertVerifier for GivenCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self
            .authorities
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(rustls::Error::InvalidCertificate(error))
                if lacks_only_an_issuer(&error) && self.certificates.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether the certificate is one of an authority, or its issuer is not known. Either is found after its time of validity
/// was checked, before its name is.
fn lacks_only_an_issuer(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(OtherError(other)) => {
            other.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
        }
        _ => false,
    }
}

/// Accepts every certificate, for tasks with `ignore_tls_errors`. The signatures of the handshake are still checked, so
/// the peer has the private key of the certificate that it shows.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
