use proptest::prelude::*;

use super::*;

const PACE: Pace = Pace {
    rate: 1000.0,
    delay: 0.0,
};

#[derive(Debug, Clone, Copy)]
enum Step {
    Take(u32, u16),
    TakeFrom(u32, u64),
    Advance(u32, u64),
    Extend(u32, u64),
    Jump(u32, u64),
    Release(u32),
    Record,
    Pace(u32, u32),
    Distrust(u64, u64),
    Settle(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let worker = 0u32..6;
    prop_oneof![
        4 => (worker.clone(), 1u16..6).prop_map(|(worker, parts)| Step::Take(worker, parts)),
        1 => (worker.clone(), 0u64..5000).prop_map(|(worker, start)| Step::TakeFrom(worker, start)),
        8 => (worker.clone(), 1u64..3000).prop_map(|(worker, bytes)| Step::Advance(worker, bytes)),
        2 => (worker.clone(), 0u64..5000).prop_map(|(worker, most)| Step::Extend(worker, most)),
        1 => (worker.clone(), 0u64..5000).prop_map(|(worker, most)| Step::Jump(worker, most)),
        2 => worker.clone().prop_map(Step::Release),
        1 => Just(Step::Record),
        2 => (worker, 0u32..100_000).prop_map(|(worker, rate)| Step::Pace(worker, rate)),
        1 => (0u64..5000, 0u64..5000).prop_map(|(start, end)| Step::Distrust(start, end)),
        1 => (0u64..5000).prop_map(Step::Settle),
    ]
}

/// The invariant of the plan.
fn check_places(plan: &Plan) {
    let whole = ByteRange::new(0, plan.total.unwrap_or(u64::MAX));
    let mut places = RangeSet::new();
    let leases = plan.leases.values().map(|lease| ByteRange::new(lease.begin, lease.end));
    for range in plan.done.iter().chain(plan.waiting.iter()).chain(leases) {
        assert_eq!(
            places.insert(range),
            range.len(),
            "{range} is in two places of {plan:?}"
        );
        assert!(range.end <= whole.end, "{range} lies past the end of {plan:?}");
    }
    assert!(places.covers(whole), "a byte is in no place of {plan:?}");
}

/// Performs a step the way a worker would.
fn apply(plan: &mut Plan, step: Step, recorded: &mut RangeSet) {
    match step {
        Step::Take(worker, parts) if !plan.leases.contains_key(&WorkerId(worker)) => {
            let expected = plan.has_work(PACE);
            assert_eq!(plan.take(WorkerId(worker), parts, PACE).is_some(), expected);
        }
        Step::TakeFrom(worker, start) if !plan.leases.contains_key(&WorkerId(worker)) => {
            plan.take_from(WorkerId(worker), start, 2, PACE);
        }
        Step::Advance(worker, bytes) => {
            let bytes = bytes.min(plan.window(WorkerId(worker)));
            if plan.leases.contains_key(&WorkerId(worker)) {
                recorded.extend_with(plan.advance(WorkerId(worker), bytes));
            }
        }
        Step::Extend(worker, most) => {
            let before = plan.window(WorkerId(worker));
            let is_longer = plan.extend(WorkerId(worker), most, 2);
            assert_eq!(is_longer, plan.window(WorkerId(worker)) > before);
        }
        Step::Jump(worker, most) if plan.window(WorkerId(worker)) == 0 => {
            let end = plan.position(WorkerId(worker));
            if let Some((gap, unrecorded)) = plan.jump(WorkerId(worker), u64::MAX, most, PACE) {
                assert!(gap <= most && plan.position(WorkerId(worker)) == end + gap);
                recorded.extend_with(unrecorded);
            }
        }
        Step::Release(worker) => recorded.extend_with(plan.release(WorkerId(worker))),
        Step::Record => {
            for range in plan.unrecorded() {
                assert_eq!(recorded.insert(range), range.len(), "{range} is recorded twice");
            }
            assert_eq!(*recorded, plan.done());
            assert_eq!(plan.unrecorded(), []);
        }
        Step::Pace(worker, rate) => plan.pace(WorkerId(worker), f64::from(rate)),
        Step::Distrust(start, end) => {
            let ranges = [ByteRange::new(start, end.min(plan.total.unwrap_or(end)))]
                .into_iter()
                .collect();
            plan.distrust(&ranges);
            let believed = plan.done();
            let dropped: Vec<_> = believed.gaps(ByteRange::new(0, u64::MAX));
            for gap in dropped {
                recorded.remove(gap);
            }
        }
        // A body ends where its last byte was written, so the size is never below the valid bytes.
        Step::Settle(total) => {
            let written = plan.done().iter().last().map_or(0, |range| range.end);
            let leased = plan.leases.values().map(|lease| lease.at).max().unwrap_or(0);
            plan.settle(total.max(written).max(leased));
        }
        Step::Take(..) | Step::TakeFrom(..) | Step::Jump(..) => {}
    }
}

trait ExtendWith {
    fn extend_with(&mut self, range: Option<ByteRange>);
}

impl ExtendWith for RangeSet {
    fn extend_with(&mut self, range: Option<ByteRange>) {
        if let Some(range) = range {
            self.insert(range);
        }
    }
}

proptest! {
    #[test]
    fn every_byte_is_in_one_place_and_recorded_bytes_are_done(
        total in prop::option::of(0u64..5000),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut plan = Plan::new(total, RangeSet::new(), 10);
        let mut recorded = RangeSet::new();
        for step in steps {
            apply(&mut plan, step, &mut recorded);
            check_places(&plan);
            let done = plan.done();
            prop_assert_eq!(done.len(), plan.done_bytes());
            prop_assert!(recorded.iter().all(|range| done.covers(range)), "recorded {:?} of {:?}", recorded, plan);
        }
        for range in plan.release_all() {
            recorded.insert(range);
        }
        prop_assert_eq!(recorded, plan.done());
    }

    #[test]
    fn workers_that_go_on_finish_every_file(
        total in 0u64..200_000,
        done in prop::collection::vec((0u64..200_000, 0u64..50_000), 0..5),
        speeds in prop::collection::vec(1u32..5000, 1..8),
        parts in 1u16..8,
    ) {
        let done: RangeSet = done.into_iter()
            .map(|(start, length)| ByteRange::new(start.min(total), (start + length).min(total))).collect();
        let mut plan = Plan::new(Some(total), done, 1000);
        let mut rounds = 0;
        while !plan.is_complete() {
            for (worker, speed) in (0..).map(WorkerId).zip(&speeds) {
                if plan.window(worker) == 0 {
                    plan.release(worker);
                    plan.take(worker, parts, Pace { rate: f64::from(*speed), delay: 0.0 });
                    plan.pace(worker, f64::from(*speed));
                }
                let bytes = plan.window(worker).min(u64::from(*speed));
                if bytes > 0 {
                    plan.advance(worker, bytes);
                }
            }
            rounds += 1;
            prop_assert!(rounds < 300_000, "no progress: {:?}", plan);
        }
        check_places(&plan);
    }
}

#[test]
fn segments_are_even_and_not_smaller_than_allowed() {
    let mut plan = Plan::new(Some(1000), RangeSet::new(), 10);
    let first = plan.take_from(WorkerId(0), 0, 4, PACE).unwrap();
    let taken: Vec<_> = (1..4)
        .map(|worker| plan.take(WorkerId(worker), 4, PACE).unwrap())
        .collect();
    assert_eq!(first, ByteRange::new(0, 250));
    assert_eq!(
        taken,
        [(250, 500), (500, 750), (750, 1000)].map(|(start, end)| ByteRange::new(start, end))
    );
    let mut small = Plan::new(Some(1000), RangeSet::new(), 600);
    assert_eq!(
        small.take_from(WorkerId(0), 0, 4, PACE).unwrap(),
        ByteRange::new(0, 600)
    );
}

#[test]
fn a_thief_takes_from_who_ends_last_so_that_both_end_together() {
    let mut plan = Plan::new(Some(4_000_000), RangeSet::new(), 1000);
    plan.take_from(WorkerId(0), 0, 2, PACE);
    plan.take(WorkerId(1), 2, PACE);
    settle_at(&mut plan, WorkerId(0), 900_000.0);
    settle_at(&mut plan, WorkerId(1), 100_000.0);
    let stolen = plan
        .take(
            WorkerId(2),
            2,
            Pace {
                rate: 300_000.0,
                delay: 0.0,
            },
        )
        .unwrap();
    // The slow one has 2,000,000 left at a quarter of the pair's speed.
    assert_eq!(stolen, ByteRange::new(2_500_000, 4_000_000));
    assert_eq!(plan.window(WorkerId(1)), 500_000);
}

#[test]
fn a_holder_that_has_hardly_begun_keeps_half() {
    let mut plan = Plan::new(Some(4_000_000), RangeSet::new(), 1000);
    plan.take_from(WorkerId(0), 0, 1, PACE);
    plan.pace(WorkerId(0), 10.0);
    let stolen = plan
        .take(
            WorkerId(1),
            1,
            Pace {
                rate: 1_000_000.0,
                delay: 0.0,
            },
        )
        .unwrap();
    assert_eq!(stolen, ByteRange::new(2_000_000, 4_000_000));
}

fn settle_at(plan: &mut Plan, worker: WorkerId, rate: f64) {
    for _ in 0..SETTLED_LOOKS {
        plan.pace(worker, rate);
    }
}

#[test]
fn what_is_nearly_done_is_left_to_its_holder() {
    let mut plan = Plan::new(Some(100_000), RangeSet::new(), 1_000_000);
    plan.take_from(WorkerId(0), 0, 1, PACE);
    plan.pace(WorkerId(0), 10_000_000.0);
    assert_eq!(
        plan.take(
            WorkerId(1),
            1,
            Pace {
                rate: 10_000_000.0,
                delay: 0.1
            }
        ),
        None
    );
}

#[test]
fn who_wants_large_segments_keeps_few_connections() {
    let mut plan = Plan::new(Some(3_000_000), RangeSet::new(), 20 << 20);
    plan.take_from(WorkerId(0), 0, 16, PACE);
    settle_at(&mut plan, WorkerId(0), 100_000.0);
    let thief = Pace {
        rate: 100_000.0,
        delay: 0.01,
    };
    assert_eq!(plan.take(WorkerId(1), 16, thief), None);
}

#[test]
fn a_stuck_holder_loses_even_its_last_bytes() {
    let mut plan = Plan::new(Some(10_000), RangeSet::new(), 1_000_000);
    plan.take_from(WorkerId(0), 0, 1, PACE);
    settle_at(&mut plan, WorkerId(0), 10.0);
    let stolen = plan
        .take(
            WorkerId(1),
            1,
            Pace {
                rate: 1_000_000.0,
                delay: 0.01,
            },
        )
        .unwrap();
    assert!(stolen.len() > 9_900, "{stolen}");
}

#[test]
fn a_file_of_unknown_size_ends_where_its_body_does() {
    let mut plan = Plan::new(None, RangeSet::new(), 10);
    plan.take_from(WorkerId(0), 0, 1, PACE);
    plan.advance(WorkerId(0), 123);
    assert!(!plan.is_complete());
    plan.release(WorkerId(0));
    plan.settle(123);
    assert!(plan.is_complete() && plan.done_bytes() == 123);
}
