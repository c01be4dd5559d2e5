//! Files that a site lists in an `index.json`, as a feed. Something to begin with: put your site in its place.

use svc_plugin::prelude::*;

/// The plugin.
pub struct MyPlugin;

impl FeedHandler for MyPlugin {
    /// Lists what there is now; the host knows which items it has seen. `{"title": "Photos", "files": ["a.jpg"]}` is one.
    fn fetch(call: &FeedCall, out: &Feed<'_>) -> Result<()> {
        let index = http::get(call.url()).send()?;
        out.title(&index.string("/title")?);
        for path in index.json::<Vec<String>>("/files")? {
            let file = call.url().join(&text::encode_path(&path))?;
            out.add(&path, &path, "").enclosure(file, "");
        }
        Ok(())
    }
}

svc_plugin::plugin!(MyPlugin: FeedHandler);
