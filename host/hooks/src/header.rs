//! Header fields that the user gives. Pure.

/// Longest name and longest value, in bytes. Tokens have a few hundred.
pub(crate) const MAX_NAME_BYTES: usize = 64;
pub(crate) const MAX_VALUE_BYTES: usize = 2048;

/// Fields that the request has anyway, or that belong to one hop of the connection (RFC 9110, section 7.6.1).
const MANAGED: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Why a field cannot be sent. The value is not repeated.
pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_token) {
        return Err(format!(
            "a header's name has 1 to {MAX_NAME_BYTES} letters, digits or -, and no blanks"
        ));
    }
    let lower = name.to_ascii_lowercase();
    if MANAGED.contains(&lower.as_str()) || lower.starts_with("proxy-") || lower.starts_with("x-svc-") {
        return Err(format!("the header {name} is set by the service itself: leave it out"));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!(
            "the value of the header {name} has {} bytes; the limit is {MAX_VALUE_BYTES}",
            value.len()
        ));
    }
    let is_sendable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    if !value.bytes().all(is_sendable) {
        return Err(format!(
            "the value of the header {name} has a line break or a character that is not ASCII"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_connection_and_of_the_service_cannot_be_set() {
        for name in [
            "Host",
            "TE",
            "Transfer-Encoding",
            "Proxy-Authorization",
            "X-Svc-Event",
            "a b",
            "",
            "a:",
        ] {
            assert!(check(name, "x").is_err(), "{name}");
        }
        for name in ["Authorization", "X-Api-Key", "Content-Type", "User-Agent"] {
            assert!(check(name, "Bearer x").is_ok(), "{name}");
        }
        for value in ["a\r\nHost: b", "a\nb", "a\0", "ä"] {
            let error = check("A", value).unwrap_err();
            assert!(!error.contains(value), "{error}");
        }
    }
}
