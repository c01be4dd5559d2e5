//! The user's settings for a plugin. Values are texts; a batch of changes is applied completely or not at all. Secret
//! values are never returned, neither to clients nor to the plugin: they are only sent in requests to the hosts they
//! are bound to.

use std::collections::BTreeMap;

use plugin_package::{Definition, HostPattern, Manifest, manifest::Feed};
use transfer::Secret;
use url::Url;

use crate::error::InvalidSetting;

/// The values that a user has set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Values {
    /// Values of settings that are not secret.
    pub plain: BTreeMap<String, String>,
    pub secret: BTreeMap<String, Secret>,
}

impl Values {
    /// Applies `batch`. Empty text unsets a setting.
    pub(crate) fn with<'d>(
        &self,
        definitions: impl IntoIterator<Item = &'d Definition>,
        batch: &BTreeMap<String, String>,
    ) -> Result<Self, InvalidSetting> {
        let definitions: Vec<_> = definitions.into_iter().collect();
        let mut values = self.clone();
        for (key, value) in batch {
            let refused = |reason: String| InvalidSetting {
                key: key.clone(),
                reason,
            };
            let definition = definitions.iter().find(|definition| definition.key == *key);
            let definition = definition.ok_or_else(|| refused("is unknown".to_owned()))?;
            definition.check(value).map_err(refused)?;
            match (definition.is_secret, value.is_empty()) {
                (true, true) => drop(values.secret.remove(key)),
                (true, false) => drop(values.secret.insert(key.clone(), Secret::new(value.clone()))),
                (false, _) => drop(values.plain.insert(key.clone(), value.clone())),
            }
        }
        Ok(values)
    }

    /// The values that the plugin reads: the user's if valid for `definitions`, else the defaults. Values from an
    /// earlier version that are no longer valid count as unset.
    pub(crate) fn effective<'d>(
        &self,
        definitions: impl IntoIterator<Item = &'d Definition>,
    ) -> BTreeMap<String, String> {
        definitions
            .into_iter()
            .filter(|definition| !definition.is_secret)
            .filter_map(|definition| {
                let set = self.plain.get(&definition.key);
                let value = set
                    .filter(|value| definition.check(value).is_ok())
                    .or(definition.default.as_ref())?;
                Some((definition.key.clone(), value.clone()))
            })
            .collect()
    }
}

/// The fields of a feed's source, which were checked when it was saved. Those that a later version of the plugin does not
/// have, or would refuse, count as unset.
pub(crate) fn of_source(feed: &Feed, config: &BTreeMap<String, String>) -> Values {
    let known = config.iter().filter(|(key, value)| {
        let definition = feed.config.iter().find(|definition| definition.key == **key);
        definition.is_some_and(|definition| definition.check(value).is_ok())
    });
    let known = known.map(|(key, value)| (key.clone(), value.clone())).collect();
    let values = Values::default().with(&feed.config, &known);
    values.unwrap_or_default()
}

/// Where secret fields of a feed's source may be sent: to the host of its URL, for which the user gave them.
pub(crate) fn bindings_of_source(manifest: &Manifest, url: &Url) -> BTreeMap<String, Vec<HostPattern>> {
    let host: Vec<_> = url.origin().ascii_serialization().parse().into_iter().collect();
    let fields = manifest.capabilities.feed.iter().flat_map(|feed| &feed.config);
    let secret = fields.filter(|field| field.is_secret);
    secret.map(|field| (field.key.clone(), host.clone())).collect()
}

#[cfg(test)]
mod tests;
