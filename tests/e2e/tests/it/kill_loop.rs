//! A download that is killed again and again ends with the same bytes, and each kill costs little.

use std::time::Duration;

use e2e::{Svc, setting};
use support::{Content, Origin, Resource, behaviour};

use crate::place::Place;

const MIB: u64 = 1 << 20;

/// Connections of the download.
const SEGMENTS: u64 = 4;

/// What a kill may cost: a MiB of each segment that was being filled.
const COST_PER_KILL: u64 = SEGMENTS * MIB;

/// The most that the origin sends between two kills; the least is a few bytes.
const MOST_BETWEEN_KILLS: u64 = 8 * MIB;

/// Slow enough that what was sent is close to what was received, fast enough that a run between kills takes moments.
const PACE: u64 = 8 * MIB;

/// A process that gets nothing more for so long has ended, or hangs.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_download_survives_being_killed() {
    let kills = setting::kills();
    let content = Content::seeded(11, (kills * 6 * MIB).max(64 * MIB) + 4321);
    let resource = Resource::new("/large.bin", content.clone()).with(behaviour::paced(PACE));
    let origin = Origin::start(vec![resource]);
    let place = Place::new();
    let mut random = 0x5eed_u64;
    let mut cost = Vec::new();
    for kill in 0..kills {
        let (before, saved_before) = (origin.bytes_sent(), unique_bytes(&origin));
        let running = download(&origin, &place).spawn();
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let enough = before + 1 + (random >> 33) % MOST_BETWEEN_KILLS;
        assert!(
            origin.wait_for_bytes(enough, PATIENCE),
            "run {kill} asks for nothing more: {:?}",
            running.finish()
        );
        running.kill();
        assert_eq!(place.finished_names(), Vec::<String>::new(), "after kill {kill}");
        let sent = origin.bytes_sent() - before;
        cost.push(sent.saturating_sub(unique_bytes(&origin) - saved_before));
    }
    let run = download(&origin, &place).run();
    run.assert_success();
    place.assert_file("large.bin", &content);
    assert_eq!(place.names(), ["large.bin"]);
    let again = origin.bytes_sent() - content.len();
    let worst = cost.iter().max().copied().unwrap_or(0);
    println!(
        "{kills} kills: {again} bytes were sent again, {} per kill; at most {worst} in one run",
        again / kills.max(1)
    );
    assert!(
        again <= kills * COST_PER_KILL,
        "{again} bytes were sent again after {kills} kills"
    );
    assert!(worst <= COST_PER_KILL, "{worst} bytes were sent again in one run");
}

fn download(origin: &Origin, place: &Place) -> Svc {
    let segments = SEGMENTS.to_string();
    Svc::get(place.path())
        .args(["--segments", &segments, "--max-connections", &segments])
        .arg(origin.url("/large.bin"))
}

/// How many different bytes of the file the origin has sent.
fn unique_bytes(origin: &Origin) -> u64 {
    let mut sent: Vec<(u64, u64)> = origin
        .requests()
        .iter()
        .map(|request| {
            let start = request.range().map_or(0, |(first, _)| first);
            (start, start + request.bytes_sent())
        })
        .collect();
    sent.sort_unstable();
    let (mut unique, mut reached) = (0, 0);
    for (start, end) in sent {
        unique += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    unique
}
