//! The files of a directory that a web server shows, as a feed.
//!
//! *Owns* the walk through the folders. What the pages look like is known to `open-directory`, whose module this uses.
//!
//! *Never* reaches another host than that of the URL it was given.
//!
//! Start reading at [`DirectoryWatch`].

// Not a dependency: a plugin that links another one exports what that exports.
#[path = "../../open-directory/src/page.rs"]
mod page;

use std::collections::HashSet;

use svc_plugin::{prelude::*, text::Url};

use crate::page::Child;

/// Folders within folders, at most.
const MAX_DEPTH: usize = 3;

/// Pages of one call; the host allows a few requests more, for redirects.
const MAX_PAGES: usize = 56;

/// Files of one call, which is what the host takes of a feed.
const MAX_FILES: usize = 2000;

/// Watches directories.
#[derive(Debug)]
pub struct DirectoryWatch;

impl FeedHandler for DirectoryWatch {
    fn fetch(call: &FeedCall, out: &Feed<'_>) -> Result<()> {
        let depth = env::setting_or("depth", 0_usize)?.min(MAX_DEPTH);
        let response = http::get(call.url()).task_cookies().send()?;
        let root = Url::parse(response.url())?;
        let children = page::read(&root, &response)?;
        let children = children.ok_or_else(|| Error::Parse("the page is not a directory of files".to_owned()))?;
        let name = root.path().iter().rev().find(|segment| !segment.is_empty());
        out.title(name.map_or(root.host(), String::as_str));
        let mut walk = Walk {
            seen: HashSet::from([root.as_str().to_owned()]),
            files: 0,
            pages: 1,
        };
        let mut level = walk.take("", children, out);
        for _ in 0..depth {
            level = walk.read(level, out);
        }
        Ok(())
    }
}

svc_plugin::plugin!(DirectoryWatch: FeedHandler);

/// What a walk has seen.
struct Walk {
    seen: HashSet<String>,
    files: usize,
    pages: usize,
}

impl Walk {
    /// Reads folders side by side; answers with the folders in them. One that cannot be read now is read another time.
    fn read(&mut self, mut folders: Vec<(Url, String)>, out: &Feed<'_>) -> Vec<(Url, String)> {
        folders.truncate(MAX_PAGES - self.pages);
        self.pages += folders.len();
        let requests = folders.iter().map(|(url, _)| http::get(url).task_cookies());
        let mut found = Vec::new();
        for ((url, path), response) in folders.iter().zip(http::send_all(requests)) {
            match response.and_then(|response| page::read(url, &response)) {
                Ok(Some(children)) => found.extend(self.take(path, children, out)),
                Ok(None) => log::warn(format!("{path} is not a directory")),
                Err(error) => log::warn(format!("{path} cannot be read: {error}")),
            }
        }
        found
    }

    /// Adds the files of the folder at `path`, which ends with a slash unless it is the first; answers with its folders.
    fn take(&mut self, path: &str, children: Vec<Child>, out: &Feed<'_>) -> Vec<(Url, String)> {
        let mut folders = Vec::new();
        for child in children {
            if !self.seen.insert(child.url.as_str().to_owned()) {
                continue;
            }
            let path = format!("{path}{}", child.name);
            if child.is_folder {
                folders.push((child.url, path + "/"));
            } else if self.files < MAX_FILES {
                self.files += 1;
                let item = out.add(child.url.as_str(), &path, "");
                item.enclosure(&child.url, "");
                if let Some(size) = child.size {
                    item.size(size);
                }
            }
        }
        folders
    }
}
