//! Texts of requests and responses without the secrets of an endpoint. Pure.

use protocol::MASKED;

/// Characters of a body that the log keeps.
pub(crate) const LOGGED_CHARS: usize = 2000;

/// Shorter values are no secrets: replacing each `1` would make a text unreadable.
const MIN_SECRET_BYTES: usize = 4;

/// What must not be shown of an endpoint, the longest first, so that no secret is broken up by one that it contains.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let in_json = escaped(&value);
            all.extend([value, in_json]);
        }
        all.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all)
    }

    /// The first characters of `text`, without secrets. A secret whose beginning stands at the end of `text`, because the
    /// text was cut off there, is hidden as well.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for secret in &self.0 {
            if shown.contains(secret.as_str()) {
                shown = shown.replace(secret.as_str(), MASKED);
            }
        }
        if let Some(from) = self.0.iter().filter_map(|secret| begun_at(&shown, secret)).min() {
            shown.truncate(from);
            shown.push_str(MASKED);
        }
        match shown.char_indices().nth(LOGGED_CHARS) {
            Some((end, _)) => shown[..end].to_owned(),
            None => shown,
        }
    }
}

/// Where the end of `text` begins that a proper beginning of `secret` makes up, if it is long enough to tell something.
fn begun_at(text: &str, secret: &str) -> Option<usize> {
    let ends = secret.char_indices().map(|(at, _)| at).rev();
    let mut beginnings = ends.filter(|end| *end >= MIN_SECRET_BYTES);
    let found = beginnings.find(|end| text.ends_with(&secret[..*end]))?;
    Some(text.len() - found)
}

/// The text as the inside of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().map(|value| (*value).to_owned()))
    }

    #[test]
    fn secrets_are_hidden_also_where_the_text_was_cut() {
        let secrets = secrets(&["hunter2", "Bearer hunter2", "say \"it\"", "1"]);
        assert_eq!(secrets.shorten("a hunter2 b Bearer hunter2"), "a *** b ***");
        assert_eq!(secrets.shorten(r#"{"x":"say \"it\""}"#), r#"{"x":"***"}"#);
        assert_eq!(secrets.shorten("you sent hunte"), "you sent ***");
        assert_eq!(secrets.shorten("1 + 1"), "1 + 1");
        assert_eq!(secrets.shorten(&"ä".repeat(3000)), "ä".repeat(LOGGED_CHARS));
    }

    proptest! {
        #[test]
        fn no_text_shows_a_secret(before in "[a-cä]{0,20}", secret in "[a-cä]{4,8}", after in "[a-cä]{0,20}", cut in 0..60_usize) {
            let secrets = secrets(&[&secret]);
            let whole = format!("{before}{secret}{after}");
            prop_assert!(!secrets.shorten(&whole).contains(&secret));
            let cut: String = whole.chars().take(cut).collect();
            prop_assert!(!secrets.shorten(&cut).contains(&secret));
        }
    }
}
