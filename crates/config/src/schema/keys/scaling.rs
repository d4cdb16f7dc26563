//! Keys of `scaling` of a service.

use std::time::Duration;

use super::{DAY, duration};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

/// As many servers as a service may have.
const SERVERS_MAX: u64 = 100_000;

pub(super) static SCALING: TableSpec = TableSpec {
    heading: "scaling of [service.NAME]",
    path: "service.NAME.scaling",
    doc: "Weir computes from the load how many servers the service should have, for an autoscaler: the gauge `weir_service_wanted_servers`. It needs `in_flight_max` or `in_flight_target`. See docs/scaling.md.",
    example: "[service.listings]\nin_flight_max = 8\nscaling = { servers_min = 2, servers_max = 50, utilization = 0.6, scale_in_after = \"10m\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n[service.reports]\nscaling = { servers_min = 0, servers_max = 5, in_flight_target = 2.5, idle_after = \"30m\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "servers_min",
            Kind::Integer { min: 0, max: SERVERS_MAX },
            Absent::Integer(defaults::SCALING_SERVERS_MIN),
            "The least number. With 0, requests that find no server wait in the queue for one: `queue.wait_max` must cover the start of a server.",
        ),
        key(
            "servers_max",
            Kind::Integer { min: 1, max: SERVERS_MAX },
            Absent::Required,
            "The highest number; it bounds the cost of a mistake.",
        ),
        key(
            "utilization",
            Kind::Number { min: 0.05, max: 1.0 },
            Absent::Number(defaults::SCALING_UTILIZATION),
            "The share of the slots that the mean load should occupy. The rest is room for growth while new servers start.",
        ),
        key(
            "in_flight_target",
            Kind::Number { min: 0.001, max: 1_000_000.0 },
            Absent::Then("`in_flight_max` of the servers, times `utilization`"),
            "The requests in flight that each server should have on average.",
        ),
        key(
            "scale_in_after",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::SCALING_SCALE_IN_AFTER),
            "How long a lower number must have held before it counts.",
        ),
        key(
            "idle_after",
            duration(Duration::from_secs(1), DAY),
            Absent::Duration(defaults::SCALING_IDLE_AFTER),
            "With `servers_min = 0`: how long there must have been no request before the number is 0.",
        ),
    ],
};
