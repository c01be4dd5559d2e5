//! What a plugin may ask its host to do with text: JSON pointers, CSS selectors, regular expressions, decoding.
//!
//! *Owns* these functions and their bounds. The host runs them for sandboxed plugins, and the guest SDK runs the same
//! code natively, so a plugin's tests see exactly what the host will answer. Texts, patterns and selectors come from
//! strangers: every function takes memory at most linear in its (bounded) input, and time as well, or as long as the
//! [`Work`] lasts that it is given.
//!
//! *Never* keeps state, reads a clock or does I/O.
//!
//! # Layers
//!
//! - `html`, `json`, `pattern`, `url`, `decode`: one kind of text each
//! - `work`: how long a search may take
//! - `limit`: how long texts and answers may be, and what is said where they are longer
//!
//! Start reading at [`select`] and [`json_at`].

mod decode;
mod html;
mod json;
mod limit;
mod pattern;
mod url;
mod work;

pub use decode::{aes_decrypt_cbc, base64_decode, digest};
pub use html::{Node, select};
pub use json::json_at;
pub use limit::{MAX_INPUT_BYTES, MAX_OUTPUT_BYTES, TextError};
pub use pattern::{captures, group, is_match};
pub use url::{UrlParts, form, join_url, parse_url, with_query};
pub use work::Work;
