//! The fleet of balancers.

use super::families::{Families, Kind};
use super::gauges::{FleetGauges, FleetRateGauges, FleetSlotGauges, FleetTicketGauges};

pub(super) fn write_fleet(fleet: &FleetGauges, families: &mut Families) {
    let mut members = families.family(
        "weir_fleet_members",
        Kind::Gauge,
        None,
        "Balancers of the fleet that live, as this one sees it, this one included; 0 if it cannot join.",
    );
    members.sample(&[], fleet.members as u64);
    let mut probes = families.family(
        "weir_fleet_probes",
        Kind::Gauge,
        None,
        "Distinct health checks of this balancer, by who runs them: assigned (this one, for its zone), stood_in (this \
         one, since results of others are missing or contradict each other), relied (others).",
    );
    for (state, count) in fleet.probes {
        probes.sample(&[("state", &state)], count as u64);
    }
    let mut ignored = families.family(
        "weir_fleet_ignored_members",
        Kind::Gauge,
        None,
        "Balancers whose results of health checks are ignored, since they contradict this one's own.",
    );
    ignored.sample(&[], fleet.ignored as u64);
    if let Some(slots) = &fleet.slots {
        write_slots(slots, families);
    }
    if let Some(rates) = &fleet.rates {
        write_rates(rates, families);
    }
    let mut orders = families.family(
        "weir_fleet_orders",
        Kind::Gauge,
        None,
        "Servers whose state is set for the whole fleet, as this balancer knows: drain, maintenance.",
    );
    for (state, count) in fleet.orders {
        orders.sample(&[("state", &state)], count as u64);
    }
    if let Some(tickets) = &fleet.tickets {
        write_tickets(tickets, families);
    }
    write_problems(fleet, families);
    let mut datagrams = families.family(
        "weir_fleet_datagrams",
        Kind::Counter,
        None,
        "Datagrams of the fleet: sent and send_error; of those received, accepted, unread (no known form, not from a \
         member, or for an earlier process), or the reason why they were refused.",
    );
    for (result, count) in &fleet.datagrams {
        datagrams.sample(&[("result", &&**result)], *count);
    }
    let mut bytes = families.family(
        "weir_fleet_bytes",
        Kind::Counter,
        Some("bytes"),
        "Bytes of datagrams of the fleet, by direction.",
    );
    for (direction, count) in [("received", fleet.received_bytes), ("sent", fleet.sent_bytes)] {
        bytes.sample(&[("direction", &direction)], count);
    }
}

fn write_problems(fleet: &FleetGauges, families: &mut Families) {
    let mut problems = families.family(
        "weir_fleet_problems",
        Kind::Gauge,
        None,
        "Problems of the fleet that have lasted for a minute, by kind: not_joined, name_conflict, missing (no member answers at a \
         listed address), ignored, not_sharing, not_exchanged.",
    );
    for (kind, count) in &fleet.problems {
        problems.sample(&[("kind", kind)], *count as u64);
    }
}

fn write_tickets(of: &FleetTicketGauges, families: &mut Families) {
    let mut keys = families.family(
        "weir_fleet_ticket_keys",
        Kind::Gauge,
        None,
        "Session ticket keys that this balancer has in common with the fleet. Without `tls` in `[fleet]`, this metric and \
         the next four are absent.",
    );
    keys.sample(&[], of.keys as u64);
    if let Some(age_s) = of.sealing_age_s {
        let mut age = families.family(
            "weir_fleet_ticket_key_age_seconds",
            Kind::Gauge,
            Some("seconds"),
            "Age of the key that encrypts new tickets. Absent while no shared key is in use.",
        );
        age.sample(&[], age_s);
    }
    let mut members = families.family(
        "weir_fleet_ticket_members",
        Kind::Gauge,
        None,
        "Other balancers that need attention: behind (they share keys and do not have the newest one) and not_sharing.",
    );
    members.sample(&[("state", &"behind")], of.behind as u64);
    members.sample(&[("state", &"not_sharing")], of.not_sharing as u64);
    let mut failed = families.family(
        "weir_fleet_ticket_fetch_failures",
        Kind::Counter,
        None,
        "Fetches of session ticket keys and certificates from other balancers that failed.",
    );
    failed.sample(&[], of.failed);
    let mut refused = families.family(
        "weir_fleet_ticket_connections_refused",
        Kind::Counter,
        None,
        "Connections to the fleet's TCP port that ended without an answer: no TLS, no certificate of a member, an unknown \
         request, longer than 5 s, or too many at once.",
    );
    refused.sample(&[], of.refused);
}

fn write_slots(of: &FleetSlotGauges, families: &mut Families) {
    let mut servers = families.family(
        "weir_fleet_slot_servers",
        Kind::Gauge,
        None,
        "Servers whose concurrency limit the fleet shares. Without any, this metric and the next two are absent.",
    );
    servers.sample(&[], of.servers as u64);
    let mut slots = families.family(
        "weir_fleet_slots",
        Kind::Gauge,
        None,
        "This balancer's slots of these servers: share (its own, the lent ones included), lent (to other balancers), \
         borrowed (from other balancers).",
    );
    for (state, count) in of.slots {
        slots.sample(&[("state", &state)], count);
    }
    let mut settled = families.family(
        "weir_fleet_slots_settled",
        Kind::Gauge,
        None,
        "1 if the balancers of the fleet agree on their shares of these servers; 0: slots may be unused until they do.",
    );
    settled.sample(&[], u64::from(of.is_settled));
}

fn write_rates(of: &FleetRateGauges, families: &mut Families) {
    let mut limits = families.family(
        "weir_fleet_rate_limits",
        Kind::Gauge,
        None,
        "Rate limits that hold over the fleet. Without any, this metric and the next three are absent.",
    );
    limits.sample(&[], of.limits as u64);
    let mut keys = families.family(
        "weir_fleet_rate_limit_keys",
        Kind::Gauge,
        None,
        "Clients, or other keys of these limits, with requests at other balancers of the fleet.",
    );
    keys.sample(&[], of.keys as u64);
    let mut part = families.family(
        "weir_fleet_rate_limit_ratio",
        Kind::Gauge,
        Some("ratio"),
        "The part of each of these limits that the balancers have that answer this one; 1 if all listed ones do.",
    );
    part.sample(&[], of.part);
    let mut untracked = families.family(
        "weir_fleet_rate_limit_untracked_requests",
        Kind::Counter,
        None,
        "Requests that counted for such a limit at this balancer alone, since too many keys were in use.",
    );
    untracked.sample(&[], of.untracked);
}
