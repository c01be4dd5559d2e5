//! The methods: names in aria2's order, and which of them a visitor may call.

/// The version of aria2 with these methods.
pub const VERSION: &str = "1.37.0";

/// aria2's names of the supported features.
pub const FEATURES: [&str; 7] = [
    "Async DNS",
    "BitTorrent",
    "HTTPS",
    "Message Digest",
    "Metalink",
    "SFTP",
    "XML-RPC",
];

/// aria2's names of the notifications.
pub(crate) const NOTIFICATIONS: [&str; 6] = [
    "aria2.onDownloadStart",
    "aria2.onDownloadPause",
    "aria2.onDownloadStop",
    "aria2.onDownloadComplete",
    "aria2.onDownloadError",
    "aria2.onBtDownloadComplete",
];

/// Who may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// No token is needed: it reveals nothing about this service.
    All,
    /// Visitors, too: the method checks whose download it is.
    Visitors,
    /// Only callers with [`Rights::Full`](crate::Rights::Full).
    Owners,
}

macro_rules! methods {
    ($($method:ident = $name:literal, $allowed:ident;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Method {
            $(#[doc = $name] $method,)+
        }

        impl Method {
            /// In aria2's order.
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),+];

            pub(crate) fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$method),)+
                    _ => None,
                }
            }

            fn allowed(self) -> For {
                match self {
                    $(Self::$method => For::$allowed,)+
                }
            }
        }
    };
}

methods! {
    AddUri = "aria2.addUri", Visitors;
    AddTorrent = "aria2.addTorrent", Visitors;
    GetPeers = "aria2.getPeers", Visitors;
    AddMetalink = "aria2.addMetalink", Visitors;
    Remove = "aria2.remove", Visitors;
    Pause = "aria2.pause", Visitors;
    ForcePause = "aria2.forcePause", Visitors;
    PauseAll = "aria2.pauseAll", Owners;
    ForcePauseAll = "aria2.forcePauseAll", Owners;
    Unpause = "aria2.unpause", Visitors;
    UnpauseAll = "aria2.unpauseAll", Owners;
    ForceRemove = "aria2.forceRemove", Visitors;
    ChangePosition = "aria2.changePosition", Owners;
    TellStatus = "aria2.tellStatus", Visitors;
    GetUris = "aria2.getUris", Visitors;
    GetFiles = "aria2.getFiles", Visitors;
    GetServers = "aria2.getServers", Visitors;
    TellActive = "aria2.tellActive", Visitors;
    TellWaiting = "aria2.tellWaiting", Visitors;
    TellStopped = "aria2.tellStopped", Visitors;
    GetOption = "aria2.getOption", Visitors;
    ChangeUri = "aria2.changeUri", Visitors;
    ChangeOption = "aria2.changeOption", Visitors;
    GetGlobalOption = "aria2.getGlobalOption", Owners;
    ChangeGlobalOption = "aria2.changeGlobalOption", Owners;
    PurgeDownloadResult = "aria2.purgeDownloadResult", Owners;
    RemoveDownloadResult = "aria2.removeDownloadResult", Visitors;
    GetVersion = "aria2.getVersion", Visitors;
    GetSessionInfo = "aria2.getSessionInfo", Owners;
    Shutdown = "aria2.shutdown", Owners;
    ForceShutdown = "aria2.forceShutdown", Owners;
    GetGlobalStat = "aria2.getGlobalStat", Owners;
    SaveSession = "aria2.saveSession", Owners;
    Multicall = "system.multicall", All;
    ListMethods = "system.listMethods", All;
    ListNotifications = "system.listNotifications", All;
}

impl Method {
    /// Whether it needs no token. Calls within a `system.multicall` carry their own.
    pub(crate) fn is_open(self) -> bool {
        self.allowed() == For::All
    }

    /// Whether it reads or changes tasks or settings.
    pub(crate) fn concerns_tasks(self) -> bool {
        !matches!(
            self,
            Self::GetVersion
                | Self::GetSessionInfo
                | Self::Shutdown
                | Self::ForceShutdown
                | Self::Multicall
                | Self::ListMethods
                | Self::ListNotifications
        )
    }

    pub(crate) fn is_for_visitors(self) -> bool {
        self.allowed() == For::Visitors
    }
}
