//! Maps errors of engine, plugins and store to errors of the protocol.

use engine::{CommandError, Engine, InvalidSetting, InvalidSpec};
use protocol::{ErrorCode, Reason, RpcError};

/// Converts the error of a refused command to the protocol's, for `?` in handlers.
pub(crate) trait Refuse<T> {
    fn refused(self) -> Result<T, RpcError>;
}

impl<T> Refuse<T> for Result<T, CommandError> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| command(&error))
    }
}

impl<T> Refuse<T> for Result<T, InvalidSpec> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| spec(&error))
    }
}

impl<T> Refuse<T> for Result<T, InvalidSetting> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| setting(&error))
    }
}

impl<T> Refuse<T> for Result<T, plugin_host::CommandError> {
    fn refused(self) -> Result<T, RpcError> {
        self.map_err(|error| plugin(&error))
    }
}

/// The first of these fields that names a queue which does not exist, and why it is refused. An empty text names none.
pub(crate) async fn unknown_queue(
    engine: &Engine,
    named: Vec<(String, &str)>,
) -> Result<Option<(String, String)>, RpcError> {
    if named.iter().all(|(_, text)| text.trim().is_empty()) {
        return Ok(None);
    }
    let queues = engine.queues().await.map_err(|_| closing())?;
    let exists = |text: &str| text.is_empty() || queues.iter().any(|queue| queue.id.to_string() == text);
    let unknown = named.into_iter().find(|(_, text)| !exists(text.trim()));
    Ok(unknown.map(|(field, text)| (field, format!("there is no queue {text}; see daemon.queue.list"))))
}

pub(crate) fn invalid(field: &str, message: impl Into<String>) -> RpcError {
    RpcError::application(ErrorCode::InvalidArgument, message).with_field(field)
}

/// Joins the messages of an error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    message
}

/// Why a call of a plugin failed, and what the user can do about it.
pub(crate) fn of_call(error: &plugin_host::CallError) -> String {
    let allow = |host: &String| format!("svc plugin allow {} {host}", error.plugin);
    let ways: Vec<_> = error.grantable.iter().map(allow).collect();
    if ways.is_empty() {
        return error.to_string();
    }
    format!("{error}; you can allow that: {}", ways.join("; "))
}

/// A subsystem has ended: the daemon is shutting down.
pub(crate) fn closing() -> RpcError {
    RpcError::application(ErrorCode::Unavailable, "the service is shutting down")
}

fn command(error: &CommandError) -> RpcError {
    let message = error.to_string();
    match error {
        CommandError::UnknownTask(_) => RpcError::application(ErrorCode::NotFound, message).with_field("taskId"),
        CommandError::UnknownQueue(_) => RpcError::application(ErrorCode::NotFound, message).with_field("queueId"),
        CommandError::UnknownGroup(_) => RpcError::application(ErrorCode::NotFound, message).with_field("groupId"),
        CommandError::UnknownSite(_) => RpcError::application(ErrorCode::NotFound, message).with_field("site"),
        CommandError::UnknownCookieSite(_) => RpcError::application(ErrorCode::NotFound, message).with_field("site"),
        CommandError::TooManyCookieSites(_) => invalid("cookies", message),
        CommandError::TaskExists(_)
        | CommandError::TaskDeleted(_)
        | CommandError::WrongPhase { .. }
        | CommandError::NoRetryLeft
        | CommandError::BuiltInQueue(_)
        | CommandError::Rename { .. } => RpcError::application(ErrorCode::Conflict, message),
        CommandError::SameTorrent(_) => {
            RpcError::application(ErrorCode::Conflict, message).with_reason(Reason::TorrentExists)
        }
        CommandError::TargetExists(_) => {
            RpcError::application(ErrorCode::Conflict, message).with_reason(Reason::TargetExists)
        }
        CommandError::Busy => RpcError::application(ErrorCode::Conflict, message).with_retryable(true),
        CommandError::InvalidSpec(inner) => spec(inner),
        CommandError::InvalidSetting(inner) => setting(inner),
        CommandError::Conflict { revision } => {
            RpcError::application(ErrorCode::Conflict, message).with_revision(*revision)
        }
        CommandError::InvalidField(_) => RpcError::application(ErrorCode::InvalidArgument, message),
        CommandError::InvalidName => invalid("fileName", message).with_reason(Reason::InvalidName),
        CommandError::InvalidSite | CommandError::InvalidCookieSite => invalid("site", message),
        CommandError::NotSaved(_) | CommandError::Closed => RpcError::application(ErrorCode::Unavailable, message),
    }
}

/// Of a rename, whose causes have names.
pub(crate) fn renaming(error: &CommandError) -> RpcError {
    let refused = command(error);
    match error {
        CommandError::WrongPhase { .. } | CommandError::Busy => refused.with_reason(Reason::TaskActive),
        _ => refused,
    }
}

/// Includes the causes: "the code is not accepted" alone does not help.
pub(crate) fn plugin(error: &plugin_host::CommandError) -> RpcError {
    use plugin_host::{CommandError as Plugin, Refusal};
    let message = chain(error);
    let code = match error {
        Plugin::Package(_)
        | Plugin::Manifest(_)
        | Plugin::Load(_)
        | Plugin::Exports(_)
        | Plugin::Fixture { .. }
        | Plugin::Signature(_)
        | Plugin::NotAsListed(_)
        | Plugin::OtherPlugin { .. } => {
            let error = RpcError::application(ErrorCode::InvalidArgument, message);
            return error.with_reason(Reason::PluginPackageInvalid);
        }
        Plugin::Refused(Refusal::NotInstalled) => ErrorCode::NotFound,
        Plugin::Refused(_) | Plugin::SourceGone(_) | Plugin::Revoked { .. } => ErrorCode::Conflict,
        Plugin::Folder { .. } => return invalid("dirPath", message),
        Plugin::Setting(_) => return invalid("entries", message),
        Plugin::UnknownHost(_) | Plugin::TooManyHosts => ErrorCode::InvalidArgument,
        Plugin::Disk(_) | Plugin::Write(_) | Plugin::Closed => ErrorCode::Unavailable,
    };
    RpcError::application(code, message)
}

fn spec(error: &InvalidSpec) -> RpcError {
    let message = error.to_string();
    match error {
        InvalidSpec::NoUrl | InvalidSpec::Url(_) => invalid("url", message),
        InvalidSpec::Scheme { .. } => RpcError::application(ErrorCode::Unsupported, message).with_field("url"),
        InvalidSpec::TooMany { field, .. } | InvalidSpec::Field { field, .. } => invalid(wire_name(field), message),
    }
}

fn setting(error: &InvalidSetting) -> RpcError {
    let message = error.to_string();
    match error {
        InvalidSetting::UnknownKey(key) => invalid(key, message),
        InvalidSetting::Value { key, .. } => invalid(key, message),
    }
}

/// Maps a field name in an engine message to its name on the wire.
fn wire_name(field: &str) -> &str {
    match field {
        "the number of urls" => "mirrors",
        "the number of headers" => "headers",
        "save directory" => "saveDir",
        "user agent" => "userAgent",
        "http user" => "httpUser",
        "body bytes" => "body",
        other => other,
    }
}
