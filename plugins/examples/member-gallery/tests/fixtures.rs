//! What the gallery answers.

use member_gallery::MemberGallery;
use svc_plugin::test::replay_all;

#[test]
fn fixtures() {
    replay_all::<MemberGallery>("fixtures");
}
