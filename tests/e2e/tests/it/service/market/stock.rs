//! Signatures are minisign's: its own program makes and verifies them.

use std::{fs, process::Command};

use e2e::Home;

use super::{
    plugin, run,
    shop::{Shop, sha256, sign},
};

#[test]
fn minisign_verifies_our_packages_and_what_it_signs_is_installed() {
    let (home, shop) = (Home::new(), Shop::open("stock"));
    let key = shop.key("ann");
    let package = shop.package("one@ann", "1.0.0", "ann", &[]);
    shop.author("sign TMP/one@ann-1.0.0.zip --key KEYS/ann.key");
    let mut verify = Command::new("minisign");
    verify.args(["-V", "-P", &key, "-m"]).arg(&package);
    let said = verify
        .output()
        .expect("this test needs the program minisign; tests/run installs it");
    assert!(said.status.success(), "{said:?}");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("svc-market v1 role=package plugin=one@ann version=1.0.0 sha256="),
        "{said}"
    );

    // The same package with a signature of the stock tool in place of ours.
    let beside = shop.path("one@ann-1.0.0.zip.minisig");
    fs::remove_file(&beside).expect("it is there");
    let purpose = format!(
        "svc-market v1 role=package plugin=one@ann version=1.0.0 sha256={}",
        sha256(&package)
    );
    sign(&package, &shop.path("keys/ann.key"), &purpose, &beside);
    shop.author(&format!("verify TMP/one@ann-1.0.0.zip --key {key}"));
    shop.market("add SITE TMP/one@ann-1.0.0.zip --key KEYS/index.key");
    shop.publish();
    let service = home.serve();
    service.wait_until_ready();
    shop.adopt(&service);
    run(&service, &["install", "one@ann", "--yes"]);
    assert_eq!(plugin(&service, "one@ann")["loadStatus"], "Loaded");

    // A signature for something else is none.
    sign(&package, &shop.path("keys/ann.key"), "whatever", &beside);
    let refused = shop.try_svc("plugin verify TMP/one@ann-1.0.0.zip");
    assert_eq!(refused.code, Some(35), "{refused:?}");
}
