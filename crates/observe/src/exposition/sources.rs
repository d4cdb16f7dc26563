//! Metric families of the sources that services take their servers from, of the entries of
//! listeners in Consul, and of the routes from there.

use super::families::{Families, Kind};
use super::{SourceGauges, SourcesGauges, TagGauges, write_histogram};

pub(super) fn write_sources(sources: &SourcesGauges, families: &mut Families) {
    let SourcesGauges { services, registrations, tags, propagation } = sources;
    if !registrations.is_empty() {
        let mut failing = families.family(
            "weir_registration_failing",
            Kind::Gauge,
            None,
            "1 while a listener's entry in Consul cannot be kept: the agent does not answer, or refuses.",
        );
        for one in registrations {
            failing.sample(&[("listener", &one.listener)], u64::from(one.is_failing));
        }
    }
    if let Some(tags) = tags {
        write_tags(tags, families);
    }
    if services.is_empty() {
        return;
    }
    let mut servers = families.family(
        "weir_source_servers",
        Kind::Gauge,
        None,
        "Servers that a service's source lists, by standing: listed (may receive requests), not_ready (in \
         maintenance or critical there), held (no longer listed, together with most others), flapping. The last \
         two are used like backups.",
    );
    for one in services {
        for (standing, count) in one.servers {
            servers.sample(&[("service", &one.service), ("standing", &standing)], count as u64);
        }
    }
    let mut age = families.family(
        "weir_source_age_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Time since a service's source last answered; absent before the first answer.",
    );
    for (one, since) in services.iter().filter_map(|one| Some((one, one.age?))) {
        age.sample(&[("service", &one.service)], since.as_secs_f64());
    }
    for (name, help, value) in VALUES {
        let mut family = families.family(name, Kind::Gauge, None, help);
        for one in services {
            family.sample(&[("service", &one.service)], value(one));
        }
    }
    let mut family = families.family(
        "weir_source_propagation_seconds",
        Kind::Histogram,
        Some("seconds"),
        "From the arrival of an answer that changes a service's servers until all workers use them.",
    );
    write_histogram(&[], propagation, true, &mut family);
}

fn write_tags(tags: &TagGauges, families: &mut Families) {
    let TagGauges { published, held, refused, is_failing } = *tags;
    let mut routes = families.family(
        "weir_published_routes",
        Kind::Gauge,
        None,
        "Routes from tags in Consul, by state: published (in force), held (in force, though their service is no \
         longer listed), refused.",
    );
    for (state, count) in
        [("published", published as u64), ("held", held as u64), ("refused", refused)]
    {
        routes.sample(&[("state", &state)], count);
    }
    let mut failing = families.family(
        "weir_published_routes_failing",
        Kind::Gauge,
        None,
        "1 while Consul cannot be asked for tags, or the routes cannot be applied; the last routes stay in force \
         then.",
    );
    failing.sample(&[], u64::from(is_failing));
}

/// A gauge of each service: name, help, value.
type Value = (&'static str, &'static str, fn(&SourceGauges) -> u64);

const VALUES: [Value; 2] = [
    (
        "weir_source_failing",
        "1 while a service's source cannot be read; its last servers are used then.",
        |one| u64::from(one.is_failing),
    ),
    (
        "weir_source_refused",
        "Entries in the last answer of a service's source that are no valid servers.",
        |one| one.refused,
    ),
];
