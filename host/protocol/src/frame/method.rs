//! The methods of the protocol.

macro_rules! methods {
    ($($(#[$doc:meta])+ $family:ident { $($name:ident = $text:literal),+ $(,)? })+) => {
        /// A method. The name says what it does; its params and result are the records of this crate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "a method is named after what it does")]
        pub enum Method {
            $($($name,)+)+
        }

        /// Methods of one subject, all answered by the same component.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MethodFamily {
            $($(#[$doc])+ $family,)+
        }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)+)+];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$name => $text,)+)+
                }
            }

            /// The method of that name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($($text => Some(Self::$name),)+)+
                    _ => None,
                }
            }

            /// What it is about.
            pub fn family(self) -> MethodFamily {
                match self {
                    $($(Self::$name)|+ => MethodFamily::$family,)+
                }
            }
        }
    };
}

methods! {
    /// The connection itself.
    System {
        SystemAuthChallenge = "system.auth.challenge",
        SystemAuthProve = "system.auth.prove",
        SystemHello = "system.hello",
        SystemPing = "system.ping",
        SystemSnapshot = "system.snapshot",
        SystemShutdown = "system.shutdown",
    }
    /// Tasks.
    Task {
        TaskList = "daemon.task.list",
        TaskGet = "daemon.task.get",
        TaskActivity = "daemon.task.activity",
        TaskCreate = "daemon.task.create",
        TaskCreateMany = "daemon.task.createMany",
        TaskPause = "daemon.task.pause",
        TaskResume = "daemon.task.resume",
        TaskRequest = "daemon.task.request",
        TaskChange = "daemon.task.change",
        TaskRename = "daemon.task.rename",
        TaskChangeUrl = "daemon.task.changeUrl",
        TaskDelete = "daemon.task.delete",
        TaskPauseAll = "daemon.task.pauseAll",
        TaskResumeAll = "daemon.task.resumeAll",
        TaskRescan = "daemon.task.rescan",
        TaskSetSpeedLimit = "daemon.task.setSpeedLimit",
        TaskSetSeedLimits = "daemon.task.setSeedLimits",
        TaskPauseMany = "daemon.task.pauseMany",
        TaskResumeMany = "daemon.task.resumeMany",
        TaskDeleteMany = "daemon.task.deleteMany",
    }
    /// Torrents of tasks, and what all torrents have in common.
    Torrent {
        TorrentGet = "daemon.torrent.get",
        TorrentFiles = "daemon.torrent.files",
        TorrentPeers = "daemon.torrent.peers",
        TorrentTrackers = "daemon.torrent.trackers",
        TorrentPieces = "daemon.torrent.pieces",
        TorrentExport = "daemon.torrent.export",
        TorrentChange = "daemon.torrent.change",
        TorrentRenameFile = "daemon.torrent.renameFile",
        TorrentRecheck = "daemon.torrent.recheck",
        TorrentReannounce = "daemon.torrent.reannounce",
        TorrentSession = "daemon.torrent.session",
        TorrentRefreshTrackerLists = "daemon.bt.trackerSubscription.refresh",
    }
    /// Questions that tasks ask their user.
    Selection {
        SelectionSubscribe = "daemon.selection.subscribe",
        SelectionUnsubscribe = "daemon.selection.unsubscribe",
        SelectionResolve = "daemon.selection.resolve",
    }
    /// Queues and groups.
    Queue {
        QueueList = "daemon.queue.list",
        QueueCreate = "daemon.queue.create",
        QueueUpdate = "daemon.queue.update",
        QueueDelete = "daemon.queue.delete",
        QueueStart = "daemon.queue.start",
        QueueStop = "daemon.queue.stop",
        QueueSchedule = "daemon.queue.schedule",
        QueueReorder = "daemon.queue.reorder",
        QueueMoveTask = "daemon.queue.moveTask",
        QueueBoost = "daemon.queue.boost",
        GroupList = "daemon.group.list",
        GroupCreate = "daemon.group.create",
        GroupCreateTasks = "daemon.group.createTasks",
        GroupPause = "daemon.group.pause",
        GroupResume = "daemon.group.resume",
        GroupDelete = "daemon.group.delete",
        GroupResolvePreview = "daemon.group.resolvePreview",
    }
    /// Plugins and the market.
    Plugin {
        PluginList = "daemon.plugin.list",
        PluginInstall = "daemon.plugin.install",
        PluginInstallDev = "daemon.plugin.installDev",
        PluginUninstall = "daemon.plugin.uninstall",
        PluginSetEnabled = "daemon.plugin.setEnabled",
        PluginUpdateSettings = "daemon.plugin.updateSettings",
        PluginRollBack = "daemon.plugin.rollBack",
        PluginChooseHost = "daemon.plugin.chooseHost",
        PluginInstallFile = "daemon.plugin.installFile",
        PluginJournal = "daemon.plugin.journal",
        PluginIgnoreRetry = "daemon.plugin.ignoreRetry",
        PluginSetPinned = "daemon.plugin.setPinned",
        PluginAuth = "daemon.plugin.auth",
        PluginMarketList = "daemon.plugin.marketList",
        PluginMarketInstall = "daemon.plugin.marketInstall",
        PluginMarketRefresh = "daemon.plugin.marketRefresh",
        PluginMarketSourceList = "daemon.plugin.marketSourceList",
        PluginMarketSourceAdd = "daemon.plugin.marketSourceAdd",
        PluginMarketSourceRemove = "daemon.plugin.marketSourceRemove",
    }
    /// The configuration.
    Config {
        ConfigGet = "daemon.config.get",
        ConfigPatch = "daemon.config.patch",
        ConfigProxyTest = "daemon.config.proxyTest",
        ConfigConnPolicy = "daemon.config.connPolicy",
        ConfigClearConnPolicy = "daemon.config.clearConnPolicy",
        ConfigSystemProxy = "daemon.config.systemProxy",
    }
    /// Logins of sites.
    SiteAuth {
        SiteAuthList = "daemon.siteAuth.list",
        SiteAuthGet = "daemon.siteAuth.get",
        SiteAuthMatch = "daemon.siteAuth.match",
        SiteAuthSave = "daemon.siteAuth.save",
        SiteAuthDelete = "daemon.siteAuth.delete",
        SiteAuthClear = "daemon.siteAuth.clear",
    }
    /// Cookies of sites.
    SiteCookies {
        SiteCookiesList = "daemon.siteCookies.list",
        SiteCookiesImport = "daemon.siteCookies.import",
        SiteCookiesDelete = "daemon.siteCookies.delete",
        SiteCookiesClear = "daemon.siteCookies.clear",
    }
    /// Subscriptions to feeds.
    Rss {
        RssListSources = "daemon.rss.listSources",
        RssGetItems = "daemon.rss.getItems",
        RssCreateSource = "daemon.rss.createSource",
        RssUpdateSource = "daemon.rss.updateSource",
        RssDeleteSource = "daemon.rss.deleteSource",
        RssRefreshSource = "daemon.rss.refreshSource",
        RssItemAction = "daemon.rss.itemAction",
        RssValidate = "daemon.rss.validate",
        RssImport = "daemon.rss.import",
        RssExport = "daemon.rss.export",
    }
    /// Webhooks.
    Webhook {
        WebhookGet = "daemon.webhook.get",
        WebhookClearDeliveries = "daemon.webhook.clearDeliveries",
        WebhookSimulate = "daemon.webhook.simulate",
        WebhookTest = "daemon.webhook.test",
    }
    /// What follows a finished download.
    Post {
        PostList = "daemon.post.list",
        PostStart = "daemon.post.start",
        PostCancel = "daemon.post.cancel",
        PostRetry = "daemon.post.retry",
        PostClear = "daemon.post.clear",
        PostSetPasswords = "daemon.post.setPasswords",
    }
    /// The daemon's machine: sums, directories, programs, diagnostics, the key of the secrets.
    Machine {
        RuntimeStats = "daemon.runtime.stats",
        FsList = "daemon.fs.list",
        ComponentGet = "daemon.component.get",
        DiagnosticsDescribe = "daemon.diagnostics.describe",
        DiagnosticsPrepareLogExport = "daemon.diagnostics.prepareLogExport",
        VaultRotate = "daemon.vault.rotate",
    }
    /// What the daemon stores for the device link of its agent.
    LinkStore {
        LinkLoad = "daemon.link.load",
        LinkCommit = "daemon.link.commit",
    }
    /// Paired devices; the agent answers these itself.
    Link {
        LinkPairingCode = "agent.link.pairingCode",
        LinkStopPairing = "agent.link.stopPairing",
        LinkDiscoverySet = "agent.link.discovery.set",
        LinkProbe = "agent.link.probe",
        LinkPairBegin = "agent.link.pairBegin",
        LinkPairFinish = "agent.link.pairFinish",
        LinkApprove = "agent.link.approve",
        LinkRefresh = "agent.link.refresh",
        LinkRemove = "agent.link.remove",
        LinkUpdate = "agent.link.update",
        LinkDispatch = "agent.link.dispatch",
        LinkOutbox = "agent.link.outbox",
        LinkOutboxRemove = "agent.link.outboxRemove",
        LinkRequests = "agent.link.requests",
        LinkDiscovered = "agent.link.discovered",
    }
    /// What the agent answers itself.
    Agent {
        GatewayGet = "agent.gateway.get",
        GatewayPatch = "agent.gateway.patch",
        GatewayRevealToken = "agent.gateway.revealToken",
        PreferencesGet = "agent.preferences.get",
        PreferencesPatch = "agent.preferences.patch",
        FindTasks = "agent.task.find",
        ShowRun = "agent.task.run",
        CaptureSubmit = "agent.capture.submit",
        CaptureList = "agent.capture.list",
        CaptureResolve = "agent.capture.resolve",
        ServiceRestart = "agent.service.restart",
    }
}

