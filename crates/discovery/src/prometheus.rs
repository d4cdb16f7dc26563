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

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::Ipv6Addr;
use std::sync::Arc;

use config::{ServerTexts, listed_server};
use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

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
    let mut places = HashMap::new();
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
            let address = address(target, options.port);
            let server = match listed_server(&ServerTexts { address: &address, ..of_group }) {
                Ok(server) => server,
                Err(why) => {
                    answer.refuse(object, &of_target(target, &address, &why));
                    continue;
                }
            };
            match places.entry(server.target.clone()) {
                Entry::Vacant(place) => {
                    place.insert(answer.rows.len());
                    let object = Arc::clone(&name);
                    answer.rows.push(Row { server, readiness: Readiness::Ready, object });
                }
                Entry::Occupied(place) if answer.rows[*place.get()].server == server => {}
                Entry::Occupied(place) => {
                    let why = "listed more than once with different values; the first counts";
                    answer.refuse(object, &format!("{}: {why}", place.key()));
                }
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

/// Returns the target with `port` in place of its own port, if it has one. A text that is not a host, or a
/// host and a port, remains as it is, and is refused as an address.
fn address(target: &str, port: Option<u16>) -> Cow<'_, str> {
    let Some(port) = port else { return target.into() };
    if target.parse::<Ipv6Addr>().is_ok() {
        // `::1:9100` is an address by itself, but was probably meant as one with a port.
        let (before, last) = target.rsplit_once(':').unwrap_or((target, ""));
        let is_unclear =
            last.len() > 1 && last.parse::<u16>().is_ok() && before.parse::<Ipv6Addr>().is_ok();
        return if is_unclear { target.into() } else { format!("[{target}]:{port}").into() };
    }
    let (host, own) = match target.strip_prefix('[').and_then(|rest| rest.find(']')) {
        // After the bracket, which has been stripped, and the one that was found.
        Some(at) => match target.split_at(at + 2) {
            (host, "") => (host, None),
            (host, rest) => (host, Some(rest.strip_prefix(':').unwrap_or("no port"))),
        },
        None => match target.rsplit_once(':') {
            Some((host, own)) => (host, Some(own)),
            None => (target, None),
        },
    };
    match own {
        Some(own) if own.parse::<u16>().is_err() => target.into(),
        Some(_) | None => format!("{host}:{port}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_port_replaces_that_of_the_target() {
        for (target, wanted) in [
            ("10.0.1.5:9100", "10.0.1.5:80"),
            ("10.0.1.5", "10.0.1.5:80"),
            ("a.internal:9100", "a.internal:80"),
            ("a.internal", "a.internal:80"),
            ("[::1]:9100", "[::1]:80"),
            ("[::1]", "[::1]:80"),
            ("::1", "[::1]:80"),
            ("2001:db8::9100", "[2001:db8::9100]:80"),
            ("1:2:3:4:5:6:7:9100", "[1:2:3:4:5:6:7:9100]:80"),
            // Perhaps with a port, so it is refused.
            ("::1:9100", "::1:9100"),
            // Not hosts: they are refused as they are.
            ("http://a.internal/metrics", "http://a.internal/metrics"),
            ("http://a", "http://a"),
            ("[::1]x", "[::1]x"),
            ("a:", "a:"),
            ("a:b", "a:b"),
            ("[é]:1", "[é]:80"),
            ("", ":80"),
        ] {
            assert_eq!(address(target, Some(80)), wanted, "{target}");
            assert_eq!(address(target, None), target);
        }
    }
}
