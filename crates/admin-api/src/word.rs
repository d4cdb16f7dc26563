//! A word of a table (`model::words!`) in JSON.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use model::Words;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The word for a value of `T`. A reader accepts any word, since a newer version may have more of
/// them; [`Word::known`] returns the value if this version knows it.
pub struct Word<T> {
    text: Cow<'static, str>,
    of: PhantomData<fn() -> T>,
}

impl<T> Word<T> {
    /// Returns the word as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<T: FromStr> Word<T> {
    /// Returns the value, or `None` if this version does not have it.
    pub fn known(&self) -> Option<T> {
        self.text.parse().ok()
    }
}

impl<T: Words> From<T> for Word<T> {
    fn from(value: T) -> Word<T> {
        Word { text: Cow::Borrowed(value.word()), of: PhantomData }
    }
}

/// No word: what a reader sees where an older version wrote none.
impl<T> Default for Word<T> {
    fn default() -> Word<T> {
        Word { text: Cow::Borrowed(""), of: PhantomData }
    }
}

impl<T> Clone for Word<T> {
    fn clone(&self) -> Word<T> {
        Word { text: self.text.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Word<T> {
    fn eq(&self, other: &Word<T>) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for Word<T> {}

impl<T> fmt::Debug for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, T> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Word { text: Cow::Owned(text), of: PhantomData })
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": T::ALL_WORDS })
    }
}

/// Reads and writes a `T` as its word, for `#[serde(with = …)]`. Unlike with [`Word`], a word that
/// this version does not know is an error: for requests, which must not be misunderstood.
pub(crate) mod known_word {
    use std::borrow::Cow;

    use model::Words;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<T: Words, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.word())
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: std::str::FromStr<Err = model::UnknownWord>,
        D: Deserializer<'de>,
    {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
