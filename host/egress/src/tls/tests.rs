use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::*;

/// A certificate for `server.test` that its server signed itself, of an authority or not, valid until `last_year`.
fn own(is_ca: bool, last_year: i32) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(["server.test".to_owned()]).unwrap();
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    certificate.der().clone()
}

/// What trusting `given` makes of a server called `name` that presents `presented`, in 2024.
fn verify(
    given: &CertificateDer<'static>,
    presented: &CertificateDer<'static>,
    name: &'static str,
) -> Result<(), rustls::Error> {
    let given = GivenCertificates::new(vec![given.clone()]).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_720_000_000));
    let name = ServerName::try_from(name).unwrap();
    given.verify_server_cert(presented, &[], &name, &[], now).map(drop)
}

#[test]
fn a_certificate_that_the_user_names_is_accepted_from_its_own_server() {
    for is_ca in [true, false] {
        let (mine, expired) = (own(is_ca, 2040), own(is_ca, 2023));
        verify(&mine, &mine, "server.test").unwrap();
        let refused = |given, presented, name| match verify(given, presented, name) {
            Err(rustls::Error::InvalidCertificate(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(matches!(
            refused(&mine, &mine, "other.test"),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ));
        assert!(matches!(
            refused(&expired, &expired, "server.test"),
            CertificateError::Expired | CertificateError::ExpiredContext { .. }
        ));
        // One that looks the same, but is another.
        for other in [own(is_ca, 2040), own(!is_ca, 2040)] {
            verify(&mine, &other, "server.test").unwrap_err();
        }
    }
}
