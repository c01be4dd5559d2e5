//! Keys of encrypted segments: each URL is fetched once per run, however many segments need it.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use tokio::sync::OnceCell;
use transfer::SafeUrl;

/// Keys by their URL.
#[derive(Default)]
pub(crate) struct Keys(RefCell<HashMap<SafeUrl, Rc<OnceCell<[u8; 16]>>>>);

impl Keys {
    /// The key of `url`, fetched or still to be fetched.
    pub(crate) fn cell(&self, url: &SafeUrl) -> Rc<OnceCell<[u8; 16]>> {
        Rc::clone(self.0.borrow_mut().entry(url.clone()).or_default())
    }
}
