//! Chains of steps in options.

use protocol::PostStep;

/// A chain in an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steps(pub(crate) Vec<PostStep>);

/// Reads a chain; empty text is none.
pub(crate) fn steps(text: &str) -> Result<Steps, String> {
    if text.trim().is_empty() {
        return Ok(Steps(Vec::new()));
    }
    let steps = serde_json::from_str(text).map_err(|error| format!("it is no JSON array of steps: {error}"))?;
    Ok(Steps(steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let read = steps(r#"[{"kind":"unpack","deleteArchive":true}]"#).unwrap();
        let into = String::new();
        let delete_archive = true;
        assert_eq!(read, Steps(vec![PostStep::Unpack { delete_archive, into }]));
        assert_eq!(steps(" ").unwrap(), Steps(Vec::new()));
        assert!(steps("unpack").unwrap_err().starts_with("it is no JSON array of steps"));
    }
}
