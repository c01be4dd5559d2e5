//! The methods: their names, in aria2's order, and which of them a visitor may call.

/// The version of aria2 whose methods these are.
pub const VERSION: &str = "1.37.0";

/// What of aria2 there is here.
pub const FEATURES: [&str; 5] = ["Async DNS", "HTTPS", "Message Digest", "Metalink", "XML-RPC"];

/// The notifications; torrents' is never sent.
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
    /// Everybody: it says nothing about this service.
    All,
    /// Browsers without a key, too: it looks at whose download it is about.
    Visitors,
    /// Only callers with [`Rights::Full`](crate::Rights::Full).
    Owners,
}

macro_rules! methods {
    ($($method:ident = $name:literal, $allowed:ident;)+) => {
        /// A method, by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Method {
            $(#[doc = $name] $method,)+
        }

        impl Method {
            /// Every name, in aria2's order.
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
    /// Whether it needs no token. The calls within a `system.multicall` each bring their own.
    pub(crate) fn is_open(self) -> bool {
        self.allowed() == For::All
    }

    /// Whether a browser without a key may call it.
    pub(crate) fn is_for_visitors(self) -> bool {
        self.allowed() == For::Visitors
    }
}
