//! Certificates for origins: good ones, under an authority of the test's own, and bad ones.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};

/// What an origin shows in the TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// Valid for 127.0.0.1 and localhost, signed by the origin's authority.
    Trusted,
    /// Valid for 127.0.0.1, signed by itself.
    SelfSigned,
    /// Valid for 127.0.0.1, signed by itself and of an authority, which is what the origin calls its authority.
    OwnAuthority,
    /// Signed by the origin's authority, but its time is over.
    Expired,
    /// Signed by the origin's authority, but for another host.
    WrongName,
}

/// The server's side of TLS, and the PEM text of the authority that a client has to trust.
pub(crate) fn config(certificate: Certificate) -> (Arc<ServerConfig>, String) {
    let authority = authority();
    let key = KeyPair::generate().expect("the system has randomness");
    let names: &[&str] = if certificate == Certificate::WrongName {
        &["other.test"]
    } else {
        &["127.0.0.1", "localhost"]
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are valid");
    if certificate == Certificate::Expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    if certificate == Certificate::OwnAuthority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let leaf = match certificate {
        Certificate::SelfSigned | Certificate::OwnAuthority => params.self_signed(&key),
        _ => params.signed_by(&key, &authority),
    };
    let leaf = leaf.expect("the parameters are complete");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key was just made");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("the key fits the certificate");
    let trusted = match certificate {
        Certificate::OwnAuthority => leaf.pem(),
        _ => authority.pem(),
    };
    (Arc::new(config), trusted)
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no name is a valid list of names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "test authority");
    let key = KeyPair::generate().expect("the system has randomness");
    CertifiedIssuer::self_signed(params, key).expect("the parameters are complete")
}
