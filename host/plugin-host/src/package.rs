//! Packages and folders on this machine's disk, and how the code in them becomes something that can be called.

pub(crate) mod archive;
pub(crate) mod disk;
pub(crate) mod fault_point;
pub(crate) mod folder;
pub(crate) mod load;
