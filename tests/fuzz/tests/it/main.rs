//! What was found once is not found again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use fuzz::TARGETS;

/// Set when anything panicked, on any thread: tasks that panic are quiet.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Brings every input of a target in, and what is left of it when its end or its beginning is cut off.
fn replay(name: &str) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        HAS_PANICKED.store(true, Ordering::SeqCst);
        usual(info);
    }));
    let (_, ready) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut target = ready();
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for path in inputs {
        let input = fs::read(&path).unwrap();
        for part in [&input[..], &input[..input.len() / 2], &input[input.len() / 2..]] {
            target(part);
            assert!(
                !HAS_PANICKED.load(Ordering::SeqCst),
                "{} makes something panic",
                path.display()
            );
        }
    }
}

macro_rules! replayed {
    ($($test:ident = $name:literal),* $(,)?) => {
        $(#[test] fn $test() { replay($name); })*

        #[test]
        fn every_target_is_replayed_and_has_its_inputs() {
            let named: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(named, [$($name),*]);
        }
    };
}

replayed! {
    json_rpc = "json-rpc",
    json_query = "json-query",
    multicall = "multicall",
    xml_rpc = "xml-rpc",
    metalink = "metalink",
    socket = "socket",
    takeover = "takeover",
    mcp = "mcp",
    response = "response",
    proxy = "proxy",
    ftp = "ftp",
    sftp = "sftp",
    known_hosts = "known-hosts",
    journal = "journal",
    cookies = "cookies",
    aria2_conf = "aria2-conf",
    session = "session",
    market = "market",
    signature = "signature",
    manifest = "manifest",
    package = "package",
    playlist = "playlist",
    site = "site",
    unpack = "unpack",
    bencode = "bencode",
    metainfo = "metainfo",
    magnet = "magnet",
    swarm = "swarm",
    peer = "peer",
    link_body = "link-body",
    link_sealed = "link-sealed",
}
