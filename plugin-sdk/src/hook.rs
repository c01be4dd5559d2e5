//! What hooks are told.

/// What became of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// It begins, or is resumed by the user.
    Start,
    /// Name and size of its file are known.
    MetaProbed,
    /// Its file is complete.
    Done,
    /// It failed and is not retried by itself.
    Error,
}

/// What became of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookEvent {
    /// What it was.
    pub kind: HookKind,
    /// The id of the task, in the interfaces of the service.
    pub task_id: String,
    /// What the user gave, without a login.
    pub url: String,
    /// The name of the file, if it is known. Where it is, a plugin does not learn.
    pub file_name: Option<String>,
    /// The length of the file, if it is known.
    pub total_bytes: Option<u64>,
    /// The kind of a failure as the API of the service names it: `network`, `notFound`, ….
    pub error_kind: Option<String>,
    /// The text of a failure, as users see it.
    pub message: Option<String>,
    /// Automatic retries so far.
    pub attempts: u32,
}

impl HookEvent {
    /// An event of which nothing else is known.
    pub fn new(kind: HookKind, url: impl Into<String>) -> Self {
        Self {
            kind,
            task_id: String::new(),
            url: url.into(),
            file_name: None,
            total_bytes: None,
            error_kind: None,
            message: None,
            attempts: 0,
        }
    }
}
