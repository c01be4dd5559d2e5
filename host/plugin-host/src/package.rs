//! Packages and folders on disk, and loading the code in them.

pub(crate) mod archive;
pub(crate) mod disk;
pub(crate) mod fault_point;
pub(crate) mod folder;
pub(crate) mod load;
