//! Secrets by name: whether there are any, and what sites want computed from them. The values stay in the host.

use std::{collections::BTreeMap, sync::Arc};

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use plugin_host::{BoundSecret, Template};
use ring::hmac;
use svc_plugin_text as search;
use transfer::Secret;

use crate::{
    capability::{bindings::svc::plugin::vault, state::CallState},
    outside::Vault,
};

/// The error without the permission.
const NOT_ALLOWED: &str = "the user did not agree that this plugin computes from secrets (secrets:derive); users are asked when it is installed, if \
     it is a script then only with \"deriveSecrets\": true among the permissions of its plugin.json";

/// The longest text that is signed.
const MAX_SIGNED_BYTES: usize = 1024 * 1024;

/// The error for accounts: logins are not implemented yet, so there is only the plugin's own account.
const NO_ACCOUNT: &str = "no login is stored for this account";

impl vault::Host for CallState {
    async fn has(&mut self, account: String, name: String) -> wasmtime::Result<bool> {
        Ok(account.is_empty() && self.context.vault.find(name).await.is_some())
    }

    async fn forget(&mut self, account: String, name: String) -> wasmtime::Result<()> {
        if account.is_empty() {
            self.context.vault.forget(name).await;
        }
        Ok(())
    }

    async fn digest(
        &mut self,
        account: String,
        template: String,
        algorithm: vault::Hash,
        encoding: vault::Encoding,
    ) -> wasmtime::Result<Result<String, String>> {
        let filled = match self.filled(&account, &template).await {
            Ok(filled) => filled,
            Err(reason) => return Ok(Err(reason)),
        };
        self.search_text(filled.expose().len(), move |_| {
            let digest = search::digest(name(algorithm), filled.expose().as_bytes())?;
            Ok(encode(encoding, &digest))
        })
        .await
    }

    async fn hmac(
        &mut self,
        account: String,
        key: String,
        data: String,
        algorithm: vault::Hash,
        encoding: vault::Encoding,
    ) -> wasmtime::Result<Result<String, String>> {
        let algorithm = match algorithm {
            vault::Hash::Md5 => return Ok(Err("signatures with md5 are not offered".to_owned())),
            vault::Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            vault::Hash::Sha256 => hmac::HMAC_SHA256,
            vault::Hash::Sha512 => hmac::HMAC_SHA512,
        };
        if data.len() > MAX_SIGNED_BYTES {
            let reason = format!(
                "the text to sign has {} bytes; the limit is {MAX_SIGNED_BYTES}",
                data.len()
            );
            return Ok(Err(reason));
        }
        let secret = match self.filled(&account, &format!("{{{key}}}")).await {
            Ok(secret) => secret,
            Err(reason) => return Ok(Err(reason)),
        };
        let length = data.len();
        let sign = move |_: &mut search::Work<'_>| {
            let key = hmac::Key::new(algorithm, secret.expose().as_bytes());
            Ok(encode(encoding, hmac::sign(&key, data.as_bytes()).as_ref()))
        };
        self.search_text(length, sign).await
    }

    async fn rsa_encrypt(
        &mut self,
        _: String,
        _: String,
        _: String,
        _: bool,
        _: vault::Encoding,
    ) -> wasmtime::Result<Result<String, String>> {
        if !self.context.grants.derives_secrets {
            return Ok(Err(NOT_ALLOWED.to_owned()));
        }
        Ok(Err("this host does not encrypt with RSA yet".to_owned()))
    }
}

impl CallState {
    /// [`filled`] for results that the plugin receives, which needs a permission.
    async fn filled(&mut self, account: &str, template: &str) -> Result<Secret, String> {
        if !self.context.grants.derives_secrets {
            return Err(NOT_ALLOWED.to_owned());
        }
        filled(self.context.vault.clone(), account, template).await
    }
}

/// Fills `template` with secrets of `account`, for computations in the host.
async fn filled(vault: Arc<dyn Vault>, account: &str, template: &str) -> Result<Secret, String> {
    if !account.is_empty() {
        return Err(NO_ACCOUNT.to_owned());
    }
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    for name in template.names() {
        let secret = vault.find(name.to_owned()).await;
        found.insert(name, secret.ok_or_else(|| format!("there is no secret {name}"))?);
    }
    let filled = template.fill(|name| found.get(name).map(BoundSecret::value));
    filled.map_err(|error| error.to_string())
}

fn name(algorithm: vault::Hash) -> &'static str {
    match algorithm {
        vault::Hash::Md5 => "md5",
        vault::Hash::Sha1 => "sha1",
        vault::Hash::Sha256 => "sha256",
        vault::Hash::Sha512 => "sha512",
    }
}

fn encode(encoding: vault::Encoding, bytes: &[u8]) -> String {
    match encoding {
        vault::Encoding::Hex => HEXLOWER.encode(bytes),
        vault::Encoding::Base64 => BASE64.encode(bytes),
        vault::Encoding::Base64url => BASE64URL_NOPAD.encode(bytes),
    }
}
