//! Finds the plugin that a command names.

use protocol::{Method, PluginDto};

use crate::{ids::Known, service::Client};

/// Finds a plugin by name or unique prefix.
pub(super) async fn find(client: &mut Client, text: &str) -> anyhow::Result<PluginDto> {
    let plugins: Vec<PluginDto> = client.ask(Method::PluginList).await?;
    let known = Known::new("plugin", plugins.iter().map(|plugin| plugin.identity.clone()));
    let identity = known.find(&[text.to_owned()])?.remove(0);
    let found = plugins.into_iter().find(|plugin| plugin.identity == identity);
    Ok(found.expect("what is found is one of those that are known"))
}
