//! Seeding: what a finished download uploads to others, and the limits that end it. Pure.

use std::time::Duration;

use transfer::Failure;

use crate::model::{
    fate::FileFate,
    id::{RunId, Timestamp},
};

/// How much of the time of seeding a crash may lose.
const SAVE_TIME: Duration = Duration::from_mins(10);

/// One limit of a task's seeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedLimit {
    /// The one in the settings.
    #[default]
    Inherited,
    /// None, whatever the settings say.
    Unlimited,
    /// This one; 0 is none.
    Own(u64),
}

impl SeedLimit {
    const INHERITED: i64 = -2;
    const UNLIMITED: i64 = -1;

    /// The limit with this number on the wire: -2 inherits, -1 is unlimited. `None` for other negative numbers.
    pub fn from_wire(number: i64) -> Option<Self> {
        match number {
            Self::INHERITED => Some(Self::Inherited),
            Self::UNLIMITED => Some(Self::Unlimited),
            own => u64::try_from(own).ok().map(Self::Own),
        }
    }

    /// Its number on the wire.
    pub fn to_wire(self) -> i64 {
        match self {
            Self::Inherited => Self::INHERITED,
            Self::Unlimited => Self::UNLIMITED,
            Self::Own(own) => i64::try_from(own).unwrap_or(i64::MAX),
        }
    }

    /// What holds, given the limit in the settings (0: none).
    fn over(self, of_settings: u64) -> Option<u64> {
        let limit = match self {
            Self::Inherited => of_settings,
            Self::Unlimited => 0,
            Self::Own(own) => own,
        };
        (limit > 0).then_some(limit)
    }
}

/// The limits of a task's seeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeedLimits {
    /// Uploaded bytes per thousand bytes of the download's size. Of its size, not of what was received: pieces that were there
    /// already, or came twice, do not change what it gives back.
    pub ratio_milli: SeedLimit,
    /// As `ratio_milli`, of what was uploaded after completion only.
    pub post_ratio_milli: SeedLimit,
    /// Seconds of seeding.
    pub time_secs: SeedLimit,
    /// Seconds of seeding without an upload.
    pub idle_secs: SeedLimit,
}

/// The seeding of a task, from the first byte that it uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seeding {
    /// What it does.
    pub state: SeedState,
    /// Bytes uploaded in all, those before completion included.
    pub uploaded_bytes: u64,
    /// Bytes uploaded before completion.
    pub uploaded_at_completion: u64,
    /// Its place among those that wait: lower numbers first. It keeps the place while it seeds.
    pub(crate) order: u64,
    /// How long it seeded, up to `since`.
    pub(crate) seeded: Duration,
    /// How long it seeded after its last upload, up to `since`.
    pub(crate) idle: Duration,
    /// The engine's uptime at the start of its run or at its last upload. Only while it has a run.
    pub(crate) since: Option<Duration>,
    /// Everything of it is to be hashed again, and nothing was found missing so far.
    pub(crate) recheck: Option<Box<Recheck>>,
}

/// What a complete task was before everything of it was to be hashed again, and is again if nothing is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recheck {
    pub(crate) completed_at: Option<Timestamp>,
    /// Why its seeding had ended; `None` if it is seeded.
    pub(crate) end: Option<SeedEnd>,
}

/// What a task's seeding does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SeedState {
    /// The download is not complete.
    #[default]
    Downloading,
    /// Waits for one of `bt_seed_max_active` slots.
    Waiting,
    /// Has a run.
    Seeding(RunId),
    /// Its run was asked to stop.
    Stopping(RunId, AfterSeeding),
    /// It has ended.
    Ended(SeedEnd),
}

/// What follows when a run that seeds has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterSeeding {
    /// It continues when there is a slot, or when the engine is started again.
    Wait,
    /// It ends.
    End(SeedEnd),
}

/// Why seeding ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedEnd {
    /// A ratio was reached.
    Ratio,
    /// It has seeded for long enough.
    Time,
    /// Nothing was uploaded for long enough.
    Idle,
    /// The user stopped it.
    User,
    /// Seeding is switched off, or does not continue after a restart.
    Off,
    /// It cannot continue.
    Failed(Box<Failure>),
}

