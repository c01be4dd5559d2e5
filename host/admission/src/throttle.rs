//! Rate limit for wrong keys, per source. Pure: the time is a parameter.
//!
//! Attempts are counted per [`Form`], because a web page can make its visitor's browser send some of the forms. Those
//! lock out only themselves; too many wrong keys in a header lock out every form.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Wrong keys of one source within [`WINDOW`] before it is locked out.
const MAX_WRONG: u32 = 10;

/// The counting window, and so the longest lock-out.
const WINDOW: Duration = Duration::from_mins(1);

/// Beyond this the source with the oldest window is dropped.
const MAX_SOURCES: usize = 4096;

/// The unit of rate limiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

impl Source {
    /// IPv6 counts per /64, because one machine usually has all of it.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// How a request carries a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// In a header or a call that no page of another site can have sent.
    Header,
    /// In a header or a call that a page may have sent.
    Page,
    /// In the query, which any page can send with an `<img>`.
    Query,
    /// The one-time code of the set-up.
    Code,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    wrong: u32,
}

/// The sources that recently sent wrong keys.
#[derive(Debug, Default)]
pub struct Throttle {
    sources: HashMap<(Source, Form), Window>,
}

impl Throttle {
    /// The remaining lock-out of the source for this form.
    pub fn wait(&self, source: Source, form: Form, now: Instant) -> Option<Duration> {
        let wait = |form| {
            let window = self.sources.get(&(source, form))?;
            let left = WINDOW.checked_sub(now.saturating_duration_since(window.began))?;
            (window.wrong >= MAX_WRONG && !left.is_zero()).then_some(left)
        };
        wait(Form::Header).max(wait(form))
    }

    /// Records a wrong secret.
    pub fn failed(&mut self, source: Source, form: Form, now: Instant) {
        let is_over = |window: &Window| now.saturating_duration_since(window.began) >= WINDOW;
        let counted = (source, form);
        if !self.sources.contains_key(&counted) && self.sources.len() >= MAX_SOURCES {
            self.sources.retain(|_, window| !is_over(window));
            if self.sources.len() >= MAX_SOURCES {
                let oldest = self.sources.iter().min_by_key(|(_, window)| window.began);
                if let Some(oldest) = oldest.map(|(counted, _)| *counted) {
                    self.sources.remove(&oldest);
                }
            }
        }
        let window = self.sources.entry(counted).or_insert(Window { began: now, wrong: 0 });
        if is_over(window) {
            *window = Window { began: now, wrong: 0 };
        }
        window.wrong += 1;
    }

    /// Records the right secret.
    pub fn succeeded(&mut self, source: Source, form: Form) {
        self.sources.remove(&(source, form));
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
            assert_eq!(
                throttle.wait(one, Form::Header, start + Duration::from_secs(second)),
                None
            );
            throttle.failed(one, Form::Header, start + Duration::from_secs(second));
        }
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(throttle.wait(one, Form::Header, at(20)), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(source("192.0.2.2"), Form::Header, at(20)), None);
        assert_eq!(throttle.wait(one, Form::Header, at(60)), None);
        throttle.failed(one, Form::Header, at(60));
        assert_eq!(throttle.wait(one, Form::Header, at(61)), None);
    }

    #[test]
    fn the_right_key_clears_the_source() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let one = source("192.0.2.1");
        (0..9).for_each(|_| throttle.failed(one, Form::Header, now));
        throttle.succeeded(one, Form::Header);
        (0..9).for_each(|_| throttle.failed(one, Form::Header, now));
        assert_eq!(throttle.wait(one, Form::Header, now), None);
    }

    #[test]
    fn what_a_page_can_send_closes_its_own_form_and_header_keys_close_all() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        let forms = [Form::Header, Form::Page, Form::Query, Form::Code];
        for wrong in forms {
            let one = source("192.0.2.1");
            (0..20).for_each(|_| throttle.failed(one, wrong, now));
            for asked in forms {
                let is_closed = throttle.wait(one, asked, now).is_some();
                assert_eq!(
                    is_closed,
                    wrong == asked || wrong == Form::Header,
                    "{wrong:?} {asked:?}"
                );
            }
            throttle = Throttle::default();
        }
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
        (0..10).for_each(|_| throttle.failed(first, Form::Header, now));
        for number in 1..=u32::try_from(MAX_SOURCES).unwrap() {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + number);
            throttle.failed(Source::of(address.into()), Form::Header, now + Duration::from_secs(1));
        }
        assert_eq!(throttle.sources.len(), MAX_SOURCES);
        assert_eq!(throttle.wait(first, Form::Header, now), None);
    }
}
