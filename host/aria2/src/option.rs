//! aria2's options: names, values, and their effect here, for RPC clients and for a program that is started in aria2's
//! place. Pure.

mod lookup;
mod request;
mod row;
mod set;
mod table;
mod torrent;

pub(crate) use self::{
    request::{apply, change, check_proxies, shown},
    row::OptionScope,
    torrent::{admitted, below_top, excludes_trackers, index_out, of_document, of_torrent, selected},
};
pub use self::{
    request::{created, proxy, saved},
    row::{Row, ports},
    set::Options,
    table::LETTERS,
};
pub use crate::vocabulary::fault::Refusal;

#[cfg(test)]
mod tests;
