//! Authorization of visitors: browsers without an access key on a desktop. They may add downloads in the save
//! directory, and read and change those of the same extension. Anything else needs a key.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use protocol::{CreateTaskRequest, Requester};
use serde_json::{Map, Value};

use crate::{
    board::{Board, Download, NotFound},
    caller::Caller,
    option::Options,
    service::Task,
    vocabulary::{fault::Fault, gid::Gid},
};

/// The fault for a visitor's call that needs a key.
pub const KEY_FIRST: &str = "set an access key first";

/// Options that route requests through another host.
const PROXIES: [&str; 4] = ["all-proxy", "http-proxy", "https-proxy", "ftp-proxy"];

/// Default options that may contain secrets of other sites, or that a visitor may not set.
const WITHHELD: [&str; 8] = [
    "bt-seed-unverified",
    "check-integrity",
    "ftp-user",
    "ftp-passwd",
    "header",
    "http-user",
    "http-passwd",
    "referer",
];

/// A refusal with its remedy.
fn refused(what: &str) -> Fault {
    Fault::new(format!("{KEY_FIRST}: without one, {what}"))
}

impl Caller {
    /// This caller, restricted to a visitor's rights.
    pub(crate) fn for_visitor(&self, visitor: Arc<str>) -> Self {
        let mut caller = self.clone();
        caller.visitor = Some(visitor);
        caller
    }

    pub(crate) fn may_see(&self, task: &dyn Task) -> bool {
        self.visitor.as_deref().is_none_or(|visitor| is_of(visitor, task))
    }

    /// Hides whether a download of another client exists.
    pub(crate) fn not_seen(&self, fault: Fault) -> Fault {
        if self.visitor.is_some() {
            refused("a program reads and changes only the downloads that it added itself")
        } else {
            fault
        }
    }

    /// The download of a GID, if this call may see it.
    pub(crate) fn named(&self, text: &str) -> Result<Download, Fault> {
        let found = self.board()?.find(text);
        let download = found.map_err(|why| self.not_seen(not_found(text, why)))?;
        if self.may_see(&*download.task) {
            Ok(download)
        } else {
            Err(self.not_seen(Fault::unauthorized()))
        }
    }

    /// Whether this connection receives notifications of a download: visitors only of their own.
    pub(crate) fn is_notified(&self, board: &Board, gid: Gid) -> bool {
        let Some(visitor) = self.client.restricted_to() else {
            return true;
        };
        board
            .find(&gid.to_string())
            .is_ok_and(|download| is_of(visitor, &*download.task))
    }

    /// The owner of new downloads: a visitor's URLs may only reach public addresses.
    pub(crate) fn requester(&self) -> Option<Requester> {
        self.visitor.as_deref().map(|visitor| Requester {
            is_host_allowed: false,
            user_host: String::new(),
            created_by: visitor.to_owned(),
        })
    }

    /// The default options for downloads of this call.
    pub(crate) fn usual_options(&self) -> Options {
        let template = self.dialect.template();
        match self.visitor {
            None => (*template).clone(),
            Some(_) => template.filtered(|row| !WITHHELD.contains(&row.name())),
        }
    }

    /// Rejects a visitor's options that leave the save directory, overwrite a file, or use another host as proxy.
    pub(crate) fn check_options(&self, options: &Options) -> Result<(), Fault> {
        if self.visitor.is_none() {
            return Ok(());
        }
        if let Some(dir) = options.get("dir").filter(|dir| !dir.is_empty()) {
            check_directory(dir, &self.save_dir()?).map_err(|what| refused(&what))?;
        }
        if options.get("out").is_some_and(|out| !stays_below(Path::new(out))) {
            return Err(refused("out must stay below the save directory"));
        }
        if options.is_on("allow-overwrite") {
            return Err(refused("no file is overwritten"));
        }
        // It would tell whether a file has a checksum, and overwrite it if not.
        if options.is_on("check-integrity") || options.is_on("bt-seed-unverified") {
            return Err(refused("no file is checked"));
        }
        if PROXIES
            .into_iter()
            .any(|name| options.get(name).is_some_and(|proxy| !proxy.is_empty()))
        {
            return Err(refused("a program cannot choose a proxy"));
        }
        Ok(())
    }

    /// Forbids a visitor's download to overwrite, whatever the settings are.
    pub(crate) fn confine(&self, request: &mut CreateTaskRequest) {
        if self.visitor.is_some() && request.file_exists_behavior != "skip" {
            "rename".clone_into(&mut request.file_exists_behavior);
        }
    }

    /// Like [`Self::confine`], for a change.
    pub(crate) fn confine_change(&self, change: &mut Map<String, Value>) {
        const RULE: &str = "fileExistsBehavior";
        if self.visitor.is_some() && change.get(RULE).is_some_and(|rule| rule != "skip") {
            change.insert(RULE.to_owned(), "rename".into());
        }
    }
}

/// The fault for a GID without a download.
pub(crate) fn not_found(text: &str, why: NotFound) -> Fault {
    Fault::new(match why {
        NotFound::Invalid => format!("Invalid GID {text}"),
        NotFound::Unknown => format!("GID {text} is not found"),
        NotFound::Ambiguous => format!("GID {text} is not unique"),
    })
}

pub(crate) fn is_of(visitor: &str, task: &dyn Task) -> bool {
    let mut is_own = false;
    task.members(&mut |name, value| {
        if name == "createdBy" {
            is_own = serde_json::from_str::<String>(value).is_ok_and(|maker| maker == visitor);
        }
    });
    is_own
}

/// Checks that a visitor's directory is the save directory or below it; the error says so.
pub fn check_directory(dir: &str, save_dir: &str) -> Result<(), String> {
    let (dir, save_dir) = (Path::new(dir), Path::new(save_dir));
    let below = if dir.is_absolute() {
        dir.strip_prefix(save_dir).ok()
    } else {
        Some(dir)
    };
    // An empty save directory contains nothing.
    if !save_dir.as_os_str().is_empty() && below.is_some_and(stays_below) {
        return Ok(());
    }
    Err(format!("files go to {} or below it", save_dir.display()))
}

/// Whether a relative path has no `..`.
fn stays_below(path: &Path) -> bool {
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    path.components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service::fake;

    #[test]
    fn a_directory_is_the_save_directory_or_below_it() {
        for (dir, expect) in [
            ("/save", true),
            ("/save/", true),
            ("/save/a/b", true),
            ("a/b", true),
            (".", true),
            ("/saves", false),
            ("/save/../etc", false),
            ("/save/a/../../etc", false),
            ("../etc", false),
            ("a/../../etc", false),
            ("/home/user/.ssh", false),
            ("/", false),
        ] {
            assert_eq!(check_directory(dir, "/save").is_ok(), expect, "{dir}");
        }
        assert!(check_directory("a", "").is_err());
    }

    #[test]
    fn a_task_is_its_makers() {
        let task = fake::task(&json!({"taskId": "1", "createdBy": "chrome-extension://a"}));
        assert!(is_of("chrome-extension://a", &task));
        assert!(!is_of("chrome-extension://ab", &task));
        let nobodys = fake::task(&json!({}));
        assert!(!is_of("chrome-extension://a", &nobodys) && !is_of("", &nobodys));
    }
}