/// When and how finished downloads are seeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedSettings {
    /// `bt_seed_enabled`: whether finished downloads are seeded.
    pub is_enabled: bool,
    /// `bt_auto_reseed`: whether seeding continues after a restart.
    pub continues_on_start: bool,
    /// `bt_seed_max_active`: downloads that are seeded at once; 0 is no limit.
    pub max_active: u32,
    /// `bt_seed_ratio_limit`, in thousandths: uploaded by downloaded bytes; 0 is no limit.
    pub ratio_milli: u64,
    /// `bt_seed_post_ratio_limit`, in thousandths: the same of what is uploaded after completion; 0 is no limit.
    pub post_ratio_milli: u64,
    /// `bt_seed_time_limit_minutes`: 0 is no limit.
    pub time_minutes: u64,
    /// `bt_seed_inactive_time_limit_minutes`: without an upload; 0 is no limit.
    pub idle_minutes: u64,
    /// `bt_seed_limit_operator`: `or` (the first limit ends it) or `and`.
    pub operator: SeedOperator,
    /// `bt_seed_then_action`: what happens to a task whose limits were reached.
    pub then: SeedThen,
}

/// What happens to a task whose limits of seeding were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedThen {
    /// `stop`: it stays.
    #[default]
    Stop,
    /// `delete`, `delete_files`: it is deleted.
    Delete(FileFate),
}

impl Default for SeedSettings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            continues_on_start: true,
            max_active: 0,
            ratio_milli: 0,
            post_ratio_milli: 0,
            time_minutes: 0,
            idle_minutes: 0,
            operator: SeedOperator::Any,
            then: SeedThen::Stop,
        }
    }
}

/// Whether one of the limits that are set ends the seeding, or all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedOperator {
    /// The first one.
    #[default]
    Any,
    /// All of them.
    All,
}

impl Seeding {
    /// Its run.
    pub fn run(&self) -> Option<RunId> {
        match self.state {
            SeedState::Seeding(run) | SeedState::Stopping(run, _) => Some(run),
            SeedState::Downloading | SeedState::Waiting | SeedState::Ended(_) => None,
        }
    }

    /// How long it has seeded, as of its start, its last upload, or ten minutes ago.
    pub fn seeded_before(&self) -> Duration {
        self.seeded
    }

    /// How long it has seeded when the engine has run for `uptime`.
    pub(crate) fn seeded(&self, uptime: Duration) -> Duration {
        self.seeded + self.running(uptime)
    }

    fn idle(&self, uptime: Duration) -> Duration {
        self.idle + self.running(uptime)
    }

    fn running(&self, uptime: Duration) -> Duration {
        self.since.map_or(Duration::ZERO, |since| uptime.saturating_sub(since))
    }

    /// When its time is saved next although nothing happens: what passed since then is lost in a crash.
    pub(crate) fn save_due(&self) -> Option<Duration> {
        self.since.map(|since| since + SAVE_TIME)
    }

    /// Adds the time until `uptime`, from which it counts again if it still has a run.
    pub(crate) fn note_time(&mut self, uptime: Duration) {
        self.seeded = self.seeded(uptime);
        self.idle = self.idle(uptime);
        self.since = self.run().map(|_| uptime);
    }

    /// Takes what its run has uploaded so far. Never less than before.
    pub(crate) fn note_upload(&mut self, uploaded_bytes: u64, uptime: Duration) {
        if uploaded_bytes > self.uploaded_bytes {
            self.uploaded_bytes = uploaded_bytes;
            self.note_time(uptime);
            self.idle = Duration::ZERO;
        }
    }

