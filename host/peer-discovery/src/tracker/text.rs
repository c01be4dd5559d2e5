//! Texts that trackers choose.

/// The longest text of a tracker that is shown, in characters.
const MAX_MESSAGE: usize = 200;

/// A text that a tracker chose, for people: in one line, without characters that control a terminal, truncated.
pub(crate) fn shown(text: &str) -> String {
    let text = transfer::safe_url::masked(text);
    let shown: String = text
        .chars()
        .take(MAX_MESSAGE + 1)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match shown.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}
