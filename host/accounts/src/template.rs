//! Texts with placeholders for secrets, which the host fills in.

use transfer::Secret;

use crate::error::{MAX_PLACES, MAX_TEMPLATE_BYTES, SecretError};

/// A text with placeholders for secrets: `Bearer {access}`. Braces around anything but a name are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Secret(String),
}

impl Template {
    /// Parses a template; only the length is limited.
    pub fn parse(mut text: &str) -> Result<Self, SecretError> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(SecretError::Template);
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        while let Some((before, rest)) = text.split_once('{') {
            literal.push_str(before);
            let name_ends = rest.find(|c| !is_name_character(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_ends);
            match after.strip_prefix('}') {
                Some(after) if !name.is_empty() => {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::Secret(name.to_owned()));
                    text = after;
                }
                _ => {
                    literal.push('{');
                    text = rest;
                }
            }
        }
        literal.push_str(text);
        pieces.push(Piece::Text(literal));
        let template = Self(pieces);
        if template.names().count() > MAX_PLACES {
            return Err(SecretError::Template);
        }
        Ok(template)
    }

    /// The names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Secret(name) => Some(name.as_str()),
        })
    }

    /// The text, filled with the secrets that `find` returns.
    pub fn fill<'s>(&self, find: impl Fn(&str) -> Option<&'s Secret>) -> Result<Secret, SecretError> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Secret(name) => {
                    let secret = find(name).ok_or_else(|| SecretError::Unknown(name.clone()))?;
                    filled.push_str(secret.expose());
                }
            }
        }
        Ok(Secret::new(filled))
    }
}

pub(crate) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}
