//! Programs of the user, which the host runs for plugins.

use std::time::Instant;

use plugin_host::{LogLevel, PluginFault, runtime::ToolError};
use tokio::time::timeout;
use transfer::SafeUrl;

use crate::capability::{
    bindings::svc::plugin::tools::{self, ToolError as Told},
    state::CallState,
};

/// The error without the permission, or where there are no programs.
const NOT_ALLOWED: &str =
    "this plugin may not use yt-dlp: the user did not agree (tools:discover), or this service starts no programs";

impl tools::Host for CallState {
    /// The clock of the call stands still meanwhile, within the limit of all waits. When the call ends, the program does, too.
    async fn discover(&mut self, url: String) -> wasmtime::Result<Result<String, Told>> {
        let Some(tools) = &self.context.tools else {
            return Ok(Err(Told::NotAllowed(NOT_ALLOWED.to_owned())));
        };
        let since = Instant::now();
        let clock = &self.context.clock;
        let limit = clock.wait_left();
        let found = {
            let _waiting = clock.wait();
            timeout(limit, tools.discover(&url)).await
        };
        let found = found.unwrap_or_else(|_| {
            let reason = format!("yt-dlp did not end within {} s and was stopped", limit.as_secs());
            Err(ToolError::TooMuch(reason))
        });
        // The journal has the requests of plugins, and nothing of those of programs.
        let shown = SafeUrl::parse(&url).map_or_else(|_| "what is no URL".to_owned(), |url| url.to_string());
        let end = found.as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
        let line = format!(
            "yt-dlp looked at {shown} ({:.1} s): {end}",
            since.elapsed().as_secs_f64()
        );
        self.context.log.write(LogLevel::Info, &line);
        match found.map_err(Told::try_from) {
            Ok(json) => Ok(Ok(json)),
            Err(told) => Ok(Err(told?)),
        }
    }
}

/// The error for the guest. That there is no place for a run ends the call: a guest might take it for a page without media.
impl TryFrom<ToolError> for Told {
    type Error = PluginFault;

    fn try_from(error: ToolError) -> Result<Self, PluginFault> {
        Ok(match error {
            ToolError::NotAllowed(reason) => Self::NotAllowed(reason),
            ToolError::Denied(reason) => Self::Denied(reason),
            ToolError::Failed(reason) => Self::Failed(reason),
            ToolError::TooMuch(reason) => Self::TooMuch(reason),
            ToolError::Busy(reason) => return Err(PluginFault::ToolBusy(reason)),
        })
    }
}

#[cfg(test)]
mod tests {
    use plugin_host::Retry;

    use super::*;

    #[test]
    fn no_place_for_a_run_ends_the_call_and_is_no_page_without_media() {
        let busy = Told::try_from(ToolError::Busy("yt-dlp is busy".to_owned())).unwrap_err();
        assert_eq!(busy.retry(), Retry::Backoff(None));
        assert!(!busy.counts_against_plugin());
        let failed = Told::try_from(ToolError::Failed("nothing there".to_owned()));
        assert!(matches!(failed, Ok(Told::Failed(_))));
    }
}
