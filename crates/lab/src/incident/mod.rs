//! Incident files: hosts, links, programs, steps, and expected results.
//!
//! docs/lab.md explains every key. Reading checks everything that can be checked without creating
//! anything; errors name the line.

mod catalog;
mod check;
mod step;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::figures::Expression;
use crate::link::{Way, Ways};
use crate::template::{self, Source};

pub use catalog::{Entry, entries, find};
pub(crate) use step::is_in;
pub use step::{Action, Pause, Step};

/// Hosts of an incident, counting each member of groups.
const HOSTS_MAX: usize = 200;

/// An incident.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// A short title.
    pub title: String,
    /// What happened at a company.
    pub story: String,
    /// How the lab reproduces it, and what it leaves out.
    pub here: String,
    /// Variables for the templates in files and commands.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Their values in a shortened run.
    #[serde(default)]
    pub short: BTreeMap<String, String>,
    /// By name.
    pub hosts: BTreeMap<String, Host>,
    /// Between hosts.
    #[serde(default)]
    pub links: Vec<Link>,
    /// Files that programs read, by name.
    #[serde(default)]
    pub files: BTreeMap<String, Spanned<String>>,
    /// Programs on the hosts.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The set-ups that are compared, such as before and after.
    pub variants: Vec<Variant>,
    /// Parts of figures, by name; `{{ NAME }}` in a figure stands for one.
    #[serde(default)]
    pub figures: BTreeMap<String, String>,
    /// Expected figures.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Expected findings.
    #[serde(default)]
    pub findings: Vec<Findings>,
    /// The file itself, for messages.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// A host, or a group of identical hosts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A description.
    #[serde(default)]
    pub what: String,
    /// The size of the group, whose hosts are numbered from 1; `None`: one host without a number.
    pub count: Option<u8>,
    /// How many addresses each has.
    #[serde(default = "one")]
    pub addresses: u8,
    /// Settings of its kernel (`net.*`), by name.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
}

fn one() -> u8 {
    1
}

/// A link between two hosts, or from each host of a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name; that of a group's gets a dash and the host's name behind it.
    pub name: String,
    /// The hosts; there is from the first to the second.
    pub between: [Spanned<String>; 2],
    /// An unmodified pair of interfaces.
    #[serde(default)]
    pub plain: bool,
    /// Both directions.
    pub both: Option<Way>,
    /// From the first host to the second.
    pub there: Option<Way>,
    /// From the second host to the first.
    pub back: Option<Way>,
}

impl Link {
    /// Its settings at the start.
    pub fn ways(&self) -> Ways {
        Ways { both: self.both.clone(), there: self.there.clone(), back: self.back.clone() }
    }
}

/// A program on a host, or on each host of a group, for as long as a variant runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub host: Spanned<String>,
    /// The command line.
    pub run: Spanned<String>,
    /// It is ready when connections to this address are accepted.
    pub ready: Option<Spanned<String>>,
    /// In which variants; without it, in all.
    #[serde(default)]
    pub variants: Vec<Spanned<String>>,
}

/// One of the set-ups that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Variables that differ in it.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Settings that differ in it, for every host.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    /// A shortened run leaves it out.
    #[serde(default)]
    pub long: bool,
}

/// A figure and its bounds; without bounds it is only shown next to the company's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What it is.
    pub what: String,
    /// The expression: `before.load.totals.errors`, `sum(…)`, `above(400, …)`; see [`crate::figures`].
    pub figure: Spanned<String>,
    /// What it counts in.
    #[serde(default)]
    pub unit: String,
    /// Not less.
    pub at_least: Option<f64>,
    /// Not more.
    pub at_most: Option<f64>,
    /// What the company measured.
    #[serde(default)]
    pub theirs: String,
    /// A shortened run leaves it out.
    #[serde(default)]
    pub long: bool,
}

