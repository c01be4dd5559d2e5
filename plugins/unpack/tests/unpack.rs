//! What becomes of the files of a download.

use svc_plugin::{
    Error,
    test::{Host, Packed, PostResult, replay_all},
};
use unpack::Unpack;

const URL: &str = "https://files.example.org/set.zip";

fn host(password: Option<&str>) -> Host {
    let packed = Packed {
        directory: "set".to_owned(),
        password: password.map(str::to_owned),
        volumes: vec!["set.z01".to_owned()],
    };
    Host::new().file("readme.txt", "text").archive("set.zip", packed)
}

fn run(host: &Host) -> Result<PostResult, Error> {
    host.post::<Unpack>(URL, "set.zip")
}

#[test]
fn fixtures() {
    replay_all::<Unpack>("fixtures");
}

#[test]
fn an_archive_is_kept_unless_the_user_says_otherwise() {
    let done = run(&host(None)).unwrap();
    assert_eq!((done.unpacked, done.removed), (vec!["set".to_owned()], Vec::new()));
    let done = run(&host(None).setting("keepArchive", "false")).unwrap();
    assert_eq!(done.files, ["readme.txt"]);
    assert_eq!(done.removed, ["set.z01", "set.zip"]);
}

#[test]
fn passwords_are_lines_and_a_wrong_one_leaves_everything_as_it_is() {
    for passwords in ["right", "wrong\n\nright\n", "wrong\r\nright\r\n"] {
        run(&host(Some("right")).setting("passwords", passwords)).unwrap();
    }
    for passwords in ["", "wrong", " right"] {
        let host = host(Some("right"))
            .setting("passwords", passwords)
            .setting("keepArchive", "false");
        let Err(Error::InvalidInput(reason)) = run(&host) else {
            panic!("{passwords:?} opens it");
        };
        assert!(reason.contains("set.zip is encrypted"), "{reason}");
    }
    let many = "wrong\n".repeat(100) + "right";
    assert!(run(&host(Some("right")).setting("passwords", &many)).is_err());
}

#[test]
fn a_download_without_archives_is_left_alone() {
    let host = Host::new().file("disc.iso", "");
    let done = host.post::<Unpack>(URL, "disc.iso").unwrap();
    assert_eq!(done.files, ["disc.iso"]);
    assert_eq!(done.unpacked, Vec::<String>::new());
}
