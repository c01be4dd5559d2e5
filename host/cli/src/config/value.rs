//! Settings as assignments, which are read from arguments and printed. Pure.

use std::{collections::BTreeMap, fmt::Display};

use crate::service::RemoteError;

/// Parses `name=value`; the name must not be empty.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The error of a setting that does not exist.
pub(super) fn unknown(what: &'static str, name: &str) -> RemoteError {
    let names = vec![name.to_owned()];
    RemoteError::Unknown { what, names }
}

pub(super) fn assignments<K: Display>(values: &BTreeMap<K, String>) -> Vec<String> {
    values.iter().map(|(key, value)| format!("{key} = {value}")).collect()
}