/// The findings that a step or the balancers must report.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// In which variant.
    pub variant: Spanned<String>,
    /// A step whose JSON holds findings.
    pub step: Option<Spanned<String>>,
    /// Instead of a step: a `weir serve` program, whose admin API is asked for its findings on each of
    /// its hosts after the last step.
    pub balancer: Option<Spanned<String>>,
    /// Rules that must report a finding.
    #[serde(default)]
    pub must: Vec<String>,
    /// The certainty that findings must have, by rule: `possible`, `likely` or `certain`.
    #[serde(default)]
    pub certainty: BTreeMap<String, String>,
    /// Rules that may report a warning or a critical finding.
    #[serde(default)]
    pub may: Vec<String>,
    /// A shortened run leaves it out.
    #[serde(default)]
    pub long: bool,
}

impl Findings {
    /// The name of the step or the program.
    pub fn by(&self) -> &str {
        self.step.as_ref().or(self.balancer.as_ref()).map_or("", |name| name.as_ref())
    }
}

impl Incident {
    /// Reads an incident; `name` is what messages call the file.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn read(name: &str, text: &str) -> Result<Incident, String> {
        let mut incident: Incident = toml::from_str(text)
            .map_err(|error| format!("{name}: {}", error.to_string().trim_end()))?;
        incident.source = Source::new(name, text);
        check::check(&incident).map_err(|mistake| mistake.message(&incident.source))?;
        check::templates(&incident)?;
        Ok(incident)
    }

    /// Returns the host of that name, or the hosts of that group.
    pub fn members(&self, name: &str) -> Vec<String> {
        match self.hosts.get(name).map(|host| host.count) {
            Some(None) => vec![name.to_owned()],
            Some(Some(count)) => (1..=count).map(|number| format!("{name}{number}")).collect(),
            None if self.host(name).is_some() => vec![name.to_owned()],
            None => Vec::new(),
        }
    }

    /// Returns the entry of a host, also of a group's member.
    pub fn host(&self, name: &str) -> Option<&Host> {
        if let Some(host) = self.hosts.get(name).filter(|host| host.count.is_none()) {
            return Some(host);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (group, number) = name.split_at(name.len() - digits);
        let number: u8 = number.parse().ok()?;
        self.hosts.get(group).filter(|host| (1..=host.count.unwrap_or(0)).contains(&number))
    }

    /// Returns every host in order of name, with each member of groups.
    pub fn all_hosts(&self) -> Vec<String> {
        self.hosts.keys().flat_map(|name| self.members(name)).collect()
    }

    /// Returns every link with its two hosts, with each member of groups.
    pub fn all_links(&self) -> Vec<(String, [String; 2], &Link)> {
        let mut links = Vec::new();
        for link in &self.links {
            let [first, second] = link.between.each_ref().map(|name| self.members(name.as_ref()));
            let is_group = first.len() * second.len() > 1;
            for one in &first {
                for other in &second {
                    let name = match (is_group, first.len() > 1) {
                        (false, _) => link.name.clone(),
                        (true, true) => format!("{}-{one}", link.name),
                        (true, false) => format!("{}-{other}", link.name),
                    };
                    links.push((name, [one.clone(), other.clone()], link));
                }
            }
        }
        links
    }

    /// The figure of an expectation, with the parts that it names filled in.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn figure(&self, expect: &Expect) -> Result<Expression, String> {
        let parts = self.figures.iter().map(|(name, part)| (name.clone(), format!("({part})")));
        let parts = parts.collect::<BTreeMap<_, _>>();
        let text = template::render(expect.figure.as_ref(), parts.into())?;
        Expression::read(&text)
    }

    /// The variables of a variant, by name.
    pub fn variables(&self, variant: &Variant, is_short: bool) -> BTreeMap<String, String> {
        let mut variables = self.set.clone();
        if is_short {
            variables.extend(self.short.clone());
        }
        variables.extend(variant.set.clone());
        variables
    }
}
