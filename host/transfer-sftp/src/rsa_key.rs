//! The user's private RSA keys. russh can sign with them only together with a release candidate of `rsa` that is older than
//! the workspace's, so the signatures (RFC 8332) are made here.

use getrandom::SysRng;
use rsa::{
    BoxedUint, Pkcs1v15Sign, PrivateKey,
    pkcs1::DecodeRsaPrivateKey as _,
    pkcs8::DecodePrivateKey as _,
    sha2::{Digest as _, Sha256, Sha512},
    traits::PublicKeyParts as _,
};
use russh::{
    AgentAuthError, Signer,
    keys::{
        HashAlg, PublicKey,
        agent::AgentIdentity,
        ssh_key::{Mpint, private::RsaKeypair, public::RsaPublicKey},
    },
};

/// A key pair. `Debug` shows nothing of it.
pub(crate) struct RsaKey {
    pub(crate) public: PublicKey,
    private: PrivateKey,
}

impl RsaKey {
    /// The key in a file of OpenSSH's format.
    pub(crate) fn of_openssh(pair: &RsaKeypair) -> Option<Self> {
        let number = |part: &Mpint| part.as_positive_bytes().map(BoxedUint::from_be_slice_vartime);
        let (public, private) = (pair.public(), pair.private());
        let primes = vec![number(private.p())?, number(private.q())?];
        let (n, e, d) = (number(public.n())?, number(public.e())?, number(private.d())?);
        Self::of(PrivateKey::from_components(n, e, d, primes).ok()?)
    }

    /// The key in an unencrypted PEM file of PKCS #1 or PKCS #8.
    pub(crate) fn of_pem(text: &str) -> Option<Self> {
        let pkcs1 = PrivateKey::from_pkcs1_pem(text).ok();
        Self::of(pkcs1.or_else(|| PrivateKey::from_pkcs8_pem(text).ok())?)
    }

    fn of(private: PrivateKey) -> Option<Self> {
        let number = |bytes: &[u8]| Mpint::from_positive_bytes(bytes);
        let public = RsaPublicKey::new(number(&private.e_bytes()), number(&private.n_bytes())).ok()?;
        Some(Self {
            public: public.into(),
            private,
        })
    }

    /// The name of the signature's algorithm, and the signature.
    fn sign(&self, hash: HashAlg, message: &[u8]) -> Option<(&'static str, Vec<u8>)> {
        // With random numbers, so that the time that it takes tells nothing of the key.
        let signed = |padding, digest: &[u8]| self.private.sign_with_rng(&mut SysRng, padding, digest).ok();
        match hash {
            HashAlg::Sha256 => {
                let signature = signed(Pkcs1v15Sign::new::<Sha256>(), &Sha256::digest(message))?;
                Some(("rsa-sha2-256", signature))
            }
            HashAlg::Sha512 => {
                let signature = signed(Pkcs1v15Sign::new::<Sha512>(), &Sha512::digest(message))?;
                Some(("rsa-sha2-512", signature))
            }
            _ => None,
        }
    }
}

impl Signer for &RsaKey {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        _key: &AgentIdentity,
        hash: Option<HashAlg>,
        mut message: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        let signed = hash.and_then(|hash| self.sign(hash, &message));
        let (algorithm, signature) = signed.ok_or(russh::keys::Error::CouldNotReadKey)?;
        // What follows the request is one string, of the algorithm and the signature as strings (RFC 4253, section 6.6).
        let whole = [string(algorithm.as_bytes()), string(&signature)].concat();
        message.extend(string(&whole));
        Ok(message)
    }
}

/// Bytes with their length, as SSH has them.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("signatures are shorter than 4 GiB");
    [&length.to_be_bytes()[..], bytes].concat()
}
