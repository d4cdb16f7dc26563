//! What has been found over time: when each finding was first and last seen, and whether it is to be
//! said again now. For those who look again and again and whose log is not to be flooded.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::finding::{Finding, Report, Severity};

/// A finding is said again after this long at the earliest, however often it is found.
pub const SAID_APART_MS: u64 = 60_000;

/// A finding that was not seen for this long is forgotten.
const KEPT_MS: u64 = 10 * 60_000;

/// Findings kept; a host has few, and each listener and server at most a few more.
const KEPT_MAX: usize = 500;

/// A finding with its times, in milliseconds on the clock of whoever keeps the diary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// When it was first seen without a pause of [`KEPT_MS`].
    pub first_seen_ms: u64,
    /// When it was last seen.
    pub last_seen_ms: u64,
    /// In how many looks it was seen.
    pub times_seen: u64,
    /// Whether the newest look saw it.
    pub is_present: bool,
    /// As it was last seen.
    pub finding: Finding,
    /// When it was last said, and how serious it was.
    #[serde(skip)]
    said: Option<(u64, Severity)>,
}

/// All that was found lately.
#[derive(Clone, Debug, Default)]
pub struct Diary {
    /// By rule, namespace and subject.
    entries: BTreeMap<(String, Option<String>, String), Entry>,
}

impl Diary {
    /// Enters what a look at `now_ms` found. Yields what is to be said: findings of weight that
    /// were not said within [`SAID_APART_MS`], or have become more serious since.
    pub fn enter(&mut self, report: &Report, now_ms: u64) -> Vec<Finding> {
        self.entries.retain(|_, entry| now_ms.saturating_sub(entry.last_seen_ms) < KEPT_MS);
        for entry in self.entries.values_mut() {
            entry.is_present = false;
        }
        let mut said = Vec::new();
        for finding in &report.findings {
            let key =
                (finding.rule.to_string(), finding.namespace.clone(), finding.subject.clone());
            if self.entries.len() >= KEPT_MAX && !self.entries.contains_key(&key) {
                continue;
            }
            let entry = self.entries.entry(key).or_insert_with(|| Entry {
                first_seen_ms: now_ms,
                last_seen_ms: now_ms,
                times_seen: 0,
                is_present: true,
                finding: finding.clone(),
                said: None,
            });
            entry.last_seen_ms = now_ms;
            entry.times_seen += 1;
            entry.is_present = true;
            entry.finding = finding.clone();
            let is_news = entry.said.is_none_or(|(at_ms, severity)| {
                now_ms.saturating_sub(at_ms) >= SAID_APART_MS || finding.severity > severity
            });
            if finding.has_weight() && is_news {
                entry.said = Some((now_ms, finding.severity));
                said.push(finding.clone());
            }
        }
        said
    }

    /// Everything kept: what is there now first, then by severity, then the latest.
    pub fn entries(&self) -> Vec<&Entry> {
        let mut all: Vec<&Entry> = self.entries.values().collect();
        all.sort_by_key(|entry| {
            std::cmp::Reverse((entry.is_present, entry.finding.severity, entry.last_seen_ms))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Namespace, Settings};
    use crate::rules::diagnose;

    /// A host on which SACK is off.
    fn report() -> Report {
        let mut settings = Settings { complete: true, ..Settings::default() };
        settings.values.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
        settings.values.insert("net.ipv4.tcp_min_snd_mss".to_owned(), "48".to_owned());
        let namespace =
            Namespace { is_own: true, settings: settings.into(), ..Namespace::default() };
        diagnose(&Facts { namespaces: vec![namespace], ..Facts::default() })
    }

    #[test]
    fn a_finding_is_said_at_most_once_a_minute() {
        let mut diary = Diary::default();
        let said: Vec<u64> =
            (0..130).filter(|second| !diary.enter(&report(), second * 1000).is_empty()).collect();
        assert_eq!(said, [0, 60, 120]);
        let entries = diary.entries();
        assert_eq!((entries[0].first_seen_ms, entries[0].times_seen), (0, 130));
    }

    #[test]
    fn what_becomes_worse_is_said_at_once() {
        let mut diary = Diary::default();
        diary.enter(&report(), 0);
        let mut worse = report();
        worse.findings[0].severity = Severity::Critical;
        assert_eq!(diary.enter(&worse, 1000).len(), 1);
        assert!(diary.enter(&report(), 2000).is_empty(), "better is not news");
    }

    #[test]
    fn what_has_passed_is_kept_for_a_while_and_marked() {
        let mut diary = Diary::default();
        diary.enter(&report(), 0);
        diary.enter(&Report::default(), 10_000);
        assert_eq!(diary.entries().iter().map(|e| e.is_present).collect::<Vec<_>>(), [false]);
        diary.enter(&Report::default(), KEPT_MS);
        assert!(diary.entries().is_empty());
    }
}
