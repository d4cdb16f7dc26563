//! What an operator may change from the screen, and what is known beforehand about its effect. What depends
//! on settings that the API does not show is left unsaid.

use std::fmt::Write as _;

use admin_api::services::{Server, Service};
use decide::Tier;
use diagnose::words::{plural, thousands};
use model::{Administrative, Health};

use super::picture::Picture;
use crate::render::traffic::rate;

/// A change of a running balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Sets the administrative state of a server.
    Server { service: String, address: String, state: Administrative },
    /// Switches the maintenance of a service on or off.
    Service { service: String, on: bool },
}

impl Change {
    /// Returns the question whether to make it, with what is known about its effect now.
    pub(crate) fn question(&self, picture: &Picture) -> String {
        format!("{}? {}", self.title(), self.effect(picture).join(" "))
    }

    /// Returns the question without its numbers, most of which change every second.
    pub(crate) fn wording(&self, picture: &Picture) -> String {
        let is_number = |char: char| char.is_ascii_digit() || matches!(char, ',' | '.');
        self.question(picture).replace(is_number, "")
    }

    /// `Drain 10.0.2.15:80 of catalog`.
    fn title(&self) -> String {
        match self {
            Change::Server { service, address, state } => match state {
                Administrative::Drain => format!("Drain {address} of {service}"),
                Administrative::Maintenance => {
                    format!("Put {address} of {service} into maintenance")
                }
                Administrative::Ready => format!("Put {address} of {service} back into service"),
            },
            Change::Service { service, on: true } => format!("Put {service} into maintenance"),
            Change::Service { service, on: false } => format!("End the maintenance of {service}"),
        }
    }

    fn effect(&self, picture: &Picture) -> Vec<String> {
        match self {
            Change::Server { service, address, state } => {
                let Some((service, server)) = picture.server(service, address) else {
                    return vec!["It is not among the service's servers any more.".to_owned()];
                };
                let after = picture.service_after(&service.name, address, *state);
                match state {
                    Administrative::Ready => ready(picture, service, server, after),
                    Administrative::Drain => taken_out(picture, service, server, after),
                    Administrative::Maintenance => {
                        let mut effect = taken_out(picture, service, server, after);
                        effect.push("The health checks of this service stop.".to_owned());
                        effect
                    }
                }
            }
            Change::Service { service, on: true } => {
                let recent = picture.recent(service).map(|window| window.ended);
                let now = recent.map_or_else(String::new, |ended| {
                    format!(" ({} requests/s now)", rate(ended.requests, ended.seconds))
                });
                vec![format!("Weir refuses its new requests{now}, in HTTP with 503.")]
            }
            Change::Service { service, on: false } => vec![match picture.maintenance(service) {
                None => "It is not in maintenance now.".to_owned(),
                Some(row) if row.in_file => {
                    "The configuration file keeps it in maintenance.".to_owned()
                }
                Some(_) => "Its servers receive its requests again.".to_owned(),
            }],
        }
    }
}

/// What is known about a server that is set to ready. `after`: the service as it would be.
fn ready(
    picture: &Picture,
    service: &Service,
    server: &Server,
    after: Option<&Service>,
) -> Vec<String> {
    let mut effect = Vec::new();
    if server.state.known() == Some(Administrative::Ready) {
        effect.push("It is ready now.".to_owned());
    }
    if picture.maintenance(&service.name).is_some() {
        effect.push(IN_MAINTENANCE.to_owned());
    }
    effect.push(match server.health.known() {
        Some(Health::Down) => "Its health check fails.".to_owned(),
        Some(Health::Up) => "Its last health check passed.".to_owned(),
        _ => "There is no result of a health check.".to_owned(),
    });
    effect.extend(after.map(|after| eligible_after(service, after)));
    effect
}

const IN_MAINTENANCE: &str = "The service is in maintenance: Weir refuses its new requests.";

/// What is known about a server that receives no new requests from then on. `after`: the service as it would
/// be.
fn taken_out(
    picture: &Picture,
    service: &Service,
    server: &Server,
    after: Option<&Service>,
) -> Vec<String> {
    let mut effect = Vec::new();
    if picture.maintenance(&service.name).is_some() {
        effect.push(IN_MAINTENANCE.to_owned());
    } else if server.eligible {
        if let Some(window) = picture.recent_server(&service.name, &server.address) {
            let rate = rate(window.requests, window.seconds);
            effect.push(format!("It receives {rate} requests/s now."));
        }
        let others = || others(service, server);
        effect.push(after.map_or_else(others, |after| eligible_after(service, after)));
    } else {
        effect.push("It receives no new requests now.".to_owned());
    }
    effect.push(match server.in_flight {
        0 => "No request is in flight at its address.".to_owned(),
        count => format!(
            "Requests in flight may finish ({} at its address, of all services).",
            thousands(u64::from(count))
        ),
    });
    effect
}

