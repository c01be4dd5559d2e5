//! What may change in the contract without breaking plugins, and that everything else is noticed at load.

use std::{
    process::Command,
    sync::{Arc, Mutex},
};

use accounts::BoundSecret;
use plugin_host::{Grants, PluginFault, runtime::Language};
use plugin_wasm::{CallContext, Limits, LoadError, Loaded, Pending, Vault};
use transfer::Secret;

use crate::{
    guest::{MEMORY, WIT, dummy, previewer},
    rig::{Rig, context},
};

/// The contract with one piece of text replaced, which must be there.
fn changed(from: &str, to: &str) -> String {
    assert!(WIT.contains(from), "{from}");
    WIT.replace(from, to)
}

async fn load(bytes: Vec<u8>) -> Result<Loaded, LoadError> {
    Rig::new().runtime.load(bytes, Language::Component).await
}

/// The interface that a plugin was refused for.
async fn refused(bytes: Vec<u8>) -> String {
    match load(bytes).await {
        Err(LoadError::Abi { interface, reason }) => interface.unwrap_or(reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plugin_for_today_s_contract_loads_whatever_it_imports() {
    let loaded = load(dummy(WIT, "everything")).await.unwrap();
    let exports = &loaded.interface().exports;
    for name in ["resolver", "previewer", "login", "feed-handler", "post-processor"] {
        assert!(exports.iter().any(|export| export == name), "{name}: {exports:?}");
    }
}

#[tokio::test]
async fn functions_added_to_imported_interfaces_do_not_hurt_older_plugins() {
    let older = changed("  host-version: func() -> string;\n", "");
    load(dummy(&older, "resolver-world")).await.unwrap();
    let older = changed("    thumbnail: func(url: string);\n", "");
    load(dummy(&older, "resolver-world")).await.unwrap();
    // The contract before listings could say what they leave out.
    let older = changed("    left-out: func(why: left-out, name: string, count: u32);\n", "");
    let without_type = older.replace(
        "  enum left-out { unreadable, too-many-files, too-many-folders, too-deep }\n",
        "",
    );
    assert_ne!(older, without_type);
    load(dummy(&without_type, "resolver-world")).await.unwrap();
}

#[tokio::test]
async fn what_a_plugin_does_not_export_is_said_when_it_is_called() {
    let loaded = load(dummy(WIT, "preview-world")).await.unwrap();
    assert_eq!(loaded.interface().exports, ["previewer"]);
    let called = loaded
        .resolve("https://example.org/", None, context().0, Limits::resolve())
        .await;
    assert_eq!(called.result.unwrap_err(), PluginFault::NotExported("resolver"));
}

#[tokio::test]
async fn interfaces_that_are_added_do_not_hurt_older_plugins() {
    let start = WIT.find("interface storage {").unwrap();
    let end = start + WIT[start..].find("\n}\n").unwrap() + "\n}\n".len();
    let older = [&WIT[..start], &WIT[end..]].concat().replace(" import storage;", "");
    let loaded = load(dummy(&older, "everything")).await.unwrap();
    let mut imports = loaded.interface().imports.iter();
    assert!(
        !imports.any(|import| import.starts_with("storage.")),
        "{:?}",
        loaded.interface()
    );
    // Older than previews, and still a resolver.
    let loaded = load(dummy(&older, "resolver-world")).await.unwrap();
    let url = "https://example.org/";
    let resolved = loaded.resolve(url, None, context().0, Limits::resolve()).await;
    assert!(
        matches!(resolved.result, Err(PluginFault::Trap { .. })),
        "the function runs: {:?}",
        resolved.result
    );
    let previewed = loaded.preview(url, context().0, Limits::preview()).await;
    assert_eq!(previewed.result.unwrap_err(), PluginFault::NotExported("previewer"));
}

#[tokio::test]
async fn functions_added_to_exported_interfaces_break_older_plugins_loudly() {
    let older = changed(
        "  more: func(url: string, token: string, out: borrow<listing>) -> result<_, plugin-error>;\n",
        "",
    );
    assert_eq!(refused(dummy(&older, "resolver-world")).await, "resolver");
}

#[tokio::test]
async fn a_record_or_variant_of_another_shape_is_refused_and_never_misread() {
    let wider = changed("record node { tag: string,", "record node { depth: u32, tag: string,");
    assert!(refused(dummy(&wider, "resolver-world")).await.contains("record"));
    let wider = changed(
        "    unsupported(string),\n",
        "    unsupported(string),\n    other(string),\n",
    );
    assert_eq!(refused(dummy(&wider, "resolver-world")).await, "resolver");
}

#[tokio::test]
async fn a_newer_plugin_runs_on_an_older_host_unless_it_uses_what_is_new() {
    let newer = changed("package svc:plugin@0.1.0;", "package svc:plugin@0.1.5;");
    let loaded = load(dummy(&newer, "resolver-world")).await.unwrap();
    assert_eq!(loaded.interface().exports, ["resolver"]);
    let uses_new = newer.replace(
        "  now-ms: func() -> u64;",
        "  now-ms: func() -> u64;\n  phase-of-moon: func() -> u8;",
    );
    assert!(
        refused(dummy(&uses_new, "resolver-world"))
            .await
            .contains("phase-of-moon")
    );
}

/// The secrets of a plugin with one, of any name.
#[derive(Debug, Default)]
struct OneSecret {
    /// What was computed from it.
    derived: Mutex<Vec<(String, BoundSecret)>>,
}

impl Vault for OneSecret {
    fn of_account(&self, _slot: String) -> Pending<'_, Option<Arc<dyn Vault>>> {
        Box::pin(async { None })
    }

    fn slots(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    fn all(&self) -> Pending<'_, Vec<(String, BoundSecret)>> {
        Box::pin(async { Vec::new() })
    }

    fn find(&self, _name: String) -> Pending<'_, Option<BoundSecret>> {
        let hosts = vec!["https://a.example".parse().unwrap()];
        Box::pin(async { Some(BoundSecret::new(Secret::new("hunter2"), hosts)) })
    }

    fn capture(&self, _name: String, _value: Secret, _url: url::Url) -> Pending<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn keep_derived(&self, name: String, secret: BoundSecret) -> Result<(), String> {
        self.derived.lock().unwrap().push((name, secret));
        Ok(())
    }

    fn forget(&self, _name: String) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async { None })
    }

    fn keep_cookies(&self, _cookies: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_plugin_reads_a_secret_only_if_the_user_agreed() {
    let items = format!(
        r#"(import "svc:plugin/vault-reveal@0.1.0" "reveal" (func $reveal (param i32 i32 i32 i32 i32))) {MEMORY}"#
    );
    let zero = "(i32.const 0)";
    // It traps if it got a value: the result is at 64, and begins with 0 for a value and 1 for an error.
    let body = format!(
        "(call $reveal {zero} {zero} {zero} {zero} (i32.const 64))
         (if (i32.eqz (i32.load8_u (i32.const 64))) (then unreachable))"
    );
    let loaded = load(previewer(&["vault-reveal"], &items, &body)).await.unwrap();
    for reveals_secrets in [false, true] {
        let context = CallContext {
            grants: Grants {
                reveals_secrets,
                ..Grants::default()
            },
            vault: Arc::new(OneSecret::default()),
            ..context().0
        };
        let called = loaded.preview("https://example.org/", context, Limits::preview()).await;
        assert_eq!(matches!(called.result, Err(PluginFault::Trap { .. })), reveals_secrets);
    }
}

#[tokio::test]
async fn what_a_plugin_encrypts_to_its_own_key_stays_a_secret_for_the_same_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let private = dir.path().join("key.pem");
    let openssl = |arguments: &[&str]| Command::new("openssl").args(arguments).arg(&private).output().unwrap();
    openssl(&["genrsa", "-out"]);
    let public = String::from_utf8(openssl(&["rsa", "-pubout", "-in"]).stdout).unwrap();
    let data = format!(
        r#"(data (i32.const 4096) "{}") (data (i32.const 8192) "pw")"#,
        public.replace('\n', "\\n")
    );
    let parameters = "i32 ".repeat(9);
    let items = format!(
        r#"(import "svc:plugin/vault@0.1.0" "rsa-encrypt" (func $encrypt (param {parameters}))) {MEMORY} {data}"#
    );
    // It traps if it got the name of a secret: no error at 64, and at 72 its length.
    let (zero, key) = (
        "(i32.const 0)",
        format!("(i32.const 4096) (i32.const {})", public.len()),
    );
    let name = "(i32.const 8192) (i32.const 2)";
    let body = format!(
        "(call $encrypt {zero} {zero} {name} {key} (i32.const 1) (i32.const 1) (i32.const 64))
         (if (i32.eqz (i32.load8_u (i32.const 64)))
            (then (if (i32.eq (i32.load (i32.const 72)) (i32.const 6)) (then unreachable))))"
    );
    let loaded = load(previewer(&["vault"], &items, &body)).await.unwrap();
    let vault = Arc::new(OneSecret::default());
    let preview = async |derives_secrets| {
        let context = CallContext {
            grants: Grants {
                derives_secrets,
                ..Grants::default()
            },
            vault: Arc::clone(&vault) as _,
            ..context().0
        };
        let called = loaded.preview("https://example.org/", context, Limits::preview()).await;
        matches!(called.result, Err(PluginFault::Trap { .. }))
    };
    assert!(!preview(false).await, "its user did not agree");
    assert!(vault.derived.lock().unwrap().is_empty());
    assert!(preview(true).await);
    let derived = vault.derived.lock().unwrap().clone();
    let [(name, secret)] = &derived[..] else {
        panic!("{derived:?}")
    };
    assert_eq!((name.as_str(), secret.value().expose().len()), ("pw.rsa", 344));
    assert!(secret.for_url(&"https://a.example/".parse().unwrap()).is_some());
    assert!(secret.for_url(&"https://b.example/".parse().unwrap()).is_none());
}

#[tokio::test]
async fn an_import_that_nobody_knows_is_refused_by_its_name() {
    let unknown_import =
        r#"(component (import "evil:kernel/memory@1.0.0" (instance (export "peek" (func (result u8))))))"#;
    assert_eq!(
        refused(wat::parse_str(unknown_import).unwrap()).await,
        "evil:kernel/memory@1.0.0"
    );
    let unknown_function = changed(
        "  now-ms: func() -> u64;",
        "  now-ms: func() -> u64;\n  shell: func(s: string);",
    );
    assert!(
        refused(dummy(&unknown_function, "preview-world"))
            .await
            .contains("shell")
    );
}
