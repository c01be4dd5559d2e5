//! Folders of authors, as somebody prepares them who is not the author of what is installed, or not the user.

use std::{fs, os::unix::fs::symlink};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::scripts::{agree, archive, develop, folder, install, manifest, plugin, preview};
use crate::service::guest;

/// The name that several want to have.
const PLUGIN: &str = "site@test";

/// What the user gave to the first of them.
const SECRET: &str = "the-user-s-token";

/// A site whose page asks for nothing, and its port in the URL.
fn site() -> Origin {
    Origin::start(vec![Resource::new("/page", Content::bytes("page"))])
}

fn host(origin: &Origin) -> String {
    origin.url("").trim_end_matches('/').to_owned()
}

/// A plugin that sends its secret to the site of its URL, which is `origin`.
fn sender(origin: &Origin) -> (Value, &'static str) {
    let manifest = manifest(
        PLUGIN,
        "page",
        json!({
            "permissions": {
                "inputHost": true, "hosts": [host(origin)], "secrets": { "token": [host(origin)] },
            },
            "settings": [{ "key": "token", "type": "string", "secret": true }],
        }),
    );
    let script = "export async function resolve(call, out) {
            await http.get(call.url).secretHeader('x-token', '{token}').send();
            out.add('file', 'file.bin').link(new URL('/file.bin', call.url));
        }
        export const preview = resolve;";
    (manifest, script)
}

fn give_secret(service: &Service) {
    let path = format!("/api/v1/plugins/{PLUGIN}/settings");
    let given = service.ask("PUT", &path, Some(&json!({"token": SECRET})));
    let given = given.expect("it answers");
    assert_eq!(given.status, 200, "{}", given.body);
}

/// Whether the site has seen the secret.
fn has_secret(origin: &Origin) -> bool {
    let requests = origin.requests();
    requests.iter().any(|request| request.header("x-token") == Some(SECRET))
}