/// Names of servers in a question.
const NAMED_MAX: usize = 3;

/// Returns which servers are eligible after a change, as the balancer says.
fn eligible_after(service: &Service, after: &Service) -> String {
    if after.tier.known() == Some(Tier::TryAll) {
        return format!(
            "NO SERVER of this service is ready then, so Weir tries all that are not drained ({}).",
            thousands(after.eligible as u64)
        );
    }
    if after.eligible == 0 {
        return "NO SERVER of this service is eligible then: requests will wait or be refused."
            .to_owned();
    }
    let is_new = |server: &&Server| {
        let before = service.servers.iter().find(|before| before.address == server.address);
        server.eligible && before.is_some_and(|before| !before.eligible)
    };
    let new: Vec<&str> =
        after.servers.iter().filter(is_new).map(|server| &*server.address).collect();
    let mut text = format!(
        "Then {} of {} are eligible",
        thousands(after.eligible as u64),
        plural(after.servers.len() as u64, "server")
    );
    // Writing to a String cannot fail.
    let (named, rest) = new.split_at(NAMED_MAX.min(new.len()));
    if !named.is_empty() {
        let _ = write!(text, ", new among them {}", named.join(", "));
    }
    if !rest.is_empty() {
        let _ = write!(text, " and {} more", thousands(rest.len() as u64));
    }
    if after.tier != service.tier {
        let _ = write!(text, ", because {}", after.why);
    }
    text + "."
}

/// Returns which other servers are eligible. How many of them a balancer uses afterwards depends on its zone
/// and on `ready_min`: where requests go is left out.
fn others(service: &Service, server: &Server) -> String {
    let others = || service.servers.iter().filter(|other| other.address != server.address);
    let eligible = others().filter(|other| other.eligible).count() as u64;
    let all = (others().count() + service.unresolved.len()) as u64;
    if service.tier.known() == Some(Tier::TryAll) && eligible > 0 {
        return format!(
            "No server of this service is ready, so Weir tries all that are not drained; {} left.",
            if eligible == 1 { "1 is".to_owned() } else { format!("{eligible} are") }
        );
    }
    if eligible == 0 {
        return none_left(service, server);
    }
    match all {
        1 => "The other server of this service is eligible.".to_owned(),
        _ if eligible == all => {
            format!("The {} other servers of this service are eligible.", thousands(all))
        }
        _ => {
            let are = if eligible == 1 { "is" } else { "are" };
            let (eligible, all) = (thousands(eligible), thousands(all));
            format!("{eligible} of the {all} other servers of this service {are} eligible.")
        }
    }
}

