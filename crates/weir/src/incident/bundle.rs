//! The file of a bundle: a JSON object, which the dashboard opens too.

use std::collections::BTreeMap;
use std::fmt;

use admin_api::history::History;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The value of `format`.
pub(crate) const FORMAT: &str = "weir-bundle";

/// Grows when a reader of an earlier version would misread the file.
pub(crate) const VERSION: u32 = 1;

/// What a balancer knew of its recent past.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Bundle {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// The version of the program that wrote it.
    pub(crate) weir: String,
    /// The name of the host.
    pub(crate) host: String,
    /// The end of the span, in milliseconds since 1970 (UTC).
    pub(crate) at_unix_ms: u64,
    /// Its beginning.
    pub(crate) from_unix_ms: u64,
    /// Answers of the admin API by their path below `/api/v1/`.
    pub(crate) answers: BTreeMap<String, Value>,
    /// Answers of `/api/v1/history`, each with all columns; the rows of all are the same.
    pub(crate) history: Vec<History>,
    /// Facts about the host, as `weir doctor facts` prints them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) facts: Value,
    /// Why answers are missing, by their path.
    pub(crate) failed: BTreeMap<String, String>,
}

/// Why a file is no bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotABundle {
    /// It is not the JSON of a bundle.
    Unreadable(String),
    /// It is of another program, or of no program.
    OtherFormat,
    /// It is of a later version of Weir.
    Later(u32),
}

impl fmt::Display for NotABundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotABundle::Unreadable(why) => write!(f, "it is not a bundle: {why}"),
            NotABundle::OtherFormat => f.write_str(
                "it is JSON, but not a bundle: \"format\" is not \"weir-bundle\". `weir bundle` writes one",
            ),
            NotABundle::Later(version) => {
                write!(f, "it is a bundle of format {version}; this version of weir reads {VERSION}")
            }
        }
    }
}

impl Bundle {
    /// Reads the text of a file.
    pub(crate) fn read(text: &[u8]) -> Result<Bundle, NotABundle> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            format: String,
            #[serde(default)]
            version: u32,
        }
        let unreadable = |error: serde_json::Error| NotABundle::Unreadable(error.to_string());
        let head: Head = serde_json::from_slice(text).map_err(unreadable)?;
        if head.format != FORMAT {
            return Err(NotABundle::OtherFormat);
        }
        if head.version > VERSION {
            return Err(NotABundle::Later(head.version));
        }
        let mut bundle: Bundle = serde_json::from_slice(text).map_err(unreadable)?;
        bundle.history.retain(|history| !history.ended_unix_ms.is_empty());
        Ok(bundle)
    }

    /// Returns an answer; `None` if it is missing or has another form.
    pub(crate) fn answer<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        T::deserialize(self.answers.get(path)?).ok()
    }
}
