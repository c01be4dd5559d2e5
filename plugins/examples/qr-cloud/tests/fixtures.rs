//! What the cloud answers, and what it is sent.

use qr_cloud::QrCloud;
use svc_plugin::{
    Error, Mode,
    test::{Host, Page, replay_all},
};

#[test]
fn fixtures() {
    replay_all::<QrCloud>("fixtures");
}

/// The body that the login sends with this setting.
fn sent(password_as: &str) -> String {
    // One page stands for GET and POST.
    let page = r#"{"nonce": "1", "access_token": "abcdef", "refresh_token": "ghijkl", "expires_in": 60, "user": {"id": "a", "name": "A"}}"#;
    let host = Host::new()
        .setting("passwordAs", password_as)
        .page("https://cloud.example/api/login", Page::json(page));
    let mut login = host.login::<QrCloud>("main", Mode::Password);
    login.start().expect("it asks for the password");
    let screen = login.answer(&[("user", "ann"), ("password", "password")]);
    assert!(screen.expect("the cloud takes it").done.is_some());
    assert_eq!(host.secrets("main"), ["access", "refresh"]);
    let sent = host.sent().pop().expect("it has sent the password");
    String::from_utf8_lossy(&sent.body).into_owned()
}

#[test]
fn the_password_goes_as_the_cloud_wants_it() {
    assert_eq!(sent("plain"), r#"{"password":"‹secret:password›","user":"ann"}"#);
    assert_eq!(
        sent("md5"),
        r#"{"password_md5":"5f4dcc3b5aa765d61d8327deb882cf99","user":"ann"}"#
    );
    assert_eq!(
        sent("signature"),
        r#"{"nonce":"1","signature":"237857801c394519fb630a0af0aec061c4a2c3a31a68e7ca69b4b65adb6cc0b0","user":"ann"}"#
    );
}

#[test]
fn a_browser_s_address_is_taken_if_it_is_of_this_login() {
    let page =
        r#"{"access_token": "abcdef", "refresh_token": "ghijkl", "expires_in": 60, "user": {"id": "a", "name": "A"}}"#;
    let host = Host::new().page("https://cloud.example/token", Page::json(page));
    let mut login = host.login::<QrCloud>("main", Mode::Browser);
    let screen = login.start().expect("it shows a page");
    let shown = screen.open_url.expect("it shows a page");
    let (page, state) = shown.url.rsplit_once("&state=").expect("the page is told a state");
    assert_eq!(
        page,
        "https://cloud.example/authorize?client_id=svc&redirect_uri=http%3A%2F%2F127.0.0.1%2Fsvc"
    );
    let mut ends_at = |state: &str| {
        let address = format!(
            "{}?code=granted&state={state}",
            shown.redirect_prefix.as_deref().unwrap_or_default()
        );
        login.answer(&[("url", &address)])
    };
    assert!(matches!(ends_at("other"), Err(Error::Forbidden(_))));
    assert!(host.sent().is_empty());
    assert!(ends_at(state).expect("it is this login's").done.is_some());
    let sent = host.sent().pop().expect("it has traded it in");
    assert_eq!(
        String::from_utf8_lossy(&sent.body),
        "grant_type=authorization_code&redirect_uri=http%3A%2F%2F127.0.0.1%2Fsvc&code=‹secret:url.code›"
    );
    assert_eq!(host.secrets("main"), ["access", "refresh"]);
}
