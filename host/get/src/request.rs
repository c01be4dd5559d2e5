//! Parses headers, methods, proxies and form fields from the command line or an input file, and refuses header values
//! with line breaks or other control characters, which would inject headers. Errors name the field and never repeat a
//! value that may be secret.

use command::UsageError;
use transfer::{SafeUrl, Secret};

/// Methods whose response is not a file.
const NOT_FOR_FILES: [&str; 4] = ["HEAD", "CONNECT", "OPTIONS", "TRACE"];

/// Names with all their values.
pub type FormFields = Vec<(String, Vec<String>)>;

/// Parses `Name: value`.
pub fn header(field: &str, text: &str) -> Result<(String, Secret), UsageError> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(UsageError::new(field, "a header is written 'Name: value'"));
    };
    let name = name.trim_end();
    if !is_token(name) {
        return Err(UsageError::new(
            field,
            "the name before the colon may hold only letters, digits and !#$%&'*+-.^_`|~",
        ));
    }
    let value = header_value(&format!("{field} {name}"), value.trim())?;
    Ok((name.to_owned(), Secret::new(value)))
}

/// Refuses a header value with control characters.
pub fn header_value(field: &str, value: &str) -> Result<String, UsageError> {
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err(UsageError::new(
            field,
            "has a line break or another control character; remove it",
        ));
    }
    Ok(value.to_owned())
}

/// The method; `None` means GET.
pub fn method(field: &str, given: Option<&str>, has_body: bool) -> Result<Option<String>, UsageError> {
    let Some(given) = given else {
        return Ok(has_body.then(|| "POST".to_owned()));
    };
    let method = given.to_ascii_uppercase();
    if !is_token(&method) {
        return Err(UsageError::new(field, "write one word such as GET or POST"));
    }
    if NOT_FOR_FILES.contains(&method.as_str()) {
        return Err(UsageError::new(
            field,
            format!("{method} does not bring a file; use GET or POST"),
        ));
    }
    Ok(Some(method).filter(|method| has_body || method != "GET"))
}

/// Parses the URL of a proxy that can be used.
pub fn proxy(field: &str, text: &str) -> Result<SafeUrl, UsageError> {
    const FORM: &str = "write http://host:port, https://host:port, socks4://host:port or socks5://host:port";
    let url = SafeUrl::parse(text).map_err(|error| UsageError::new(field, format!("{error}; {FORM}")))?;
    transfer::proxy::check(&url).map_err(|unusable| UsageError::new(field, format!("{unusable}; {FORM}")))?;
    Ok(url)
}

/// Parses `name=value` fields; equal names become several values of one field.
pub fn form(field: &str, texts: &[String]) -> Result<FormFields, UsageError> {
    let mut fields = FormFields::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(UsageError::new(field, "a form field is written name=value"));
        };
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value.to_owned()),
            None => fields.push((name.to_owned(), vec![value.to_owned()])),
        }
    }
    Ok(fields)
}

/// Whether `text` is a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_what_would_smuggle_is_refused() {
        let (name, value) = header("--header", "X-Thing :  a: b ").unwrap();
        assert_eq!((name.as_str(), value.expose()), ("X-Thing", "a: b"));
        for text in [
            "no colon",
            ": empty",
            "Bad Name: x",
            "Ünï: x",
            "A\r\nB: x",
            "A: x\r\nEvil: y",
            "A: x\0",
            "A: x\ny",
        ] {
            let message = header("--header", text).unwrap_err().to_string();
            assert!(message.starts_with("--header"), "{message}");
            assert!(!message.contains("Evil"), "{message}");
        }
        assert!(
            header_value("--cookie", "a=1\n")
                .unwrap_err()
                .to_string()
                .starts_with("--cookie: has a line break")
        );
    }

    #[test]
    fn the_method_follows_the_body_and_must_bring_a_file() {
        assert_eq!(method("--method", None, false), Ok(None));
        assert_eq!(method("--method", None, true), Ok(Some("POST".to_owned())));
        assert_eq!(method("--method", Some("get"), false), Ok(None));
        assert_eq!(method("--method", Some("put"), true), Ok(Some("PUT".to_owned())));
        for text in ["HEAD", "connect", "GE T", "", "GET\r\n"] {
            assert!(method("--method", Some(text), false).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_proxy_needs_a_known_scheme_and_a_host() {
        assert_eq!(
            proxy("--proxy", "socks5://me:pw@host:1080").unwrap().to_string(),
            "socks5://host:1080"
        );
        for text in ["host:3128", "10.0.0.1:3128", "ftp://host/", "socks5://", "http://", ""] {
            let message = proxy("--proxy", text).unwrap_err().to_string();
            assert!(
                message.starts_with("--proxy") && message.contains("http://host:port"),
                "{message}"
            );
        }
    }

    #[test]
    fn form_fields_of_one_name_are_kept_together() {
        let texts = ["a=1", "b=x=y", "a=2"].map(str::to_owned);
        let fields = form("--form", &texts).unwrap();
        assert_eq!(
            fields,
            [
                ("a".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
                ("b".to_owned(), vec!["x=y".to_owned()])
            ]
        );
        assert!(form("--form", &["=x".to_owned()]).is_err());
    }
}
