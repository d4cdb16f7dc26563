//! Target lists in the format of Prometheus's `file_sd` and `http_sd`:
//! `[{"targets": ["10.0.1.5:8080"], "labels": {"zone": "eu-west-1a"}}]`.
//!
//! As in Prometheus, a group has no keys but `targets` and `labels`, and an answer with any other is an error
//! as a whole. An empty list is valid and means that there are no servers. An empty document is an error,
//! although Prometheus accepts it in YAML: a file is empty while it is being written.
//!
//! Labels set the values of all servers of their group. The first label of a row that has a valid value counts:
//!
//! | value | labels |
//! |---|---|
//! | zone | `weir_zone`, `zone`, `availability_zone`, `topology_kubernetes_io_zone`, `__meta_ec2_availability_zone`, `__meta_gce_zone` (the last part of the URL), `__meta_azure_machine_location` |
//! | weight | `weir_weight`, `weight` |
//! | `in_flight_max` | `weir_in_flight_max` |
//! | backup | `weir_backup` |
//! | version | `weir_version`, `version` |
//!
//! The value of a label that begins with `weir_` must be valid; otherwise the group's targets are refused.
//! The other labels are also used for other purposes, so their values are ignored if they are not valid here.
//! An empty label is the same as none, as in Prometheus. (The location of an Azure machine is its region, the
//! only place that Prometheus's documentation has for it.)
//!
//! A target that is listed again with the same values is one server. With other values, the first one counts
//! and the other is refused.

use std::collections::HashMap;
use std::sync::Arc;

use config::{ServerTexts, listed_server};
use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

use crate::address::with_port;
use crate::merged::Distinct;
use crate::row::{check_count, object_name, reason};
use crate::stated::{Candidate, Key, chosen};
use crate::{Answer, Readiness, Row};

/// The labels for each value, in the order in which they count.
const ZONE: &[&str] = &[
    "weir_zone",
    "zone",
    "availability_zone",
    "topology_kubernetes_io_zone",
    "__meta_ec2_availability_zone",
    GCE_ZONE,
    "__meta_azure_machine_location",
];
const WEIGHT: &[&str] = &["weir_weight", "weight"];
const IN_FLIGHT_MAX: &[&str] = &["weir_in_flight_max"];
const BACKUP: &[&str] = &["weir_backup"];
const VERSION: &[&str] = &["weir_version", "version"];

/// Its value may be a URL that ends in the zone's name.
const GCE_ZONE: &str = "__meta_gce_zone";

/// The beginning of labels that are meant for Weir.
const OWN_PREFIX: &str = "weir_";

/// How targets become servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The port of every server, in place of the target's: targets name the port of metrics. `None`: the
    /// target's port, and targets without one are refused.
    pub port: Option<u16>,
}

/// Reads a list of groups in JSON. `object` names the list in rows and refused entries, such as the file's
/// path.
///
/// # Errors
/// The answer is not of this format, or has more than [`ROWS_MAX`](crate::ROWS_MAX) targets. One line,
/// bounded and escaped.
pub fn json(bytes: &[u8], object: &str, options: &Options) -> Result<Answer, String> {
    let groups: Option<Vec<Group>> =
        serde_json::from_slice(bytes).map_err(|error| reason(&error.to_string()))?;
    answer(groups, object, *options)
}

/// Reads a list of groups in YAML, as [`json`]. Nesting and the expansion of aliases are bounded; the caller
/// bounds the length.
///
/// # Errors
/// As [`json`].
pub fn yaml(bytes: &[u8], object: &str, options: &Options) -> Result<Answer, String> {
    let groups: Option<Vec<Group>> =
        serde_saphyr::from_slice_with_options(bytes, yaml_options())
            .map_err(|error| reason(&error.render_with_formatter(&UserMessageFormatter)))?;
    answer(groups, object, *options)
}

/// The bounds include what aliases expand to. The format has a depth of 4.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 8,
            flow_nesting_limit: 8,
            max_nodes: 500_000,
            max_events: 1_000_000,
            max_total_scalar_bytes: 8 * 1024 * 1024,
            // One set of labels for thousands of groups is no attack. The bounds above hold for it.
            enforce_alias_anchor_ratio: false,
        },
        // An error is one line.
        with_snippet: false,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    targets: Option<Vec<String>>,
    labels: Option<HashMap<String, Option<String>>>,
}

impl Group {
    fn targets(&self) -> &[String] {
        self.targets.as_deref().unwrap_or_default()
    }

    /// Returns the value that the first label of `names` with a valid value states.
    fn stated(&self, key: Key, names: &'static [&'static str]) -> Option<&str> {
        let labels = self.labels.as_ref()?;
        let candidates = names.iter().filter_map(|&name| {
            let text = labels.get(name)?.as_deref().filter(|text| !text.is_empty())?;
            Some(if name.starts_with(OWN_PREFIX) {
                Candidate::own(text)
            } else if name == GCE_ZONE {
                Candidate::generic(text.rsplit('/').next().unwrap_or(text))
            } else {
                Candidate::generic(text)
            })
        });
        chosen(key, candidates)
    }
}

fn answer(groups: Option<Vec<Group>>, object: &str, options: Options) -> Result<Answer, String> {
    let groups = groups.ok_or("empty; a list without servers is written []")?;
    check_count(groups.iter().map(|group| group.targets().len()).sum())?;
    let mut answer = Answer::default();
    let name: Arc<str> = object_name(object).into();
    let mut distinct = Distinct::default();
    for group in &groups {
        let of_group = ServerTexts {
            address: "",
            zone: group.stated(Key::Zone, ZONE),
            weight: group.stated(Key::Weight, WEIGHT),
            backup: group.stated(Key::Backup, BACKUP),
            in_flight_max: group.stated(Key::InFlightMax, IN_FLIGHT_MAX),
            version: group.stated(Key::Version, VERSION),
        };
        for target in group.targets() {
            let address = with_port(target, options.port);
            let server = match listed_server(&ServerTexts { address: &address, ..of_group }) {
                Ok(server) => server,
                Err(why) => {
                    answer.refuse(object, &of_target(target, &address, &why));
                    continue;
                }
            };
            let row = Row { server, readiness: Readiness::Ready, object: Arc::clone(&name) };
            if let Err(why) = distinct.add(row, &mut answer) {
                answer.refuse(object, &why);
            }
        }
    }
    Ok(answer)
}

/// Adds the target to a reason that may not name it.
fn of_target(target: &str, address: &str, why: &str) -> String {
    if target == address && why.starts_with("address ") {
        return why.to_owned();
    }
    let shown: String = target.chars().take(60).collect();
    format!("target \"{}\": {why}", shown.escape_debug())
}
