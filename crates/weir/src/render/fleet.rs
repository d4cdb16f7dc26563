//! The fleet in `weir status`: one line each on its members, on shared concurrency limits, on shared rate
//! limits, on states of servers that are set for the whole fleet, and on session ticket keys.

use std::fmt::Write as _;

use admin_api::fleet::{
    FleetOrderCounts, FleetSummary, FleetTickets, SharedProbes, SharedRates, SharedSlots,
};
use diagnose::words::{list, plural};
use model::FleetProblemKind;

use super::traffic;

/// At most this many members are named.
const NAMES_SHOWN_MAX: usize = 3;

/// Returns the lines on the fleet.
pub(super) fn text(fleet: &FleetSummary) -> String {
    let mut out = format!("fleet: {}\n", members(fleet));
    if fleet.slots.servers > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "limits: {}", shared_slots(&fleet.slots));
    }
    if fleet.rates.limits > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "rate limits: {}", shared_rates(&fleet.rates));
    }
    out.push_str(&orders(fleet.orders));
    if let Some(tickets) = &fleet.tickets {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "session tickets: {}", shared_tickets(tickets));
    }
    out
}

/// Returns one line on session ticket keys.
fn shared_tickets(tickets: &FleetTickets) -> String {
    let FleetTickets { keys, sealing_age_s, behind, not_sharing, error, .. } = tickets;
    let mut out = match sealing_age_s {
        Some(age_s) => {
            let keys = plural(*keys as u64, "key");
            let age = traffic::elapsed(*age_s);
            format!("{keys} shared; new tickets use the one made {age} ago")
        }
        None => "no shared key is in use, so sessions resume at this member only".to_owned(),
    };
    // Writing to a String cannot fail.
    if let Some(behind) = listed(behind) {
        let _ = write!(out, "; the newest key is not yet at {behind}");
    }
    if let Some(others) = listed(not_sharing) {
        let _ = write!(out, "; keys are not shared by {others}");
    }
    if let Some(error) = error {
        let _ = write!(out, "; {error}");
    }
    out
}

/// Returns one line on the members.
fn members(fleet: &FleetSummary) -> String {
    if let Some(error) = &fleet.error {
        return format!("not a member: {error}");
    }
    let FleetSummary { members, members_in_zone, probes, ignored, problems, .. } = fleet;
    let SharedProbes { assigned, stood_in, relied } = probes;
    let name = fleet.name.as_deref().unwrap_or_default();
    let members = plural(*members as u64, "member");
    let mut out = format!(
        "{name} is one of {members}, {members_in_zone} in its zone; of the health checks, it runs {assigned} for the zone and takes {relied} from others"
    );
    if *stood_in > 0 {
        // Writing to a String cannot fail.
        let _ = write!(out, ", and runs {stood_in} since results of others are missing or differ");
    }
    let of_kind =
        |kind: FleetProblemKind| problems.iter().filter(move |one| one.kind.known() == Some(kind));
    let missing = of_kind(FleetProblemKind::Missing).filter_map(|one| one.member.clone());
    if let Some(missing) = listed(&missing.collect::<Vec<_>>()) {
        // Writing to a String cannot fail.
        let _ = write!(out, "; no member answers at {missing}");
    }
    if of_kind(FleetProblemKind::NameConflict).next().is_some() {
        out.push_str("; another process has its name");
    }
    for one in ignored {
        let probes = plural(one.probes as u64, "check");
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "; what {} says about {probes} contradicts its own and is ignored",
            one.name
        );
    }
    out
}

/// Returns the line on servers whose state is set for the whole fleet, if there are any.
fn orders(orders: FleetOrderCounts) -> String {
    let FleetOrderCounts { drain, maintenance } = orders;
    let counts = match (drain, maintenance) {
        (0, 0) => return String::new(),
        (_, 0) => format!("{} drained", plural(drain as u64, "server")),
        (0, _) => format!("{} in maintenance", plural(maintenance as u64, "server")),
        _ => format!("{} drained and {maintenance} in maintenance", plural(drain as u64, "server")),
    };
    format!("fleet orders: {counts} for the whole fleet\n")
}

