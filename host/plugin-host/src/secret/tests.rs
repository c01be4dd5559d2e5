//! Where secrets go, and what is kept of them.

use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

async fn secrets() -> Secrets {
    let store = Store::in_memory(&[crate::MIGRATIONS]).unwrap();
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
    Secrets::new(settings.into(), bindings.into(), (store, vault), "a@b".parse().unwrap())
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
    let sealed = secrets.store.read(all).await.unwrap();
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