impl Method {
    /// Whether the agent answers it itself.
    pub fn is_agents_own(self) -> bool {
        matches!(self.family(), MethodFamily::Agent | MethodFamily::Link)
    }

    /// Whether it may take long, so that it runs beside the others and only [`crate::SLOW_LANE`] of them at once on a
    /// connection. The daemon does not count previews and logins, because plugin calls have their own limits.
    pub fn is_slow(self) -> bool {
        matches!(
            self,
            Self::ConfigProxyTest
                | Self::FsList
                | Self::RssValidate
                | Self::TaskRescan
                | Self::TorrentRecheck
                | Self::TorrentRefreshTrackerLists
                | Self::ComponentGet
                | Self::DiagnosticsPrepareLogExport
                | Self::VaultRotate
                | Self::GroupResolvePreview
                | Self::PluginAuth
                | Self::PluginInstall
                | Self::PluginInstallDev
                | Self::PluginInstallFile
                | Self::PluginMarketList
                | Self::PluginMarketInstall
                | Self::PluginMarketRefresh
                | Self::PluginMarketSourceAdd
                | Self::WebhookTest
                | Self::LinkProbe
                | Self::LinkPairBegin
                | Self::LinkPairFinish
                | Self::LinkRefresh
                | Self::LinkRemove
                | Self::LinkDispatch
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_methods_are_one_to_one() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.name()), Some(*method));
        }
        assert_eq!(Method::parse("daemon.task.nothing"), None);
    }
}
