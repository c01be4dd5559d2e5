//! Rate limit for wrong keys, by source. Pure: the time is a parameter.
//!
//! Wrong keys are counted by the form in which they come, because a web page can send some forms from the browser of
//! somebody who merely visits it. Such forms close themselves only; header keys close every form.

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

/// Where a request comes from, as far as senders can be distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

impl Source {
    /// An address; of IPv6 the network, because a host usually has all of it.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

/// In which form a secret came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// In a header or a call, and no page of another site can have sent it.
    Header,
    /// In a header or a call, and a page may have sent it.
    Page,
    /// In the query, which every page can send with an image.
    Query,
    /// The one-time code of the set-up.
    Code,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    wrong: u32,
}

/// The sources that sent wrong keys lately.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    sources: HashMap<(Source, Form), Window>,
}

impl Throttle {
    /// How long the source still has to wait before a secret of this form is looked at, if it has to.
    pub(crate) fn wait(&self, source: Source, form: Form, now: Instant) -> Option<Duration> {
        let wait = |form| {
            let window = self.sources.get(&(source, form))?;
            let left = WINDOW.checked_sub(now.saturating_duration_since(window.began))?;
            (window.wrong >= MAX_WRONG && !left.is_zero()).then_some(left)
        };
        wait(Form::Header).max(wait(form))
    }

    /// The source sent a wrong secret.
    pub(crate) fn failed(&mut self, source: Source, form: Form, now: Instant) {
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

    /// The source sent the right secret in this form.
    pub(crate) fn succeeded(&mut self, source: Source, form: Form) {
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
