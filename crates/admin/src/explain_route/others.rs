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
struct Other<'a> {
    index: usize,
    /// The number of conditions that the request meets, and the first that it does not; `None`: it
    /// meets all.
    unmet: Option<(usize, Unmet<'a>)>,
}

impl Other<'_> {
    /// Returns how close the request comes to it: first counts the kind of the condition that it does
    /// not meet, then how many it meets before.
    fn closeness(&self) -> (u8, usize) {
        self.unmet.as_ref().map_or((u8::MAX, 0), |(met, unmet)| (unmet.kind(), *met))
    }
}

/// Returns whether not all of `count` routes are examined.
pub(super) fn is_partial(count: usize) -> bool {
    count > EXAMINED_MAX
}

/// Returns the routes that come closest, in the order in which routes are tried, and how many others
/// there are. `found` is the route that is taken.
pub(super) fn considered(case: &Case<'_>, found: Option<usize>) -> (Vec<ConsideredRoute>, usize) {
    let routes = &case.snapshot().routes;
    let first = found.unwrap_or(0).saturating_sub(EXAMINED_MAX / 2);
    let examined = routes.iter().enumerate().skip(first).take(EXAMINED_MAX);
    let others = examined.filter(|(index, _)| Some(*index) != found);
    let mut others: Vec<Other<'_>> = others
        .map(|(index, route)| Other {
            index,
            unmet: Unmet::first(&route.matches, case.head, &case.arrival),
        })
        .collect();
    // Stable: of equally close ones, those that are tried first stay first.
    others.sort_by_key(|other| Reverse(other.closeness()));
    others.truncate(LISTED_MAX);
    let is_near = |other: &&Other<'_>| !matches!(other.unmet, Some((_, Unmet::DotSegments)));
    let nearest = others.first().filter(is_near).map(|other| other.index);
    let nearest = nearest.filter(|_| found.is_none());
    others.sort_by_key(|other| other.index);
    let not_listed = routes.len() - others.len() - usize::from(found.is_some());
    let rows = others.iter().filter_map(|other| row(case, other, found, nearest));
    (rows.collect(), not_listed)
}

fn row(
    case: &Case<'_>,
    other: &Other<'_>,
    found: Option<usize>,
    nearest: Option<usize>,
) -> Option<ConsideredRoute> {
    let Other { index, unmet } = other;
    let routes = &case.snapshot().routes;
    let route = routes.get(*index)?;
    let taken = found.and_then(|found| routes.get(found));
    let why = match (unmet, found.zip(taken)) {
        (Some((_, unmet)), _) => unmet.words(case.head),
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
        written_at: case.written_at(*index),
        matches: unmet.is_none(),
        nearest: nearest == Some(*index),
        why,
    })
}
