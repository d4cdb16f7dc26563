//! What a run came to, as it is written into a file and onto the page.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The incident's name.
    pub name: String,
    /// The incident, in a few words.
    pub title: String,
    /// The seed.
    pub seed: u64,
    /// Whether it was shortened.
    pub is_short: bool,
    /// The machine's kernel.
    pub kernel: String,
    /// Its processors.
    pub cpus: usize,
    /// How long it took.
    pub took_s: f64,
    /// In the order in which they ran.
    pub variants: Vec<VariantRecord>,
    /// Figures, and what they had to be.
    pub checks: Vec<Check>,
    /// Findings, and what had to be found.
    pub findings: Vec<Found>,
    /// Everything that steps have written, by variant and step.
    pub figures: Value,
}

impl Record {
    /// Whether everything came out as expected.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds) && self.findings.iter().all(|found| found.holds)
    }
}

/// A variant's run.
#[derive(Clone, Debug, Serialize)]
pub struct VariantRecord {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What happened, in order of time.
    pub events: Vec<Event>,
    /// Kernel counters that have moved, by host.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Something on the time line.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Since the variant's beginning.
    pub at_s: f64,
    /// What.
    pub what: String,
    /// A fault or its mending, and not a measurement.
    pub is_fault: bool,
}

/// A figure and what it had to be.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What it is.
    pub what: String,
    /// Where it stands.
    pub figure: String,
    /// What it is in this run; `None` when it was not to be found.
    pub value: Option<f64>,
    /// What it counts in.
    pub unit: String,
    /// Not less.
    pub at_least: Option<f64>,
    /// Not more.
    pub at_most: Option<f64>,
    /// What the company measured.
    pub theirs: String,
    /// Whether it is as expected.
    pub holds: bool,
}

impl Check {
    /// What it had to be, in words; nothing for a figure that is only told.
    pub fn bounds(&self) -> String {
        match (self.at_least.map(figure), self.at_most.map(figure)) {
            (Some(least), Some(most)) if least == most => least,
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => String::new(),
        }
    }
}

/// A figure as people write it.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => return format!("{value:.0}"),
        size if size >= 1.0 => 2,
        _ => 4,
    };
    page::trimmed(value, digits)
}

/// What was found, and what had to be.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// In which variant.
    pub variant: String,
    /// Who looked: a step, or the balancer itself.
    pub by: String,
    /// Whether there was a look at all; no finding means something only then.
    pub has_looked: bool,
    /// What was found.
    pub found: Vec<Finding>,
    /// Rules that had to speak, and did not, or not as sure of it as they had to be.
    pub missing: Vec<String>,
    /// Rules that spoke of something serious that nobody expected.
    pub unexpected: Vec<String>,
    /// Whether it is as expected.
    pub holds: bool,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that spoke.
    pub rule: String,
    /// `note`, `advice`, `warning` or `critical`.
    pub severity: String,
    /// `possible`, `likely` or `certain`.
    pub certainty: String,
    /// What it said, of the first that it spoke of.
    pub what: String,
    /// How often it spoke like that: of several subjects, or on several hosts.
    pub times: usize,
}

impl Finding {
    /// Whether somebody should act on it.
    pub fn has_weight(&self) -> bool {
        matches!(&*self.severity, "warning" | "critical")
    }
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_have_as_many_digits_as_say_something() {
        let figures = [5042.4, 42.0, 4.506, 0.66041, 0.75, 1.0];
        assert_eq!(figures.map(figure), ["5042", "42", "4.51", "0.6604", "0.75", "1"]);
    }
}
