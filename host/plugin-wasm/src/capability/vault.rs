//! Secrets by name: whether there are any, and what sites want computed from them. The values stay in the host.

mod rsa;

use std::{collections::BTreeMap, sync::Arc};

use accounts::{BoundSecret, Template};
use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};

use ring::hmac;
use svc_plugin_text as search;
use transfer::Secret;

use crate::{
    capability::{
        bindings::svc::plugin::{vault, vault_reveal},
        state::CallState,
    },
    outside::Vault,
};

/// The error without the permission.
const NOT_ALLOWED: &str = "the user did not agree that this plugin computes from secrets (secrets:derive); users are asked when it is installed, if \
     it is a script then only with \"deriveSecrets\": true among the permissions of its plugin.json";

/// The error of a plugin that may not read secrets.
const NOT_REVEALED: &str = "the user did not agree that this plugin reads secrets (secrets:reveal)";

/// The longest text that is signed.
const MAX_SIGNED_BYTES: usize = 1024 * 1024;

impl vault::Host for CallState {
    async fn has(&mut self, account: String, name: String) -> wasmtime::Result<bool> {
        Ok(match self.vault_of(account).await {
            Some(vault) => vault.find(name).await.is_some(),
            None => false,
        })
    }

    async fn forget(&mut self, account: String, name: String) -> wasmtime::Result<()> {
        if let Some(vault) = self.vault_of(account).await {
            vault.forget(name).await;
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
        account: String,
        name: String,
        public_key: String,
        oaep: bool,
        encoding: vault::Encoding,
    ) -> wasmtime::Result<Result<String, String>> {
        if !self.context.grants.derives_secrets {
            return Ok(Err(NOT_ALLOWED.to_owned()));
        }
        let Some(vault) = self.vault_of(account.clone()).await else {
            return Ok(Err(format!("nobody is logged in to the account {account}")));
        };
        let Some(secret) = vault.find(name.clone()).await else {
            return Ok(Err(format!("there is no secret {name}")));
        };
        let plain = secret.value().clone();
        let encrypted = self.search_text(public_key.len(), move |_| {
            Ok(rsa::encrypt(&public_key, plain.expose().as_bytes(), oaep))
        });
        let encrypted = encrypted.await?.flatten();
        // The key may be the plugin's own, and who has its other half can read the secret: what is encrypted is a secret as well,
        // and only a plugin that may compute from secrets makes one.
        Ok(encrypted.and_then(|encrypted| {
            let encrypted = Secret::new(encode(encoding, &encrypted));
            let name = format!("{name}.rsa");
            vault.keep_derived(name.clone(), secret.with_value(encrypted))?;
            Ok(name)
        }))
    }
}

impl vault_reveal::Host for CallState {
    async fn reveal(&mut self, account: String, name: String) -> wasmtime::Result<Result<String, String>> {
        if !self.context.grants.reveals_secrets {
            return Ok(Err(NOT_REVEALED.to_owned()));
        }
        let found = match self.vault_of(account).await {
            Some(vault) => vault.find(name.clone()).await,
            None => None,
        };
        let value = found.map(|secret| secret.value().expose().to_owned());
        Ok(value.ok_or_else(|| format!("there is no secret {name}")))
    }
}

impl CallState {
    /// [`filled`] for results that the plugin receives, which needs a permission.
    async fn filled(&mut self, account: &str, template: &str) -> Result<Secret, String> {
        if !self.context.grants.derives_secrets {
            return Err(NOT_ALLOWED.to_owned());
        }
        let vault = self.vault_of(account.to_owned()).await;
        let vault = vault.ok_or_else(|| format!("nobody is logged in to the account {account}"))?;
        filled(&*vault, template).await
    }

    /// The secrets of the account in a slot, or the plugin's own if it is empty.
    async fn vault_of(&mut self, account: String) -> Option<Arc<dyn Vault>> {
        if account.is_empty() {
            return Some(Arc::clone(&self.context.vault));
        }
        self.context.vault.of_account(account).await
    }
}

/// Fills `template` with secrets, for computations in the host.
async fn filled(vault: &dyn Vault, template: &str) -> Result<Secret, String> {
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
