//! A minimal service with a check, for tests.

use std::time::Duration;

use model::{
    Balance, Check, HttpVersion, LimitScope, QueueLimits, Retries, Service, ServiceTimeouts,
    WhenAllDown, ZonePolicy,
};

pub(crate) fn service(name: &str, check: &Check) -> Service {
    let second = Duration::from_secs(1);
    Service {
        name: name.into(),
        balance: Balance::RoundRobin,
        in_flight_max: None,
        in_flight_scope: LimitScope::Balancer,
        queue: QueueLimits { length_max: 0, wait_max: second },
        when_full: 429,
        when_all_down: WhenAllDown::Refuse,
        check: Some(check.clone()),
        passive: None,
        zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 },
        affinity: None,
        slow_start: None,
        timeouts: ServiceTimeouts {
            connect: second,
            response: second,
            idle: second,
            tunnel: second,
            keep_alive: second,
            total: None,
        },
        retries: Retries { attempts_max: 1, ..Retries::default() },
        scaling: None,
        idle_connections_max: 1,
        tls: None,
        http: HttpVersion::Http11,
        send_proxy: None,
        version_field: None,
        discover: None,
        maintenance: None,
        error_pages: Vec::new(),
        servers: Vec::new(),
    }
}