/// What is known if a server is the only eligible one.
fn none_left(service: &Service, server: &Server) -> String {
    let others = service.servers.iter().filter(|other| other.address != server.address);
    let candidates: Vec<&Server> = others
        .filter(|other| other.state.known() == Some(Administrative::Ready) && other.weight > 0)
        .collect();
    let is_healthy = |server: &&&Server| {
        server.health.known() != Some(Health::Down) && server.ejected_for_ms.is_none()
    };
    let healthy = candidates.iter().filter(is_healthy).count() as u64;
    if healthy > 0 {
        format!(
            "NO OTHER SERVER of this service is eligible now; {} in other zones or among backups may \
             become so.",
            plural(healthy, "healthy server")
        )
    } else if candidates.is_empty() {
        "NO OTHER SERVER of this service is eligible: requests will wait or be refused.".to_owned()
    } else {
        "NO OTHER SERVER of this service is ready: requests will be refused, or with `when_all_down = \
         \"try-all\"` sent to servers that are down or ejected."
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::picture::{Part, Proposal};
    use super::*;

    /// Three servers, of which the first is drained.
    fn picture(eligible: [bool; 3]) -> Value {
        let server = |at: usize| {
            json!({
                "address": format!("10.0.0.{at}:80"), "eligible": eligible[at], "state": "ready",
                "health": "up", "weight": 1, "in_flight": 5, "in_flight_max": 20,
            })
        };
        let traffic =
            json!({ "address": "10.0.0.0:80", "windows": [{ "seconds": 10, "requests": 420 }] });
        json!({
            "services": [{ "name": "app", "servers": [server(0), server(1), server(2)] }],
            "traffic": { "services": [{
                "name": "app", "servers": [traffic],
                "windows": [{ "seconds": 10, "requests": 12_400 }],
            }] },
        })
    }

    fn asked(picture: Value, state: Administrative) -> String {
        let change =
            Change::Server { service: "app".to_owned(), address: "10.0.0.0:80".to_owned(), state };
        change.question(&serde_json::from_value(picture).unwrap())
    }

    fn drain(picture: Value) -> String {
        asked(picture, Administrative::Drain)
    }

    #[test]
    fn a_drain_says_what_is_known() {
        assert_eq!(
            drain(picture([true; 3])),
            "Drain 10.0.0.0:80 of app? It receives 42.0 requests/s now. The 2 other servers of this \
             service are eligible. Requests in flight may finish (5 at its address, of all services)."
        );
        assert!(
            drain(picture([true, true, false]))
                .contains("1 of the 2 other servers of this service is eligible.")
        );
        assert!(drain(picture([false; 3])).contains("receives no new requests now"));
        let maintained = asked(picture([false; 3]), Administrative::Maintenance);
        assert!(maintained.ends_with("The health checks of this service stop."));
    }

    #[test]
    fn a_preview_says_which_servers_take_over() {
        let asked = |state: Administrative, after: Value| {
            let mut picture: Picture =
                serde_json::from_value(picture([true, true, false])).unwrap();
            let proposal = Proposal {
                service: "app".to_owned(),
                address: "10.0.0.0:80".to_owned(),
                state: Administrative::Drain,
            };
            let after = serde_json::from_value(after).unwrap();
            picture.preview = Some((proposal, Part::Known(after)));
            let (service, address) = ("app".to_owned(), "10.0.0.0:80".to_owned());
            Change::Server { service, address, state }.question(&picture)
        };
        let server = |at: usize, eligible: bool| json!({ "address": format!("10.0.0.{at}:80"), "eligible": eligible });
        let after = || {
            json!({
                "tier": "all_zones", "eligible": 2, "why": "no server of the own zone is ready",
                "servers": [server(0, false), server(1, true), server(2, true)],
            })
        };
        let said = asked(Administrative::Drain, after());
        assert!(
            said.contains(
                "Then 2 of 3 servers are eligible, new among them 10.0.0.2:80, because no server of the \
                 own zone is ready."
            ),
            "{said}"
        );
        // It is the preview of another change.
        assert!(!asked(Administrative::Maintenance, after()).contains("Then"));
        let mut none = after();
        (none["eligible"], none["tier"]) = (json!(0), json!("none"));
        assert!(
            asked(Administrative::Drain, none)
                .contains("NO SERVER of this service is eligible then")
        );
        let mut tried = after();
        tried["tier"] = json!("try_all");
        assert!(
            asked(Administrative::Drain, tried)
                .contains("Weir tries all that are not drained (2).")
        );
    }

    #[test]
    fn the_last_eligible_server_is_a_warning() {
        let last = || picture([true, false, false]);
        let said = drain(last());
        assert!(said.contains("is eligible now; 2 healthy servers in other zones"), "{said}");
        let mut down = last();
        let mut drained = last();
        for at in [1, 2] {
            down["services"][0]["servers"][at]["health"] = json!("down");
            drained["services"][0]["servers"][at]["state"] = json!("drain");
        }
        // Whether they are tried depends on a setting that the API does not show.
        assert!(drain(down).contains("requests will be refused, or with `when_all_down"));
        assert!(drain(drained).contains("requests will wait or be refused"));
    }

    #[test]
    fn a_service_of_which_all_servers_are_tried_has_no_eligible_ones() {
        let mut tried = picture([true; 3]);
        tried["services"][0]["tier"] = json!("try_all");
        let said = drain(tried);
        assert!(said.contains("No server of this service is ready"), "{said}");
        assert!(said.contains("2 are left"), "{said}");
    }

    #[test]
    fn requests_of_a_service_in_maintenance_do_not_move() {
        let mut maintained = picture([true; 3]);
        maintained["status"] =
            json!({ "maintenance": [{ "kind": "service", "name": "app", "on": true }] });
        let said = drain(maintained.clone());
        assert!(
            said.contains("The service is in maintenance") && !said.contains("other"),
            "{said}"
        );
        let end = Change::Service { service: "app".to_owned(), on: false };
        let end = |picture: Value| end.question(&serde_json::from_value(picture).unwrap());
        assert!(end(maintained.clone()).ends_with("receive its requests again."));
        maintained["status"]["maintenance"][0]["in_file"] = json!(true);
        assert!(end(maintained).ends_with("The configuration file keeps it in maintenance."));
    }

    #[test]
    fn requests_of_a_service_in_maintenance_are_refused() {
        let change = Change::Service { service: "app".to_owned(), on: true };
        assert_eq!(
            change.question(&serde_json::from_value(picture([true; 3])).unwrap()),
            "Put app into maintenance? Weir refuses its new requests (1,240 requests/s now), in \
             HTTP with 503."
        );
    }
}
