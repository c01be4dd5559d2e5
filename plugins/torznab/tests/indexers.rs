//! What indexers answer.

use svc_plugin::test::replay_all;
use torznab::Torznab;

#[test]
fn fixtures() {
    replay_all::<Torznab>("fixtures");
}
