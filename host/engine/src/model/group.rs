//! Groups: a label over tasks that were made together.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::id::{GroupId, Timestamp};

/// What a user sets of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// Where its tasks came from; may be empty.
    pub source_url: String,
    /// The directory of its tasks without one of their own.
    pub save_dir: Option<PathBuf>,
    /// What the list that it was made from leaves out.
    pub left_out: Vec<LeftOut>,
}

/// The most omissions of a list that are kept one by one.
const MAX_LEFT_OUT: usize = 50;

/// Something that a list leaves out, so that it is not taken for all there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Why.
    pub kind: LeftOutKind,
    /// The folder that is left out or that the rest is in; empty if it is several or the list itself.
    pub name: String,
    /// How many files or folders; 0 if that is not known.
    pub count: u64,
}

/// Why something is left out of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeftOutKind {
    /// A folder could not be read.
    Unreadable,
    /// More files than a list may have.
    TooManyFiles,
    /// More folders than are read for a list.
    TooManyFolders,
    /// Folders in more folders than are opened.
    TooDeep,
}

impl LeftOutKind {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::Unreadable,
        Self::TooManyFiles,
        Self::TooManyFolders,
        Self::TooDeep,
    ];

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::TooManyFiles => "tooManyFiles",
            Self::TooManyFolders => "tooManyFolders",
            Self::TooDeep => "tooDeep",
        }
    }
}

impl LeftOut {
    /// Adds to what a list leaves out. After the first fifty, those of a kind are counted together.
    pub fn add_to(self, all: &mut Vec<Self>) {
        if all.len() < MAX_LEFT_OUT {
            all.push(self);
            return;
        }
        let more = all[MAX_LEFT_OUT..].iter_mut().find(|more| more.kind == self.kind);
        match more {
            Some(more) if more.count > 0 && self.count > 0 => more.count = more.count.saturating_add(self.count),
            Some(more) => more.count = 0,
            None => all.push(Self {
                name: String::new(),
                ..self
            }),
        }
    }
}

/// A group. It is deleted with its last task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name for programs.
    pub id: GroupId,
    /// What the user set.
    pub spec: GroupSpec,
    /// When it was created.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_omissions_fifty_are_kept_and_the_others_counted() {
        let mut all = Vec::new();
        let mut add = |kind, count| {
            let name = "folder".to_owned();
            LeftOut { kind, name, count }.add_to(&mut all);
        };
        for _ in 0..1000 {
            add(LeftOutKind::Unreadable, 1);
            add(LeftOutKind::TooDeep, 3);
        }
        add(LeftOutKind::TooManyFiles, 0);
        let more: Vec<_> = all[MAX_LEFT_OUT..]
            .iter()
            .map(|more| (more.kind, more.name.as_str(), more.count))
            .collect();
        let expected = [
            (LeftOutKind::Unreadable, "", 975),
            (LeftOutKind::TooDeep, "", 2925),
            (LeftOutKind::TooManyFiles, "", 0),
        ];
        assert_eq!(more, expected);
    }
}
