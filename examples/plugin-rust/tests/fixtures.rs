//! Replays the recorded calls natively; `svc plugin test` replays them in the sandbox.

use checksum_list::ChecksumList;

#[test]
fn recorded_calls_give_the_recorded_results() {
    svc_plugin::test::replay_all::<ChecksumList>("fixtures");
}
