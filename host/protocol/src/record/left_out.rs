//! What lists of files leave out.

use serde::{Deserialize, Serialize};

/// Something that a list of files leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftOutDto {
    /// Why: `unreadable` (a folder could not be read), `tooManyFiles`, `tooManyFolders` or `tooDeep`.
    pub kind: String,
    /// The folder; empty if it is several or the list itself.
    pub name: String,
    /// How many files or folders; 0: unknown.
    pub count: u64,
}
