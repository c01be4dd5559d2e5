//! Which headers a plugin may send, and which follow a redirect to another origin. Pure.

/// Headers reserved for the host: framing, routing, and those with secrets.
const OF_THE_HOST: &[&str] = &[
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "cookie",
    "accept-encoding",
];

/// Headers that follow a redirect to another origin. Any other might be a credential.
const CROSSING_ORIGINS: &[&str] = &["accept", "accept-encoding", "accept-language", "user-agent", "range"];

/// Whether a plugin may set this field of a request.
pub(crate) fn guest_may_send(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_name(name) && !OF_THE_HOST.contains(&lower.as_str()) && !lower.starts_with("proxy-")
}

/// Whether the header follows a redirect to another origin.
pub(crate) fn crosses_origins(name: &str) -> bool {
    CROSSING_ORIGINS
        .iter()
        .any(|crossing| name.eq_ignore_ascii_case(crossing))
}

/// What programs send of themselves and of the page that they come from, beside the fields that cross origins.
const OF_PROGRAMS: &[&str] = &["referer", "origin", "content-type"];

/// Whether the value of this field of a request, with its name in lower case, may be a credential of a user.
pub(crate) fn may_identify(name: &str) -> bool {
    !crosses_origins(name) && !OF_PROGRAMS.contains(&name) && !name.starts_with("sec-")
}

/// Whether a guest may read this field of a response: cookies stay with the host.
pub(crate) fn guest_may_read(name: &str) -> bool {
    !name.eq_ignore_ascii_case("set-cookie") && !name.eq_ignore_ascii_case("set-cookie2")
}

/// Whether `value` can be sent as the value of a field.
pub(crate) fn is_value(value: &str) -> bool {
    value.chars().all(|c| c == '\t' || !c.is_control())
}

/// Whether `name` is a token (RFC 9110).
fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_host_cannot_be_set() {
        for name in [
            "Host",
            "COOKIE",
            "Transfer-Encoding",
            "Proxy-Authorization",
            "",
            "a b",
            "a:b",
            "a\r\nb",
        ] {
            assert!(!guest_may_send(name), "{name:?}");
        }
        for name in ["Accept", "X-Api-Key", "Authorization", "Referer"] {
            assert!(guest_may_send(name), "{name}");
        }
        assert!(!is_value("a\nb") && !is_value("\0") && is_value("a\tb ü"));
    }

    #[test]
    fn only_harmless_fields_cross_origins() {
        assert!(crosses_origins("Accept") && crosses_origins("range"));
        for name in ["Authorization", "Cookie", "X-Api-Key", "Referer", "Content-Type"] {
            assert!(!crosses_origins(name), "{name}");
        }
        assert!(!guest_may_read("Set-Cookie") && guest_may_read("content-type"));
    }
}
