//! The groups, and which directories they have.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::model::{group::Group, id::GroupId, task::reservation};

/// A group and how many tasks it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    pub(crate) group: Arc<Group>,
    pub(crate) tasks: usize,
}

/// The groups by their id. Their directories are counted, because every reservation of a path looks there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    by_id: BTreeMap<GroupId, Members>,
    directories: HashMap<DirectoryKey, usize>,
}

/// A parent directory as it is, and the name in it with its case folded: a group takes that name from others.
type DirectoryKey = (Option<PathBuf>, String);

impl Groups {
    /// Adds a group without tasks.
    pub(crate) fn insert(&mut self, group: Arc<Group>) {
        if let Some(directory) = &group.spec.save_dir {
            *self.directories.entry(key(directory)).or_default() += 1;
        }
        self.by_id.insert(group.id, Members { group, tasks: 0 });
    }

    pub(crate) fn remove(&mut self, id: GroupId) {
        let Some(members) = self.by_id.remove(&id) else { return };
        if let Some(directory) = &members.group.spec.save_dir
            && let Entry::Occupied(mut count) = self.directories.entry(key(directory))
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Counts a task that joins the group; `false` if there is no such group.
    pub(crate) fn join(&mut self, id: GroupId) -> bool {
        let members = self.by_id.get_mut(&id);
        members.map(|members| members.tasks += 1).is_some()
    }

    /// Counts a task that leaves the group; `true` if it was the last, with which the group is removed.
    pub(crate) fn leave(&mut self, id: GroupId) -> bool {
        let Some(members) = self.by_id.get_mut(&id) else {
            return false;
        };
        members.tasks -= 1;
        let is_empty = members.tasks == 0;
        if is_empty {
            self.remove(id);
        }
        is_empty
    }

    pub(crate) fn get(&self, id: GroupId) -> Option<&Members> {
        self.by_id.get(&id)
    }

    pub(crate) fn contains(&self, id: GroupId) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Members> {
        self.by_id.values()
    }

    /// Whether a group has the directory `path`, the case of its last name ignored.
    pub(crate) fn have_directory(&self, path: &Path) -> bool {
        self.directories.contains_key(&key(path))
    }
}

fn key(directory: &Path) -> DirectoryKey {
    let name = directory.file_name().unwrap_or_default();
    (directory.parent().map(Path::to_owned), reservation(Path::new(name)))
}
