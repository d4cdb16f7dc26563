//! A finding: one thing that is wrong, or worth knowing, with all that a person needs in order to
//! believe it, fix it and check that it is fixed. Also what could not be looked at.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::word::serde_as_word;

model::words! {
    /// How much a finding matters. The order is the order of rank.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// Worth knowing, nothing to do: an alarming figure that is harmless.
        Note = "note",
        /// Nothing is lost now; something would be better otherwise.
        Advice = "advice",
        /// Costs something now, or will soon. From here on a finding has weight.
        Warning = "warning",
        /// Traffic is being lost now.
        Critical = "critical",
    }
}
serde_as_word!(Severity);

model::words! {
    /// How sure it is that the evidence means what the finding says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Certainty {
        /// One of several explanations; the finding names the others.
        Possible = "possible",
        /// The usual explanation of the evidence.
        Likely = "likely",
        /// The evidence has no other explanation.
        Certain = "certain",
    }
}
serde_as_word!(Certainty);

/// A figure of the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Figure {
    /// A count.
    Count(u64),
    /// A rate, a share, a time.
    Number(f64),
    /// What is not a number: an address, a setting's value, a line of a log.
    Text(String),
}

/// One piece of evidence: a name, a figure, its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What was measured; where the kernel has a name for it, that name as `nstat` prints it.
    pub name: String,
    /// How much.
    pub figure: Figure,
    /// In what: `per second`, `connections`, `bytes`. Empty for text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Of a rate: how many in all since the counter began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all: Option<u64>,
}

/// One thing to do, with what it may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// What to do, as one sentence.
    pub action: String,
    /// Exact commands or settings, one a line; empty where there is none to copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What can go wrong, or what it costs.
    pub risk: String,
}

/// What another rule found, and what follows from this finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consequence {
    /// The rule that says so.
    pub rule: Cow<'static, str>,
    /// What it is about.
    pub subject: String,
    /// What happens, in one sentence.
    pub what: String,
}

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule that says so, by its name: `weir doctor --explain RULE` prints its page.
    pub rule: Cow<'static, str>,
    /// What it is about: a listener's address, a server, a setting, an interface. With `rule` it
    /// tells one finding from another, over time too.
    pub subject: String,
    /// The network namespace, when it is not the one that the program itself runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The service that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The servers of that service that are at fault, by address, if some are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub certainty: Certainty,
    /// What happens, in one sentence.
    pub what: String,
    /// On what evidence, the most telling first. Never empty.
    pub evidence: Vec<Evidence>,
    /// What follows from it: findings that are not reported separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// Why it matters, in one or two sentences.
    pub why: String,
    /// What to do, the best first. Empty only at severity `note`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedy: Vec<Remedy>,
    /// How to see that it is fixed: a command and what it should show.
    pub verify: String,
    /// Where the figures come from: files of /proc, `sock_diag`, counters of the balancer.
    pub source: Vec<String>,
}

impl Finding {
    /// A finding that still wants evidence, a reason, a remedy, a way to verify and a source.
    pub fn new(
        rule: impl Into<Cow<'static, str>>,
        subject: impl Into<String>,
        severity: Severity,
        certainty: Certainty,
        what: impl Into<String>,
    ) -> Finding {
        Finding {
            rule: rule.into(),
            subject: subject.into(),
            namespace: None,
            service: None,
            servers: Vec::new(),
            severity,
            certainty,
            what: what.into(),
            evidence: Vec::new(),
            consequences: Vec::new(),
            why: String::new(),
            remedy: Vec::new(),
            verify: String::new(),
            source: Vec::new(),
        }
    }

    /// With one more piece of evidence.
    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    /// With those pieces of evidence that there are.
    #[must_use]
    pub fn evidences(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Finding {
        self.evidence.extend(evidence);
        self
    }

    /// About a service, and those of its servers that are at fault.
    #[must_use]
    pub fn about(
        mut self,
        service: &str,
        servers: impl IntoIterator<Item = impl fmt::Display>,
    ) -> Finding {
        self.service = Some(service.to_owned());
        self.servers = servers.into_iter().map(|server| server.to_string()).collect();
        self
    }

    /// Why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    /// With one more thing to do: what, the commands (none: empty), and what it may cost.
    #[must_use]
    pub fn remedy(
        mut self,
        action: impl Into<String>,
        commands: &[&str],
        risk: impl Into<String>,
    ) -> Finding {
        let commands = commands.iter().map(|&command| command.to_owned()).collect();
        self.remedy.push(Remedy { action: action.into(), commands, risk: risk.into() });
        self
    }

    /// How to see that it is fixed.
    #[must_use]
    pub fn verify(mut self, verify: impl Into<String>) -> Finding {
        self.verify = verify.into();
        self
    }

    /// Where its figures come from.
    #[must_use]
    pub fn source(mut self, source: &[&str]) -> Finding {
        self.source = source.iter().map(|&one| one.to_owned()).collect();
        self
    }

    /// Whether an operator should act on it: [`Severity::Warning`] and above.
    pub fn has_weight(&self) -> bool {
        self.severity >= Severity::Warning
    }
}

/// Something that was not looked at, and so is neither fine nor wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CouldNotCheck {
    /// What, in the words of a person: `connection tracking`.
    pub what: String,
    /// Why not: the file and the error, or what would be needed.
    pub reason: String,
}

/// All that is said about a set of facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// By rank: severity, then certainty, then the order of the rules.
    pub findings: Vec<Finding>,
    /// Sorted, each once.
    pub could_not_check: Vec<CouldNotCheck>,
}

impl Report {
    /// Whether any finding has weight.
    pub fn has_weight(&self) -> bool {
        self.findings.iter().any(Finding::has_weight)
    }
}

impl Evidence {
    /// A count of `unit`.
    pub fn count(name: impl Into<String>, figure: u64, unit: impl Into<String>) -> Evidence {
        Evidence {
            name: name.into(),
            figure: Figure::Count(figure),
            unit: unit.into(),
            in_all: None,
        }
    }

    /// A rate, a share or a time in `unit`.
    pub fn number(name: impl Into<String>, figure: f64, unit: impl Into<String>) -> Evidence {
        // JSON has no other numbers.
        if !figure.is_finite() {
            return Evidence::text(name, "unknown");
        }
        Evidence {
            name: name.into(),
            figure: Figure::Number(figure),
            unit: unit.into(),
            in_all: None,
        }
    }

    /// What is not a number.
    pub fn text(name: impl Into<String>, figure: impl Into<String>) -> Evidence {
        Evidence {
            name: name.into(),
            figure: Figure::Text(figure.into()),
            unit: String::new(),
            in_all: None,
        }
    }

    /// How many in all, beside a rate.
    #[must_use]
    pub fn in_all(mut self, count: u64) -> Evidence {
        self.in_all = Some(count);
        self
    }
}

impl fmt::Display for CouldNotCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Could not check {}: {}", self.what, self.reason)
    }
}
