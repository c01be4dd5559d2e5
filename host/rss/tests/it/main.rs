//! Tests of the crate from outside.

mod feeds;
mod titles;
