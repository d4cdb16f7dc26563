//! Every rule, in order of rank, and how they are run.
//!
//! A rule is one file: its header is the page that `weir doctor --explain RULE` prints and that
//! docs/rules.md is made of; its `check` is a pure function over facts. A rule whose finding
//! explains what others see absorbs theirs, as the list below says.

// Not declared by the macro below: rustfmt does not see modules that a macro declares.
mod abort_on_overflow;
mod backlog_capped;
mod backlog_low;
mod backlog_stale;
mod balance_skewed;
mod buffer_caps;
mod capture_dead_peer;
mod capture_gaps;
mod capture_loss;
mod capture_mtu;
mod capture_queue_full;
mod capture_reordering;
mod capture_sack_off;
mod capture_slow_reader;
mod capture_spurious;
mod capture_syn_lost;
mod capture_tail_loss;
mod capture_twice;
mod capture_undecoded;
mod certificate_expiring;
mod cgroup_throttled;
mod checks_blind;
mod client_spike;
mod connections_stalled;
mod connects_refused;
mod conntrack_drops;
mod conntrack_full;
mod conntrack_timeout;
mod cpu_steal;
mod deploy_regression;
mod ena_conntrack_left;
mod ena_shaped;
mod failure_wave;
mod fleet_members_missing;
mod fleet_not_joined;
mod fleet_results_contradict;
mod fleet_secrets_not_shared;
mod interrupts_unbalanced;
mod kubernetes_not_followed;
mod listen_drops_other;
mod listener_near_full;
mod listener_overflow;
mod loss;
mod neighbour_table;
mod nic_drops;
mod open_files;
mod orphans;
mod overflow_elsewhere;
mod peer_slow_reader;
mod ports_exhausted;
mod queue_growing;
mod receive_buffer_small;
mod reordering;
mod resets_received;
mod resets_sent;
mod retry_storm;
mod sack_off;
mod sack_panic;
mod server_failing;
mod server_loss;
mod server_queue_full;
mod server_slow;
mod server_syns;
mod servers_held;
mod service_failing;
mod service_saturated;
mod settings;
mod slow_reader;
mod softnet_drops;
mod softnet_squeeze;
mod source_failing;
mod syn_cookies;
mod syn_drops;
mod syn_unanswered;
mod syncookies_always;
mod sysctl_not_applied;
mod tcp_mem_pages;
mod tcp_memory;
mod time_wait_many;
mod time_wait_overflow;
mod timestamps_off;
mod tw_recycle;
mod window_scaling_off;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::facts::{Capture, Facts, Known, Namespace, Traffic};
use crate::finding::{Certainty, Consequence, Finding, Report, Severity};
use crate::view::{Out, View};

pub use crate::page::{Page, Section};
pub use settings::SETTINGS;

/// Makes the list of rules, each with its page.
macro_rules! rules {
    ($(
        $scope:ident $name:ident $(absorbs [$($same:ident),+])? $(absorbs_all [$($all:ident),+])?
            $(leads_to_same [$($same_servers:ident),+])? $(leads_to [$($consequence:ident),+])?;
    )+) => {
        const RULES: &[Rule] = &[$(
            Rule {
                name: stringify!($name),
                check: Check::$scope($name::check),
                source: include_str!(concat!(stringify!($name), ".rs")),
                absorbs_same: &[$($(stringify!($same)),+)?],
                absorbs_all: &[$($(stringify!($all)),+)?],
                leads_to_same: &[$($(stringify!($same_servers)),+)?],
                leads_to: &[$($(stringify!($consequence)),+)?],
            },
        )+];
    };
}

