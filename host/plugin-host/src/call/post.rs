//! Post-processing: a plugin works on the files of a finished download, as a step of the chain that follows it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use market::Identity;
use svc_plugin_fixture::PostInput;

use crate::{
    error::{CallError, CallFailure},
    install::Plugins,
    policy::grant::CallTarget,
    runtime::{Ask, Call, CallWorkspace, Guest, Workspace},
};

impl Plugins {
    /// Has a plugin work on the files of the finished download of `given`, which is about the file `main`. What it did counts
    /// only if this succeeds, and it does nothing any more when this returns. Two of these calls run at a time, for up to half
    /// an hour; others wait.
    pub async fn post_process(
        &self,
        plugin: Identity,
        given: CallTarget,
        main: String,
        files: Arc<dyn Workspace>,
    ) -> Result<(), CallError> {
        // Before anything of the plugin is looked at: until its turn comes, it may have changed.
        let place = self.0.stop.run_until_cancelled(self.0.slots.take_post()).await;
        let _place = place.ok_or_else(|| CallError {
            plugin: plugin.clone(),
            version: None,
            call: None,
            reason: CallFailure::Closed,
            grantable: Vec::new(),
        })?;
        let names = files.names().into_iter();
        let ask = Ask::Post(PostInput {
            main: main.clone(),
            files: names.map(|name| (name, String::new())).collect(),
            ..PostInput::default()
        });
        let call = |guest: Arc<dyn Guest>, call: Call| {
            // As it is now: the plugin may have been loaded just before.
            let grant = self.0.registry.get(&call.plugin).map(|loaded| loaded.grant());
            let work = CallWorkspace::new(Arc::clone(&files), grant.unwrap_or_default().tools());
            let main = main.clone();
            async move { guest.post_process(call, main, work).await }.boxed()
        };
        self.0.call(plugin, ask, &given, call).await
    }
}
