//! The parameters of a call, with aria2's faults for invalid ones.

use serde_json::{Map, Value};

use super::fault::Fault;

/// Parameters after the token.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Params(pub(crate) Vec<Value>);

fn wrong(index: usize) -> Fault {
    Fault::new(format!("The parameter at {index} has wrong type."))
}

fn missing(index: usize) -> Fault {
    Fault::new(format!("The parameter at {index} is required but missing."))
}

fn too_small(index: usize, least: i64) -> Fault {
    Fault::new(format!(
        "The integer parameter at {index} has invalid value: the value must be greater than or equal to {least}."
    ))
}

impl Params {
    fn find<'a, T>(&'a self, index: usize, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Fault> {
        let value = self.0.get(index);
        value.map(|value| read(value).ok_or_else(|| wrong(index))).transpose()
    }

    fn need<'a, T>(&'a self, index: usize, read: impl Fn(&'a Value) -> Option<T>) -> Result<T, Fault> {
        self.find(index, read)?.ok_or_else(|| missing(index))
    }

    pub(crate) fn text(&self, index: usize) -> Result<&str, Fault> {
        self.need(index, Value::as_str)
    }

    pub(crate) fn integer(&self, index: usize) -> Result<i64, Fault> {
        self.need(index, Value::as_i64)
    }

    pub(crate) fn integer_from(&self, index: usize, least: i64) -> Result<i64, Fault> {
        let number = self.integer(index)?;
        if number < least {
            return Err(too_small(index, least));
        }
        Ok(number)
    }

    pub(crate) fn list(&self, index: usize) -> Result<&[Value], Fault> {
        self.need(index, |value| value.as_array().map(Vec::as_slice))
    }

    pub(crate) fn map(&self, index: usize) -> Result<&Map<String, Value>, Fault> {
        self.need(index, Value::as_object)
    }

    /// The strings of a list; other items are ignored.
    pub(crate) fn texts(&self, index: usize) -> Result<Vec<&str>, Fault> {
        Ok(self.list(index)?.iter().filter_map(Value::as_str).collect())
    }

    pub(crate) fn optional_texts(&self, index: usize) -> Result<Vec<&str>, Fault> {
        if index < self.0.len() {
            self.texts(index)
        } else {
            Ok(Vec::new())
        }
    }

    pub(crate) fn optional_map(&self, index: usize) -> Result<Option<&Map<String, Value>>, Fault> {
        self.find(index, Value::as_object)
    }

    /// A position in a queue.
    pub(crate) fn position(&self, index: usize) -> Result<Option<usize>, Fault> {
        let position = self.find(index, Value::as_i64)?;
        let place =
            |number| usize::try_from(number).map_err(|_| Fault::new("Position must be greater than or equal to 0."));
        position.map(place).transpose()
    }

    /// The token, if the first parameter is one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.0.first()?.as_str()?.strip_prefix("token:")
    }

    pub(crate) fn drop_token(&mut self) {
        if self.token().is_some() {
            self.0.remove(0);
        }
    }
}
