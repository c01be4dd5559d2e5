//! The state that all handlers share.

use std::sync::Arc;

use admission::budget::Budget;
use axum::extract::FromRef;

use crate::service::{About, Service};

/// What the API is made of. Every request holds a clone.
#[derive(Debug, Clone)]
pub struct App {
    /// Tasks, lists and the methods of the daemon.
    pub daemon: Arc<dyn Service>,
    /// Memory for large bodies; shared with other interfaces of the same process.
    pub budget: Budget,
    /// What does not change while the service runs.
    pub about: Arc<About>,
}

impl FromRef<App> for Budget {
    fn from_ref(app: &App) -> Self {
        app.budget.clone()
    }
}
