//! The JSON of the gateway: bytes are Base64, 64-bit integers are strings, and what is zero is absent.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// The answer to a range request.
#[derive(Deserialize)]
pub(super) struct Range<'a> {
    #[serde(borrow)]
    pub(super) header: Header<'a>,
    #[serde(borrow, default)]
    pub(super) kvs: Vec<KeyValue<'a>>,
    #[serde(default)]
    pub(super) more: bool,
}

#[derive(Default, Deserialize)]
pub(super) struct Header<'a> {
    /// The cluster that answers.
    #[serde(borrow, default)]
    pub(super) cluster_id: Cow<'a, str>,
    /// 0 in a message about compaction.
    #[serde(default)]
    pub(super) revision: Int64,
}

/// A message of a watch.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) result: Option<Watched<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<Failed<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Watched<'a> {
    #[serde(borrow)]
    pub(super) header: Option<Header<'a>>,
    #[serde(default)]
    pub(super) created: bool,
    #[serde(default)]
    pub(super) canceled: bool,
    #[serde(default)]
    pub(super) compact_revision: Int64,
    #[serde(borrow)]
    pub(super) cancel_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) events: Vec<Event<'a>>,
}

/// The end of a stream by an error.
#[derive(Deserialize)]
pub(super) struct Failed<'a> {
    #[serde(borrow)]
    pub(super) message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Kind,
    #[serde(borrow)]
    pub(super) kv: KeyValue<'a>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Kind {
    #[default]
    Put,
    Delete,
}

#[derive(Deserialize)]
pub(super) struct KeyValue<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(default)]
    pub(super) mod_revision: Int64,
    #[serde(borrow, default)]
    value: Cow<'a, str>,
}

impl KeyValue<'_> {
    /// Returns the bytes of the key.
    ///
    /// # Errors
    /// It is not Base64.
    pub(super) fn key(&self) -> Result<Vec<u8>, String> {
        BASE64_STANDARD.decode(&*self.key).map_err(|error| format!("a key is not Base64: {error}"))
    }

    /// Returns the bytes of the value.
    ///
    /// # Errors
    /// It is not Base64, or has more than `bytes_max` bytes.
    pub(super) fn value(&self, bytes_max: usize) -> Result<Vec<u8>, String> {
        // At most 2 bytes of padding.
        if base64::decoded_len_estimate(self.value.len()) > bytes_max + 3 {
            return Err(format!("the value is longer than {bytes_max} bytes"));
        }
        BASE64_STANDARD
            .decode(&*self.value)
            .map_err(|error| format!("the value is not Base64: {error}"))
    }
}

/// A 64-bit integer: a string of the gateway, or a number.
#[derive(Clone, Copy, Default)]
pub(super) struct Int64(pub(super) i64);

impl<'de> Deserialize<'de> for Int64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Int64, D::Error> {
        deserializer.deserialize_any(Int64Visitor)
    }
}

struct Int64Visitor;

impl Visitor<'_> for Int64Visitor {
    type Value = Int64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer of 64 bits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Int64, E> {
        text.parse().map(Int64).map_err(|_| E::custom("a string that is not an integer of 64 bits"))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Int64, E> {
        Ok(Int64(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Int64, E> {
        i64::try_from(number).map(Int64).map_err(E::custom)
    }
}
