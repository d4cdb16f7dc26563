//! The results of a run, for the JSON file and the page.

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
    /// Figures and their bounds.
    pub checks: Vec<Check>,
    /// Findings and what was expected.
    pub findings: Vec<Found>,
    /// Everything that steps have written, by variant and step.
    pub figures: Value,
}

impl Record {
    /// Whether everything is as expected.
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
    /// Whether it is a fault or its end, rather than a measurement.
    pub is_fault: bool,
}

/// A figure and its bounds.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What it is.
    pub what: String,
    /// The expression.
    pub figure: String,
    /// Its value in this run; `None`: not found.
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
    /// The expected range as text; empty for a figure without bounds.
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

/// Writes a figure with a few significant digits.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => return format!("{value:.0}"),
        size if size >= 1.0 => 2,
        _ => 4,
    };
    page::trimmed(value, digits)
}

/// Findings, and what was expected.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// In which variant.
    pub variant: String,
    /// The step or the balancer that reported.
    pub by: String,
    /// Whether it was asked at all; otherwise the absence of findings means nothing.
    pub has_looked: bool,
    /// What was found.
    pub found: Vec<Finding>,
    /// Expected rules that reported nothing, or with another certainty.
    pub missing: Vec<String>,
    /// Rules with an unexpected warning or critical finding.
    pub unexpected: Vec<String>,
    /// Whether it is as expected.
    pub holds: bool,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// `note`, `advice`, `warning` or `critical`.
    pub severity: String,
    /// `possible`, `likely` or `certain`.
    pub certainty: String,
    /// The text of the first such finding.
    pub what: String,
    /// How many such findings there are, of several subjects or hosts.
    pub times: usize,
}

impl Finding {
    /// Whether it is a warning or critical.
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
