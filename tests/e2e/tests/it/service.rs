//! The service: agent and daemon as processes, and everybody who talks to them.

mod foreign;
mod kill_loop;
mod plugins;
mod setup;
mod start;
mod stop;