    /// What ends it at `uptime`.
    pub(crate) fn end(&self, limits: &Limits, uptime: Duration) -> Option<SeedEnd> {
        let secs = |limit: Option<u64>| limit.map(Duration::from_secs);
        let of_bytes = |most: Option<u64>, uploaded| most.map(|most| uploaded >= most);
        let post_uploaded = self.uploaded_bytes - self.uploaded_at_completion.min(self.uploaded_bytes);
        let checks = [
            (of_bytes(limits.uploaded_bytes, self.uploaded_bytes), SeedEnd::Ratio),
            (of_bytes(limits.post_uploaded_bytes, post_uploaded), SeedEnd::Ratio),
            (
                secs(limits.time_secs).map(|most| self.seeded(uptime) >= most),
                SeedEnd::Time,
            ),
            (
                secs(limits.idle_secs).map(|most| self.idle(uptime) >= most),
                SeedEnd::Idle,
            ),
        ];
        let mut set = checks
            .iter()
            .filter_map(|(is_reached, end)| Some(((*is_reached)?, end)));
        match limits.operator {
            SeedOperator::Any => set.find(|(is_reached, _)| *is_reached).map(|(_, end)| end.clone()),
            SeedOperator::All => {
                let all: Vec<_> = set.collect();
                let are_reached = all.iter().all(|(is_reached, _)| *is_reached);
                all.first().filter(|_| are_reached).map(|(_, end)| (*end).clone())
            }
        }
    }

    /// The next uptime at which a limit of time may end it.
    pub(crate) fn due(&self, limits: &Limits, uptime: Duration) -> Option<Duration> {
        self.since?;
        let after = |limit: Option<u64>, passed: Duration| {
            let left = Duration::from_secs(limit?).saturating_sub(passed);
            // One that is reached already, where all must be, is looked at again when another one is.
            (!left.is_zero()).then(|| uptime + left)
        };
        let time = after(limits.time_secs, self.seeded(uptime));
        let idle = after(limits.idle_secs, self.idle(uptime));
        time.into_iter().chain(idle).min()
    }

    /// How many bytes its run may upload in all before a ratio ends it, if one does so by itself.
    pub(crate) fn allowance(&self, limits: &Limits) -> Option<u64> {
        let post = limits
            .post_uploaded_bytes
            .map(|most| most.saturating_add(self.uploaded_at_completion));
        let ratios = [limits.uploaded_bytes, post];
        let has_time = limits.time_secs.is_some() || limits.idle_secs.is_some();
        match limits.operator {
            SeedOperator::Any => ratios.into_iter().flatten().min(),
            SeedOperator::All if has_time => None,
            SeedOperator::All => ratios.into_iter().flatten().max(),
        }
    }
}

/// The limits that hold for a task: its own, and those of the settings where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    uploaded_bytes: Option<u64>,
    post_uploaded_bytes: Option<u64>,
    time_secs: Option<u64>,
    idle_secs: Option<u64>,
    operator: SeedOperator,
}

