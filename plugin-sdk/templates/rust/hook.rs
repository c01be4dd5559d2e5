//! Tells a site which of its files were downloaded. Something to begin with: put your site in its place.

use std::time::Duration;

use svc_plugin::prelude::*;

/// The plugin.
pub struct MyPlugin;

impl HookHandler for MyPlugin {
    fn on_done(event: &HookEvent) -> Result<()> {
        let name = event.file_name.as_deref().unwrap_or_default();
        http::post("https://files.example.org/seen").form([("name", name)]).send()?;
        Ok(())
    }

    /// Tries a file again in a minute that the site keeps back: as one of the automatic retries, while there are some left.
    fn on_error(event: &HookEvent) -> Result<Option<Duration>> {
        let is_kept_back = event.error_kind.as_deref() == Some("forbidden");
        Ok(is_kept_back.then_some(Duration::from_secs(60)))
    }
}

svc_plugin::plugin!(MyPlugin: HookHandler);
