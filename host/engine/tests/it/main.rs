//! The running engine: its rows on disk and a scripted transport at its edge.

mod commands;
mod durability;
mod runs;
mod scale;
mod world;
