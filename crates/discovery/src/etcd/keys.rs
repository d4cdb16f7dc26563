//! The keys of one prefix with their servers, as a list and the events since then describe them.

use std::collections::BTreeMap;

use model::ListedLimits;

use super::message::{Event, KeyValue, Kind, Message, Range, Watched};
use super::value::{self, VALUE_BYTES_MAX};
use crate::merged::merge;
use crate::row::{check_count, object_name, reason};
use crate::{Answer, ROWS_MAX, Readiness, Row};

/// The maximum length of a key. With [`ROWS_MAX`] keys, they have at most 16 MiB.
const KEY_BYTES_MAX: usize = 1 << 10;

/// What is read from the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `Each`: an address is one server. If several keys have it, the first key counts, and the others are
    /// refused. `Added`: the keys of an address are workers of one server, whose limit is the sum of theirs: 1
    /// for a worker without a limit. Its other values are those of the first.
    pub limits: ListedLimits,
    /// Replaces the port of each server.
    pub port: Option<u16>,
}

/// What a message of a watch means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The watch has begun.
    Created,
    /// The answer may differ.
    Changed,
    /// The answer is the same.
    Same,
    /// The next events are not available: etcd has compacted them, or its revisions went back, for instance
    /// because a backup was restored, or another cluster answers. The caller lists the keys again.
    Compacted,
    /// The watch has ended, for this reason (bounded and escaped). The caller begins another one after
    /// [`Keys::revision`].
    Ended(String),
}

/// The known keys of one prefix, at most [`ROWS_MAX`].
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: Vec<u8>,
    reading: Reading,
    /// The ID of the cluster that listed them.
    cluster: String,
    /// All events up to this revision have been seen.
    revision: i64,
    known: BTreeMap<Vec<u8>, Known>,
}

/// What is known of a key.
#[derive(Clone, Debug)]
struct Known {
    /// The revision in which it was last written.
    mod_revision: i64,
    /// Its server, or why it is refused.
    parsed: Result<Row, String>,
}

impl Keys {
    /// Reads the answer to [`range_body`](super::range_body) with the same prefix.
    ///
    /// # Errors
    /// The answer is not of this format, or the prefix has more than [`ROWS_MAX`] keys, or one that is longer
    /// than 1 KiB. One line, bounded and escaped.
    pub fn listed(bytes: &[u8], prefix: &str, reading: Reading) -> Result<Keys, String> {
        let range: Range<'_> =
            serde_json::from_slice(bytes).map_err(|error| reason(&error.to_string()))?;
        if range.more {
            return Err(format!(
                "a service has at most {ROWS_MAX} servers; the prefix has more keys"
            ));
        }
        check_count(range.kvs.len())?;
        let revision = range.header.revision.0;
        let cluster = range.header.cluster_id.into_owned();
        if revision < 1 {
            return Err("the answer has no revision".to_owned());
        }
        let prefix = prefix.as_bytes().to_vec();
        let mut keys = Keys { prefix, reading, cluster, revision, known: BTreeMap::new() };
        for kv in &range.kvs {
            keys.put(kv)?;
        }
        Ok(keys)
    }

    /// Returns the revision up to which all events are known. A watch begins with the next one.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Takes in a message of a watch: one line of the stream. Events that are already known have no effect, so a
    /// watch may begin at an earlier revision.
    ///
    /// # Errors
    /// The line is not a message, or the prefix now has more than [`ROWS_MAX`] keys, or one that is longer than
    /// 1 KiB. One line, bounded and escaped. Some events of the message may have been taken in: the caller lists
    /// the keys again.
    pub fn on_message(&mut self, line: &[u8]) -> Result<Step, String> {
        let message: Message<'_> =
            serde_json::from_slice(line).map_err(|error| reason(&error.to_string()))?;
        if let Some(failed) = message.error {
            let said = failed.message.as_deref().unwrap_or("an error without a message");
            return Ok(Step::Ended(reason(said)));
        }
        self.on_watched(message.result.ok_or("neither a result nor an error")?)
    }

    fn on_watched(&mut self, watched: Watched<'_>) -> Result<Step, String> {
        if watched.compact_revision.0 > 0 {
            return Ok(Step::Compacted);
        }
        if watched.canceled {
            let said = watched.cancel_reason.as_deref().filter(|said| !said.is_empty());
            let said = said.unwrap_or("etcd ended the watch");
            // `rpc error: code = PermissionDenied desc = etcdserver: permission denied`
            let said = said.split_once(" desc = ").map_or(said, |(_, said)| said);
            return Ok(Step::Ended(reason(said)));
        }
        let header = watched.header.unwrap_or_default();
        let (store, cluster) = (header.revision.0, header.cluster_id);
        if watched.created {
            let went_back = (1..self.revision).contains(&store);
            let is_other = !cluster.is_empty() && cluster != self.cluster;
            return Ok(if went_back || is_other { Step::Compacted } else { Step::Created });
        }
        // The header's revision is not that of the events: more of them may follow.
        if watched.events.iter().any(|event| event.kv.mod_revision.0 > store) {
            return Ok(Step::Compacted);
        }
        let mut changed = false;
        for event in &watched.events {
            changed |= self.on_event(event)?;
        }
        Ok(if changed { Step::Changed } else { Step::Same })
    }

    /// Returns whether the answer may differ.
    fn on_event(&mut self, event: &Event<'_>) -> Result<bool, String> {
        let at = event.kv.mod_revision.0;
        // Also replayed events of a key that was deleted since, of which nothing is known. An event of the
        // same revision may be another part of one transaction, which writes a key at most once.
        if at < self.revision {
            return Ok(false);
        }
        let changed = match event.kind {
            Kind::Put => self.put(&event.kv)?,
            Kind::Delete => {
                let key = event.kv.key()?;
                let is_newer = self.known.get(&key).is_some_and(|known| known.mod_revision < at);
                is_newer && self.known.remove(&key).is_some()
            }
        };
        self.revision = at;
        Ok(changed)
    }

    /// Returns whether the answer may differ.
    fn put(&mut self, kv: &KeyValue<'_>) -> Result<bool, String> {
        let key = kv.key()?;
        if !key.starts_with(&self.prefix) {
            return Ok(false);
        }
        let mod_revision = kv.mod_revision.0;
        let before = self.known.get(&key);
        if before.is_some_and(|known| known.mod_revision >= mod_revision) {
            return Ok(false);
        }
        let name = object_name(&String::from_utf8_lossy(&key));
        if key.len() > KEY_BYTES_MAX {
            return Err(format!("a key is longer than {KEY_BYTES_MAX} bytes: {name}"));
        }
        if before.is_none() {
            check_count(self.known.len() + 1)?;
        }
        let server = kv
            .value(VALUE_BYTES_MAX)
            .and_then(|value| value::server(&value, self.reading.port))
            .map_err(|why| reason(&why));
        let parsed =
            server.map(|server| Row { server, readiness: Readiness::Ready, object: name.into() });
        let changed = before.is_none_or(|known| known.parsed != parsed);
        self.known.insert(key, Known { mod_revision, parsed });
        Ok(changed)
    }

    /// Returns the servers, in the order of their keys.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        let mut rows = Vec::with_capacity(self.known.len());
        for (key, known) in &self.known {
            match &known.parsed {
                Ok(row) => rows.push(row.clone()),
                Err(why) => answer.refuse(&String::from_utf8_lossy(key), why),
            }
        }
        merge(rows, self.reading.limits, &mut answer);
        answer
    }
}
