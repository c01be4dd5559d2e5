//! The log of webhooks as the agent knows it: the newest deliveries as JSON, forwarded unchanged. Pure.

use std::{borrow::Cow, collections::VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

/// As many as the daemon keeps.
const MAX_DELIVERIES: usize = 1000;

/// Newest first, each with its id.
#[derive(Debug, Default)]
pub(super) struct Deliveries(VecDeque<(Box<str>, Box<RawValue>)>);

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(rename = "deliveryId", borrow)]
    id: Cow<'a, str>,
}

impl Deliveries {
    /// Reads those of a snapshot, newest first.
    pub(super) fn read(json: &str) -> Result<Self, serde_json::Error> {
        let mut deliveries = Self::default();
        let newest_first: Vec<&RawValue> = serde_json::from_str(json)?;
        for delivery in newest_first.into_iter().rev() {
            deliveries.put(delivery)?;
        }
        Ok(deliveries)
    }

    /// Takes new and changed ones, oldest first.
    pub(super) fn merge(&mut self, json: &str) -> Result<(), serde_json::Error> {
        let changed: Vec<&RawValue> = serde_json::from_str(json)?;
        changed.into_iter().try_for_each(|delivery| self.put(delivery))
    }

    fn put(&mut self, delivery: &RawValue) -> Result<(), serde_json::Error> {
        let Named { id } = serde_json::from_str(delivery.get())?;
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| **known == *id) {
            *known = delivery.to_owned();
            return Ok(());
        }
        self.0.push_front((id.into(), delivery.to_owned()));
        self.0.truncate(MAX_DELIVERIES);
        Ok(())
    }

    /// Appends the array.
    pub(super) fn write(&self, text: &mut String) {
        text.push('[');
        for (number, (_, delivery)) in self.0.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            text.push_str(delivery.get());
        }
        text.push(']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(deliveries: &Deliveries) -> String {
        let mut text = String::new();
        deliveries.write(&mut text);
        text
    }

    #[test]
    fn the_newest_are_kept_and_a_changed_one_stays_in_its_place() {
        let mut deliveries = Deliveries::read(r#"[{"deliveryId":"b"},{"deliveryId":"a","x":1}]"#).unwrap();
        deliveries
            .merge(r#"[{"deliveryId":"c"},{"deliveryId":"a","x":2}]"#)
            .unwrap();
        assert_eq!(
            text(&deliveries),
            r#"[{"deliveryId":"c"},{"deliveryId":"b"},{"deliveryId":"a","x":2}]"#
        );
        for number in 0..2 * MAX_DELIVERIES {
            deliveries.merge(&format!(r#"[{{"deliveryId":"{number}"}}]"#)).unwrap();
        }
        assert_eq!(deliveries.0.len(), MAX_DELIVERIES);
        assert!(text(&deliveries).starts_with(r#"[{"deliveryId":"1999"},"#));
        assert!(deliveries.merge("[{}]").is_err());
    }
}