/// Returns one line on the servers whose concurrency limits the fleet shares.
fn shared_slots(slots: &SharedSlots) -> String {
    let SharedSlots { servers, is_settled, missing, share, lent, borrowed } = slots;
    let servers = plural(*servers as u64, "server");
    let share = plural(*share, "slot");
    let mut out =
        format!("{servers} shared, this balancer has {share}, {lent} lent, {borrowed} borrowed");
    let named = match listed(missing) {
        Some(named) => named,
        None if *is_settled => return out,
        None => "the other members".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = if *is_settled {
        write!(out, "; no answer from {named}, whose shares are unused")
    } else {
        write!(out, "; waits for {named} to agree")
    };
    out
}

/// Returns one line on the rate limits that hold over the fleet.
fn shared_rates(rates: &SharedRates) -> String {
    let SharedRates { limits, keys, part, missing, untracked, unknown } = rates;
    let limits = plural(*limits as u64, "limit");
    let keys = plural(*keys as u64, "key");
    let mut out = format!("{limits} shared, {keys} with requests at other members");
    if let Some(missing) = listed(missing) {
        let percent = part * 100.0;
        // Writing to a String cannot fail.
        let _ = write!(out, "; no answer from {missing}, so {percent:.0}% of each limit is used");
    }
    if *untracked > 0 {
        let requests = plural(*untracked, "request");
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "; since the start, {requests} counted here alone, as too many keys were in use"
        );
    }
    if *unknown > 0 {
        let counts = plural(*unknown, "count");
        // Writing to a String cannot fail.
        let _ =
            write!(out, "; since the start, {counts} for limits that this balancer does not have");
    }
    out
}

/// Returns the names, the first of them if there are many; `None`: there are none.
fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| list(names, NAMES_SHOWN_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said_of(fleet: serde_json::Value) -> String {
        text(&serde_json::from_value(fleet).unwrap())
    }

    #[test]
    fn slots_that_the_fleet_shares_are_one_line_with_the_members_that_do_not_answer() {
        let said = |settled: bool, missing: &[&str]| {
            let slots = json!({
                "servers": 12, "is_settled": settled, "missing": missing, "share": 16, "lent": 3,
                "borrowed": 2,
            });
            let said = said_of(json!({ "name": "b1", "slots": slots }));
            let line = said.lines().find_map(|line| line.strip_prefix("limits: "));
            let counts = "12 servers shared, this balancer has 16 slots, 3 lent, 2 borrowed";
            line.unwrap().strip_prefix(counts).unwrap().to_owned()
        };
        assert_eq!(said(true, &[]), "");
        assert_eq!(said(true, &["a:1"]), "; no answer from a:1, whose shares are unused");
        assert_eq!(said(false, &[]), "; waits for the other members to agree");
        assert_eq!(said(false, &["a:1"]), "; waits for a:1 to agree");
        let three = said(false, &["a:1", "b:1", "c:1"]);
        assert_eq!(three, "; waits for a:1, b:1 and c:1 to agree");
        let five = said(false, &["a:1", "b:1", "c:1", "d:1", "e:1"]);
        assert_eq!(five, "; waits for a:1, b:1, c:1 and 2 more to agree");
        let without = said_of(json!({ "name": "b1" }));
        assert!(!without.contains("limits:"), "{without}");
    }

    #[test]
    fn states_of_servers_for_the_whole_fleet_are_one_line() {
        let said = |drain: usize, maintenance: usize| {
            let orders = json!({ "drain": drain, "maintenance": maintenance });
            let said = said_of(json!({ "name": "b1", "orders": orders }));
            said.lines().find(|line| line.starts_with("fleet orders")).map(str::to_owned)
        };
        assert_eq!(said(0, 0), None);
        assert_eq!(said(2, 0).unwrap(), "fleet orders: 2 servers drained for the whole fleet");
        assert_eq!(
            said(0, 1).unwrap(),
            "fleet orders: 1 server in maintenance for the whole fleet"
        );
        let both = said(1, 2).unwrap();
        assert_eq!(both, "fleet orders: 1 server drained and 2 in maintenance for the whole fleet");
    }

    #[test]
    fn session_ticket_keys_are_one_line_with_the_members_that_lack_them() {
        let said = |tickets: serde_json::Value| {
            let said = said_of(json!({ "name": "b1", "tickets": tickets }));
            said.lines().find_map(|line| line.strip_prefix("session tickets: ")).map(str::to_owned)
        };
        let usual = json!({ "keys": 2, "sealing_age_s": 7500 });
        assert_eq!(said(usual).unwrap(), "2 keys shared; new tickets use the one made 2h 5m ago");
        let others = json!({
            "keys": 1, "sealing_age_s": 60, "behind": ["b2", "b3"], "not_sharing": ["b4"],
        });
        assert_eq!(
            said(others).unwrap(),
            "1 key shared; new tickets use the one made 1m 0s ago; the newest key is not yet at b2 and b3; keys are not \
             shared by b4"
        );
        let error = json!({ "error": "cannot listen on TCP 10.0.0.5:7946: in use" });
        assert_eq!(
            said(error).unwrap(),
            "no shared key is in use, so sessions resume at this member only; cannot listen on TCP 10.0.0.5:7946: in use"
        );
        assert_eq!(said(serde_json::Value::Null), None);
    }
}
