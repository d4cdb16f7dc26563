//! The fleet for the admin API and for metrics.

use std::sync::Arc;

use admin_api::fleet::{
    Datagrams, Fleet, FleetMember, FleetOrder, FleetOrders, FleetProblem, FleetTickets,
    IgnoredMember, SharedProbes, SharedRates, SharedSlots,
};
use control::{FleetState, OrdersState, RatesState, SlotsState, Status, TicketsState};
use model::Moment;

/// Describes the fleet; `None` without one.
pub(crate) fn fleet(status: &Status) -> Option<Fleet> {
    let state = status.fleet()?;
    let FleetState {
        error,
        own,
        others,
        probers,
        shares,
        ignored,
        slots,
        orders,
        rates,
        tickets,
        counts,
        problems,
        ..
    } = &*state;
    let now = os::clock::now();
    let refused = counts.refused();
    Some(Fleet {
        error: error.clone(),
        own: own.as_ref().map(member),
        members: others.iter().map(member).collect(),
        problems: problems.iter().map(|one| problem(one, now)).collect(),
        probers: *probers,
        probes: SharedProbes {
            assigned: shares.assigned,
            stood_in: shares.stood_in,
            relied: shares.relied,
        },
        ignored: ignored
            .iter()
            .map(|(name, probes)| IgnoredMember { name: name.to_string(), probes: *probes })
            .collect(),
        slots: shared_slots(slots),
        rates: shared_rates(rates),
        orders: fleet_orders(orders),
        tickets: tickets.as_ref().map(fleet_tickets),
        datagrams: Datagrams {
            accepted: counts.accepted,
            refused: refused.map(|(reason, count)| (reason.to_owned(), count)).collect(),
            unread: counts.unread,
            sent: counts.sent,
            send_errors: counts.send_errors,
            received_bytes: counts.received_bytes,
            sent_bytes: counts.sent_bytes,
        },
        name_conflicts: state.name_conflicts,
        rejoins: state.rejoins,
    })
}

fn problem(problem: &control::FleetProblem, now: Moment) -> FleetProblem {
    let control::FleetProblem { kind, subject, why, since } = problem;
    FleetProblem {
        kind: (*kind).into(),
        member: (!subject.is_empty()).then(|| subject.to_string()),
        why: why.clone(),
        for_s: now.since(*since).as_secs(),
    }
}

fn shared_slots(slots: &SlotsState) -> SharedSlots {
    let SlotsState { servers, is_settled, missing, share, lent, borrowed } = slots;
    SharedSlots {
        servers: *servers,
        is_settled: *is_settled,
        missing: missing.iter().map(ToString::to_string).collect(),
        share: *share,
        lent: *lent,
        borrowed: *borrowed,
    }
}

fn fleet_orders(orders: &OrdersState) -> FleetOrders {
    let OrdersState { drain, maintenance, shown, refused } = orders;
    let servers = shown.iter().map(|order| FleetOrder {
        service: order.service.to_string(),
        address: order.address.to_string(),
        state: order.state.into(),
        member: order.member.to_string(),
    });
    FleetOrders {
        drain: *drain,
        maintenance: *maintenance,
        servers: servers.collect(),
        refused: *refused,
    }
}

fn fleet_tickets(tickets: &TicketsState) -> FleetTickets {
    let TicketsState { keys, sealing_age, behind, silent, error, failed, refused } = tickets;
    let names = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect();
    FleetTickets {
        keys: *keys,
        sealing_age_s: sealing_age.map(|age| age.as_secs()),
        behind: names(behind),
        not_sharing: names(silent),
        error: error.clone(),
        fetches_failed: *failed,
        connections_refused: *refused,
    }
}

fn shared_rates(rates: &RatesState) -> SharedRates {
    let RatesState { limits, keys, side, missing, untracked, unknown } = rates;
    SharedRates {
        limits: *limits,
        keys: *keys,
        part: *side,
        missing: missing.iter().map(ToString::to_string).collect(),
        untracked: *untracked,
        unknown: *unknown,
    }
}

fn member(member: &control::FleetMember) -> FleetMember {
    FleetMember {
        name: member.name.to_string(),
        address: member.address.to_string(),
        zone: member.zone.as_deref().map(str::to_owned),
        host: member.host.to_string(),
    }
}
