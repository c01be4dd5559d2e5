use proptest::prelude::*;

use transfer::{Credentials, Secret};

use super::*;
use egress::Reach;

fn permission(text: &str) -> Permission {
    text.parse().unwrap()
}

fn permissions(texts: &[&str]) -> Permissions {
    texts.iter().map(|text| permission(text)).collect()
}

fn manifest() -> Manifest {
    let text = r#"{
        "manifestVersion": 1, "identity": "a@b", "name": "A", "version": "1.0.0", "entry": "plugin.wasm",
        "capabilities": { "resolver": { "match": ["https://acme.com/*"] } , "post": { "tools": ["mux"] } },
        "permissions": {
            "hosts": ["https://api.acme.com"], "optionalHosts": ["https://one.org", "https://two.org"], "inputHost": true,
            "secrets": { "access": ["https://api.acme.com"] }, "cookies": "read"
        }
    }"#;
    Manifest::parse(text.as_bytes(), plugin_package::manifest::Reading::Strict)
        .unwrap()
        .0
}

fn interface(imports: &[&str]) -> Interface {
    Interface {
        imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        ..Interface::default()
    }
}

#[test]
fn who_computes_from_secrets_asks_for_it() {
    let derive = permission("secrets:derive");
    let mut plugin = manifest();
    let asks = |manifest: &Manifest, imports: &[&str]| {
        let needed = Permissions::needed(manifest, &interface(imports));
        needed.iter().any(|permission| *permission == derive)
    };
    for import in ["vault.digest", "vault.hmac", "vault.rsa-encrypt"] {
        assert!(asks(&plugin, &[import]), "{import}");
    }
    assert!(!asks(&plugin, &["vault.has", "text.digest", "http.send"]));
    let given = CallTarget::by_user("https://acme.com/x".parse().unwrap());
    let of = |allowed| {
        Grant {
            allowed,
            ..Grant::default()
        }
        .for_call(&plugin.permissions, &[], &given)
    };
    assert!(!of(permissions(&["host https://api.acme.com"])).derives_secrets);
    assert!(of(permissions(&["secrets:derive"])).derives_secrets);
    // A script imports whatever its engine does.
    plugin.language = Language::Script;
    assert!(!asks(&plugin, &["vault.digest"]));
    plugin.permissions.derives_secrets = true;
    assert!(asks(&plugin, &["vault.digest"]));
    assert!(
        Permissions::asked(&plugin.permissions)
            .iter()
            .any(|permission| *permission == derive)
    );
}

#[test]
fn every_permission_is_told_in_words() {
    for (text, words) in [
        ("host https://api.acme.com", "may contact https://api.acme.com"),
        (
            "host http://*.acme.com",
            "may contact http://*.acme.com, without encryption",
        ),
        (
            "inputHost",
            "may contact the host of the link you paste, for that one call",
        ),
        (
            "secret access https://api.acme.com",
            "may send the secret \"access\" to https://api.acme.com, without reading it",
        ),
        ("cookies:read", "may read the cookies that its hosts set"),
        (
            "secrets:derive",
            "may compute digests and signatures from the secrets that you give it, and send them to any host that it \
             contacts: a short secret can be found out from its digest; may encrypt those secrets to any key, also one of \
             its own, and send them to the hosts that they are for",
        ),
        ("secrets:reveal", "may read the secrets that you give it"),
        (
            "tools:discover",
            "may have yt-dlp, a program of this machine, look at any public web page, and at the pages of the host of the \
             link you paste; the program contacts any public host that these lead to",
        ),
        ("finishedFiles", "may see and change the files of finished downloads"),
        ("tool mux", "may have mux work on the files of finished downloads"),
    ] {
        assert_eq!(permission(text).description(), words);
    }
}

#[test]
fn what_is_asked_about_is_what_the_code_can_do() {
    let needed = |imports: &[&str]| Permissions::needed(&manifest(), &interface(imports)).texts();
    assert!(
        needed(&["log.write", "env.now-ms"]).is_empty(),
        "no hosts for who cannot send"
    );
    assert_eq!(
        needed(&["http.send"]),
        [
            "host https://api.acme.com",
            "inputHost",
            "secret access https://api.acme.com",
            "cookies:read"
        ]
    );
    assert_eq!(
        needed(&["vault-reveal.reveal"]),
        ["secrets:reveal"],
        "whatever the manifest says"
    );
    assert_eq!(
        needed(&["tools.discover"]),
        ["tools:discover"],
        "whatever the manifest says"
    );
    assert_eq!(needed(&["workspace.dir"]), ["finishedFiles", "tool mux"]);
}

