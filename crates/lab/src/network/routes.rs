//! Routes between hosts: the path with the fewest links.

use std::collections::VecDeque;

/// How one host reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The host that is reached.
    pub(super) to: usize,
    /// The first link.
    pub(super) link: usize,
    /// The host at its other end.
    pub(super) next: usize,
}

/// The routes of host `from`, of `hosts` that are joined by `links`.
pub(super) fn routes(from: usize, hosts: usize, links: &[[usize; 2]]) -> Vec<Route> {
    let mut first: Vec<Option<Route>> = vec![None; hosts];
    let mut seen = vec![false; hosts];
    let mut waiting = VecDeque::from([from]);
    if let Some(own) = seen.get_mut(from) {
        *own = true;
    }
    while let Some(at) = waiting.pop_front() {
        for (link, ends) in links.iter().enumerate() {
            let next = match ends {
                [one, other] if *one == at => *other,
                [one, other] if *other == at => *one,
                _ => continue,
            };
            if seen.get(next) != Some(&false) {
                continue;
            }
            seen[next] = true;
            let begun = first[at].unwrap_or(Route { to: next, link, next });
            first[next] = Some(Route { to: next, ..begun });
            waiting.push_back(next);
        }
    }
    first.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_link_of_the_shortest_way_leads_there() {
        // 0 - 1 - 2 - 3, and 0 - 3.
        let links = [[0, 1], [1, 2], [2, 3], [3, 0]];
        let found = routes(0, 5, &links);
        let expected = [
            Route { to: 1, link: 0, next: 1 },
            Route { to: 2, link: 0, next: 1 },
            Route { to: 3, link: 3, next: 3 },
        ];
        assert_eq!(found, expected, "and 4 is reached by none");
    }

    #[test]
    fn a_host_alone_has_no_routes() {
        assert!(routes(0, 1, &[]).is_empty());
    }
}
