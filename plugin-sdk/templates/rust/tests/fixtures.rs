//! What the plugin makes of recorded pages. `svc plugin test` plays the same files in the sandbox.

use my_plugin::MyPlugin;

#[test]
fn what_was_recorded_still_works() {
    svc_plugin::test::replay_all::<MyPlugin>("fixtures");
}
