//! Downloads everything that a `SHA256SUMS` file lists, and verifies it: release directories of distributions have one
//! beside the images. A line is a digest, a space, a space or an asterisk (text or binary), and a path.

use svc_plugin::prelude::*;

/// The plugin. It has no state: each call gets a fresh instance.
pub struct ChecksumList;

impl Resolver for ChecksumList {
    /// Lists the files with their digests; the host verifies each file before it gets its name.
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        let list = http::get(call.url()).send()?.text()?;
        for line in list.lines() {
            if let Some((digest, path)) = line.split_once(' ') {
                let path = path.trim_start_matches([' ', '*']).trim_start_matches("./");
                out.add_path(path, path).checksum("sha256", digest);
            }
        }
        Ok(())
    }

    /// The host asks when the download of a file starts, and again whenever the link stops working.
    fn link(call: &Call, entry: &str, _variant: Option<&str>) -> Result<Link> {
        Ok(Link::new(call.url().join(&text::encode_path(entry))?))
    }
}

svc_plugin::plugin!(ChecksumList: Resolver);
