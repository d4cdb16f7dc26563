//! The source of one service over time: what each of its parts has answered, and the set of servers that
//! follows from it.
//!
//! The parts are the datacenters of Consul; every other source is one part. Servers of the first part are
//! primaries, those of the others backups. While there are servers, an answer applies once every part has answered
//! or failed, so that the servers of the others do not seem to be gone meanwhile.

use std::sync::Arc;

use model::{Discover, Moment};

use crate::saved::{SavedPart, SavedServer, SavedService};
use crate::{Answer, Listed, Outcome, Row, Set, SetState};

/// The source of one service.
#[derive(Clone, Debug)]
pub struct ServiceSource {
    policy: Arc<Discover>,
    /// Names what is asked where. The first answer of another source is not compared with the servers before.
    identity: Arc<str>,
    parts: Vec<Part>,
    set: Set,
    /// Index of the last answer.
    index: Option<u64>,
    /// An answer has not been applied yet.
    is_waiting: bool,
    servers: Servers,
}

/// A part of a source.
#[derive(Clone, Debug, Default)]
struct Part {
    /// The datacenter; `None`: the source has one part.
    name: Option<Box<str>>,
    /// The last answer, perhaps one of an earlier process or configuration.
    answer: Option<Answer>,
    is_answered: bool,
    /// Since when it fails, and why.
    failing: Option<(Moment, String)>,
}

/// Where the servers in use come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Servers {
    /// From answers.
    Answered,
    /// From an earlier process.
    Restored,
    /// From the source that the service had before.
    OtherSource,
}

/// What a report changed, and what is worth a line in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// What it changed.
    pub outcome: Outcome,
    /// Why the part fails, if it did not fail before for that reason.
    pub begins_to_fail: Option<String>,
    /// The part answers again.
    pub answers_again: bool,
}

impl ServiceSource {
    /// Returns a source without servers. `identity` names what is asked where; `parts`: their names, at least one.
    pub fn new(
        policy: Arc<Discover>,
        identity: Arc<str>,
        parts: impl IntoIterator<Item = Option<Box<str>>>,
    ) -> ServiceSource {
        let parts = parts.into_iter().map(|name| Part { name, ..Part::default() }).collect();
        let set = Set::new(policy.source.kind());
        let servers = Servers::Answered;
        ServiceSource { policy, identity, parts, set, index: None, is_waiting: false, servers }
    }

    /// Fills a new source with the servers of an earlier process, if they are of the same source. They count as if
    /// it had listed them before: its first answer is compared with them.
    pub fn restore(&mut self, saved: &SavedService, now: Moment) {
        if *saved.source != *self.identity {
            return;
        }
        for SavedPart { name, servers } in &saved.parts {
            let is_it = |part: &&mut Part| part.name.as_deref() == name.as_deref();
            if let Some(part) = self.parts.iter_mut().find(is_it) {
                let rows = servers.iter().filter_map(SavedServer::row).collect();
                part.answer = Some(Answer { rows, ..Answer::default() });
            }
        }
        let Ok(merged) = self.merged() else { return };
        let held = saved.held.iter().filter_map(SavedServer::row).collect();
        self.set.restore(merged.rows, held, &self.policy, now);
        self.servers = Servers::Restored;
    }

    /// Takes over the servers of what the service had before, unless this source has answered. Its first answer is
    /// compared with them if they are of the same source; if not, it replaces them.
    pub fn inherit(&mut self, before: &ServiceSource, now: Moment) {
        if self.parts.iter().any(|part| part.is_answered) {
            return;
        }
        if self.identity == before.identity {
            for part in &mut self.parts {
                let known = before.parts.iter().find(|known| known.name == part.name);
                part.answer = known.and_then(|known| known.answer.clone());
            }
            self.set = before.set.clone();
            self.set.limit_held(now + self.policy.hold.max);
            self.servers = before.servers;
        } else {
            self.set.take_servers(&before.set);
            self.servers = Servers::OtherSource;
        }
        self.note_failures();
    }

    /// Applies what a part has answered, or why it has not.
    pub fn on_report(
        &mut self,
        part: usize,
        result: Result<(Answer, Option<u64>), String>,
        now: Moment,
    ) -> Effect {
        let mut effect = Effect::default();
        let result = result.and_then(|(answer, index)| {
            self.accept(part, answer)?;
            Ok(index)
        });
        let Some(part) = self.parts.get_mut(part) else { return effect };
        let failed_before = part.failing.take();
        match result {
            Ok(index) => {
                part.is_answered = true;
                self.index = index;
                self.is_waiting = true;
                effect.answers_again = failed_before.is_some();
            }
            Err(why) => {
                let why = match &part.name {
                    Some(name) => format!("datacenter {name}: {why}"),
                    None => why,
                };
                let since = failed_before.as_ref().map_or(now, |(since, _)| *since);
                let is_new = failed_before.is_none_or(|(_, before)| before != why);
                effect.begins_to_fail = is_new.then(|| why.clone());
                part.failing = Some((since, why));
            }
        }
        if self.is_waiting && self.may_apply() {
            effect.outcome = self.apply(now);
        }
        self.note_failures();
        effect
    }

