//! Where secrets go, and what is kept of them.

use super::*;
use crate::error::{MAX_PLACES, MAX_REPLACED, MAX_SECRETS, MAX_TEMPLATE_BYTES};

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// The tables as the plugins' migrations make them.
const TABLES: store::MigrationSet = store::MigrationSet {
    namespace: "plugin",
    steps: &[
        "CREATE TABLE plugin (identity TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
         CREATE TABLE plugin_secret (identity TEXT NOT NULL, account TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
         sealed BLOB NOT NULL, PRIMARY KEY (identity, account, kind, name)) STRICT, WITHOUT ROWID;",
        rows::TABLE,
    ],
};

async fn secrets() -> Secrets {
    let store = Store::in_memory(&[TABLES]).unwrap();
    let insert = |transaction: &sql::Transaction<'_>| {
        let row = "INSERT INTO plugin (identity, record) VALUES ('a@b', '{}')";
        transaction.execute(row, []).map(drop)
    };
    store.write(insert).await.unwrap();
    let settings = [
        ("token".to_owned(), Secret::new("hunter2")),
        ("unbound".to_owned(), Secret::new("hunter3")),
    ];
    let bindings = [("token".to_owned(), vec!["https://api.acme.com".parse().unwrap()])];
    let vault = Arc::new(Vault::ephemeral().unwrap());
    let keeper = Accounts::new(store, vault);
    Secrets::new(keeper, "a@b".parse().unwrap(), settings.into(), bindings.into())
}

#[tokio::test]
async fn a_setting_goes_only_to_the_hosts_it_is_bound_to() {
    let secrets = secrets().await;
    let token = secrets.find("token").await.unwrap().unwrap();
    assert_eq!(
        token.for_url(&url("https://api.acme.com/x")).unwrap().expose(),
        "hunter2"
    );
    for elsewhere in [
        "https://evil.com/",
        "http://api.acme.com/",
        "https://acme.com/",
        "https://api.acme.com:8443/",
    ] {
        assert_eq!(token.for_url(&url(elsewhere)), None, "{elsewhere}");
    }
    let unbound = secrets.find("unbound").await.unwrap().unwrap();
    assert_eq!(unbound.for_url(&url("https://api.acme.com/")), None);
    assert!(secrets.find("none").await.unwrap().is_none());
    assert!(!format!("{secrets:?} {token:?}").contains("hunter"));
}

