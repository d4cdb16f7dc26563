//! Changes to affinities of services and routes.

use std::fmt::Write as _;

use model::units::show_duration;
use model::{Affinity, RouteAffinity, SessionCarrier};

use super::Words;

pub(super) fn of_service(old: Option<&Affinity>, new: Option<&Affinity>, words: &mut Words) {
    words.value("affinity", &old, &new, |affinity| match affinity {
        None => "none".to_owned(),
        Some(Affinity { cookie, max_age: None, key_file: _ }) => format!("cookie {cookie}"),
        Some(Affinity { cookie, max_age: Some(age), key_file: _ }) => {
            format!("cookie {cookie} for {}", show_duration(*age))
        }
    });
    if let (Some(old), Some(new)) = (old, new) {
        words.hidden("affinity.key_file", &old.key_file, &new.key_file);
    }
}

pub(super) fn of_route(
    old: Option<&RouteAffinity>,
    new: Option<&RouteAffinity>,
    words: &mut Words,
) {
    words.value("affinity", &old, &new, |affinity| {
        let Some(affinity) = affinity else { return "the service's".to_owned() };
        let RouteAffinity { carrier, scope: _, lifetime_max, idle_max, key_file: _ } = affinity;
        let mut text = match carrier {
            SessionCarrier::Cookie { name, is_permanent: false } => format!("cookie {name}"),
            SessionCarrier::Cookie { name, is_permanent: true } => {
                format!("permanent cookie {name}")
            }
            SessionCarrier::Field(name) => format!("header {name}"),
        };
        for (name, limit) in [("lifetime_max", lifetime_max), ("idle_max", idle_max)] {
            if let Some(limit) = limit {
                let _ = write!(text, ", {name} {}", show_duration(*limit));
            }
        }
        text
    });
    if let (Some(old), Some(new)) = (old, new) {
        words.hidden("affinity.key_file", &old.key_file, &new.key_file);
    }
}
