//! The tools: names, descriptions, and schemas of their arguments and results.

use protocol::{PluginDto, QueueDto, ResolvePreviewResponse, TaskDto};
use serde_json::{Value, json};

use super::{
    record::{Add, List, Nothing, One, Preview, Remove},
    schema::{object, record_schema, taken, with_record},
};

macro_rules! tools {
    ($($tool:ident = $name:literal, $title:literal, $effect:ident;)+) => {
        /// A tool, as clients call it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Tool {
            $($tool,)+
        }

        impl Tool {
            const ALL: &'static [(Self, &'static str, &'static str, Effect)] =
                &[$((Self::$tool, $name, $title, Effect::$effect),)+];
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

tools! {
    DownloadAdd = "download_add", "Add a download", Adds;
    DownloadList = "download_list", "List downloads", Reads;
    DownloadGet = "download_get", "Show a download", Reads;
    DownloadPause = "download_pause", "Pause a download", Changes;
    DownloadResume = "download_resume", "Resume a download", Changes;
    DownloadPauseAll = "download_pause_all", "Pause all downloads", Changes;
    DownloadResumeAll = "download_resume_all", "Resume all downloads", Changes;
    DownloadRemove = "download_remove", "Remove a download", Destroys;
    QueueList = "queue_list", "List queues", Reads;
    ResolvePreview = "resolve_preview", "Show what is behind a URL", Queries;
    PluginList = "plugin_list", "List plugins", Reads;
}

/// All tools, as in the result of `tools/list`.
pub(super) fn list() -> Vec<Value> {
    Tool::ALL
        .iter()
        .map(|(tool, name, title, effect)| tool.describe(name, title, *effect))
        .collect()
}

/// All tools with their schemas, for a test that compares them with the documentation.
pub fn described() -> String {
    let mut text = serde_json::to_string_pretty(&list()).expect("a description has text keys only");
    text.push('\n');
    text
}

impl Tool {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known, ..)| *known == name)?;
        Some(found.0)
    }

    fn describe(self, name: &str, title: &str, effect: Effect) -> Value {
        json!({
            "name": name,
            "title": title,
            "description": self.description(),
            "inputSchema": self.input(),
            "outputSchema": self.output(),
            "annotations": {
                "title": title,
                "readOnlyHint": matches!(effect, Effect::Reads | Effect::Queries),
                "destructiveHint": effect == Effect::Destroys,
                "idempotentHint": matches!(effect, Effect::Reads | Effect::Queries | Effect::Changes),
                "openWorldHint": matches!(effect, Effect::Queries | Effect::Adds),
            },
        })
    }

    fn description(self) -> &'static str {
        match self {
            Self::DownloadAdd => {
                "Downloads a URL to the machine of this service. Answers at once with the task's id; the download goes on \
                 by itself. Finished files are complete and verified."
            }
            Self::DownloadList => {
                "Lists downloads, newest first, the newest 500 at most; count is how many there are. Numbers of status: 0 \
                 pending, 1 downloading, 2 paused, 3 completed, 4 error, 5 preparing."
            }
            Self::DownloadGet => "Shows one download: its status, its bytes, its file, and why it failed if it did.",
            Self::DownloadPause => "Pauses a download. What it has stays on the disk.",
            Self::DownloadResume => "Resumes a download that is paused or has failed, from the bytes that it has.",
            Self::DownloadPauseAll => "Pauses all downloads.",
            Self::DownloadResumeAll => "Resumes all paused downloads.",
            Self::DownloadRemove => {
                "Removes a download from the list. With deleteFiles the finished file is deleted as well, if this download \
                 made it; else it stays."
            }
            Self::QueueList => "Lists the queues with their limits and schedules. Their ids are what queueId takes.",
            Self::ResolvePreview => {
                "Shows the files behind a URL, a folder of a file host for example, if a plugin can list it. Downloads \
                 nothing. Without items and error, message says what the URL is: a plain file if no plugin claims it."
            }
            Self::PluginList => "Lists the installed plugins: which sites they open, and whether they work.",
        }
    }

    fn input(self) -> Value {
        match self {
            Self::DownloadAdd => taken::<Add>(),
            Self::DownloadList => taken::<List>(),
            Self::DownloadGet | Self::DownloadPause | Self::DownloadResume => taken::<One>(),
            Self::DownloadRemove => taken::<Remove>(),
            Self::DownloadPauseAll | Self::DownloadResumeAll | Self::QueueList | Self::PluginList => taken::<Nothing>(),
            Self::ResolvePreview => taken::<Preview>(),
        }
    }

    fn output(self) -> Value {
        let list = |item: Value| json!({ "type": "array", "items": item });
        let text = json!({ "type": "string" });
        let flag = json!({ "type": "boolean" });
        match self {
            Self::DownloadAdd => object(&["taskId"], &json!({ "taskId": text, "message": text })),
            Self::DownloadList => with_record::<TaskDto>("tasks", list, json!({ "count": { "type": "integer" } })),
            Self::DownloadGet => with_record::<TaskDto>("task", |task| task, json!({})),
            Self::DownloadPause => object(&["paused"], &json!({ "paused": text })),
            Self::DownloadResume => object(&["resumed"], &json!({ "resumed": text })),
            Self::DownloadPauseAll => object(&["pausedAll"], &json!({ "pausedAll": flag })),
            Self::DownloadResumeAll => object(&["resumedAll"], &json!({ "resumedAll": flag })),
            Self::DownloadRemove => object(
                &["removed", "deletedFiles"],
                &json!({ "removed": text, "deletedFiles": flag }),
            ),
            Self::QueueList => with_record::<QueueDto>("queues", list, json!({})),
            Self::ResolvePreview => record_schema::<ResolvePreviewResponse>(),
            Self::PluginList => with_record::<PluginDto>("plugins", list, json!({})),
        }
    }
}
