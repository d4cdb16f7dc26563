//! Metric families of TCP statistics on the paths to servers, by server and by zone.

use std::collections::BTreeMap;

use model::TcpPathTotals;
use model::tcp_path::ROUND_TRIP_BOUNDS_US;

use super::families::{Distribution, Families, Kind, Label};
use super::servers::server_labels;
use super::{Gauges, ServerGauges};

/// A counter: its families by server and by zone, help, value.
type PathCounter = (&'static str, &'static str, &'static str, fn(&TcpPathTotals) -> u64);

const COUNTERS: [PathCounter; 4] = [
    (
        "weir_server_tcp_segments_sent",
        "weir_zone_tcp_segments_sent",
        "Data segments sent to the server on sampled connections, including retransmissions.",
        |path| path.sent,
    ),
    (
        "weir_server_tcp_segments_retransmitted",
        "weir_zone_tcp_segments_retransmitted",
        "Retransmitted data segments on sampled connections; compare with the segments sent.",
        |path| path.sent_again,
    ),
    (
        "weir_server_tcp_reordering_seen",
        "weir_zone_tcp_reordering_seen",
        "How often reordering of segments on the path to the server was detected, on sampled \
         connections.",
        |path| path.reordered,
    ),
    (
        "weir_server_syn_retries",
        "weir_zone_syn_retries",
        "SYNs retransmitted before a connection to the server was established or given up; every \
         connection counts, sampled or not.",
        |path| path.syn_retries,
    ),
];

pub(super) fn write_tcp(gauges: &Gauges<'_>, families: &mut Families) {
    write_servers(&gauges.servers, families);
    let mut zones: BTreeMap<&str, TcpPathTotals> = BTreeMap::new();
    for server in &gauges.servers {
        zones.entry(server.zone).or_default().add(&server.tcp);
    }
    write_zones(&zones, families);
}

fn write_servers(servers: &[ServerGauges<'_>], families: &mut Families) {
    let mut round_trip = families.family(
        "weir_server_tcp_round_trip_seconds",
        Kind::Gauge,
        Some("seconds"),
        "TCP round-trip time to the server: a moving average over sampled requests.",
    );
    for server in servers {
        if let Some(time) = server.tcp.round_trip {
            round_trip.sample(&server_labels(server), time.as_secs_f64());
        }
    }
    let mut samples = families.family(
        "weir_server_tcp_samples",
        Kind::Counter,
        None,
        "Requests for which TCP statistics of the server connection were sampled; see log.tcp_info.",
    );
    for server in servers {
        samples.sample(&server_labels(server), server.tcp.samples());
    }
    for (name, _, help, value) in COUNTERS {
        let mut family = families.family(name, Kind::Counter, None, help);
        for server in servers {
            family.sample(&server_labels(server), value(&server.tcp));
        }
    }
}

fn write_zones(zones: &BTreeMap<&str, TcpPathTotals>, families: &mut Families) {
    let mut round_trips = families.family(
        "weir_zone_tcp_round_trip_seconds",
        Kind::Histogram,
        Some("seconds"),
        "TCP round-trip times to the servers of a zone, one for each sampled request.",
    );
    for (zone, path) in zones {
        let label: Label<'_> = ("zone", zone);
        let mut count = 0;
        let classic =
            ROUND_TRIP_BOUNDS_US.iter().zip(path.round_trips).map(|(bound_us, inside)| {
                count += inside;
                (*bound_us as f64 / 1e6, count)
            });
        let (classic, count): (Vec<_>, _) = (classic.collect(), path.samples());
        let sum = path.round_trip_sum.as_secs_f64();
        let values = Distribution { classic: &classic, count, sum, native: None };
        round_trips.histogram(&[label], &values);
    }
    for (_, name, help, value) in COUNTERS {
        let mut family = families.family(name, Kind::Counter, None, help);
        for (zone, path) in zones {
            family.sample(&[("zone", zone)], value(path));
        }
    }
}
