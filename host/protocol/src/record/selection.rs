//! Questions that tasks ask their user.

use serde::{Deserialize, Serialize};

/// The most files of a question. [`daemon.torrent.files`](crate::Method::TorrentFiles) has the rest.
pub const MAX_OFFERED_FILES: usize = 2_000;

/// A question of a task. It is asked while a client has subscribed to questions; without an answer in time, the default
/// choice is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionDto {
    /// Names the question in its answer.
    pub request_id: String,
    /// The task that waits for the answer.
    pub task_id: String,
    /// What is asked.
    pub kind: SelectionKind,
    /// What is taken without an answer.
    pub default_choice: SelectionOutcome,
    /// Until when it waits, in Unix milliseconds.
    pub deadline_unix_ms: i64,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SelectionKind {
    /// Which files of a torrent to download.
    #[serde(rename_all = "camelCase")]
    Bt {
        /// The first [`MAX_OFFERED_FILES`] of them.
        files: Vec<SelectionFileDto>,
        /// How many there are.
        file_count: usize,
    },
}

/// A file that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionFileDto {
    /// Its place in the torrent, from 0.
    pub index: u32,
    /// Its path in the torrent, with `/` between names.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum SelectionOutcome {
    /// These files.
    Bt {
        /// Their places in the torrent; empty: all.
        #[serde(default)]
        indices: Vec<u32>,
    },
    /// None: the task is paused, and asks again when it is resumed.
    Cancelled,
}

/// Params of `daemon.selection.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionResolveParams {
    /// The question.
    pub request_id: String,
    /// The answer.
    pub outcome: SelectionOutcome,
}

/// Data of [`crate::DaemonEvent::SelectionResolved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionResolved {
    /// The question.
    pub request_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_say_their_kind() {
        let read = |text: &str| serde_json::from_str::<SelectionOutcome>(text).unwrap();
        assert_eq!(
            read(r#"{"kind":"bt","indices":[0,2]}"#),
            SelectionOutcome::Bt { indices: vec![0, 2] }
        );
        assert_eq!(read(r#"{"kind":"bt"}"#), SelectionOutcome::Bt { indices: Vec::new() });
        assert_eq!(read(r#"{"kind":"cancelled"}"#), SelectionOutcome::Cancelled);
        let kind = SelectionKind::Bt {
            files: vec![SelectionFileDto {
                index: 0,
                path: "a/b".into(),
                size: 7,
            }],
            file_count: 1,
        };
        assert_eq!(
            serde_json::to_string(&kind).unwrap(),
            r#"{"type":"bt","files":[{"index":0,"path":"a/b","size":7}],"fileCount":1}"#
        );
    }
}
