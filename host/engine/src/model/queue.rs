//! Queues: tasks that share limits and an order, and the weekly schedule that starts and stops them.

use std::path::PathBuf;

use jiff::civil::{Date, DateTime, Time};

use crate::model::{id::QueueId, speed::Speeds};

/// What a user sets of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name; not empty.
    pub name: String,
    /// Bytes per second that its tasks receive together; 0 is no limit.
    pub speed_limit_bytes: u64,
    /// Bytes per second that its tasks upload together; 0 is no limit.
    pub upload_limit_bytes: u64,
    /// Tasks of it that run at once; 0 is the settings' limit only.
    pub max_concurrent: u32,
    /// The directory of its tasks without one of their own.
    pub default_save_dir: Option<PathBuf>,
    /// Segments of its tasks without a number of their own; 0 is the settings'.
    pub default_segments: u16,
    /// User agent of its tasks without one of their own; empty is the settings'.
    pub default_user_agent: String,
    /// What follows its finished downloads; the engine keeps this text and knows nothing of it.
    pub post_chain: String,
}

impl QueueSpec {
    pub(crate) fn speeds(&self) -> Speeds {
        Speeds {
            download: self.speed_limit_bytes,
            upload: self.upload_limit_bytes,
        }
    }
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name for programs.
    pub id: QueueId,
    /// What the user set.
    pub spec: QueueSpec,
    /// Its position among the queues.
    pub position: u32,
    /// Whether it starts tasks.
    pub is_running: bool,
    /// When it starts and stops.
    pub schedule: Schedule,
    /// Edges of the schedule up to this local time have taken effect.
    pub schedule_seen: Option<DateTime>,
}

/// Days of the week; bit 0 is Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days(u8);

impl Days {
    /// Every day.
    pub const ALL: Self = Self(0x7f);

    /// The days whose bits are set; none set (or only bits beyond Sunday) means every day.
    pub fn from_bits(bits: u8) -> Self {
        let days = bits & Self::ALL.0;
        if days == 0 { Self::ALL } else { Self(days) }
    }

    /// The bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    fn contains(self, date: Date) -> bool {
        let bit = date.weekday().to_monday_zero_offset();
        self.0 >> bit & 1 == 1
    }
}

/// When a queue starts and stops, in local time. A window over midnight is two edges on their own days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Whether it is enabled.
    pub is_enabled: bool,
    /// When the queue starts.
    pub start: Option<Time>,
    /// When it stops.
    pub stop: Option<Time>,
    /// The days of the edges.
    pub days: Days,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            is_enabled: false,
            start: None,
            stop: None,
            days: Days::ALL,
        }
    }
}

/// A start or stop of a schedule. The order of the variants decides ties: stop wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Edge {
    Start,
    Stop,
}

/// How far back to search for a missed edge. The last one is at most a week ago.
const LOOK_BACK_DAYS: i64 = 8;

impl Schedule {
    /// Parses `HH:MM`; empty text is no time.
    pub fn parse_time(text: &str) -> Option<Option<Time>> {
        if text.is_empty() {
            return Some(None);
        }
        let (hour, minute) = text.split_once(':')?;
        let two_digits = |text: &str| {
            (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| text.parse::<i8>().ok())
                .flatten()
        };
        Time::new(two_digits(hour)?, two_digits(minute)?, 0, 0).ok().map(Some)
    }

    /// The text that [`Schedule::parse_time`] reads.
    pub fn time_text(time: Option<Time>) -> String {
        time.map(|time| format!("{:02}:{:02}", time.hour(), time.minute()))
            .unwrap_or_default()
    }

