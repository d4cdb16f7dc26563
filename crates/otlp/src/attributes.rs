//! Attributes: names with values of a bounded length. What is unknown or empty is left out.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// The maximum length of any text in a message: attributes, names, sentences.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;

/// Returns the start of `text` that is at most [`TEXT_BYTES_MAX`] long, up to a character's border.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Returns a text as a value, cut.
pub(crate) fn text_value(text: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(cut(text).to_owned())) }
}

/// The attributes of one item, in the order in which they were added.
#[derive(Default)]
pub(crate) struct Attributes(Vec<KeyValue>);

impl Attributes {
    /// Adds a text, cut, unless it is empty.
    pub(crate) fn text(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.push(key, Value::StringValue(cut(value).to_owned()));
        }
    }

    /// Adds a whole number if it is known.
    pub(crate) fn whole(&mut self, key: &str, value: Option<impl Into<u64>>) {
        if let Some(value) = value {
            let value = i64::try_from(value.into()).unwrap_or(i64::MAX);
            self.push(key, Value::IntValue(value));
        }
    }

    /// Adds a share, if it is known.
    pub(crate) fn share(&mut self, key: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.push(key, Value::DoubleValue(value));
        }
    }

    /// Adds a duration of milliseconds, in seconds, unless it is zero or unknown.
    pub(crate) fn seconds(&mut self, key: &str, ms: Option<f64>) {
        if let Some(ms) = ms.filter(|ms| *ms > 0.0) {
            self.push(key, Value::DoubleValue(ms / 1e3));
        }
    }

    /// Adds a truth value.
    pub(crate) fn truth(&mut self, key: &str, value: bool) {
        self.push(key, Value::BoolValue(value));
    }

    /// Returns whether there is an attribute of this name.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|attribute| attribute.key == key)
    }

    fn push(&mut self, key: &str, value: Value) {
        let value = Some(AnyValue { value: Some(value) });
        self.0.push(KeyValue { key: cut(key).to_owned(), value, ..KeyValue::default() });
    }

    /// Returns them as messages.
    pub(crate) fn into_messages(self) -> Vec<KeyValue> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut(&long), "é".repeat(TEXT_BYTES_MAX / 2));
        assert_eq!(cut(&format!("a{long}")).len(), TEXT_BYTES_MAX - 1);
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let mut attributes = Attributes::default();
        attributes.text("a", "");
        attributes.whole("b", None::<u64>);
        attributes.seconds("c", Some(0.0));
        attributes.seconds("d", None);
        assert!(attributes.into_messages().is_empty());
    }
}
