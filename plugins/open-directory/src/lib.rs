//! Lists the files of a directory that a web server shows: Apache, nginx, Caddy, lighttpd, Python's `http.server`.
//!
//! *Owns* what such pages look like (`page`) and the walk through folders (here).
//!
//! *Never* reaches another host than that of the URL it was given.
//!
//! Start reading at [`OpenDirectory`].

mod page;

use std::collections::HashSet;

use svc_plugin::{prelude::*, text::Url};

use crate::page::Child;

/// Folders within folders, unless the user wants another number.
const DEPTH: usize = 5;

/// The deepest folder that the host takes.
const MAX_DEPTH: usize = 8;

/// Pages of one call; the host allows a few requests more, for redirects.
const MAX_PAGES: usize = 56;

/// Files of one call, which is what the host takes.
const MAX_FILES: usize = 10_000;

/// Lists directories.
#[derive(Debug)]
pub struct OpenDirectory;

impl Resolver for OpenDirectory {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        let depth = env::setting_or("depth", DEPTH)?.min(MAX_DEPTH);
        list(call, depth, out)
    }
}

// Without a preview of its own, the host shows what is resolved: a list without its folders would not be what is
// downloaded.
svc_plugin::plugin!(OpenDirectory: Resolver);

/// A folder that is to be read.
struct Folder {
    url: Url,
    /// Its place below the first one, with slashes.
    path: String,
}

fn list(call: &Call, depth: usize, out: &Listing<'_>) -> Result<()> {
    let response = http::get(directory(call.url())?).task_cookies().send()?;
    let first = Folder {
        url: Url::parse(response.url())?,
        path: String::new(),
    };
    let children = page::read(&first.url, &response)?.ok_or(Error::NotMatched)?;
    out.title(
        first
            .url
            .path()
            .iter()
            .rev()
            .find(|segment| !segment.is_empty())
            .map_or(first.url.host(), String::as_str),
    );
    let mut walk = Walk {
        seen: HashSet::from([first.url.as_str().to_owned()]),
        files: 0,
        too_many: 0,
        pages: 1,
    };
    let mut level = walk.take(&first, children, out);
    for _ in 0..depth {
        let room = MAX_PAGES - walk.pages;
        if level.len() > room {
            out.left_out(LeftOut::TooManyFolders, "", level.len() - room);
            level.truncate(room);
        }
        if level.is_empty() {
            break;
        }
        level = walk.read(&level, out);
    }
    if !level.is_empty() {
        out.left_out(LeftOut::TooDeep, "", level.len());
    }
    if walk.too_many > 0 {
        out.left_out(LeftOut::TooManyFiles, "", walk.too_many);
    }
    Ok(())
}

/// What a walk has seen.
struct Walk {
    seen: HashSet<String>,
    files: usize,
    /// Files that are not listed because of their number.
    too_many: usize,
    pages: usize,
}

impl Walk {
    /// Reads folders side by side; answers with the folders in them. The listing says which cannot be read.
    fn read(&mut self, folders: &[Folder], out: &Listing<'_>) -> Vec<Folder> {
        self.pages += folders.len();
        let requests = folders.iter().map(|folder| http::get(&folder.url).task_cookies());
        let mut found = Vec::new();
        for (folder, response) in folders.iter().zip(http::send_all(requests)) {
            match response.and_then(|response| page::read(&folder.url, &response)) {
                Ok(Some(children)) => found.extend(self.take(folder, children, out)),
                Ok(None) => {
                    log::warn(format!("{} is not a directory", folder.path));
                    out.left_out(LeftOut::Unreadable, &folder.path, 1);
                }
                Err(error) => {
                    log::warn(format!("{} cannot be read: {error}", folder.path));
                    out.left_out(LeftOut::Unreadable, &folder.path, 1);
                }
            }
        }
        log::progress(u32::try_from(self.files).unwrap_or(u32::MAX), None, "files");
        found
    }

    /// Adds the files of a folder; answers with its folders.
    fn take(&mut self, folder: &Folder, children: Vec<Child>, out: &Listing<'_>) -> Vec<Folder> {
        let mut folders = Vec::new();
        for child in children {
            if !self.seen.insert(child.url.as_str().to_owned()) {
                continue;
            }
            if child.is_folder {
                let path = if folder.path.is_empty() {
                    child.name
                } else {
                    format!("{}/{}", folder.path, child.name)
                };
                folders.push(Folder { url: child.url, path });
            } else if self.files < MAX_FILES {
                self.files += 1;
                let link = Link::new(&child.url);
                let id = self.files.to_string();
                let entry = out.add(&id, &child.name);
                entry.folder(&folder.path).link(link);
                if let Some(size) = child.size {
                    entry.size(size);
                }
            } else {
                self.too_many += 1;
            }
        }
        folders
    }
}

/// The URL of the directory. One without its final slash is asked for its headers first: it may be a large file.
fn directory(url: &Url) -> Result<String> {
    if url.path().last().is_none_or(String::is_empty) {
        return Ok(url.as_str().to_owned());
    }
    let head = http::Request::new("HEAD", url).task_cookies().no_redirects().send()?;
    let target = head
        .header("location")
        .map(|location| url.join(&location))
        .transpose()?;
    let is_directory = |target: &Url| target.has_same_origin(url) && target.path().last().is_some_and(String::is_empty);
    let target = target.filter(is_directory).ok_or(Error::NotMatched)?;
    Ok(target.as_str().to_owned())
}
