//! What no compiler checks: the shape of the workspace and the habits of its files, as tests.
//!
//! *Owns* the table of crate edges and the list of things that no file holds.
//!
//! *Never* judges style that a lint can judge, and never counts lines.
//!
//! Start reading at `edges` (which crate may use which), then `files`.

#[cfg(test)]
mod edges;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod files;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod links;
#[cfg(test)]
mod security;
