//! Files that a site lists in an `index.json`. Something to begin with: put your site in its place.

use svc_plugin::prelude::*;

/// The plugin.
pub struct MyPlugin;

impl Resolver for MyPlugin {
    /// Lists what is behind the URL. `{"title": "Photos", "files": ["a.jpg", "more/b.jpg"]}` is two files.
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        let index = http::get(call.url()).send()?;
        out.title(&index.string("/title")?);
        for path in index.json::<Vec<String>>("/files")? {
            out.add_path(&path, &path);
        }
        Ok(())
    }

    /// Says where one of the files is. It is asked when its download begins, and again when the link has ended.
    fn link(call: &Call, entry: &str, _variant: Option<&str>) -> Result<Link> {
        Ok(Link::new(call.url().join(&text::encode_path(entry))?))
    }
}
// preview

impl Preview for MyPlugin {
    /// What users see before they download. Here a list is quick enough.
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
        Self::resolve(call, out)
    }
}
// end of preview

svc_plugin::plugin!(MyPlugin: Resolver, Preview);
