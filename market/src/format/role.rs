//! The roles of the keys that sign a source's documents.

plugin_package::named_values! {
    /// The role of a key, which is also the kind of document that it signs.
    pub enum Role {
        /// Signs roots.
        Root = "root",
        /// Signs timestamps.
        Timestamp = "timestamp",
        /// Signs indexes.
        Index = "index",
        /// Signs revocations.
        Revocations = "revocations",
    }
}
