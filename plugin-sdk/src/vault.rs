//! Secrets that a plugin can use but never read. They are the user's secret settings; see
//! [`Request::secret_header`](crate::http::Request::secret_header).

use crate::host::vault as host;

/// The account of the plugin's own secrets, as opposed to those of a login.
const NO_ACCOUNT: &str = "";

/// Whether there is a secret of this name: a request cannot be sent with one that the user has not set.
///
/// ```
/// use svc_plugin::{test, vault};
///
/// assert!(test::Host::new().setting("token", "abc").run(|| vault::has("token")));
/// assert!(!test::Host::new().run(|| vault::has("token")));
/// ```
pub fn has(name: &str) -> bool {
    host::has(NO_ACCOUNT, name)
}
