//! The tools: names, descriptions, and schemas of their arguments and results.

use protocol::{CreatedTask, ResolvePreviewResponse};
use serde_json::{Value, json};

use super::{
    record::{
        Add, List, Listed, Nothing, One, Paused, PausedAll, Plugins, Preview, Queues, Remove, Removed, Resumed,
        ResumedAll, Shown, Subscribe, Subscribed, Subscriptions, Unsubscribe, Unsubscribed,
    },
    schema,
};

macro_rules! tools {
    ($($(#[doc = $about:literal])+ $tool:ident = $name:literal, $title:literal, $effect:ident, $input:ty => $output:ty;)+) => {
        /// A tool, as clients call it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Tool {
            $($(#[doc = $about])+ $tool,)+
        }

        impl Tool {
            /// Apart from the descriptions: a service that sends the committed ones needs no code that makes schemas.
            const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$tool),)+];

            const ALL: &'static [Description] = &[$(Description {
                name: $name,
                title: $title,
                about: concat!($($about),+),
                effect: Effect::$effect,
                input: schema::arguments::<$input>,
                output: schema::record::<$output>,
            },)+];
        }
    };
}

/// What a call may do, for the annotations that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Reads state of this service.
    Reads,
    /// Queries other sites.
    Queries,
    /// Adds something; not idempotent.
    Adds,
    /// Changes something; idempotent.
    Changes,
    /// Cannot be undone.
    Destroys,
}

// Name, title, effect, arguments and result; the doc comment is the description that models read.
tools! {
    /// Downloads a URL to the machine of this service. Answers at once with the task's id; the download continues in the
    /// background. Finished files are complete and verified.
    DownloadAdd = "download_add", "Add a download", Adds, Add => CreatedTask;
    /// Lists downloads, newest first, the newest 500 at most; count is how many there are. Numbers of status: 0
    /// pending, 1 downloading, 2 paused, 3 completed, 4 error, 5 preparing.
    DownloadList = "download_list", "List downloads", Reads, List => Listed;
    /// Shows one download: its status, its bytes, its file, and why it failed if it did.
    DownloadGet = "download_get", "Show a download", Reads, One => Shown;
    /// Pauses a download. The received bytes stay on the disk.
    DownloadPause = "download_pause", "Pause a download", Changes, One => Paused;
    /// Resumes a download that is paused or has failed, from the bytes that it has.
    DownloadResume = "download_resume", "Resume a download", Changes, One => Resumed;
    /// Pauses all downloads.
    DownloadPauseAll = "download_pause_all", "Pause all downloads", Changes, Nothing => PausedAll;
    /// Resumes all paused downloads.
    DownloadResumeAll = "download_resume_all", "Resume all downloads", Changes, Nothing => ResumedAll;
    /// Removes a download from the list. With deleteFiles the finished file is deleted as well, if this download made
    /// it; else it stays.
    DownloadRemove = "download_remove", "Remove a download", Destroys, Remove => Removed;
    /// Lists the queues with their limits and schedules. Their ids are what queueId takes.
    QueueList = "queue_list", "List queues", Reads, Nothing => Queues;
    /// Lists the files that a URL leads to, a folder of a file host for example, if a plugin can list it. Downloads nothing.
    /// Without items and error, message says how the URL would be downloaded: as a plain file if no plugin claims it.
    ResolvePreview = "resolve_preview", "List the files of a URL", Queries, Preview => ResolvePreviewResponse;
    /// Lists the subscriptions to feeds: when each was fetched, and why the last fetch failed if it did.
    RssList = "rss_list", "List subscriptions", Reads, Nothing => Subscriptions;
    /// Subscribes to a feed, or to the feed that a web page names. New items whose titles match includePattern are
    /// downloaded; without a pattern items are only listed.
    RssAdd = "rss_add", "Subscribe to a feed", Adds, Subscribe => Subscribed;
    /// Deletes a subscription to a feed with its items. Its downloads stay.
    RssRemove = "rss_remove", "Delete a subscription", Destroys, Unsubscribe => Unsubscribed;
    /// Lists the installed plugins: which sites they resolve, and whether they work.
    PluginList = "plugin_list", "List plugins", Reads, Nothing => Plugins;
}

/// A row of the table.
struct Description {
    name: &'static str,
    title: &'static str,
    /// Lines that each begin with a space.
    about: &'static str,
    effect: Effect,
    input: fn() -> Value,
    output: fn() -> Value,
}

/// Makes the descriptions of all tools. The committed `mcp-tools.json`, which `tools/list` sends, must equal it.
pub fn described() -> String {
    let tools: Vec<Value> = Tool::ALL.iter().map(Description::encode).collect();
    let mut text = serde_json::to_string_pretty(&tools).expect("a description has text keys only");
    text.push('\n');
    text
}

impl Tool {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, tool)| *tool)
    }
}

impl Description {
    fn encode(&self) -> Value {
        let effect = self.effect;
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.about.trim_start(),
            "inputSchema": (self.input)(),
            "outputSchema": (self.output)(),
            "annotations": {
                "title": self.title,
                "readOnlyHint": matches!(effect, Effect::Reads | Effect::Queries),
                "destructiveHint": effect == Effect::Destroys,
                "idempotentHint": matches!(effect, Effect::Reads | Effect::Queries | Effect::Changes),
                "openWorldHint": matches!(effect, Effect::Queries | Effect::Adds),
            },
        })
    }
}
