//! The last good answers as a file, for a start while a source does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{ServerTexts, listed_server};
use serde::{Deserialize, Serialize};

use crate::Row;
use crate::consul::tags::SavedRoute;
use crate::row::reason;

/// Version of the format. A file of another version is not used.
const VERSION: u32 = 1;

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    version: u32,
    /// By service.
    pub services: BTreeMap<String, SavedService>,
    /// The routes that services publish in Consul's tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<SavedRoute>,
}

/// The servers of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedService {
    /// What was asked: servers of another source are not used.
    pub(crate) source: String,
    pub(crate) parts: Vec<SavedPart>,
    /// Those that were no longer listed, and kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) held: Vec<SavedServer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedPart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) servers: Vec<SavedServer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedServer {
    address: String,
    object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    weight: u16,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    backup: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_flight_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    readiness: String,
}

impl Default for Saved {
    fn default() -> Saved {
        Saved { version: VERSION, services: BTreeMap::new(), routes: Vec::new() }
    }
}

impl Saved {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not of this format. One line, bounded and escaped.
    pub fn parse(bytes: &[u8]) -> Result<Saved, String> {
        let saved: Saved =
            serde_json::from_slice(bytes).map_err(|error| reason(&error.to_string()))?;
        match saved.version {
            VERSION => Ok(saved),
            other => Err(format!("it has version {other} of the format, not {VERSION}")),
        }
    }

    /// Returns the file's contents.
    pub fn bytes(&self) -> Vec<u8> {
        // Text and numbers always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl SavedPart {
    pub(crate) fn of(name: Option<&str>, rows: &[Row]) -> SavedPart {
        let servers = rows.iter().map(SavedServer::of).collect();
        SavedPart { name: name.map(str::to_owned), servers }
    }
}

impl SavedServer {
    fn of(row: &Row) -> SavedServer {
        let Row { server, readiness, object } = row;
        SavedServer {
            address: server.target.to_string(),
            object: object.to_string(),
            zone: server.zone.as_deref().map(str::to_owned),
            weight: server.weight,
            backup: server.backup,
            in_flight_max: server.in_flight_max,
            version: server.version.map(|version| version.to_string()),
            readiness: readiness.as_str().to_owned(),
        }
    }

    /// Returns it as an entry of an answer; `None`: it does not pass the checks of a source's servers.
    pub(crate) fn row(&self) -> Option<Row> {
        let number = |number: u32| number.to_string();
        let (weight, max) = (number(self.weight.into()), self.in_flight_max.map(number));
        let texts = ServerTexts {
            address: &self.address,
            zone: self.zone.as_deref(),
            weight: Some(&weight),
            backup: self.backup.then_some("true"),
            in_flight_max: max.as_deref(),
            version: self.version.as_deref(),
        };
        let server = listed_server(&texts).ok()?;
        let readiness = self.readiness.parse().ok()?;
        Some(Row { server, readiness, object: Arc::from(self.object.as_str()) })
    }
}