rules! {
    Namespace listener_overflow
        absorbs [listener_near_full, backlog_capped, backlog_low, backlog_stale]
        absorbs_all [syn_unanswered];
    Namespace syn_drops absorbs_all [listen_drops_other, syn_unanswered];
    Namespace conntrack_drops absorbs_all [conntrack_full, conntrack_timeout, syn_unanswered];
    Namespace ena_shaped;
    Namespace overflow_elsewhere absorbs_all [syn_unanswered];
    Namespace listen_drops_other;
    Namespace ports_exhausted absorbs_all [time_wait_many];
    Host softnet_drops absorbs [softnet_squeeze];
    Namespace tcp_memory;
    Namespace orphans;
    Traffic client_spike leads_to [service_saturated, queue_growing, retry_storm];
    Traffic deploy_regression
        leads_to_same [server_slow, checks_blind, server_failing, service_failing]
        leads_to [service_saturated, queue_growing, retry_storm, balance_skewed];
    Traffic service_failing
        leads_to [checks_blind, service_saturated, queue_growing, retry_storm];
    Traffic server_slow
        absorbs [server_failing]
        leads_to [service_saturated, queue_growing, retry_storm];
    Traffic checks_blind
        absorbs [server_failing]
        leads_to [retry_storm, balance_skewed];
    Traffic server_failing leads_to [service_saturated, queue_growing, retry_storm, balance_skewed];
    Traffic service_saturated leads_to [queue_growing];
    Traffic source_failing;
    Traffic servers_held;
    Traffic kubernetes_not_followed;
    Traffic fleet_not_joined;
    Traffic fleet_members_missing;
    Traffic fleet_results_contradict;
    Traffic fleet_secrets_not_shared;
    Traffic queue_growing;
    Traffic retry_storm;
    Host failure_wave;
    Host server_syns;
    Host server_loss;
    Host certificate_expiring;
    Host cgroup_throttled;
    Host cpu_steal;
    Host neighbour_table;
    Host open_files;
    Namespace listener_near_full absorbs [backlog_capped, backlog_low, backlog_stale];
    Namespace syn_cookies absorbs [backlog_capped, backlog_low, backlog_stale] absorbs_all [syn_unanswered];
    Namespace connections_stalled;
    Namespace server_queue_full;
    Namespace syn_unanswered;
    Namespace connects_refused;
    Namespace resets_received;
    Namespace sack_panic;
    Namespace sack_off absorbs_all [reordering, loss];
    Namespace timestamps_off;
    Namespace window_scaling_off;
    Namespace reordering absorbs_all [loss];
    Namespace loss;
    Namespace nic_drops;
    Namespace slow_reader;
    Namespace receive_buffer_small absorbs [buffer_caps];
    Namespace peer_slow_reader;
    Namespace conntrack_full absorbs_all [conntrack_timeout];
    Namespace ena_conntrack_left;
    Namespace time_wait_overflow absorbs_all [time_wait_many];
    Namespace tcp_mem_pages;
    Namespace syncookies_always;
    Namespace abort_on_overflow;
    Host tw_recycle;
    Namespace backlog_stale;
    Namespace backlog_low;
    Namespace backlog_capped;
    Host sysctl_not_applied;
    Namespace buffer_caps;
    Namespace conntrack_timeout;
    Host softnet_squeeze;
    Host interrupts_unbalanced;
    Namespace resets_sent;
    Namespace time_wait_many;
    Traffic balance_skewed;
    Capture capture_syn_lost;
    Capture capture_mtu absorbs [capture_tail_loss, capture_loss];
    Capture capture_dead_peer absorbs [capture_tail_loss, capture_loss];
    Capture capture_queue_full;
    Capture capture_sack_off;
    Capture capture_loss;
    Capture capture_slow_reader;
    Capture capture_tail_loss;
    Capture capture_reordering absorbs [capture_spurious];
    Capture capture_spurious;
    Capture capture_twice;
    Capture capture_gaps;
    Capture capture_undecoded;
}

/// A rule: its name, what it looks at, its page.
#[derive(Debug)]
pub struct Rule {
    name: &'static str,
    check: Check,
    source: &'static str,
    /// Rules whose findings of the same subject need not be said beside this one's.
    absorbs_same: &'static [&'static str],
    /// The same, whatever the subject, within the network namespace.
    absorbs_all: &'static [&'static str],
    /// Rules whose findings follow from this one's if they are about some of its servers only. If it names no
    /// servers, it is about all, and so may they be. They are named in it, and not reported separately.
    leads_to_same: &'static [&'static str],
    /// Rules whose findings about the same service follow from this one's: they are named in it, and not
    /// reported separately.
    leads_to: &'static [&'static str],
}

#[derive(Debug)]
enum Check {
    /// Runs once.
    Host(fn(&Facts, &mut Out)),
    /// Runs for each network namespace.
    Namespace(fn(View<'_>, &mut Out)),
    /// Runs on the traffic of the last seconds.
    Traffic(fn(&Traffic, &mut Out)),
    /// Runs for each capture.
    Capture(fn(&Capture, &mut Out)),
}

impl Rule {
    /// Every rule, in order of rank.
    pub fn all() -> impl Iterator<Item = &'static Rule> {
        RULES.iter()
    }

    /// The rule of that name; hyphens are taken for underscores.
    pub fn by_name(name: &str) -> Option<&'static Rule> {
        let is_same = |(a, b): (u8, u8)| a == b || a == b'_' && b == b'-';
        let is_name = |rule: &&Rule| {
            rule.name.len() == name.len() && rule.name.bytes().zip(name.bytes()).all(is_same)
        };
        RULES.iter().find(is_name)
    }

