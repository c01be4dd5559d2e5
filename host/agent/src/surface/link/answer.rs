//! What all routes of the device link share.

use axum::http::StatusCode;
use link::{Link, LinkError};
use rest::Problem;

use crate::surface::state::App;

impl App {
    pub(super) fn link(&self) -> Result<&Link, Problem> {
        // A drop-in has no link, and its gate lets no such request pass.
        self.link.as_ref().ok_or_else(Problem::not_found)
    }
}

/// A refusal as an answer over HTTP.
pub(super) fn refused(error: &LinkError) -> Problem {
    let kind = error.kind();
    let status = StatusCode::from_u16(kind.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let problem = Problem::new(status, error.to_string());
    match kind.reason {
        Some(reason) => problem.with_code(reason),
        None => problem,
    }
}
