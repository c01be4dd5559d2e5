//! What sites with a login form answer.

use http_form_login::HttpFormLogin;
use svc_plugin::test::replay_all;

#[test]
fn fixtures() {
    replay_all::<HttpFormLogin>("fixtures");
}
