//! Ports of Weir's Pods for the ports of Gateways: no two Gateways share one.

use std::collections::{BTreeMap, BTreeSet};

use gateway::objects::Key;

/// At most this many ports of a Gateway are served.
pub(crate) const PORTS_MAX: usize = 64;

/// The port of Weir's Pods for each port of a Gateway.
pub(crate) type Targets = BTreeMap<u16, u16>;

/// Allocates ports. An allocation that exists stays.
#[derive(Debug)]
pub(crate) struct Ports {
    first: u16,
    last: u16,
    /// The port after which the search begins. A port that was released is used again as late as possible, since a load
    /// balancer may still send it requests for its former Gateway.
    latest: Option<u16>,
    /// What was allocated last: a Service is written some time before it is read back.
    pending: BTreeMap<Key, Targets>,
}

impl Ports {
    /// Begins with a range.
    pub(crate) fn new(first: u16, last: u16) -> Ports {
        Ports {
            first: first.min(last).max(1),
            last: last.max(first),
            latest: None,
            pending: BTreeMap::new(),
        }
    }

    /// Returns the ports for the wanted ports of Gateways, without those for which none is left, and of each Gateway the
    /// first [`PORTS_MAX`] at most. `existing` has those of
    /// Services that exist, also of Gateways that are not in `wanted`.
    pub(crate) fn allocate(
        &mut self,
        existing: &BTreeMap<Key, Targets>,
        wanted: &BTreeMap<Key, BTreeSet<u16>>,
    ) -> BTreeMap<Key, Targets> {
        let taken: BTreeSet<u16> =
            existing.values().flat_map(|ports| ports.values().copied()).collect();
        let mut known = existing.clone();
        for (gateway, targets) in &self.pending {
            let Some(ports) = wanted.get(gateway) else { continue };
            let of_gateway = known.entry(gateway.clone()).or_default();
            let mut still = targets.clone();
            still.retain(|port, target| ports.contains(port) && !taken.contains(target));
            for (port, target) in still {
                of_gateway.entry(port).or_insert(target);
            }
        }
        let mut used: BTreeSet<u16> =
            known.values().flat_map(|ports| ports.values().copied()).collect();
        self.latest = self.latest.or_else(|| used.range(self.first..=self.last).last().copied());
        let mut allocated = BTreeMap::new();
        for (gateway, ports) in wanted {
            let before = known.get(gateway);
            let mut targets = Targets::new();
            for port in ports.iter().take(PORTS_MAX) {
                let target = before.and_then(|before| before.get(port)).copied();
                if let Some(target) = target.or_else(|| self.free(&mut used)) {
                    targets.insert(*port, target);
                }
            }
            allocated.insert(gateway.clone(), targets);
        }
        self.pending.clone_from(&allocated);
        allocated
    }

    /// Forgets what was allocated and not yet read back: another instance allocates now.
    pub(crate) fn forget(&mut self) {
        self.pending.clear();
        self.latest = None;
    }

    fn free(&mut self, used: &mut BTreeSet<u16>) -> Option<u16> {
        let after = self.latest.filter(|port| (self.first..self.last).contains(port));
        let start = after.map_or(self.first, |port| port + 1);
        let mut candidates = (start..=self.last).chain(self.first..start);
        let port = candidates.find(|port| !used.contains(port))?;
        used.insert(port);
        self.latest = Some(port);
        Some(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(gateways: &[(&str, &[u16])]) -> BTreeMap<Key, BTreeSet<u16>> {
        let one = |(name, ports): &(&str, &[u16])| {
            (Key::new("n", *name), ports.iter().copied().collect())
        };
        gateways.iter().map(one).collect()
    }

    fn shown(allocated: &BTreeMap<Key, Targets>) -> String {
        let one = |(gateway, ports): (&Key, &Targets)| {
            let ports: Vec<String> =
                ports.iter().map(|(port, target)| format!("{port}={target}")).collect();
            format!("{}:{}", gateway.name, ports.join(","))
        };
        allocated.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn allocations_stay_and_released_ports_are_used_last() {
        let mut ports = Ports::new(100, 104);
        let first = ports.allocate(&BTreeMap::new(), &wanted(&[("a", &[80, 443]), ("b", &[80])]));
        assert_eq!(shown(&first), "a:80=100,443=101 b:80=102");
        let second = ports.allocate(&first, &wanted(&[("b", &[80]), ("c", &[80])]));
        // Those of Gateway a are not free while its Service exists.
        assert_eq!(shown(&second), "b:80=102 c:80=103");
        let third =
            ports.allocate(&second, &wanted(&[("b", &[80, 81]), ("c", &[80]), ("d", &[1, 2])]));
        assert_eq!(shown(&third), "b:80=102,81=104 c:80=103 d:1=100,2=101");
        let full = ports.allocate(&third, &wanted(&[("b", &[80]), ("e", &[1, 2])]));
        assert_eq!(shown(&full), "b:80=102 e:");
    }

    #[test]
    fn allocations_stay_until_their_service_is_read_back() {
        let mut ports = Ports::new(100, 104);
        let none = BTreeMap::new();
        let first = ports.allocate(&none, &wanted(&[("a", &[80]), ("b", &[80])]));
        assert_eq!(shown(&first), "a:80=100 b:80=101");
        let again = ports.allocate(&none, &wanted(&[("a", &[80, 81]), ("b", &[80])]));
        assert_eq!(shown(&again), "a:80=100,81=102 b:80=101");
        // Another leader wrote the Service of b before.
        let existing: BTreeMap<Key, Targets> = [(Key::new("n", "b"), [(80, 100)].into())].into();
        let third = ports.allocate(&existing, &wanted(&[("a", &[80, 81]), ("b", &[80])]));
        assert_eq!(shown(&third), "a:80=103,81=102 b:80=100");
        ports.forget();
        assert_eq!(shown(&ports.allocate(&existing, &wanted(&[("a", &[80])]))), "a:80=101");
    }

    #[test]
    fn a_new_leader_continues_after_the_highest() {
        let known: BTreeMap<Key, Targets> = [(Key::new("n", "a"), [(80, 102)].into())].into();
        let mut ports = Ports::new(100, 104);
        assert_eq!(shown(&ports.allocate(&known, &wanted(&[("b", &[80])]))), "b:80=103");
        // One outside of the range stays.
        let known: BTreeMap<Key, Targets> = [(Key::new("n", "a"), [(80, 9)].into())].into();
        let mut ports = Ports::new(100, 104);
        let allocated = ports.allocate(&known, &wanted(&[("a", &[80, 81])]));
        assert_eq!(shown(&allocated), "a:80=9,81=100");
    }

    #[test]
    fn the_ports_of_a_gateway_are_bounded() {
        let mut ports = Ports::new(1000, 2000);
        let many: Vec<u16> = (1..=100).collect();
        let allocated = ports.allocate(&BTreeMap::new(), &wanted(&[("a", &many), ("b", &[80])]));
        let of = |name: &str| allocated[&Key::new("n", name)].clone();
        assert_eq!((of("a").len(), of("b").len()), (PORTS_MAX, 1));
        assert!(of("a").contains_key(&64) && !of("a").contains_key(&65));
    }

    #[test]
    fn any_range_is_survived() {
        for (first, last) in [(0, 0), (5, 1), (u16::MAX, u16::MAX)] {
            let mut ports = Ports::new(first, last);
            let allocated = ports.allocate(&BTreeMap::new(), &wanted(&[("a", &[80])]));
            assert!(
                !allocated[&Key::new("n", "a")].values().any(|port| *port == 0),
                "{first} {last}"
            );
        }
    }
}
