//! One thing per plugin, for as long as somebody uses it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use market::Identity;

/// Things by plugin. One that nobody holds is forgotten.
#[derive(Debug)]
pub(crate) struct Keyed<T>(Mutex<HashMap<Identity, Weak<T>>>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Keyed<T> {
    /// The thing of `plugin`, made if nobody holds it.
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
