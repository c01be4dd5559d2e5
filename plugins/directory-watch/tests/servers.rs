//! What servers show, and what is made of it.

use directory_watch::DirectoryWatch;
use svc_plugin::test::replay_all;

#[test]
fn fixtures() {
    replay_all::<DirectoryWatch>("fixtures");
}
