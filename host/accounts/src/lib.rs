//! Accounts of plugins: secrets that plugins use but never read, and logins that they drive without seeing a credential.
//!
//! *Owns* the secrets of plugins and their accounts, where each may be sent, the removal of their values from texts, and
//! the state machine of a login.
//!
//! *Never* runs a plugin or sends a request: `plugin-host` decides who may use an account, `plugin-wasm` fills secrets
//! into requests.
//!
//! Start reading at [`Secrets`] (what a call may use), then [`Login`] (how an account comes to be).
//!
//! # Layers
//! - `login`: the state machine of a login session
//! - `screen`: what a login shows to the user
//! - `secrets`: the secrets and cookies of a plugin or of one of its accounts
//! - `draft`: what a login has captured and not stored yet
//! - `rows`: accounts and sealed secrets in the database
//! - `template`: texts with placeholders for secrets
//! - `bound`: where a secret may be sent
//! - `redact`: removes secrets from texts
//! - `error`: why secrets are not used or stored

#![expect(
    missing_docs,
    reason = "fields and variants whose names or messages say what they are have no comment"
)]

mod bound;
mod draft;
mod error;
mod login;
mod redact;
mod rows;
mod screen;
mod secrets;
mod template;

pub use bound::BoundSecret;
pub use draft::Draft;
pub use error::{MAX_VALUE_BYTES, SecretError, not_bound};
pub use login::{Effect, Ended, Input, Login, Refusal, Step, StepFailure, View};
pub use redact::{MAX_PATTERN_BYTES, Redactor, Scan, Scrubber, WITHHELD, placeholder, spellings};
pub use rows::{Account, LoginId, SEALED, TABLE, delete_all, keep_for, take_back};
pub use screen::{Done, Field, InvalidScreen, OpenUrl, QrCode, Screen};
pub use secrets::{Accounts, Secrets};
pub use template::Template;
