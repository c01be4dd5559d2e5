//! Renaming a finished download after a template.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use private_files::FileError;
use serde::{Deserialize, Serialize};
use transfer::{FileName, Template};

use crate::dir::Dir;

/// What a template may name.
const FIELDS: &[(&str, Field)] = &[
    ("name", Field::Name),
    ("extension", Field::Extension),
    ("title", Field::Title),
    ("host", Field::Host),
    ("date", Field::Date),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Extension,
    Title,
    Host,
    Date,
}

/// Where a download is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The URL that its task was created with.
    pub url: String,
    /// Whether the user gave it, and not a page or a feed.
    pub by_user: bool,
}

/// What is known about a download.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// What the page or feed calls it.
    pub title: Option<String>,
    /// The server's name.
    pub host: Option<String>,
    /// The day it was finished, `2026-11-23`.
    pub date: Option<String>,
    /// Where it is from; no template names it.
    pub source: Option<Source>,
}

/// A checked template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameTemplate {
    template: Template<Field>,
    names_extension: bool,
}

impl RenameTemplate {
    /// Checks a template; the error says what is wrong with it.
    pub fn compile(text: &str) -> Result<Self, String> {
        let template = Template::compile(text, FIELDS)?.ok_or("a template has at least a name")?;
        Ok(Self {
            template,
            names_extension: text.contains("{extension}"),
        })
    }

    /// The path of a file `name`, relative to the save directory. Directories of which nothing is known are left out; if
    /// that is so of the name, it stays. The extension stays unless the template has a place for it.
    pub fn path(&self, name: &str, known: &Known) -> PathBuf {
        let old = FileName::sanitise(name);
        let (stem, extension) = old.split_extension();
        let value = |field| match field {
            Field::Name => Some(stem.to_owned()),
            Field::Extension => Some(extension.trim_start_matches('.').to_owned()),
            Field::Title => known.title.clone(),
            Field::Host => known.host.clone(),
            Field::Date => known.date.clone(),
        };
        let mut components: Vec<_> = self.template.fill(value).collect();
        let last = components.pop().flatten();
        let name = match last {
            None => old.clone(),
            Some(name) if self.names_extension => name,
            Some(name) => FileName::sanitise(&format!("{name}{extension}")),
        };
        let directories = components.iter().flatten().map(FileName::as_str);
        directories.chain([name.as_str()]).collect()
    }
}

/// The first free path for `relative` in `root`: numbered as downloads are.
pub fn free_path(root: &Path, relative: &Path) -> PathBuf {
    let wanted = root.join(relative);
    let name = FileName::sanitise(&wanted.file_name().unwrap_or_default().to_string_lossy());
    let directory = wanted.parent().unwrap_or(root);
    let mut number = 0;
    loop {
        let name = if number == 0 {
            name.clone()
        } else {
            name.numbered(number)
        };
        let path = directory.join(name.as_str());
        // At the last number the rename itself finds that the name is taken.
        if number == u32::from(u16::MAX) || fs::symlink_metadata(&path).is_err() {
            return path;
        }
        number += 1;
    }
}

/// Moves `from` to `to`, a path on the same file system, and makes its directories; never replaces anything, and follows no
/// link below `root`, the save directory. After a crash it can be repeated: what was moved already is no error.
pub fn rename(root: &Path, from: &Path, to: &Path) -> Result<(), FileError> {
    if from == to {
        return Ok(());
    }
    let ((source, old), (target, new)) = (parts(from), parts(to));
    let target = Dir::make_below(root, target)?;
    let source = Dir::open_below(root, source);
    let is_there = source.as_ref().is_ok_and(|source| source.find(old).is_some());
    if !is_there && target.find(new).is_some() {
        return target.sync();
    }
    let source = source?;
    let renamed = source.rename(old, &target, new);
    renamed.map_err(|error| source.error("rename", old, error))?;
    target.sync()?;
    source.sync()
}

/// The directory of a path, and the name in it.
fn parts(path: &Path) -> (&Path, &OsStr) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default(),
    )
}
