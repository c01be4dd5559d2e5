//! Keys and signatures are minisign's: its own program reads ours, and we read its.

use std::{fs, process::Command};

use market_tool::{Fixed, SigningKey};

use crate::place::Place;

/// Runs minisign; its answer, or what it complains about.
fn minisign(arguments: &[&str]) -> Result<String, String> {
    let ran = Command::new("minisign").args(arguments).output();
    let output = ran.expect("this test needs the program minisign (apt-get install minisign); tests/run installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}

#[tokio::test]
async fn minisign_verifies_what_we_sign() {
    let place = Place::new().await;
    place
        .market("rotate SOURCE root --root-key KEYS/root-1.key --root-key KEYS/root-2.key")
        .await;
    let path = |name: &str| place.source().join(name).to_str().unwrap().to_owned();
    let verify = |file: &str, signature: &str, key: &str| {
        let key = place.key(key).public().to_string();
        minisign(&["-V", "-m", &path(file), "-x", &path(signature), "-P", &key])
    };
    let said = verify("index.2.json", "index.2.json.minisig", "index").unwrap();
    assert!(said.contains("svc-market v1 role=index seq=2 sha256="), "{said}");
    verify("timestamp.2.json", "timestamp.minisig", "timestamp").unwrap();
    verify("revocations.1.json", "revocations.1.json.minisig", "revocations").unwrap();
    // Of several signatures it looks at the first.
    verify("root.2.json", "root.2.json.minisig", "root-1").unwrap();
    verify("index.2.json", "index.2.json.minisig", "timestamp").unwrap_err();
    let package = place.path("one@acme-1.0.0.zip");
    let public = place.path("keys/author.key.pub");
    minisign(&["-V", "-m", package.to_str().unwrap(), "-p", public.to_str().unwrap()]).unwrap();
}

#[tokio::test]
async fn minisign_signs_for_us_and_opens_our_keys() {
    let place = Place::new().await;
    let file = place.path("message");
    fs::write(&file, "message").unwrap();
    let file = file.to_str().unwrap();
    let ours = place.path("keys/index.key");
    minisign(&["-S", "-s", ours.to_str().unwrap(), "-m", file, "-W"])
        .or_else(|_| minisign(&["-S", "-s", ours.to_str().unwrap(), "-m", file]))
        .unwrap();
    let public = place.key("index").public().to_string();
    minisign(&["-V", "-m", file, "-P", &public]).unwrap();

    let (theirs, their_public) = (place.path("their.key"), place.path("their.pub"));
    minisign(&[
        "-G",
        "-W",
        "-s",
        theirs.to_str().unwrap(),
        "-p",
        their_public.to_str().unwrap(),
    ])
    .unwrap();
    let read = SigningKey::read(&theirs, &Fixed(None)).unwrap();
    assert!(
        fs::read_to_string(their_public)
            .unwrap()
            .contains(&read.public().to_string())
    );

    // A whole document signed with their program is believed by our client.
    let body = fs::read(place.source().join("timestamp.2.json")).unwrap();
    let comment = format!(
        "svc-market v1 role=timestamp seq=2 sha256={}",
        market::Digest::of(&body)
    );
    let (document, signature) = (
        place.source().join("timestamp.2.json"),
        place.source().join("timestamp.minisig"),
    );
    let key = place.path("keys/timestamp.key");
    let arguments = [
        "-S",
        "-s",
        key.to_str().unwrap(),
        "-m",
        document.to_str().unwrap(),
        "-x",
        signature.to_str().unwrap(),
        "-t",
        &comment,
    ];
    minisign(&arguments).unwrap();
    place.client().await;
}
