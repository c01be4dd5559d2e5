//! Who sends wrong keys has to wait. Pure: the time comes in.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Wrong keys of one source before it has to wait.
const MAX_WRONG: u32 = 10;

/// How long wrong keys are counted together, and so how long one waits at most.
const WINDOW: Duration = Duration::from_mins(1);

/// Sources that are remembered. Beyond it the one that began longest ago is forgotten.
const MAX_SOURCES: usize = 4096;

/// Where a request comes from, as far as one sender can be told from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

impl Source {
    /// An address; of IPv6 the network, because whoever has one address has all of it.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    wrong: u32,
}

/// The sources that sent wrong keys lately.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    sources: HashMap<Source, Window>,
}

impl Throttle {
    /// How long the source still has to wait, if it has to.
    pub(crate) fn wait(&self, source: Source, now: Instant) -> Option<Duration> {
        let window = self.sources.get(&source)?;
        let left = WINDOW.checked_sub(now.saturating_duration_since(window.began))?;
        (window.wrong >= MAX_WRONG && !left.is_zero()).then_some(left)
    }

    /// The source sent a wrong key.
    pub(crate) fn failed(&mut self, source: Source, now: Instant) {
        let is_over = |window: &Window| now.saturating_duration_since(window.began) >= WINDOW;
        if !self.sources.contains_key(&source) && self.sources.len() >= MAX_SOURCES {
            self.sources.retain(|_, window| !is_over(window));
            if self.sources.len() >= MAX_SOURCES {
                let oldest = self.sources.iter().min_by_key(|(_, window)| window.began);
                if let Some(oldest) = oldest.map(|(source, _)| *source) {
                    self.sources.remove(&oldest);
                }
            }
        }
        let window = self.sources.entry(source).or_insert(Window { began: now, wrong: 0 });
        if is_over(window) {
            *window = Window { began: now, wrong: 0 };
        }
        window.wrong += 1;
    }

    /// The source sent the right key.
    pub(crate) fn succeeded(&mut self, source: Source) {
        self.sources.remove(&source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::of(text.parse().unwrap())
    }

    #[test]
    fn ten_wrong_keys_are_allowed_and_then_one_waits_until_the_window_ends() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        let one = source("192.0.2.1");
        for second in 0..10 {
            assert_eq!(throttle.wait(one, start + Duration::from_secs(second)), None);
            throttle.failed(one, start + Duration::from_secs(second));
        }
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(throttle.wait(one, at(20)), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(source("192.0.2.2"), at(20)), None);
        assert_eq!(throttle.wait(one, at(60)), None);
        throttle.failed(one, at(60));
        assert_eq!(throttle.wait(one, at(61)), None);
    }

    #[test]
    fn the_right_key_clears_the_source() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let one = source("192.0.2.1");
        (0..9).for_each(|_| throttle.failed(one, now));
        throttle.succeeded(one);
        (0..9).for_each(|_| throttle.failed(one, now));
        assert_eq!(throttle.wait(one, now), None);
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let first = source("10.0.0.0");
        (0..10).for_each(|_| throttle.failed(first, now));
        for number in 1..=u32::try_from(MAX_SOURCES).unwrap() {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + number);
            throttle.failed(Source::of(address.into()), now + Duration::from_secs(1));
        }
        assert_eq!(throttle.sources.len(), MAX_SOURCES);
        assert_eq!(throttle.wait(first, now), None);
    }
}
