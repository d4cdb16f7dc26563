//! What stands now, and what is to be said: findings over time, inside a program that looks again
//! and again. Each is said when it appears, and while it stays at most once a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Moment;

use crate::finding::{Finding, Report};

/// A finding is said no more often than this.
pub const SAY_EVERY: Duration = Duration::from_secs(60);

/// A finding that was not found for so long no longer stands.
pub const STANDS_FOR: Duration = Duration::from_secs(60);

/// Findings that are kept at once; the lightest of more are not.
pub const STANDING_MAX: usize = 1_000;

/// A finding that stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// As it was found last.
    pub finding: Finding,
    /// When it was found first.
    pub since: Moment,
    /// When it was found last.
    pub last: Moment,
    said: Moment,
}

/// What tells one finding from another over time: rule, subject, namespace.
type Key = (String, String, Option<String>);

/// All findings that stand.
#[derive(Clone, Debug, Default)]
pub struct Board {
    standing: BTreeMap<Key, Standing>,
}

impl Board {
    /// Takes in what was found at `now`; returns what is to be said, in order of the report.
    pub fn update(&mut self, report: Report, now: Moment) -> Vec<Finding> {
        let mut say = Vec::new();
        for finding in report.findings {
            let key = (
                finding.rule.clone().into_owned(),
                finding.subject.clone(),
                finding.namespace.clone(),
            );
            if let Some(standing) = self.standing.get_mut(&key) {
                if now.since(standing.said) >= SAY_EVERY {
                    standing.said = now;
                    say.push(finding.clone());
                }
                (standing.finding, standing.last) = (finding, now);
            } else if self.standing.len() < STANDING_MAX {
                say.push(finding.clone());
                self.standing.insert(key, Standing { finding, since: now, last: now, said: now });
            }
        }
        // Last, so that one that comes and goes is not said each time it comes.
        self.standing.retain(|_, standing| now.since(standing.last) < STANDS_FOR);
        say
    }

    /// What stands, heaviest first.
    pub fn standing(&self) -> Vec<&Standing> {
        let mut all: Vec<&Standing> = self.standing.values().collect();
        all.sort_by_key(|one| {
            (std::cmp::Reverse(one.finding.severity), std::cmp::Reverse(one.finding.certainty))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Certainty, Severity};

    fn report(subjects: &[&str]) -> Report {
        let find = |subject: &&str| {
            Finding::new("loss", *subject, Severity::Warning, Certainty::Likely, "It is.")
        };
        Report { findings: subjects.iter().map(find).collect(), could_not_check: Vec::new() }
    }

    fn said(board: &mut Board, subjects: &[&str], second: u64) -> Vec<String> {
        let now = Moment::from_millis(second * 1000);
        board.update(report(subjects), now).into_iter().map(|one| one.subject).collect()
    }

    #[test]
    fn a_finding_is_said_at_once_and_then_once_a_minute() {
        let mut board = Board::default();
        assert_eq!(said(&mut board, &["a"], 100), ["a"]);
        assert_eq!(said(&mut board, &["a", "b"], 130), ["b"]);
        assert_eq!(said(&mut board, &["a", "b"], 159), [""; 0]);
        assert_eq!(said(&mut board, &["a", "b"], 160), ["a"]);
        assert_eq!(said(&mut board, &["a", "b"], 190), ["b"]);
    }

    #[test]
    fn one_that_comes_and_goes_is_not_said_each_time() {
        let mut board = Board::default();
        assert_eq!(said(&mut board, &["a"], 0), ["a"]);
        assert_eq!(said(&mut board, &[], 10), [""; 0]);
        assert_eq!(said(&mut board, &["a"], 20), [""; 0]);
        assert_eq!(board.standing().len(), 1);
        assert_eq!(board.standing()[0].since, Moment::ZERO);
        assert_eq!(said(&mut board, &[], 81), [""; 0]);
        assert_eq!(board.standing().len(), 0);
        assert_eq!(said(&mut board, &["a"], 82), ["a"]);
    }

    #[test]
    fn the_board_is_bounded() {
        let mut board = Board::default();
        let names: Vec<String> = (0..STANDING_MAX + 5).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(said(&mut board, &names, 0).len(), STANDING_MAX);
    }
}