#[test]
fn a_consent_is_for_one_set_and_a_narrower_host_needs_none() {
    let old = permissions(&["host https://*.acme.com", "inputHost"]);
    assert!(permissions(&["host https://a.acme.com"]).beyond(&old).is_empty());
    let more = permissions(&["host https://a.acme.com", "host https://acme.com", "secrets:reveal"]);
    assert_eq!(
        more.beyond(&old),
        [permission("host https://acme.com"), permission("secrets:reveal")]
    );
    assert_ne!(old.digest(), more.digest());
    assert_eq!(
        old.digest(),
        permissions(&["inputHost", "host https://*.acme.com"]).digest()
    );
}

#[test]
fn a_permission_reads_what_it_prints() {
    for text in [
        "host https://*.acme.com",
        "inputHost",
        "secret my token https://a.acme.com",
        "cookies:read",
        "secrets:reveal",
        "finishedFiles",
        "tool mux",
    ] {
        assert_eq!(permission(text).to_string(), text);
    }
    for bad in ["", "everything", "host *", "secret x", "secret x y"] {
        assert_eq!(bad.parse::<Permission>(), Err(InvalidPermission), "{bad}");
    }
}

fn given(url: &str, by_user: bool) -> CallTarget {
    CallTarget {
        by_user,
        ..CallTarget::by_user(url.parse().unwrap())
    }
}

#[test]
fn a_call_reaches_what_was_asked_for_and_allowed() {
    let asked = manifest().permissions;
    let by_user = given("http://192.168.1.2/x", true);
    let nothing = Grant::default().for_call(&asked, &[], &by_user);
    assert!(nothing.hosts.is_empty() && nothing.input_host.is_none());
    assert_eq!(nothing.grantable, asked.optional_hosts.named);

    let mut grant = Grant {
        allowed: permissions(&["host https://*.acme.com", "inputHost"]),
        ..Grant::default()
    };
    grant.optional.insert(asked.optional_hosts.named[0].clone(), false);
    let once = [asked.optional_hosts.named[1].clone()];
    let grants = grant.for_call(&asked, &once, &by_user);
    let check = |url: &str| grants.check(&url.parse().unwrap());
    assert_eq!(check("https://api.acme.com/"), Ok(Reach::Global));
    assert!(check("https://other.acme.com/").is_err(), "allowed, but not asked for");
    assert_eq!(check("https://two.org/"), Ok(Reach::Global));
    assert!(
        check("https://one.org/").is_err() && grants.grantable.is_empty(),
        "never is never asked again"
    );
    assert_eq!(check("http://192.168.1.2/y"), Ok(Reach::Anywhere));
    let found = grant.for_call(&asked, &[], &given("http://192.168.1.2/x", false));
    assert!(found.check(&"http://192.168.1.2/y".parse().unwrap()).is_err());
}

#[test]
fn a_plugin_reads_no_login_in_its_url_and_the_one_that_was_given_apart_counts() {
    let check = |url: &str, apart: Option<(&str, &str)>, expected: Option<(&str, &str)>| {
        let login = |(user, password): (&str, &str)| Credentials {
            user: user.to_owned(),
            password: Secret::new(password),
        };
        let mut given = CallTarget::by_user(url.parse().unwrap());
        given.request.credentials = apart.map(login);
        let given = given.with_login_apart();
        assert_eq!(given.url.as_str(), "https://a.test/x", "{url}");
        assert_eq!(given.request.credentials, expected.map(login), "{url}");
    };
    check("https://a.test/x", None, None);
    check("https://me:p%40ss@a.test/x", None, Some(("me", "p@ss")));
    check("https://me:p%40ss@a.test/x", Some(("i", "other")), Some(("i", "other")));
}

fn any_permission() -> impl Strategy<Value = Permission> {
    "host https://(\\*\\.)?(a\\.)?acme\\.com|inputHost|secret (x|y) https://(a\\.)?acme\\.com|secrets:reveal|tool mux"
        .prop_map(|text| permission(&text))
}

proptest! {
    #[test]
    fn nothing_is_added_to_what_one_has(sets in proptest::collection::vec(any_permission(), 0..8), more in proptest::collection::vec(any_permission(), 0..8)) {
        let old: Permissions = sets.iter().cloned().collect();
        let new: Permissions = more.iter().cloned().collect();
        let added = new.beyond(&old);
        prop_assert!(old.beyond(&old).is_empty());
        let both: Permissions = old.iter().cloned().chain(added.clone()).collect();
        prop_assert!(new.beyond(&both).is_empty(), "granting what was added is enough");
        prop_assert!(added.iter().all(|permission| !old.iter().any(|have| have == permission)));
    }
}
