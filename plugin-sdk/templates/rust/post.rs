//! Writes beside each download where it is from. Something to begin with: put your own work on its files in its place.

use svc_plugin::prelude::*;

/// The plugin.
pub struct MyPlugin;

impl PostProcessor for MyPlugin {
    fn done(call: &PostCall, work: &Work<'_>) -> Result<()> {
        let mut note = format!("{}\n", call.url().as_str());
        for name in work.names() {
            note += &format!("{name}, {} bytes\n", work.size(&name)?);
        }
        // What is new appears when this function has succeeded.
        work.write_new(&format!("{}.source.txt", call.main()), note)
    }
}

svc_plugin::plugin!(MyPlugin: PostProcessor);
