//! Tests of where a request goes whose server could not be reached.

use model::{Address, HashKey, HashOn};

use super::*;

/// Returns the server that balancing chooses for `key`, among those not in `avoid`.
fn chosen(live: &Arc<LiveService>, key: u64, avoid: &[Address]) -> Address {
    let ask = Ask { key: Some(key), avoid, ..Ask::default() };
    go(admit_asking(live, &ask)).endpoint().row.address
}

#[test]
fn a_key_goes_to_its_next_server_whether_it_is_balanced_or_placed_elsewhere() {
    let mut rng = fastrand::Rng::with_seed(7);
    for weights in [[1, 1, 1, 1, 1], [1, 2, 3, 4, 5]] {
        let mut spec = service("a", &[1, 2, 3, 4, 5], 0, 0);
        spec.balance = Balance::Hash(HashKey { on: HashOn::Client, load_factor: 1.25 });
        for (server, weight) in spec.servers.iter_mut().zip(weights) {
            server.weight = weight;
        }
        let (_registry, live) = one(spec);
        for key in 0..500_u64 {
            let key = crate::hash_key(&key.to_le_bytes());
            let first = chosen(&live, key, &[]);
            let second = chosen(&live, key, &[first]);
            let mut elsewhere = |avoid: &[Address]| {
                let slot = live.elsewhere(avoid, None, Some(key), &mut rng);
                slot.map(|slot| slot.endpoint().row.address)
            };
            assert_eq!(elsewhere(&[first]), Some(second));
            assert_eq!(elsewhere(&[first, second]), Some(chosen(&live, key, &[first, second])));
        }
    }
}

#[test]
fn without_a_key_all_others_get_their_share() {
    let (_registry, live) = one(service("a", &[1, 2, 3], 0, 0));
    let mut rng = fastrand::Rng::with_seed(7);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let slot = live.elsewhere(&[address(1)], None, None, &mut rng).unwrap();
        seen.insert(port(&slot));
    }
    assert_eq!(seen, [2, 3].into());
}

#[test]
fn the_tokens_of_cookies_follow_the_key_and_those_of_the_release_before_are_accepted() {
    let registry = Registry::with_seed(0);
    let keys = [1, 2].map(|byte| AffinityKey::new([byte; 16]));
    registry.set_affinity_key(keys[0]);
    let affinity = |key_file: Option<AffinityKey>| {
        let key_file = key_file.map(|key| AffinityKeyFile { path: "/key".into(), key });
        let affinity = Some(Affinity { cookie: "c".to_owned(), max_age: None, key_file });
        vec![Service { affinity, ..service("a", &[1, 2, 3], 0, 0) }]
    };
    let goes_to = |live: &Arc<LiveService>, token: u64| {
        let asked = || Ask { affinity: Some(token), ..Ask::default() };
        let ports: Vec<u16> = (0..4).map(|_| port(&go(admit_asking(live, &asked())))).collect();
        ports.iter().all(|one| *one == ports[0]).then_some(ports[0])
    };
    let live = Arc::clone(&publish(&registry, affinity(None)).services[0]);
    let old = crate::server_token(address(2));
    let [own, shared] = keys.map(|key| crate::affinity_token(&key, address(2)));
    assert_eq!(goes_to(&live, old), Some(2));
    assert_eq!(goes_to(&live, own), Some(2));
    assert_eq!(goes_to(&live, shared), None, "another instance's key");
    // A reload with a key file.
    publish(&registry, affinity(Some(keys[1])));
    assert_eq!(goes_to(&live, shared), Some(2));
    assert_eq!(goes_to(&live, own), None);
    assert_eq!(goes_to(&live, old), Some(2));
}
