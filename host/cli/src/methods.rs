//! Every method of the protocol is used by a command, or there is a reason why not.

use std::{fs, path::Path};

use protocol::Method;

const HANDSHAKE: &str = "part of the handshake of agent and daemon";
const INTERNAL: &str = "only the service itself may call it: the answer has a secret, or ends the service";
const MANY: &str = "commands use the method for many tasks at once";
const BY_REST: &str = "the command uploads over REST, which takes larger bodies";
const DIALOG: &str = "for user interfaces, which stay connected; svc torrent select chooses files at any time";

const WITHOUT_A_COMMAND: &[(Method, &str)] = &[
    (Method::SystemAuthChallenge, HANDSHAKE),
    (Method::SystemAuthProve, HANDSHAKE),
    (Method::SystemShutdown, INTERNAL),
    (Method::SiteAuthGet, INTERNAL),
    (Method::SiteAuthMatch, INTERNAL),
    (Method::LinkLoad, INTERNAL),
    (Method::LinkCommit, INTERNAL),
    (
        Method::TaskList,
        "svc list needs queues and rates, too, and takes the snapshot",
    ),
    (Method::TaskPause, MANY),
    (Method::TaskResume, MANY),
    (Method::TaskDelete, MANY),
    (
        Method::TaskChange,
        "aria2's changeOption; commands rename, limit and move",
    ),
    (Method::SelectionSubscribe, DIALOG),
    (Method::SelectionUnsubscribe, DIALOG),
    (Method::SelectionResolve, DIALOG),
    (
        Method::GroupCreateTasks,
        "aria2's addMetalink; svc add takes the document's URL",
    ),
    (Method::PluginInstall, BY_REST),
    (Method::PluginInstallDev, BY_REST),
    (Method::FsList, "for directory pickers; a shell completes paths itself"),
];

/// The sources of the commands, without this file.
fn sources(directory: &Path, found: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.ends_with("methods.rs") {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_method_has_a_command_or_a_reason() {
    let mut text = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    let words: Vec<_> = text
        .split(|character: char| !(character.is_alphanumeric() || character == ':'))
        .collect();
    for method in Method::ALL {
        let has_command = words.contains(&format!("Method::{method:?}").as_str());
        let has_reason = WITHOUT_A_COMMAND.iter().any(|(without, _)| without == method);
        assert_ne!(has_command, has_reason, "{}", method.name());
    }
}
