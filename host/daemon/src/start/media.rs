//! What the user's `yt-dlp` finds, for plugins.

use futures_util::future::BoxFuture;
use plugin_host::runtime::{self, Page, ToolError};
use tools::{Extraction, Tools};

use crate::refusal::chain;

/// The tools of the daemon as the plugins use them.
#[derive(Debug)]
pub(super) struct PluginTools(pub(super) Tools);

impl runtime::Tools for PluginTools {
    fn discover(&self, page: Page) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            let job = Extraction {
                url: page.url,
                given_by: page.given_by,
                proxy: page.proxy,
            };
            let media = self.0.extract(job).await.map_err(|error| told(&error))?;
            media.to_json().map_err(|error| ToolError::TooMuch(error.to_string()))
        })
    }
}

fn told(error: &tools::ToolError) -> ToolError {
    use tools::ToolError as Error;

    let reason = chain(error);
    match error {
        Error::Off { .. }
        | Error::NotFound { .. }
        | Error::NotExecutable { .. }
        | Error::Unsupported { .. }
        | Error::TooOld { .. }
        | Error::Proxy { .. } => ToolError::NotAllowed(reason),
        Error::Forbidden(_) | Error::Scheme { .. } => ToolError::Denied(reason),
        Error::Busy { .. } => ToolError::Busy(reason),
        Error::TimedOut { .. } | Error::TooMuchOutput { .. } => ToolError::TooMuch(reason),
        Error::Run { .. }
        | Error::Failed { .. }
        | Error::Stopped { .. }
        | Error::Output { .. }
        | Error::Input { .. }
        | Error::OutputExists { .. } => ToolError::Failed(reason),
    }
}
