//! Addresses of this host for Gateways: each has one of its own.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway::objects::Key;
use gateway::objects::gateway::{Address, Gateway};

/// Returns the address of each Gateway, as far as there are enough. A Gateway keeps the address that its status has.
/// Of several that want the same, the oldest receives it; those that request addresses receive no other.
pub(crate) fn assign(
    pool: &[IpAddr],
    gateways: &[&Gateway],
    present: &BTreeMap<Key, Vec<Address>>,
) -> BTreeMap<Key, IpAddr> {
    let mut oldest_first = gateways.to_vec();
    oldest_first.sort_by(|a, b| a.metadata.age_order().cmp(&b.metadata.age_order()));
    let mut free = pool.to_vec();
    let mut assigned = BTreeMap::new();
    let mut assign = |gateway: &Gateway, choose: &dyn Fn(&IpAddr) -> bool| {
        let key = gateway.metadata.key();
        if assigned.contains_key(&key) {
            return;
        }
        if let Some(place) = free.iter().position(choose) {
            assigned.insert(key, free.remove(place));
        }
    };
    for gateway in &oldest_first {
        let requested = requested(gateway);
        if !requested.is_empty() {
            assign(gateway, &|address| requested.contains(address));
        }
    }
    for gateway in oldest_first.iter().filter(|gateway| requested(gateway).is_empty()) {
        let present = present.get(&gateway.metadata.key()).map_or(&[][..], Vec::as_slice);
        let known: Vec<IpAddr> = present.iter().filter_map(ip).collect();
        assign(gateway, &|address| known.contains(address));
    }
    for gateway in oldest_first.iter().filter(|gateway| requested(gateway).is_empty()) {
        assign(gateway, &|_| true);
    }
    assigned
}

/// Returns the addresses that IngressClasses have according to the statuses of their Ingresses. `before`: those that this
/// instance assigned before. All instances read the statuses, so what it assigned counts only if a status has it.
pub(crate) fn of_classes<'k, I: Iterator<Item = Address>>(
    classes: &'k [Key],
    before: &BTreeMap<Key, IpAddr>,
    statuses: impl Fn(&Key) -> I,
) -> impl Iterator<Item = (Key, Vec<Address>)> {
    let kept = classes.iter().filter_map(|class| {
        let own = stated(*before.get(class)?);
        statuses(class).any(|known| known == own).then_some((class, own))
    });
    let kept: BTreeMap<&'k Key, Address> = kept.collect();
    classes.iter().map(move |class| {
        // An Ingress that has changed its class still has the address of the former one.
        let is_free = |known: &Address| !kept.values().any(|other| other == known);
        let known = kept.get(class).cloned().or_else(|| statuses(class).find(is_free));
        (class.clone(), known.into_iter().collect())
    })
}

/// Returns an address as a status states it.
pub(crate) fn stated(address: IpAddr) -> Address {
    Address { value: Some(address.to_string()), ..Address::default() }
}

/// Returns the IP addresses that a Gateway requests.
pub(crate) fn requested(gateway: &Gateway) -> Vec<IpAddr> {
    gateway.spec.addresses.iter().filter_map(ip).collect()
}

fn ip(address: &Address) -> Option<IpAddr> {
    (address.kind == "IPAddress").then_some(address.value.as_deref()?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gateway(name: &str, created: u32, address: Option<&str>) -> Gateway {
        let addresses: Vec<_> = address.iter().map(|value| json!({"value": value})).collect();
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": name, "creationTimestamp": format!("2026-01-0{created}T00:00:00Z")},
            "spec": {"addresses": addresses}
        }))
        .unwrap()
    }

    fn shown(gateways: &[Gateway], present: &[(&str, &str)]) -> String {
        let pool: Vec<IpAddr> =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].iter().map(|text| text.parse().unwrap()).collect();
        let present = present.iter().map(|(name, address)| {
            let address = Address { value: Some((*address).to_owned()), ..Address::default() };
            (Key::new("n", *name), vec![address])
        });
        let gateways: Vec<&Gateway> = gateways.iter().collect();
        let assigned = assign(&pool, &gateways, &present.collect());
        let one = |(key, address): (&Key, &IpAddr)| format!("{}={address}", key.name);
        assigned.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn addresses_are_stable_and_the_oldest_wins() {
        let [old, young] = [gateway("b", 1, None), gateway("a", 2, None)];
        let both = [young, old];
        assert_eq!(shown(&both, &[]), "a=10.0.0.2 b=10.0.0.1");
        assert_eq!(shown(&both, &[("a", "10.0.0.1")]), "a=10.0.0.1 b=10.0.0.2");
        assert_eq!(shown(&both, &[("a", "10.0.0.3"), ("b", "10.0.0.3")]), "a=10.0.0.1 b=10.0.0.3");
        assert_eq!(shown(&both, &[("a", "192.0.2.1")]), "a=10.0.0.2 b=10.0.0.1");
    }

    #[test]
    fn requested_addresses_come_first() {
        let gateways = [
            gateway("a", 1, None),
            gateway("b", 2, Some("10.0.0.1")),
            gateway("c", 3, Some("10.0.0.1")),
        ];
        assert_eq!(shown(&gateways, &[("a", "10.0.0.1")]), "a=10.0.0.2 b=10.0.0.1");
        assert_eq!(shown(&[gateway("a", 1, Some("192.0.2.1"))], &[]), "");
    }

    #[test]
    fn the_youngest_have_none_if_the_pool_is_too_small() {
        let gateways: Vec<Gateway> =
            (1..5).map(|day| gateway(&format!("g{day}"), day, None)).collect();
        assert_eq!(shown(&gateways, &[]), "g1=10.0.0.1 g2=10.0.0.2 g3=10.0.0.3");
    }

    #[test]
    fn the_statuses_of_ingresses_say_what_their_class_has() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let classes = ["a", "b"].map(|name| Key::new("", name));
        // The addresses that this instance assigned to `a` and `b`, and those that their Ingresses have.
        for (before, of_a, of_b, expected) in [
            ([0, 0], &[1][..], &[2][..], [1, 2]),
            ([1, 2], &[1], &[2], [1, 2]),
            // Nothing has been written yet.
            ([1, 2], &[], &[], [0, 0]),
            // One of `a` has become one of `b`.
            ([1, 2], &[1], &[1, 2], [1, 2]),
            ([1, 0], &[1], &[1], [1, 0]),
            ([1, 0], &[], &[1], [0, 1]),
            // Another instance, which wrote the statuses, assigned them the other way round.
            ([2, 1], &[1], &[2], [1, 2]),
        ] {
            let known = classes.iter().cloned().zip(before.map(address));
            let before = known.filter(|(_, one)| *one != address(0)).collect();
            let statuses = |class: &Key| {
                let all = if *class.name == *"a" { of_a } else { of_b };
                all.iter().map(|last| stated(address(*last)))
            };
            let found = of_classes(&classes, &before, statuses);
            let found: Vec<Vec<Address>> = found.map(|(_, one)| one).collect();
            let shown = expected.map(|last| match last {
                0 => Vec::new(),
                last => vec![stated(address(last))],
            });
            assert_eq!(found, shown);
        }
    }
}