impl Limits {
    /// Of a download of this size.
    pub(crate) fn of(own: &SeedLimits, settings: &SeedSettings, total_bytes: u64) -> Self {
        let SeedLimits {
            ratio_milli,
            post_ratio_milli,
            time_secs,
            idle_secs,
        } = *own;
        let bytes = |ratio_milli| {
            let bytes = u128::from(total_bytes) * u128::from(ratio_milli) / 1000;
            u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
        };
        Self {
            uploaded_bytes: ratio_milli.over(settings.ratio_milli).map(bytes),
            post_uploaded_bytes: post_ratio_milli.over(settings.post_ratio_milli).map(bytes),
            time_secs: time_secs.over(settings.time_minutes.saturating_mul(60)),
            idle_secs: idle_secs.over(settings.idle_minutes.saturating_mul(60)),
            operator: settings.operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Of a file of 1000 bytes.
    fn limits(settings: &SeedSettings) -> Limits {
        Limits::of(&SeedLimits::default(), settings, 1000)
    }

    fn seeding(uploaded_bytes: u64) -> Seeding {
        Seeding {
            state: SeedState::Seeding(RunId(1)),
            uploaded_bytes,
            uploaded_at_completion: 100,
            since: Some(Duration::ZERO),
            ..Seeding::default()
        }
    }

    #[test]
    fn the_first_limit_ends_it_unless_all_have_to_be_reached() {
        let mut settings = SeedSettings {
            ratio_milli: 1500,
            time_minutes: 10,
            ..SeedSettings::default()
        };
        let end =
            |settings: &SeedSettings, uploaded, minutes| seeding(uploaded).end(&limits(settings), MINUTE * minutes);
        assert_eq!(end(&settings, 1499, 9), None);
        assert_eq!(end(&settings, 1500, 0), Some(SeedEnd::Ratio));
        assert_eq!(end(&settings, 0, 10), Some(SeedEnd::Time));
        settings.operator = SeedOperator::All;
        assert_eq!(end(&settings, 1500, 9), None);
        assert_eq!(end(&settings, 1499, 10), None);
        assert_eq!(end(&settings, 1500, 10), Some(SeedEnd::Ratio));
        let none = SeedSettings {
            operator: SeedOperator::All,
            ..SeedSettings::default()
        };
        assert_eq!(end(&none, u64::MAX, 10_000), None, "without a limit it does not end");
    }

    #[test]
    fn own_limits_replace_those_of_the_settings() {
        let settings = SeedSettings {
            ratio_milli: 1000,
            ..SeedSettings::default()
        };
        let end = |ratio_milli, uploaded| {
            let own = SeedLimits {
                ratio_milli,
                ..SeedLimits::default()
            };
            seeding(uploaded).end(&Limits::of(&own, &settings, 1000), MINUTE)
        };
        assert_eq!(end(SeedLimit::Inherited, 1000), Some(SeedEnd::Ratio));
        assert_eq!(end(SeedLimit::Unlimited, 9000), None);
        assert_eq!(end(SeedLimit::Own(0), 9000), None);
        assert_eq!(end(SeedLimit::Own(2000), 1999), None);
        assert_eq!(end(SeedLimit::Own(2000), 2000), Some(SeedEnd::Ratio));
        for number in [-2, -1, 0, 1500] {
            assert_eq!(SeedLimit::from_wire(number).unwrap().to_wire(), number);
        }
        assert_eq!(SeedLimit::from_wire(-3), None);
    }

    #[test]
    fn an_upload_ends_idleness_and_only_time_with_a_run_counts() {
        let settings = SeedSettings {
            idle_minutes: 5,
            ..SeedSettings::default()
        };
        let limits = limits(&settings);
        let mut seeding = seeding(100);
        assert_eq!(seeding.due(&limits, MINUTE), Some(MINUTE * 5));
        seeding.note_upload(200, MINUTE * 4);
        assert_eq!(seeding.end(&limits, MINUTE * 5), None);
        assert_eq!(seeding.due(&limits, MINUTE * 5), Some(MINUTE * 9));
        seeding.state = SeedState::Waiting;
        seeding.note_time(MINUTE * 6);
        assert_eq!(seeding.due(&limits, MINUTE * 20), None);
        assert_eq!(seeding.seeded(MINUTE * 20), MINUTE * 6);
        seeding.state = SeedState::Seeding(RunId(2));
        seeding.note_time(MINUTE * 20);
        assert_eq!(seeding.seeded(MINUTE * 21), MINUTE * 7);
        assert_eq!(seeding.end(&limits, MINUTE * 23), Some(SeedEnd::Idle));
    }

    proptest! {
        #[test]
        fn what_may_be_uploaded_ends_it_and_one_byte_less_does_not(
            ratio_milli in 0..5000_u64,
            post_ratio_milli in 0..5000_u64,
            all in any::<bool>(),
        ) {
            let settings = SeedSettings {
                ratio_milli,
                post_ratio_milli,
                operator: if all { SeedOperator::All } else { SeedOperator::Any },
                ..SeedSettings::default()
            };
            let limits = limits(&settings);
            match seeding(0).allowance(&limits) {
                None => prop_assert_eq!(seeding(u64::MAX).end(&limits, MINUTE), None),
                Some(most) => {
                    prop_assert_eq!(seeding(most).end(&limits, MINUTE), Some(SeedEnd::Ratio));
                    prop_assert_eq!(seeding(most - 1).end(&limits, MINUTE), None);
                }
            }
        }
    }
}