    /// The rule whose name is nearest to `name`, where one is near.
    pub fn nearest(name: &str) -> Option<&'static str> {
        crate::spelling::nearest(name, RULES.iter().map(|rule| rule.name))
    }

    /// Its stable name, which findings carry.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its page.
    pub fn page(&self) -> Page {
        let mut page = Page::of(self.source);
        let absorbed: Vec<String> = self
            .absorbs_same
            .iter()
            .chain(self.absorbs_all)
            .map(|name| format!("`{name}`"))
            .collect();
        if !absorbed.is_empty() {
            page.sections.push(Section {
                title: "Supersedes".to_owned(),
                text: format!(
                    "If this rule reports a finding, {} {} not reported.",
                    crate::words::list(&absorbed, usize::MAX),
                    if absorbed.len() == 1 { "is" } else { "are" }
                ),
            });
        }
        let consequences: Vec<String> =
            [(self.leads_to_same, "servers"), (self.leads_to, "service")]
                .into_iter()
                .filter(|(rules, _)| !rules.is_empty())
                .map(|(rules, what)| {
                    let rules: Vec<String> = rules.iter().map(|name| format!("`{name}`")).collect();
                    format!("{} about the same {what}", crate::words::list(&rules, usize::MAX))
                })
                .collect();
        if !consequences.is_empty() {
            page.sections.push(Section {
                title: "Consequences".to_owned(),
                text: format!(
                    "Findings of {} are named in this rule's finding, and not reported separately.",
                    consequences.join(", and of ")
                ),
            });
        }
        page
    }

    fn run(&self, facts: &Facts, out: &mut Out) {
        match self.check {
            Check::Host(check) => {
                out.begin(self.name, None);
                check(facts, out);
            }
            Check::Traffic(check) => {
                out.begin(self.name, None);
                match &facts.traffic {
                    Known::Is(traffic) => check(traffic, out),
                    Known::Unknown(_) => unknown(TRAFFIC, &facts.traffic, out),
                }
            }
            Check::Capture(check) => {
                out.begin(self.name, None);
                for capture in &facts.captures {
                    check(capture, out);
                }
            }
            Check::Namespace(check) => {
                for namespace in &facts.namespaces {
                    out.begin(self.name, label(namespace));
                    check(View { facts, namespace }, out);
                }
            }
        }
    }
}

/// How a namespace is named in findings; `None` for the program's own.
fn label(namespace: &Namespace) -> Option<String> {
    if namespace.is_own {
        return None;
    }
    if namespace.name.is_empty() {
        return Some(format!("net:[{}]", namespace.inode));
    }
    Some(namespace.name.clone())
}

const BALANCER: &str = "the balancer's own traffic";
/// The subject of findings about the fleet.
const FLEET: &str = "fleet";
const FLEET_STATE: &[&str] = &["the state of the fleet in /api/v1/fleet"];
/// At most this many members are named in a finding.
const FLEET_SHOWN_MAX: usize = 3;
const TRAFFIC: &str = "the balancer's traffic of the last seconds";

/// Notes that the balancer's own counters can't be seen, unless they were not requested: only `weir
/// serve` has them, so a look from outside is not to be reproached with it.
fn balancer_unknown(facts: &Facts, out: &mut Out) {
    match &facts.balancer {
        Known::Is(_) => out.could_not(BALANCER, "two samples are needed, at different times"),
        Known::Unknown(_) => unknown(BALANCER, &facts.balancer, out),
    }
}

/// Notes that something can't be seen, unless it was not requested.
fn unknown<T: PartialEq>(what: &str, fact: &Known<T>, out: &mut Out) {
    if let Known::Unknown(reason) = fact
        && *fact != Known::default()
    {
        out.could_not(what, reason);
    }
}

/// What the rules on captures say about those of `facts`; nothing of a host is asked.
pub fn diagnose_captures(facts: &Facts) -> Report {
    diagnose_with(facts, |check| matches!(check, Check::Capture(_)))
}

/// What the rules on traffic say about that of `facts`; nothing of a host is asked.
pub fn diagnose_traffic(facts: &Facts) -> Report {
    diagnose_with(facts, |check| matches!(check, Check::Traffic(_)))
}

fn diagnose_with(facts: &Facts, wanted: fn(&Check) -> bool) -> Report {
    let mut out = Out::default();
    for rule in RULES.iter().filter(|rule| wanted(&rule.check)) {
        rule.run(facts, &mut out);
    }
    report(out)
}

