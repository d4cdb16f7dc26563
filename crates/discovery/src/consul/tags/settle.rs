//! Decides which service has a host and path that several publish.

use std::collections::{HashMap, HashSet};

use config::quote;
use model::{PublishedRoute, Text};

use super::route::Published;

/// Returns what is published now, with each host and path once. A service that had it `before` keeps it while it still
/// publishes it. Otherwise the first by name has it. The others are refused, with the name of the owner.
///
/// So a service cannot take over a route by registering under a name that sorts first.
pub fn settle(before: &[PublishedRoute], now: Published) -> Published {
    let Published { routes, listed, mut refused } = now;
    let lost = lost(before, &routes);
    let mut kept = Vec::with_capacity(routes.len());
    for (route, owner) in routes.into_iter().zip(lost) {
        match owner {
            None => kept.push(route),
            Some(owner) => {
                let why = format!("{route} belongs to the service {}", quote(&owner));
                refused.refuse(&route.service, &route.tag, &why);
            }
        }
    }
    Published { routes: kept, listed, refused }
}

/// Returns the owner of each route's host and path, if it is another service.
fn lost(before: &[PublishedRoute], routes: &[PublishedRoute]) -> Vec<Option<Text>> {
    let mut owners: HashMap<_, &Text> = HashMap::new();
    for route in routes {
        let owner = owners.entry(route.place()).or_insert(&route.service);
        *owner = (*owner).min(&route.service);
    }
    let still: HashSet<_> = routes.iter().map(|route| (&route.service, route.place())).collect();
    // If several had it, which `settle` does not return, the first one counts.
    for route in before.iter().rev().filter(|had| still.contains(&(&had.service, had.place()))) {
        owners.insert(route.place(), &route.service);
    }
    let owner = |route: &PublishedRoute| owners.get(&route.place()).copied();
    routes
        .iter()
        .map(|route| owner(route).filter(|owner| **owner != route.service).cloned())
        .collect()
}
