//! Publishes numbered events and the newest settings to subscribers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{broadcast, watch};

use crate::{
    event::{EVENT_BACKLOG, Event},
    model::settings::VersionedSettings,
};

pub(super) struct Publisher {
    pub(super) events: broadcast::Sender<(u64, Event)>,
    pub(super) sequence: Arc<AtomicU64>,
    settings: watch::Sender<VersionedSettings>,
}

impl Publisher {
    pub(super) fn new(settings: VersionedSettings) -> (Self, watch::Receiver<VersionedSettings>) {
        let (settings, receiver) = watch::channel(settings);
        let publisher = Self {
            events: broadcast::channel(EVENT_BACKLOG).0,
            sequence: Arc::default(),
            settings,
        };
        (publisher, receiver)
    }

    /// The number of the newest event.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    pub(super) fn emit(&self, event: Event) {
        if let Event::SettingsChanged(settings) = &event {
            self.settings.send_replace(settings.clone());
        }
        let sequence = self.sequence.fetch_add(1, Ordering::AcqRel) + 1;
        let _nobody_listens = self.events.send((sequence, event));
    }
}
