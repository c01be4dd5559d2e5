use super::*;

/// Takes from `limits` for `seconds` of paused time and returns the bytes.
async fn drain(limits: RateLimits, seconds: u64) -> u64 {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut taken = 0;
    while let Ok(granted) = tokio::time::timeout_at(end, limits.acquire(u64::MAX)).await {
        taken += granted;
    }
    taken
}

fn assert_within_five_percent(found: u64, expected: u64) {
    let (low, high) = (expected * 95 / 100, expected * 105 / 100);
    assert!((low..=high).contains(&found), "{found} is not within 5 % of {expected}");
}

#[tokio::test(start_paused = true)]
async fn ten_seconds_hold_within_five_percent_at_any_rate() {
    for rate in [1_000, 50_000, 3_000_000, 400_000_000] {
        let limits = RateLimits::new([RateLimiter::new(rate)]);
        assert_within_five_percent(drain(limits, 10).await, rate * 10);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tightest_of_several_limits_holds() {
    let limits = RateLimits::new([
        RateLimiter::new(900_000),
        RateLimiter::new(300_000),
        RateLimiter::new(600_000),
    ]);
    assert_within_five_percent(drain(limits, 10).await, 3_000_000);
}

#[tokio::test(start_paused = true)]
async fn runs_share_a_limit_evenly_however_many_connections_they_have() {
    let global = RateLimiter::new(1_000_000);
    let many = RateLimits::new([RateLimiter::default(), global.clone()]);
    let one = RateLimits::new([RateLimiter::default(), global]);
    let crowd = futures_util::future::join_all((0..16).map(|_| drain(many.clone(), 10)));
    let (crowd, single) = futures_util::future::join(crowd, drain(one, 10)).await;
    assert_within_five_percent(crowd.iter().sum(), 5_000_000);
    assert_within_five_percent(single, 5_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_change_reaches_who_waits() {
    let limiter = RateLimiter::new(1);
    let limits = RateLimits::new([limiter.clone()]);
    let started = Instant::now();
    let change = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        limiter.set(0);
    };
    let wait = async {
        limits.acquire(1).await;
        limits.acquire(1_000_000).await
    };
    let (granted, ()) = futures_util::future::join(wait, change).await;
    assert!(
        granted >= 1 && started.elapsed() < Duration::from_secs(3),
        "{granted} after {:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_refunded_can_be_taken_again() {
    let limits = RateLimits::new([RateLimiter::new(100_000)]);
    let end = Instant::now() + Duration::from_secs(10);
    let mut used = 0;
    while let Ok(granted) = tokio::time::timeout_at(end, limits.acquire(u64::MAX)).await {
        let unused = granted / 2;
        limits.refund(unused);
        used += granted - unused;
    }
    assert_within_five_percent(used, 1_000_000);
}
