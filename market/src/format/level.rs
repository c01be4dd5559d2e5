//! How dangerous a revoked version is.

plugin_package::named_values! {
    /// How dangerous a revoked version is.
    pub enum Level {
        /// The version works, but a better one exists. Users see a notice.
        Deprecated = "deprecated",
        /// The version can be exploited. It cannot be installed; users of an installed one are asked to update at once.
        Vulnerable = "vulnerable",
        /// The version does harm. It cannot be installed, and an installed one is stopped.
        Malicious = "malicious",
    }
}

impl Level {
    /// Whether a version of this level may be installed.
    pub fn allows_install(self) -> bool {
        self == Self::Deprecated
    }

    /// Whether an installed version of this level may run.
    pub fn allows_run(self) -> bool {
        self != Self::Malicious
    }
}