#[tokio::test]
async fn a_captured_value_goes_back_to_its_site_and_is_sealed() {
    let secrets = secrets().await;
    let value = Secret::new("eyJ0b2tlbiI6MX0");
    secrets
        .capture("access", &value, &url("https://login.acme.co.uk/"))
        .await
        .unwrap();
    let found = secrets.find("access").await.unwrap().unwrap();
    assert_eq!(found.value(), &value);
    assert!(found.for_url(&url("https://api.acme.co.uk:8443/")).is_some());
    for elsewhere in ["https://evil.co.uk/", "http://login.acme.co.uk/", "https://acme.com/"] {
        assert_eq!(found.for_url(&url(elsewhere)), None, "{elsewhere}");
    }
    let all = |connection: &sql::Connection| {
        let query = "SELECT sealed FROM plugin_secret";
        connection.query_row(query, [], |row| row.get::<_, Vec<u8>>(0))
    };
    let sealed = secrets.keeper.store.read(all).await.unwrap();
    assert!(!sealed.windows(15).any(|bytes| bytes == value.expose().as_bytes()));
    secrets.forget("access").await.unwrap();
    assert!(secrets.find("access").await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_too_much_or_too_long_is_not_kept_nor_what_is_nobody_s() {
    let secrets = secrets().await;
    let from = url("https://acme.com/");
    for (name, len) in [("", 9), ("a b", 9), ("token", 9), ("a", 3), ("a", 4097)] {
        let kept = secrets.capture(name, &Secret::new("x".repeat(len)), &from).await;
        assert!(
            matches!(kept, Err(SecretError::Name | SecretError::Value(_))),
            "{name} {len}"
        );
    }
    let value = Secret::new("value");
    for number in 0..MAX_SECRETS {
        secrets.capture(&format!("n{number}"), &value, &from).await.unwrap();
    }
    secrets.capture("n0", &value, &from).await.unwrap();
    assert!(matches!(
        secrets.capture("more", &value, &from).await,
        Err(SecretError::Full)
    ));
    secrets.keep_cookies(b"[]").await.unwrap();

    let gone = Secrets {
        plugin: "gone@b".parse().unwrap(),
        ..secrets
    };
    gone.capture("n0", &value, &from).await.unwrap();
    gone.keep_cookies(b"[]").await.unwrap();
    assert!(gone.find("n0").await.unwrap().is_none() && gone.cookies().await.unwrap().is_none());
}

#[tokio::test]
async fn a_link_is_given_a_secret_only_if_all_its_hosts_may_have_it() {
    let secrets = secrets().await;
    let template = Template::parse("Bearer {token}").unwrap();
    let (api, other) = (url("https://api.acme.com/f"), url("https://mirror.org/f"));
    assert_eq!(
        secrets.fill(&template, &[&api]).await.unwrap().expose(),
        "Bearer hunter2"
    );
    let refused = secrets.fill(&template, &[&api, &other]).await.unwrap_err();
    assert_eq!(refused.to_string(), "the secret token is not bound to mirror.org");
    let unknown = secrets.fill(&Template::parse("{none}").unwrap(), &[&api]).await;
    assert!(matches!(unknown, Err(SecretError::Unknown(_))));
}

#[test]
fn a_template_has_places_only_where_names_are_in_braces() {
    let value = Secret::new("v");
    for (text, expect) in [
        ("Bearer {a}", "Bearer v"),
        ("{a}{a}", "vv"),
        ("{}", "{}"),
        ("{a b} {", "{a b} {"),
        ("{{a}}", "{v}"),
        ("{a{a}", "{av"),
        ("", ""),
    ] {
        let filled = Template::parse(text).unwrap().fill(|_| Some(&value)).unwrap();
        assert_eq!(filled.expose(), expect, "{text}");
    }
    // Linear: 64 Ki braces took two thousand million steps.
    let started = std::time::Instant::now();
    Template::parse(&"{".repeat(MAX_TEMPLATE_BYTES)).unwrap();
    assert!(started.elapsed() < std::time::Duration::from_millis(500));
    assert_eq!(
        Template::parse("{a}-{b}").unwrap().names().collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn a_template_makes_no_text_without_end() {
    assert!(Template::parse(&"{a}".repeat(MAX_PLACES)).is_ok());
    for text in ["{a}".repeat(MAX_PLACES + 1), "a".repeat(MAX_TEMPLATE_BYTES + 1)] {
        assert!(matches!(Template::parse(&text), Err(SecretError::Template)));
    }
}

fn account(slot: &str, id: &str) -> Account {
    Account {
        slot: slot.to_owned(),
        id: id.to_owned(),
        name: id.to_uppercase(),
        since_ms: 5,
        is_expired: false,
        expires_ms: None,
        site: None,
        renewals: 0,
    }
}

#[tokio::test]
async fn a_login_is_stored_whole_when_it_succeeds() {
    let (secrets, from) = (secrets().await, url("https://login.acme.com/"));
    let (accounts, plugin) = (secrets.keeper.clone(), secrets.plugin.clone());
    assert!(secrets.of_account("main").await.unwrap().is_none());

    let draft = Draft::new("main");
    let login = drafted(&secrets, &draft).await;
    draft.type_in("password", Secret::new("correct horse"), false).unwrap();
    login.capture("access", &Secret::new("token-1"), &from).await.unwrap();
    login.keep_cookies(b"[1]").await.unwrap();
    assert_eq!(login.find("access").await.unwrap().unwrap().value().expose(), "token-1");
    let typed = login.find("password").await.unwrap().unwrap();
    assert!(typed.for_url(&from).is_none(), "the manifest binds it to no host");
    // Nothing is in the database before the end.
    let count = |connection: &sql::Connection| {
        let query = "SELECT (SELECT count(*) FROM plugin_secret) + (SELECT count(*) FROM plugin_account)";
        connection.query_row(query, [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(accounts.store.read(count).await.unwrap(), 0);

    assert!(accounts.keep(&plugin, account("main", "ann"), &draft).await.unwrap());
    assert_eq!(accounts.list(&plugin).await.unwrap(), [account("main", "ann")]);
    let kept = secrets.of_account("main").await.unwrap().unwrap();
    assert_eq!(kept.find("access").await.unwrap().unwrap().value().expose(), "token-1");
    assert_eq!(kept.cookies().await.unwrap().unwrap(), b"[1]");
    assert!(
        kept.find("password").await.unwrap().is_none(),
        "what was typed is forgotten"
    );
    assert!(
        secrets.find("access").await.unwrap().is_none(),
        "the plugin's own secrets are others"
    );

    let other = Draft::new("main");
    let login = drafted(&secrets, &other).await;
    assert!(login.find("access").await.unwrap().is_none() && login.cookies().await.unwrap().is_none());
    accounts.keep(&plugin, account("main", "ben"), &other).await.unwrap();
    let kept = secrets.of_account("main").await.unwrap().unwrap();
    assert!(
        kept.find("access").await.unwrap().is_none(),
        "nothing of the account before it remains"
    );

    let ann = account("main", "ann");
    assert!(!accounts.log_out(&plugin, &ann).await.unwrap(), "it is another account");
    let ben = account("main", "ben");
    assert!(accounts.log_out(&plugin, &ben).await.unwrap());
    assert!(!accounts.log_out(&plugin, &ben).await.unwrap());
    assert_eq!(accounts.store.read(count).await.unwrap(), 0);
    let gone = "gone@b".parse().unwrap();
    assert!(!accounts.keep(&gone, account("main", "ann"), &draft).await.unwrap());
    assert_eq!(accounts.store.read(count).await.unwrap(), 0);
}

#[tokio::test]
async fn a_renewal_replaces_what_it_captured_and_nothing_else() {
    let (secrets, from) = (secrets().await, url("https://login.acme.com/"));
    let (accounts, plugin) = (secrets.keeper.clone(), secrets.plugin.clone());
    let draft = Draft::new("main");
    let login = drafted(&secrets, &draft).await;
    login.capture("access", &Secret::new("token-1"), &from).await.unwrap();
    login.capture("device", &Secret::new("device-1"), &from).await.unwrap();
    accounts.keep(&plugin, account("main", "ann"), &draft).await.unwrap();
    accounts.expire(&plugin, &account("main", "ann")).await.unwrap();
    assert!(accounts.find(&plugin, "main").await.unwrap().unwrap().is_expired);

    let draft = Draft::renewal("main");
    let renewal = drafted(&secrets, &draft).await;
    assert_eq!(
        renewal.find("access").await.unwrap().unwrap().value().expose(),
        "token-1"
    );
    renewal.capture("access", &Secret::new("token-2"), &from).await.unwrap();
    assert_eq!(
        renewal.find("access").await.unwrap().unwrap().value().expose(),
        "token-2"
    );
    let before = secrets.of_account("main").await.unwrap().unwrap();
    assert_eq!(
        before.find("access").await.unwrap().unwrap().value().expose(),
        "token-1"
    );
    accounts.keep(&plugin, account("main", "ann"), &draft).await.unwrap();
    let after = secrets.of_account("main").await.unwrap().unwrap();
    let all = after.all().await.unwrap();
    let values: Vec<_> = all
        .iter()
        .map(|(name, secret)| (name.as_str(), secret.value().expose()))
        .collect();
    assert!(values.contains(&("access", "token-2")) && values.contains(&("device", "device-1")));
    assert!(
        values.contains(&("token", "hunter2")),
        "settings are used by accounts, too"
    );
    assert!(!accounts.find(&plugin, "main").await.unwrap().unwrap().is_expired);
}

/// The secrets of the slot `main` during a login or renewal.
async fn drafted(secrets: &Secrets, draft: &Draft) -> Secrets {
    let login = secrets.clone().with_draft(draft.clone());
    login.of_account("main").await.unwrap().unwrap()
}

/// A login of `account` that captured `token` and set cookies, as far as it is before it is stored.
async fn login_of(secrets: &Secrets, token: &str) -> Draft {
    let draft = Draft::new("main");
    let login = drafted(secrets, &draft).await;
    let from = url("https://login.acme.com/");
    login.capture("access", &Secret::new(token), &from).await.unwrap();
    login.keep_cookies(token.as_bytes()).await.unwrap();
    draft
}

async fn access(secrets: &Secrets) -> String {
    let account = secrets.of_account("main").await.unwrap().unwrap();
    let access = account.find("access").await.unwrap().unwrap();
    let cookies = String::from_utf8(account.cookies().await.unwrap().unwrap()).unwrap();
    format!("{} {cookies}", access.value().expose())
}

#[tokio::test]
async fn what_began_with_an_earlier_login_changes_nothing_of_a_later_one() {
    let (secrets, from) = (secrets().await, url("https://login.acme.com/"));
    let (accounts, plugin) = (secrets.keeper.clone(), secrets.plugin.clone());
    let ann = account("main", "ann");
    let draft = login_of(&secrets, "token-1").await;
    assert!(accounts.keep(&plugin, ann.clone(), &draft).await.unwrap());
    let call = secrets.of_account("main").await.unwrap().unwrap();
    let renewal = Draft::renewal("main");
    let renewed = drafted(&secrets, &renewal).await;
    renewed.capture("access", &Secret::new("token-2"), &from).await.unwrap();

    // The same person, a moment later.
    let again = Account {
        since_ms: 6,
        ..ann.clone()
    };
    let draft = login_of(&secrets, "token-3").await;
    assert!(accounts.keep(&plugin, again.clone(), &draft).await.unwrap());
    call.capture("access", &Secret::new("token-4"), &from).await.unwrap();
    call.keep_cookies(b"token-4").await.unwrap();
    call.forget("access").await.unwrap();
    assert!(!accounts.keep(&plugin, ann.clone(), &renewal).await.unwrap());
    accounts.expire(&plugin, &ann).await.unwrap();
    assert!(!accounts.log_out(&plugin, &ann).await.unwrap());
    assert_eq!(access(&secrets).await, "token-3 token-3");
    assert_eq!(accounts.find(&plugin, "main").await.unwrap(), Some(again.clone()));

    // Of an account that is logged out nothing comes back.
    let call = secrets.of_account("main").await.unwrap().unwrap();
    assert!(accounts.log_out(&plugin, &again).await.unwrap());
    call.keep_cookies(b"token-5").await.unwrap();
    assert!(!accounts.keep(&plugin, again, &renewal).await.unwrap());
    assert_eq!(accounts.list(&plugin).await.unwrap(), []);
    assert_eq!(call.cookies().await.unwrap(), None);
}

#[tokio::test]
async fn what_began_with_a_session_changes_nothing_of_the_renewed_one() {
    let (secrets, from) = (secrets().await, url("https://login.acme.com/"));
    let (accounts, plugin) = (secrets.keeper.clone(), secrets.plugin.clone());
    let draft = login_of(&secrets, "token-1").await;
    assert!(accounts.keep(&plugin, account("main", "ann"), &draft).await.unwrap());
    let before = accounts.find(&plugin, "main").await.unwrap().unwrap();
    let call = secrets.of_account("main").await.unwrap().unwrap();

    let renewal = Draft::renewal("main");
    let renewing = drafted(&secrets, &renewal).await;
    renewing
        .capture("access", &Secret::new("token-2"), &from)
        .await
        .unwrap();
    renewing.keep_cookies(b"token-2").await.unwrap();
    assert!(accounts.keep(&plugin, before.clone(), &renewal).await.unwrap());

    call.keep_cookies(b"deleted").await.unwrap();
    call.capture("access", &Secret::new("token-1b"), &from).await.unwrap();
    call.forget("access").await.unwrap();
    assert!(!accounts.keep(&plugin, before.clone(), &renewal).await.unwrap());
    assert_eq!(access(&secrets).await, "token-2 token-2");

    // It is the same login nevertheless, and a call that begins now writes.
    let call = secrets.of_account("main").await.unwrap().unwrap();
    call.keep_cookies(b"token-3").await.unwrap();
    assert_eq!(access(&secrets).await, "token-2 token-3");
    let after = accounts.find(&plugin, "main").await.unwrap().unwrap();
    assert!(after.is_of_same_login(&before) && accounts.log_out(&plugin, &before).await.unwrap());
}

#[tokio::test]
async fn a_login_that_cannot_be_stored_leaves_the_account_before_it() {
    let secrets = secrets().await;
    let (accounts, plugin) = (secrets.keeper.clone(), secrets.plugin.clone());
    let draft = login_of(&secrets, "token-1").await;
    assert!(accounts.keep(&plugin, account("main", "ann"), &draft).await.unwrap());
    let uninstall = |transaction: &sql::Transaction<'_>| transaction.execute("DELETE FROM plugin", []).map(drop);
    accounts.store.write(uninstall).await.unwrap();
    let draft = login_of(&secrets, "token-2").await;
    assert!(!accounts.keep(&plugin, account("main", "ben"), &draft).await.unwrap());
    assert_eq!(access(&secrets).await, "token-1 token-1");
}

#[tokio::test]
async fn a_login_that_is_over_has_forgotten_everything_and_is_not_stored() {
    let (secrets, from) = (secrets().await, url("https://login.acme.com/"));
    let draft = login_of(&secrets, "token-1").await;
    let login = drafted(&secrets, &draft).await;
    draft.close();
    assert!(login.find("access").await.unwrap().is_none() && login.cookies().await.unwrap().is_none());
    let late = login.capture("access", &Secret::new("token-2"), &from).await;
    assert!(matches!(late, Err(SecretError::Over)));
    assert!(matches!(login.keep_cookies(b"[]").await, Err(SecretError::Over)));
    let kept = secrets
        .keeper
        .keep(&secrets.plugin, account("main", "ann"), &draft)
        .await;
    assert!(matches!(kept, Err(SecretError::Over)));
    assert_eq!(secrets.keeper.list(&secrets.plugin).await.unwrap(), []);
}

#[tokio::test]
async fn a_computed_secret_goes_where_the_one_goes_that_it_was_computed_from() {
    let secrets = secrets().await;
    let token = secrets.find("token").await.unwrap().unwrap();
    let sealed = token.with_value(Secret::new("c1phert3xt"));
    secrets.keep_derived("token.rsa", sealed).unwrap();
    let found = secrets.clone().find("token.rsa").await.unwrap().unwrap();
    assert_eq!(found.value().expose(), "c1phert3xt");
    assert!(found.for_url(&url("https://api.acme.com/")).is_some());
    assert!(found.for_url(&url("https://evil.com/")).is_none());
    let all = secrets.all().await.unwrap();
    assert!(all.iter().any(|(_, secret)| secret.value().expose() == "c1phert3xt"));
    let many = (0..=MAX_SECRETS).map(|number| secrets.keep_derived(&format!("n{number}"), found.clone()));
    assert!(many.filter(Result::is_err).count() >= 1);
    secrets.forget("token.rsa").await.unwrap();
    assert!(secrets.find("token.rsa").await.unwrap().is_none());
}

/// The values that are searched for under a name.
async fn searched(secrets: &Secrets, name: &str) -> Vec<String> {
    let all = secrets.all().await.unwrap().into_iter();
    let named = all.filter(|(other, _)| other == name);
    let mut values: Vec<_> = named.map(|(_, secret)| secret.value().expose().to_owned()).collect();
    values.sort();
    values
}

#[tokio::test]
async fn what_was_replaced_or_forgotten_is_searched_for_until_the_call_or_login_ends() {
    let (secrets, from) = (secrets().await, url("https://acme.com/"));
    let value = |number: usize| Secret::new(format!("value-{number:03}"));
    let draft = Draft::new("main");
    let login = drafted(&secrets, &draft).await;
    draft.type_in("password", value(0), false).unwrap();
    login.capture("password", &value(1), &from).await.unwrap();
    login.capture("password", &value(1), &from).await.unwrap();
    login.forget("password").await.unwrap();
    assert!(login.find("password").await.unwrap().is_none());
    assert_eq!(searched(&login, "password").await, ["value-000", "value-001"]);
    for number in 2..=MAX_REPLACED {
        login.capture("password", &value(number), &from).await.unwrap();
    }
    let full = login.capture("password", &value(999), &from).await;
    assert!(matches!(full, Err(SecretError::Replaced)));
    assert!(matches!(login.forget("password").await, Err(SecretError::Replaced)));
    assert_eq!(searched(&login, "password").await.len(), MAX_REPLACED + 1);
    assert!(draft.kept_names().iter().eq(["password"]));

    let token = secrets.find("token").await.unwrap().unwrap();
    secrets.capture("a", &value(0), &from).await.unwrap();
    secrets.capture("a", &value(1), &from).await.unwrap();
    secrets.keep_derived("a", token.with_value(value(2))).unwrap();
    secrets.keep_derived("a", token.with_value(value(3))).unwrap();
    secrets.forget("a").await.unwrap();
    assert!(secrets.find("a").await.unwrap().is_none());
    let values = ["value-000", "value-001", "value-002", "value-003"];
    assert_eq!(searched(&secrets, "a").await, values);
    let of_a_clone = secrets.clone();
    assert_eq!(searched(&of_a_clone, "a").await, values);
    let full = (0..=MAX_REPLACED).find_map(|number| {
        let kept = secrets.keep_derived("a", token.with_value(value(number + 4)));
        kept.err()
    });
    assert!(matches!(full, Some(SecretError::Replaced)));
}

#[tokio::test]
async fn the_slots_are_those_of_all_accounts_and_of_the_login() {
    let secrets = secrets().await;
    assert!(secrets.slots().await.unwrap().is_empty());
    let draft = login_of(&secrets, "token-1").await;
    let keep = secrets.keeper.keep(&secrets.plugin, account("main", "ann"), &draft);
    assert!(keep.await.unwrap());
    let login = secrets.clone().with_draft(Draft::new("other"));
    assert_eq!(login.slots().await.unwrap(), ["main", "other"]);
    // Of the account that a login replaces a site may repeat what it has.
    let login = secrets.with_draft(Draft::new("main")).of_account("main").await.unwrap();
    assert_eq!(searched(&login.unwrap(), "access").await, ["token-1"]);
}

/// Rows as each version of the tables wrote them; all later versions must read them. Secrets came with the second version,
/// accounts with the fourth.
#[tokio::test]
async fn rows_of_all_versions_are_read() {
    let secrets = secrets().await;
    let captured = |site: &str| format!(r#","captured":{{"site":"{site}","is_https":true}}"#);
    let second = format!(r#"{{"value":"token-2"{}}}"#, captured("acme.com"));
    let rows = [
        ("", "second", second),
        (
            "main",
            "access",
            format!(r#"{{"value":"token-4"{}}}"#, captured("acme.com")),
        ),
        ("main", "password", r#"{"value":"typed-4"}"#.to_owned()),
    ];
    let accounts = [
        ("main", r#"{"id":"7","name":"Ann","since_ms":5,"is_expired":false}"#),
        (
            "other",
            r#"{"id":"8","name":"Ben","since_ms":6,"is_expired":true,"expires_ms":7,"site":"https://acme.com/"}"#,
        ),
        (
            "third",
            r#"{"id":"9","name":"Cay","since_ms":7,"is_expired":false,"renewals":3}"#,
        ),
    ];
    let vault = Arc::clone(&secrets.keeper.vault);
    let insert = move |transaction: &sql::Transaction<'_>| {
        for (account, name, record) in rows {
            let sealed = vault.seal(&format!("plugin.secret/a@b/{account}/{name}"), record.as_bytes());
            let row = ("a@b", account, "secret", name, sealed.unwrap());
            transaction.execute("INSERT INTO plugin_secret VALUES (?1, ?2, ?3, ?4, ?5)", row)?;
        }
        for (slot, record) in accounts {
            transaction.execute("INSERT INTO plugin_account VALUES (?1, ?2, ?3)", ("a@b", slot, record))?;
        }
        Ok(())
    };
    secrets.keeper.store.write(insert).await.unwrap();
    let value = async |secrets: &Secrets, name: &str| {
        let secret = secrets.find(name).await.unwrap().unwrap();
        let is_for_site = secret.for_url(&url("https://www.acme.com/")).is_some();
        (secret.value().expose().to_owned(), is_for_site)
    };
    assert_eq!(value(&secrets, "second").await, ("token-2".to_owned(), true));
    let main = secrets.of_account("main").await.unwrap().unwrap();
    assert_eq!(value(&main, "access").await, ("token-4".to_owned(), true));
    assert_eq!(value(&main, "password").await, ("typed-4".to_owned(), false));
    let ann = Account {
        name: "Ann".to_owned(),
        ..account("main", "7")
    };
    let ben = Account {
        name: "Ben".to_owned(),
        since_ms: 6,
        is_expired: true,
        expires_ms: Some(7),
        site: Some("https://acme.com/".to_owned()),
        ..account("other", "8")
    };
    let cay = Account {
        name: "Cay".to_owned(),
        since_ms: 7,
        renewals: 3,
        ..account("third", "9")
    };
    assert_eq!(secrets.keeper.list(&secrets.plugin).await.unwrap(), [ann, ben, cay]);
}
