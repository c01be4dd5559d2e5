//! The error of an invalid command line.

/// A command line that cannot be executed as given. The message names the option or field, the problem and what is
/// allowed, and never repeats a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct UsageError {
    /// The option, argument, or file and line.
    pub field: String,
    /// The problem and what is allowed.
    pub problem: String,
}

impl UsageError {
    /// A problem with an option, an argument, or a line of a file.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}
