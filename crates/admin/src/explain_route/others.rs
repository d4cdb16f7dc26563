//! The routes that a request does not take, and why.

use std::cmp::Reverse;

use admin_api::routes::ConsideredRoute;
use decide::route::Unmet;

use super::Case;

/// Maximum number of routes in an explanation.
const LISTED_MAX: usize = 32;
/// Maximum number of routes that are examined: those around the route that is taken.
const EXAMINED_MAX: usize = 10_000;

/// A route that is not taken.
struct Other {
    index: usize,
    /// The number of conditions that the request meets, and the first that it does not; `None`: it
    /// meets all.
    unmet: Option<(usize, String)>,
}

/// Returns the routes that come closest, in the order in which routes are tried, and how many others
/// there are. `found` is the route that is taken.
pub(super) fn considered(case: &Case<'_>, found: Option<usize>) -> (Vec<ConsideredRoute>, usize) {
    let routes = &case.snapshot().routes;
    let first = found.unwrap_or(0).saturating_sub(EXAMINED_MAX / 2);
    let examined = routes.iter().enumerate().skip(first).take(EXAMINED_MAX);
    let others = examined.filter(|(index, _)| Some(*index) != found);
    let mut others: Vec<Other> = others
        .map(|(index, route)| {
            let unmet = Unmet::first(&route.matches, case.head, &case.arrival);
            Other { index, unmet: unmet.map(|(met, unmet)| (met, unmet.words(case.head))) }
        })
        .collect();
    let closeness = |other: &Other| other.unmet.as_ref().map_or(usize::MAX, |(met, _)| *met);
    // Stable: of equally close ones, those that are tried first stay first.
    others.sort_by_key(|other| Reverse(closeness(other)));
    others.truncate(LISTED_MAX);
    let nearest = others.first().map(|other| other.index).filter(|_| found.is_none());
    others.sort_by_key(|other| other.index);
    let not_listed = routes.len() - others.len() - usize::from(found.is_some());
    let rows = others.into_iter().filter_map(|other| row(case, other, found, nearest));
    (rows.collect(), not_listed)
}

fn row(
    case: &Case<'_>,
    other: Other,
    found: Option<usize>,
    nearest: Option<usize>,
) -> Option<ConsideredRoute> {
    let Other { index, unmet } = other;
    let routes = &case.snapshot().routes;
    let route = routes.get(index)?;
    let taken = found.and_then(|found| routes.get(found));
    let matches = unmet.is_none();
    let why = match (unmet, found.zip(taken)) {
        (Some((_, why)), _) => why,
        (None, Some((number, taken))) => {
            let rank = taken.matches.rank(&route.matches).text();
            format!("it matches, too; route {} is tried before it because {rank}", number + 1)
        }
        // The router and its conditions disagree, which they never do.
        (None, None) => "it matches".to_owned(),
    };
    Some(ConsideredRoute {
        number: index + 1,
        name: route.name.to_string(),
        written_at: case.written_at(index),
        matches,
        nearest: nearest == Some(index),
        why,
    })
}