    /// Does what is due at `now`; see [`Set::tick`].
    pub fn tick(&mut self, now: Moment) -> bool {
        let changed = self.set.tick(&self.policy, now);
        if self.set.is_dropped() {
            self.parts.iter_mut().for_each(|part| part.answer = None);
        }
        changed
    }

    /// Returns when [`ServiceSource::tick`] next has something to do.
    pub fn next_due(&self) -> Option<Moment> {
        self.set.next_due(&self.policy)
    }

    /// Returns its settings.
    pub fn policy(&self) -> &Arc<Discover> {
        &self.policy
    }

    /// Returns its servers, sorted by address.
    pub fn servers(&self) -> impl Iterator<Item = &Listed> {
        self.set.servers()
    }

    /// Returns whether each part has answered or failed since it was asked first.
    pub fn is_tried(&self) -> bool {
        self.parts.iter().all(|part| part.is_answered || part.failing.is_some())
    }

    /// Returns the state of its set.
    pub fn state(&self) -> SetState {
        self.set.state()
    }

    /// Returns whether its servers are those of an earlier process: it has not answered since the start.
    pub fn is_restored(&self) -> bool {
        self.servers == Servers::Restored
    }

    /// Returns its servers for the file that a later process reads; `None` while they are those of another source.
    pub fn saved(&self) -> Option<SavedService> {
        let parts = self.parts.iter().filter_map(|part| {
            let rows = &part.answer.as_ref()?.rows;
            Some(SavedPart::of(part.name.as_deref(), rows))
        });
        (self.servers != Servers::OtherSource).then(|| SavedService {
            source: self.identity.to_string(),
            parts: parts.collect(),
            held: SavedPart::of(None, &self.set.held().collect::<Vec<_>>()).servers,
        })
    }

    /// Keeps the answer of a part.
    ///
    /// # Errors
    /// It cannot be used: none of its entries is a server, or there are too many with those of the other parts.
    fn accept(&mut self, part: usize, answer: Answer) -> Result<(), String> {
        if answer.rows.is_empty()
            && let Some(first) = answer.refused.first()
        {
            let (count, object, why) = (answer.refused_count, &first.object, &first.why);
            return Err(format!("none of the {count} entries is a valid server ({object}: {why})"));
        }
        let Some(part) = self.parts.get_mut(part) else { return Ok(()) };
        let before = part.answer.replace(answer);
        let name = part.name.clone();
        self.merged().map(drop).inspect_err(|_| {
            if let Some(part) = self.parts.iter_mut().find(|part| part.name == name) {
                part.answer = before;
            }
        })
    }

    /// Returns whether the answers may apply: no part is left whose servers would seem to be gone. That of the
    /// primaries must have answered before servers of another source are replaced.
    fn may_apply(&self) -> bool {
        let is_known = |part: &Part| part.answer.is_some() || part.failing.is_some();
        let has_primaries = self.parts.first().is_none_or(|part| part.answer.is_some());
        self.set.is_empty()
            || self.parts.iter().all(is_known)
                && (has_primaries || self.servers == Servers::Answered)
    }

    fn apply(&mut self, now: Moment) -> Outcome {
        self.is_waiting = false;
        // Checked when each was accepted.
        let Ok(merged) = self.merged() else { return Outcome::default() };
        let is_other = self.servers == Servers::OtherSource;
        let had_others = is_other && self.set.forget_servers(now);
        self.servers = Servers::Answered;
        let mut outcome = self.set.on_answer(merged, self.index, &self.policy, now);
        outcome.changed |= had_others;
        outcome
    }

    fn note_failures(&mut self) {
        let failing = || self.parts.iter().filter_map(|part| part.failing.as_ref());
        if let Some((since, why)) = failing().min_by_key(|(since, _)| *since) {
            let all_fail = failing().count() == self.parts.len();
            let silent_since = failing().map(|(since, _)| *since).max().filter(|_| all_fail);
            self.set.on_failure(why.clone(), *since, silent_since);
        }
    }

    /// Returns the last answers of all parts as one.
    fn merged(&self) -> Result<Answer, String> {
        let mut merged = Answer::default();
        for (number, part) in self.parts.iter().enumerate() {
            let Some(mut answer) = part.answer.clone() else { continue };
            if number > 0 {
                answer.rows.iter_mut().for_each(|row: &mut Row| row.server.backup = true);
            }
            merged.add(answer)?;
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests;
