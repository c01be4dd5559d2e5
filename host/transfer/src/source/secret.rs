//! A text that prints without its value.

use std::fmt;

/// A text that prints as `***`; reading it takes an explicit call.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the code that sends or seals it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A user name and password for a server or a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Credentials {
    /// The value of a Basic `Authorization` header (RFC 7617).
    pub fn basic(&self) -> String {
        let pair = format!("{}:{}", self.user, self.password.expose());
        format!("Basic {}", data_encoding::BASE64.encode(pair.as_bytes()))
    }
}