/// What all rules say about `facts`, ranked, each thing once.
pub fn diagnose(facts: &Facts) -> Report {
    let mut out = Out::default();
    for rule in RULES {
        rule.run(facts, &mut out);
    }
    if let Some(reason) = &facts.namespaces_left_out {
        out.begin("", None);
        out.could_not("other network namespaces", reason);
    }
    report(out)
}

fn report(out: Out) -> Report {
    let (findings, could_not_check) = out.into_parts();
    let mut findings = with_consequences(without_absorbed(findings));
    // Stable: findings of equal rank stay in order of the rules, then of the facts.
    findings.sort_by_key(|finding| (Reverse(finding.severity), Reverse(finding.certainty)));
    Report { findings, could_not_check: could_not_check.into_iter().collect() }
}

/// Leaves out what another finding, of at least the same weight, explains.
fn without_absorbed(findings: Vec<Finding>) -> Vec<Finding> {
    // What is absorbed, with the greatest severity up to which it is: of a subject, or of all subjects.
    type Absorbed = BTreeMap<(&'static str, Option<String>, Option<String>), Severity>;
    let mut absorbed = Absorbed::new();
    for other in &findings {
        let Some(rule) = Rule::by_name(&other.rule) else { continue };
        let same = rule.absorbs_same.iter().map(|name| (*name, Some(other.subject.clone())));
        let all = rule.absorbs_all.iter().map(|name| (*name, None));
        for (name, subject) in same.chain(all) {
            let known = absorbed.entry((name, subject, other.namespace.clone()));
            let severity = known.or_insert(other.severity);
            *severity = other.severity.max(*severity);
        }
    }
    let is_absorbed = |finding: &Finding| {
        let Some(rule) = Rule::by_name(&finding.rule) else { return false };
        [Some(finding.subject.clone()), None].into_iter().any(|subject| {
            let found = absorbed.get(&(rule.name, subject, finding.namespace.clone()));
            found.is_some_and(|severity| *severity >= finding.severity)
        })
    };
    let is_absorbed: Vec<bool> = findings.iter().map(is_absorbed).collect();
    let kept = findings.into_iter().zip(is_absorbed).filter(|(_, is_absorbed)| !is_absorbed);
    kept.map(|(finding, _)| finding).collect()
}

/// Names each consequence in the first finding that explains it, unless that is only possible. That finding
/// matters as much as its heaviest consequence.
fn with_consequences(findings: Vec<Finding>) -> Vec<Finding> {
    let mut places: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (place, finding) in findings.iter().enumerate() {
        if let Some(service) = &finding.service {
            let key = (service.clone(), finding.rule.to_string());
            places.entry(key).or_default().push(place);
        }
    }
    let mut left: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    // Rules are in order of rank, so what explains something comes before it.
    for place in 0..left.len() {
        let Some(mut finding) = left[place].take() else { continue };
        let rule = Rule::by_name(&finding.rule).filter(|_| finding.certainty > Certainty::Possible);
        let follow = rule.zip(finding.service.clone()).into_iter().flat_map(|(rule, service)| {
            let same = rule.leads_to_same.iter().map(|name| (*name, true));
            let all = same.chain(rule.leads_to.iter().map(|name| (*name, false)));
            all.map(move |(name, is_same)| ((service.clone(), name.to_owned()), is_same))
        });
        for (key, is_same) in follow {
            let is_among = |servers: &[String]| {
                let is_part = || servers.iter().all(|one| finding.servers.contains(one));
                !is_same || finding.servers.is_empty() || !servers.is_empty() && is_part()
            };
            let taken = places.get_mut(&key).into_iter().flat_map(|found| {
                found.extract_if(.., |place| {
                    left[*place].as_ref().is_some_and(|other| is_among(&other.servers))
                })
            });
            let taken: Vec<usize> = taken.collect();
            for other in taken.into_iter().filter_map(|place| left[place].take()) {
                finding.severity = finding.severity.max(other.severity);
                let Finding { rule, subject, what, consequences, .. } = other;
                finding.consequences.push(Consequence { rule, subject, what });
                finding.consequences.extend(consequences);
            }
        }
        left[place] = Some(finding);
    }
    left.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_directory_is_in_the_list() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .expect("the directory of this file")
            .map(|entry| entry.expect("an entry").path())
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|stem| !["mod", "settings"].contains(&stem.as_str()))
            .collect();
        let mut listed: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        files.sort_unstable();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
