//! Errors of calls.

use serde::{Deserialize, Deserializer, Serialize};

/// The numbers of JSON-RPC errors.
pub mod code {
    /// The frame is not JSON.
    pub const PARSE: i64 = -32700;
    /// The frame is not a JSON-RPC 2.0 request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are not those of the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A defect.
    pub const INTERNAL: i64 = -32603;
    /// The method refused; `data` says why.
    pub const APPLICATION: i64 = -32000;
}

/// The `error` of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// One of [`code`].
    pub code: i64,
    /// For the user.
    pub message: String,
    /// For programs; only application errors have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<ErrorData>>,
}

/// More about an application error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorData {
    /// The code.
    pub code: ErrorCode,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Which param or key is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The present revision, for a `conflict` about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// A finer cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// What went wrong, as a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorCode {
    /// Client and server have no protocol version in common.
    ProtocolIncompatible,
    /// The key or proof is missing or wrong.
    Unauthorized,
    /// A value is not allowed.
    InvalidArgument,
    /// The thing does not exist.
    NotFound,
    /// The thing's state does not allow it.
    Conflict,
    /// Not now.
    Unavailable,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// This build cannot do it.
    Unsupported,
    /// A defect.
    Internal,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// A finer cause. Values of newer servers read as `Unknown`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum Reason {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
            /// A cause that this version does not know.
            #[serde(rename = "unknown")]
            Unknown,
        }

        impl Reason {
            /// Every cause that this version knows.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                    Self::Unknown => "unknown",
                }
            }
        }

        impl<'de> Deserialize<'de> for Reason {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Ok(match text.as_str() {
                    $($text => Self::$name,)+
                    _ => Self::Unknown,
                })
            }
        }
    };
}

reasons! {
    /// No market source answered.
    MarketUnreachable = "marketUnreachable",
    /// The market's index does not verify.
    MarketIndexInvalid = "marketIndexInvalid",
    /// The market's index is older than one seen before.
    MarketIndexRollback = "marketIndexRollback",
    /// The market offers another version than asked for.
    MarketVersionChanged = "marketVersionChanged",
    /// The market has no such plugin.
    PluginNotInMarket = "pluginNotInMarket",
    /// The plugin was withdrawn.
    PluginYanked = "pluginYanked",
    /// The plugin's package did not arrive.
    PluginDownloadFailed = "pluginDownloadFailed",
    /// The plugin's package is too large.
    PluginPackageTooLarge = "pluginPackageTooLarge",
    /// The plugin's package is not valid.
    PluginPackageInvalid = "pluginPackageInvalid",
    /// The pairing code is wrong, used or expired.
    PairingCodeInvalid = "pairingCodeInvalid",
    /// The pairing session is over.
    PairingSessionExpired = "pairingSessionExpired",
    /// The other device does not answer.
    PairingPeerUnreachable = "pairingPeerUnreachable",
    /// What answers is another program.
    PairingNotSvc = "pairingNotSvc",
    /// Too many attempts.
    PairingThrottled = "pairingThrottled",
    /// The other side declined.
    PairingRejected = "pairingRejected",
    /// The other side's signature is wrong.
    PairingSignatureInvalid = "pairingSignatureInvalid",
    /// The other side is this device.
    PairingSelf = "pairingSelf",
    /// The other side speaks another version.
    PairingVersionMismatch = "pairingVersionMismatch",
    /// The device is not paired.
    PeerNotPaired = "peerNotPaired",
    /// The clocks of this device and the other one differ too much.
    PeerClockSkew = "peerClockSkew",
    /// The device does not answer.
    PeerOffline = "peerOffline",
    /// There is no setting of this name.
    SettingUnknown = "settingUnknown",
    /// The save directory cannot be used.
    SaveDirUnavailable = "saveDirUnavailable",
    /// A task's file cannot have this name.
    InvalidName = "invalid-name",
    /// The task's file is in use: the task downloads, or is being renamed or deleted.
    TaskActive = "task-active",
    /// There is a file of that name.
    TargetExists = "target-exists",
    /// Another task has the same torrent.
    TorrentExists = "torrent-exists",
    /// Another program listens on the port.
    GatewayPortInUse = "gatewayPortInUse",
    /// The listener did not restart.
    GatewayRestartFailed = "gatewayRestartFailed",
}

impl RpcError {
    fn plain(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The frame is not JSON.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::plain(code::PARSE, message)
    }

    /// The frame is no request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::plain(code::INVALID_REQUEST, message)
    }

    /// There is no method of that name.
    pub fn method_not_found(method: &str) -> Self {
        Self::plain(code::METHOD_NOT_FOUND, format!("unknown method {method}"))
    }

    /// The params do not fit the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::plain(code::INVALID_PARAMS, message)
    }

    /// A defect.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::plain(code::INTERNAL, message)
    }

    /// The method refused.
    pub fn application(code: ErrorCode, message: impl Into<String>) -> Self {
        let retryable = matches!(code, ErrorCode::Unavailable | ErrorCode::Timeout);
        Self {
            code: code::APPLICATION,
            message: message.into(),
            data: Some(Box::new(ErrorData {
                code,
                retryable,
                field: None,
                revision: None,
                reason: None,
            })),
        }
    }

    /// The same, naming the param or key that is to blame.
    #[must_use]
    pub fn with_field(self, field: impl Into<String>) -> Self {
        let field = field.into();
        self.with(|data| data.field = Some(field))
    }

    /// The same with the present revision.
    #[must_use]
    pub fn with_revision(self, revision: u64) -> Self {
        self.with(|data| data.revision = Some(revision))
    }

    /// The same with a finer cause.
    #[must_use]
    pub fn with_reason(self, reason: Reason) -> Self {
        self.with(|data| data.reason = Some(reason))
    }

    /// The same, saying whether the call may succeed later.
    #[must_use]
    pub fn with_retryable(self, retryable: bool) -> Self {
        self.with(|data| data.retryable = retryable)
    }

    fn with(mut self, change: impl FnOnce(&mut ErrorData)) -> Self {
        if let Some(data) = &mut self.data {
            change(data);
        }
        self
    }

    /// The code, if the method refused.
    pub fn application_code(&self) -> Option<ErrorCode> {
        self.data.as_ref().map(|data| data.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_a_newer_server_is_unknown() {
        let read = |text: &str| serde_json::from_str::<Reason>(text).unwrap();
        assert_eq!(read("\"peerOffline\""), Reason::PeerOffline);
        assert_eq!(read("\"comesNextYear\""), Reason::Unknown);
    }
}
