//! What a browser may do on a desktop without an access key: add downloads in the save directory, and read and change
//! those that the same extension added. Anything else needs a key.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use protocol::{CreateTaskRequest, Stranger};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    call::{Caller, Outcome, Tally},
    fault::Fault,
    gid::Gid,
    option::Options,
    params::Params,
    tell::named,
};
use crate::gate::sender::KEY_FIRST;

/// The methods, each of which looks at whose download it is.
const METHODS: [&str; 21] = [
    "aria2.addUri",
    "aria2.addTorrent",
    "aria2.addMetalink",
    "aria2.remove",
    "aria2.forceRemove",
    "aria2.pause",
    "aria2.forcePause",
    "aria2.unpause",
    "aria2.tellStatus",
    "aria2.getUris",
    "aria2.getFiles",
    "aria2.getServers",
    "aria2.getPeers",
    "aria2.tellActive",
    "aria2.tellWaiting",
    "aria2.tellStopped",
    "aria2.getOption",
    "aria2.changeOption",
    "aria2.changeUri",
    "aria2.removeDownloadResult",
    "aria2.getVersion",
];

/// Options that lead requests through another host.
const PROXIES: [&str; 4] = ["all-proxy", "http-proxy", "https-proxy", "ftp-proxy"];

/// Options for all downloads that may hold secrets of other sites.
const SECRETS: [&str; 4] = ["header", "http-user", "http-passwd", "referer"];

/// What is refused, with what is to be done about it.
fn refused(what: &str) -> Fault {
    Fault::new(format!("{KEY_FIRST}: without one, {what}"))
}

impl Caller {
    /// A call for a visitor.
    pub(super) async fn dispatch_for(
        &self,
        visitor: Arc<str>,
        method: &str,
        params: &Params,
        tally: &Tally<'_>,
    ) -> Outcome {
        if !METHODS.contains(&method) {
            return Err(Fault::new(KEY_FIRST));
        }
        self.for_visitor(visitor).dispatch(method, params, tally).await
    }

    /// The same caller with the rights of a visitor.
    pub(super) fn for_visitor(&self, visitor: Arc<str>) -> Self {
        let mut caller = self.clone();
        caller.visitor = Some(visitor);
        caller
    }

    /// Whether this call may see and change a task, which is written here as the daemon wrote it.
    pub(super) fn may_see(&self, task: &[u8]) -> bool {
        self.visitor.as_deref().is_none_or(|visitor| is_of(visitor, task))
    }

    /// The refusal of a download that is not the visitor's, or not there: which of the two, is not told.
    pub(super) fn not_seen(&self, fault: Fault) -> Fault {
        if self.visitor.is_some() {
            refused("a program reads and changes only the downloads that it added itself")
        } else {
            fault
        }
    }

    /// In whose name downloads are made: a visitor is no user, and its URLs reach public addresses only.
    pub(super) fn stranger(&self) -> Option<Stranger> {
        self.visitor.as_deref().map(|visitor| Stranger {
            user_host: String::new(),
            created_by: visitor.to_owned(),
        })
    }

    /// The usual options for downloads of this call.
    pub(super) fn usual_options(&self) -> Options {
        let template = self.dialect().template();
        match self.visitor {
            None => (*template).clone(),
            Some(_) => template.filtered(|row| !SECRETS.contains(&row.name())),
        }
    }

    /// Refuses options of a visitor that lead out of the save directory, over a file, or through another host.
    pub(super) fn check_options(&self, options: &Options) -> Result<(), Fault> {
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
        if PROXIES
            .into_iter()
            .any(|name| options.get(name).is_some_and(|proxy| !proxy.is_empty()))
        {
            return Err(refused("a program cannot choose a proxy"));
        }
        Ok(())
    }

    /// Lets a visitor's download take no name that is taken, whatever the settings say.
    pub(super) fn confine(&self, request: &mut CreateTaskRequest) {
        if self.visitor.is_some() && request.file_exists_behavior != "skip" {
            "rename".clone_into(&mut request.file_exists_behavior);
        }
    }
}

impl Caller {
    /// Whether this connection gets notifications of a download: a visitor's only of its own ones.
    pub(super) fn is_told(&self, gid: Gid) -> bool {
        let Some(visitor) = self.told_visitor() else {
            return true;
        };
        self.app.daemon.hub.look_at_board(|projection, board| {
            let found = named(board, &gid.to_string());
            found.is_ok_and(|found| is_of(visitor, found.text(projection).as_bytes()))
        })
    }

    /// The same for a change.
    pub(super) fn confine_change(&self, change: &mut Map<String, Value>) {
        const RULE: &str = "fileExistsBehavior";
        if self.visitor.is_some() && change.get(RULE).is_some_and(|rule| rule != "skip") {
            change.insert(RULE.to_owned(), "rename".into());
        }
    }
}

/// Whether the task, as the daemon wrote it, was made for this visitor.
pub(super) fn is_of(visitor: &str, task: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Made {
        created_by: String,
    }
    serde_json::from_slice::<Made>(task).is_ok_and(|made| made.created_by == visitor)
}

/// Checks a directory that a visitor asks for: it is the save directory or below it. Else it is said what it must be.
pub(crate) fn check_directory(dir: &str, save_dir: &str) -> Result<(), String> {
    let (dir, save_dir) = (Path::new(dir), Path::new(save_dir));
    let below = if dir.is_absolute() {
        dir.strip_prefix(save_dir).ok()
    } else {
        Some(dir)
    };
    // Without a save directory nothing is in it.
    if !save_dir.as_os_str().is_empty() && below.is_some_and(stays_below) {
        return Ok(());
    }
    Err(format!("files go to {} or below it", save_dir.display()))
}

/// Whether a path leads nowhere but down.
fn stays_below(path: &Path) -> bool {
    let is_plain = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    path.components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let task = br#"{"taskId":"1","createdBy":"chrome-extension://a"}"#;
        assert!(is_of("chrome-extension://a", task));
        assert!(!is_of("chrome-extension://ab", task));
        assert!(!is_of("chrome-extension://a", b"{}") && !is_of("", b"nonsense"));
    }

    #[test]
    fn every_method_is_one() {
        assert!(
            METHODS
                .iter()
                .all(|method| super::super::call::METHODS.contains(method))
        );
    }
}