#[test]
fn a_folder_with_the_name_of_an_installed_plugin_gets_none_of_its_secrets_before_its_user_agrees() {
    let (own, evil) = (site(), site());
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (asked, script) = sender(&own);
    install(&service, &archive(&home, "own", &asked, script));
    give_secret(&service);
    preview(&service, &own.url("/page"));
    assert!(has_secret(&own), "the plugin uses what it was given");
    let (asked, script) = sender(&evil);
    let folder = folder(&home, "evil", &asked, script);
    let waits = develop(&service, &folder);
    let consent = waits["pendingConsent"]
        .as_str()
        .unwrap_or_else(|| panic!("its user is asked: {waits}"));
    let pending = plugin(&service, PLUGIN);
    assert_eq!(
        (&pending["devMode"], &pending["source"]),
        (&json!(false), &json!("file"))
    );
    assert_eq!(pending["pending"]["folder"], json!(folder), "{pending}");
    preview(&service, &evil.url("/page"));
    assert!(!has_secret(&evil), "{:?}", evil.requests());
    // The attack is one: with its user's consent the folder has the secret.
    agree(&service, PLUGIN, consent);
    wait_until("the folder runs", || plugin(&service, PLUGIN)["loadStatus"] == "Loaded");
    preview(&service, &evil.url("/page"));
    assert!(has_secret(&evil), "{:?}", evil.requests());
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_package_with_the_name_of_a_folder_gets_none_of_its_secrets_before_its_user_agrees() {
    let own = site();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (asked, script) = sender(&own);
    let in_use = develop(&service, &folder(&home, "own", &asked, script));
    assert_eq!(
        in_use.get("pendingConsent"),
        None,
        "nothing was given to anybody: {in_use}"
    );
    give_secret(&service);
    // One that asks for nothing is installed at once otherwise.
    let other = archive(&home, "evil", &manifest(PLUGIN, "page", json!({})), script);
    let waits = guest::upload(&service.url(), &other).expect("it answers");
    assert!(waits["pendingConsent"].is_string(), "{waits}");
    assert_eq!(plugin(&service, PLUGIN)["devMode"], true);
    preview(&service, &own.url("/page"));
    assert!(has_secret(&own), "the folder goes on");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_link_in_a_folder_leads_no_call_that_is_kept_out_of_it() {
    let home = Home::new();
    let (service, outside) = (home.serve(), home.path().join("outside"));
    service.wait_until_ready();
    fs::create_dir(&outside).expect("a folder can be made");
    let script = "export async function resolve() { throw new PluginError('parse', 'no list'); }
        export const preview = resolve;";
    let folder = folder(&home, "own", &manifest(PLUGIN, "page", json!({})), script);
    let kept = folder.join("fixtures/_captured");
    fs::create_dir(folder.join("fixtures")).expect("a folder can be made");
    symlink(&outside, &kept).expect("a link can be made");
    develop(&service, &folder);
    let fails = || {
        let failed = preview(&service, "http://site.test/page");
        assert!(
            failed["error"].as_str().unwrap_or_default().contains("no list"),
            "{failed}"
        );
    };
    fails();
    fs::remove_file(&kept).expect("the link is there");
    fails();
    wait_until("a call is kept", || {
        fs::read_dir(&kept).is_ok_and(|mut files| files.next().is_some())
    });
    let strayed: Vec<_> = fs::read_dir(&outside).expect("it is there").collect();
    assert!(strayed.is_empty(), "{strayed:?}");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_link_in_a_folder_leads_no_reader_out_of_it() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let outside = home.path().join("outside.js");
    let script = "export async function resolve() {} export const preview = resolve;";
    fs::write(&outside, script).expect("a file can be written");
    for (name, target) in [("file", outside.as_path()), ("endless", "/dev/zero".as_ref())] {
        let folder = folder(&home, name, &manifest(PLUGIN, "page", json!({})), script);
        fs::remove_file(folder.join("plugin.js")).expect("it was written");
        symlink(target, folder.join("plugin.js")).expect("a link can be made");
        let refused = service.ask("POST", "/api/v1/plugins/install-dev", Some(&json!({"dirPath": folder})));
        let refused = refused.expect("it answers");
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(
            refused.body.to_string().contains("outside of the plugin's folder"),
            "{}",
            refused.body
        );
    }
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_plugin_computes_nothing_from_secrets_to_which_its_user_did_not_agree() {
    let site = Origin::start(vec![Resource::new("/page", Content::bytes(r#"{"pin": "4711"}"#))]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let script = "export async function resolve(call, out) {
            await http.get(call.url).captureJson('/pin', 'pin').send();
            let told;
            try { told = vault.digest('{pin}', 'sha256'); } catch (error) { told = String(error); }
            out.title(told);
            out.add('file', 'file.bin').link(new URL('/file.bin', call.url));
        }
        export const preview = resolve;";
    // It says nothing of secrets, so its user is asked for nothing.
    let asked = manifest(PLUGIN, "page", json!({"permissions": {"inputHost": true}}));
    install(&service, &archive(&home, "silent", &asked, script));
    let permissions = |service: &Service| plugin(service, PLUGIN)["permissions"].to_string();
    assert!(!permissions(&service).contains("secrets:derive"));
    let listed = preview(&service, &site.url("/page"));
    assert!(
        listed["name"].as_str().unwrap_or_default().contains("secrets:derive"),
        "{listed}"
    );
    assert!(!site.requests().is_empty(), "there was something to compute from");
    // What says so is asked about, and may.
    let asked = json!({"version": "1.1.0", "permissions": {"inputHost": true, "deriveSecrets": true}});
    let honest = archive(&home, "honest", &manifest(PLUGIN, "page", asked), script);
    let waits = guest::upload(&service.url(), &honest).expect("it answers");
    let pending = plugin(&service, PLUGIN)["pending"].clone();
    assert!(pending["added"].to_string().contains("secrets:derive"), "{pending}");
    agree(
        &service,
        PLUGIN,
        waits["pendingConsent"].as_str().expect("its user is asked"),
    );
    wait_until("the version runs", || plugin(&service, PLUGIN)["version"] == "1.1.0");
    let listed = preview(&service, &site.url("/page"));
    // The digest of 4711.
    assert_eq!(listed["name"].as_str().map(str::len), Some(64), "{listed}");
    assert_eq!(service.terminate().code, Some(0));
}