    /// The last edge in `(seen, now]`: of several only the last takes effect, and stop wins a tie.
    pub(crate) fn due(&self, seen: DateTime, now: DateTime) -> Option<Edge> {
        let mut date = now.date();
        for _ in 0..LOOK_BACK_DAYS {
            if date < seen.date() {
                return None;
            }
            let last = self.edges(date).filter(|(at, _)| *at > seen && *at <= now).max();
            if let Some((_, edge)) = last {
                return Some(edge);
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    /// The first edge after `now`.
    pub(crate) fn next(&self, now: DateTime) -> Option<DateTime> {
        if !self.is_enabled {
            return None;
        }
        let mut date = now.date();
        for _ in 0..LOOK_BACK_DAYS {
            let first = self.edges(date).map(|(at, _)| at).filter(|at| *at > now).min();
            if first.is_some() {
                return first;
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn edges(&self, date: Date) -> impl Iterator<Item = (DateTime, Edge)> {
        let acts = self.is_enabled && self.days.contains(date);
        [(self.start, Edge::Start), (self.stop, Edge::Stop)]
            .into_iter()
            .filter_map(move |(time, edge)| time.filter(|_| acts).map(|time| (date.to_datetime(time), edge)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    fn nightly() -> Schedule {
        Schedule {
            is_enabled: true,
            start: Schedule::parse_time("23:00").unwrap(),
            stop: Schedule::parse_time("06:00").unwrap(),
            days: Days::ALL,
        }
    }

    #[test]
    fn an_edge_acts_once_and_a_window_over_midnight_is_two_edges() {
        let schedule = nightly();
        assert_eq!(
            schedule.due(at("2026-11-20T22:59"), at("2026-11-20T23:00")),
            Some(Edge::Start)
        );
        assert_eq!(schedule.due(at("2026-11-20T23:00"), at("2026-11-21T05:59")), None);
        assert_eq!(
            schedule.due(at("2026-11-20T23:00"), at("2026-11-21T06:00")),
            Some(Edge::Stop)
        );
    }

    #[test]
    fn of_missed_edges_only_the_later_acts_and_stop_wins_a_tie() {
        let schedule = nightly();
        assert_eq!(
            schedule.due(at("2026-11-20T12:00"), at("2026-11-21T12:00")),
            Some(Edge::Stop)
        );
        assert_eq!(
            schedule.due(at("2026-11-20T12:00"), at("2026-11-21T01:00")),
            Some(Edge::Start)
        );
        let tie = Schedule {
            stop: schedule.start,
            ..schedule
        };
        assert_eq!(
            tie.due(at("2026-11-20T12:00"), at("2026-11-21T01:00")),
            Some(Edge::Stop)
        );
    }

    #[test]
    fn a_day_that_is_not_in_the_mask_is_skipped() {
        // 2026-11-21 is a Saturday (bit 5).
        let schedule = Schedule {
            days: Days::from_bits(1 << 5),
            stop: None,
            ..nightly()
        };
        assert_eq!(schedule.due(at("2026-11-20T00:00"), at("2026-11-20T23:30")), None);
        assert_eq!(
            schedule.due(at("2026-11-20T00:00"), at("2026-11-21T23:30")),
            Some(Edge::Start)
        );
        assert_eq!(schedule.next(at("2026-11-21T23:30")), Some(at("2026-11-28T23:00")));
    }

    #[test]
    fn an_hour_that_the_clock_skips_or_repeats_acts_once() {
        let schedule = Schedule {
            start: Schedule::parse_time("02:30").unwrap(),
            stop: None,
            ..nightly()
        };
        assert_eq!(
            schedule.due(at("2026-03-29T01:59"), at("2026-03-29T03:00")),
            Some(Edge::Start)
        );
        assert_eq!(schedule.due(at("2026-10-25T02:30"), at("2026-10-25T02:00")), None);
        assert_eq!(schedule.due(at("2026-10-25T02:30"), at("2026-10-25T02:31")), None);
    }

    #[test]
    fn times_are_two_digits_each() {
        for bad in ["24:00", "7:00", "07:60", "0700", "+7:00", "07:00:00", "ab:cd"] {
            assert_eq!(Schedule::parse_time(bad), None, "{bad}");
        }
        assert_eq!(Schedule::parse_time(""), Some(None));
    }
}
