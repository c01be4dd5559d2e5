//! aria2's options: which there are, what values they take, and what becomes of them here, whether clients give them or a
//! program in aria2's place is started with them. Pure.

mod lookup;
mod request;
mod row;
mod set;
mod table;

pub(crate) use self::{
    request::{apply, change, shown},
    row::Given,
};
pub use self::{
    request::{created, proxy, saved},
    row::Row,
    set::Options,
    table::LETTERS,
};
pub use crate::vocabulary::fault::Refusal;

#[cfg(test)]
mod tests;
