//! One shared value per plugin, dropped when its last user drops it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use market::Identity;

/// Values by plugin. The map holds weak references only.
#[derive(Debug)]
pub(crate) struct Keyed<T>(Mutex<HashMap<Identity, Weak<T>>>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Keyed<T> {
    /// The value of `plugin`, created if none is in use.
    pub(crate) fn of(&self, plugin: &Identity, make: impl FnOnce() -> T) -> Arc<T> {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thing) = things.get(plugin).and_then(Weak::upgrade) {
            return thing;
        }
        things.retain(|_, thing| thing.strong_count() > 0);
        let thing = Arc::new(make());
        things.insert(plugin.clone(), Arc::downgrade(&thing));
        thing
    }
}
