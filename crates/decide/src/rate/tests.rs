//! Rate limits of one balancer and of members of a fleet.

use model::RateKey;

use super::*;

const NOW: Duration = Duration::ZERO;

fn limit(requests: u32, per: Duration, burst: u32) -> RateLimit {
    RateLimit {
        name: "a".into(),
        by: RateKey::Client,
        scope: LimitScope::Balancer,
        requests,
        per,
        burst,
        wait_max: Duration::ZERO,
        is_announced: false,
    }
}

fn at_ms(millis: u64) -> Moment {
    Moment::from_millis(1_000_000 + millis)
}

#[test]
fn a_burst_goes_at_once_and_then_the_rate_counts() {
    let table = RateTable::new(100);
    let limit = limit(10, Duration::from_secs(1), 3);
    for _ in 0..3 {
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    }
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(100)));
    assert_eq!(table.take("r", &limit, 9, at_ms(99)), Err(Duration::from_millis(1)));
    // A refusal uses nothing, and its wait time is exact.
    assert_eq!(table.take("r", &limit, 9, at_ms(100)), Ok(NOW));
    assert_eq!(table.take("r", &limit, 9, at_ms(100)), Err(Duration::from_millis(100)));
    // The whole burst is back after the time it takes to refill.
    for _ in 0..3 {
        assert_eq!(table.take("r", &limit, 9, at_ms(500)), Ok(NOW));
    }
    assert!(table.take("r", &limit, 9, at_ms(500)).is_err());
}

#[test]
fn those_that_may_wait_are_spread_over_time() {
    let table = RateTable::new(100);
    let mut limit = limit(10, Duration::from_secs(1), 1);
    limit.wait_max = Duration::from_millis(250);
    let waits = [0, 100, 200].map(Duration::from_millis);
    for wait in waits {
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(wait));
    }
    // 300 ms would be too long; 50 ms later it is not, provided that no other request goes
    // before.
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(50)));
    assert_eq!(table.take("r", &limit, 9, at_ms(50)), Ok(Duration::from_millis(250)));
}

#[test]
fn keys_do_not_share() {
    let table = RateTable::new(100);
    let limit = limit(1, Duration::from_mins(1), 1);
    for key in [1, 2, 1 << 32, 3 << 62] {
        assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW), "{key}");
        assert!(table.take("r", &limit, key, at_ms(0)).is_err());
    }
}

#[test]
fn odd_limits_do_what_they_say() {
    let table = RateTable::new(1);
    let never = limit(0, Duration::from_secs(5), 3);
    assert_eq!(table.take("r", &never, 1, at_ms(0)), Err(Duration::from_secs(5)));
    let no_burst = limit(1, Duration::from_secs(1), 0);
    assert_eq!(table.take("r", &no_burst, 2, at_ms(0)), Ok(NOW));
    assert_eq!(table.take("r", &no_burst, 2, at_ms(0)), Err(Duration::from_secs(1)));
    let endless = limit(1, Duration::MAX, u32::MAX);
    assert_eq!(table.take("r", &endless, 3, Moment::ZERO), Ok(NOW));
    let at_the_beginning = limit(u32::MAX, Duration::from_nanos(1), 1);
    assert_eq!(table.take("r", &at_the_beginning, 4, Moment::ZERO), Ok(NOW));
}

/// Compares with the token bucket that the limit describes, implemented directly: a level that
/// rises with time up to `burst` requests and falls by one for each request that passes.
#[test]
fn every_decision_is_the_token_buckets() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..100 {
        let (requests, burst) = (rng.u32(1..500), rng.u32(1..50));
        let limit = limit(requests, Duration::from_millis(rng.u64(1..5_000)), burst);
        let table = RateTable::new(64);
        let one_ns = limit.per.as_nanos() as u64 / u64::from(requests);
        let mut level_ns = one_ns * u64::from(burst);
        let mut now_us = rng.u64(0..1_000_000);
        let step_max_us = one_ns / 1_000 * rng.u64(1..4) + 2;
        for _ in 0..2_000 {
            let step_us = rng.u64(0..step_max_us);
            now_us += step_us;
            level_ns = (level_ns + step_us * 1_000).min(one_ns * u64::from(burst));
            let expected = match level_ns.checked_sub(one_ns) {
                Some(left) => {
                    level_ns = left;
                    Ok(NOW)
                }
                None => Err(Duration::from_nanos(one_ns - level_ns)),
            };
            let taken = table.take("r", &limit, 1, Moment::from_micros(now_us));
            assert_eq!(taken, expected, "seed {seed}, {limit:?}, at {now_us}");
        }
    }
}

#[test]
fn a_flood_of_keys_takes_no_memory_and_evicts_the_least_used() {
    let table = RateTable::new(1_000);
    let room = || table.shards.iter().map(|s| s.lock().unwrap().len() * WAYS).sum::<usize>();
    assert_eq!(room(), 0);
    let limit = limit(1, Duration::from_secs(1), 10);
    let spend = |key| while table.take("r", &limit, key, at_ms(0)).is_ok() {};
    (0..100).for_each(spend);
    for key in 1_000..100_000 {
        assert_eq!(table.take("r", &limit, key, at_ms(1)), Ok(NOW));
    }
    let still_limited = (0..100).filter(|&key| table.take("r", &limit, key, at_ms(2)).is_err());
    assert_eq!(still_limited.count(), 100);
    assert!((2_000..3_100).contains(&room()), "{} places", room());
}

#[test]
fn a_table_with_as_many_keys_as_it_is_made_for_forgets_hardly_any() {
    let table = RateTable::new(10_000);
    let limit = limit(1, Duration::from_secs(1), 1);
    for key in 0..10_000 {
        assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW));
    }
    let forgotten = (0..10_000).filter(|&key| table.take("r", &limit, key, at_ms(1)).is_ok());
    let forgotten = forgotten.count();
    assert!(forgotten < 300, "{forgotten} of 10,000");
}

#[test]
fn workers_together_pass_what_one_would() {
    let table = RateTable::new(100);
    let limit = limit(1_000, Duration::from_secs(1), 100);
    let passed: usize = std::thread::scope(|scope| {
        let worker = || (0..5_000).filter(|_| table.take("r", &limit, 1, at_ms(0)).is_ok()).count();
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(passed, 100);
}

#[test]
fn a_request_that_is_given_back_was_not_counted() {
    let table = RateTable::new(100);
    let limit = limit(10, Duration::from_secs(1), 3);
    let left = |at| table.left(&limit, 9, at_ms(at));
    assert_eq!(left(0), Left { requests: 3, full_after: NOW });
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    assert_eq!(left(0), Left { requests: 2, full_after: Duration::from_millis(100) });
    for _ in 0..3 {
        table.give_back(&limit, 9);
    }
    // Nor does it add to the allowance.
    assert_eq!(left(0), Left { requests: 3, full_after: NOW });
    for _ in 0..3 {
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    }
    assert!(table.take("r", &limit, 9, at_ms(0)).is_err());
    assert_eq!(left(0), Left { requests: 0, full_after: Duration::from_millis(300) });
    assert_eq!(left(250), Left { requests: 2, full_after: Duration::from_millis(50) });
    assert_eq!(window(&limit), Duration::from_millis(300));
    table.give_back(&limit, 10);
    assert_eq!(table.take("r", &limit, 10, at_ms(0)), Ok(NOW));
}

#[test]
fn a_request_passes_all_limits_or_counts_for_none() {
    let table = RateTable::new(100);
    let mut limits = [limit(3, Duration::from_secs(3), 3), limit(5, Duration::from_secs(50), 5)];
    limits[1].name = "b".into();
    let key_of = |limit: &RateLimit| key("route", limit, 9);
    let take = |at_s: u64| table.take_all("route", &limits, key_of, at_ms(at_s * 1_000));
    let left = |at_s: u64| {
        let of = |limit| table.left(limit, key_of(limit), at_ms(at_s * 1_000)).requests;
        [of(&limits[0]), of(&limits[1])]
    };
    for _ in 0..3 {
        assert_eq!(take(0), Ok(NOW));
    }
    assert_eq!(take(0), Err((&limits[0], Duration::from_secs(1))));
    assert_eq!(left(0), [0, 2]);
    assert_eq!((take(2), take(2)), (Ok(NOW), Ok(NOW)));
    // Both refuse: the second does so for longer.
    assert_eq!(take(2), Err((&limits[1], Duration::from_secs(8))));
    // Only the second refuses, and the first does not count the request.
    assert_eq!(take(5), Err((&limits[1], Duration::from_secs(5))));
    assert_eq!(left(5), [3, 0]);
    assert_eq!(take(10), Ok(NOW));
    // Turns of both are waited for.
    limits[0].wait_max = Duration::from_secs(60);
    limits[1].wait_max = Duration::from_secs(60);
    assert_eq!(
        table.take_all("route", &limits, key_of, at_ms(10_000)),
        Ok(Duration::from_secs(10))
    );
}

#[test]
fn routes_limits_and_values_have_keys_of_their_own() {
    let (one, mut other) = (limit(1, Duration::from_secs(1), 1), limit(1, Duration::ZERO, 1));
    assert_eq!(key("r", &one, 1), key("r", &other, 1));
    other.name = "b".into();
    let keys = [key("r", &one, 1), key("s", &one, 1), key("r", &other, 1), key("r", &one, 2)];
    let different: std::collections::HashSet<_> = keys.into_iter().collect();
    assert_eq!(different.len(), 4);
    // A limit and a route that exchange their names do not exchange their allowances.
    assert_ne!(key("b", &one, 1), key("a", &other, 1));
}

fn over_the_fleet(requests: u32, burst: u32) -> RateLimit {
    let scope = LimitScope::Fleet;
    RateLimit { scope, ..limit(requests, Duration::from_secs(1), burst) }
}

/// A table whose keys of limits over the fleet are read.
fn shared_table(keys_max: usize) -> RateTable {
    let table = RateTable::new(keys_max);
    table.shared().begin(PartKey::new([7; 16]));
    table
}

/// Returns how many of many requests at once pass.
fn passing(table: &RateTable, limit: &RateLimit, at: u64) -> usize {
    (0..1_000).filter(|_| table.take("r", limit, 9, at_ms(at)).is_ok()).count()
}

#[test]
fn what_others_let_pass_counts_here() {
    let table = shared_table(100);
    let limit = over_the_fleet(10, 5);
    table.charge(&limit, 9, 3, at_ms(0));
    assert_eq!(passing(&table, &limit, 0), 2);
    table.charge(&limit, 9, 7, at_ms(0));
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(800)));
    // Whatever others have let pass, two seconds later this one passes some again.
    table.charge(&limit, 9, u32::MAX, at_ms(0));
    table.charge(&limit, 9, u32::MAX, at_ms(10));
    assert!(table.take("r", &limit, 9, at_ms(1_600)).is_err());
    assert_eq!(passing(&table, &limit, 2_010), 5);
}

#[test]
fn a_balancer_uses_its_part_of_its_sides_part() {
    let table = shared_table(100);
    let limit = over_the_fleet(100, 20);
    assert_eq!(passing(&table, &limit, 0), 20);
    table.shared().set_side(Side { share: RateShare::of(0.5), members: 1 });
    assert_eq!(passing(&table, &limit, 10_000), 10);
    assert_eq!(passing(&table, &limit, 10_100), 5);
    let [reading] = table.shared().readings()[..] else { panic!("one key") };
    assert_eq!((reading.offered, reading.taken), (3_000, 35));
    assert_eq!(reading.limit, limit_id("r", &limit));
    // Of 50 per second, a tenth; others are charged in lots of 100 ms.
    let terms = RateTerms { share: RateShare::of(0.1), lag: Duration::from_millis(100) };
    table.shared().set_terms(9, terms);
    assert_eq!(passing(&table, &limit, 20_000), 4);
    assert_eq!(table.left(&limit, 9, at_ms(20_000)).requests, 0);
    assert_eq!(passing(&table, &limit, 20_200), 1);
    // A key that was used since the reading is not forgotten.
    assert!(!table.shared().forget(&reading));
    let [reading] = table.shared().readings()[..] else { panic!("one key") };
    assert!(table.shared().forget(&reading));
    assert_eq!(table.shared().readings(), []);
}

#[test]
fn what_was_taken_of_a_small_part_does_not_count_for_longer_than_of_a_large_one() {
    let table = shared_table(100);
    let limit = over_the_fleet(100, 100);
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    let share = |part| {
        let share = RateShare::of(part);
        table.shared().set_terms(9, RateTerms { share, lag: Duration::from_millis(250) });
    };
    share(1e-4);
    assert_eq!(passing(&table, &limit, 1_000), 2);
    assert!(table.left(&limit, 9, at_ms(1_000)).full_after > Duration::from_secs(150));
    share(0.5);
    assert!(table.left(&limit, 9, at_ms(1_000)).full_after < Duration::from_secs(2));
    assert_eq!(passing(&table, &limit, 1_000), 0);
    assert!(passing(&table, &limit, 3_000) > 50);
    // The same for the part of a side.
    table.shared().set_side(Side { share: RateShare::of(1e-3), members: 1 });
    passing(&table, &limit, 10_000);
    table.shared().set_side(Side { share: RateShare::WHOLE, members: 2 });
    assert!(table.left(&limit, 9, at_ms(10_000)).full_after < Duration::from_secs(3));
}

#[test]
fn alone_again_nothing_is_kept_of_the_fleet() {
    let table = shared_table(100);
    let limit = over_the_fleet(10, 5);
    passing(&table, &limit, 0);
    let lag = Duration::from_millis(250);
    table.shared().set_terms(9, RateTerms { share: RateShare::of(0.1), lag });
    table.shared().set_side(Side { share: RateShare::of(0.5), members: 2 });
    table.shared().retire();
    assert_eq!(passing(&table, &limit, 10_000), 5);
    assert_eq!(table.shared().readings(), []);
}

#[test]
fn limits_of_one_name_with_other_values_are_other_limits() {
    let one = over_the_fleet(10, 5);
    let by = RateKey::Field("x-key".into());
    let others = [
        RateLimit { requests: 11, ..one.clone() },
        RateLimit { burst: 6, ..one.clone() },
        RateLimit { per: Duration::from_secs(2), ..one.clone() },
        RateLimit { by: RateKey::User, ..one.clone() },
        RateLimit { by: by.clone(), ..one.clone() },
        RateLimit { by: RateKey::Field("x-other".into()), ..one.clone() },
    ];
    let all = others.iter().chain([&one]);
    let ids: std::collections::HashSet<u32> = all.map(|it| limit_id("r", it)).collect();
    assert_eq!(ids.len(), others.len() + 1);
    // Waiting is up to each balancer.
    let waits = RateLimit { wait_max: Duration::from_secs(1), ..one.clone() };
    assert_eq!(limit_id("r", &waits), limit_id("r", &one));
}

#[test]
fn a_request_that_is_given_back_is_not_reported() {
    let table = shared_table(100);
    let limit = over_the_fleet(10, 5);
    let taken = || table.shared().readings()[0].taken;
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    table.give_back(&limit, 9);
    assert_eq!(table.left(&limit, 9, at_ms(0)).requests, 5);
    assert_eq!(taken(), 1, "totals never fall");
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    assert_eq!(taken(), 1);
    assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
    assert_eq!(taken(), 2);
}

#[test]
fn more_keys_than_have_a_place_are_limited_here_alone() {
    let table = shared_table(200_000);
    let limit = over_the_fleet(1, 1);
    for key in 0..100_000 {
        assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW));
    }
    let tracked = table.shared().readings().len();
    assert!((30_000..=32_768).contains(&tracked), "{tracked}");
    assert_eq!(table.shared().untracked(), 100_000 - tracked as u64);
    let refused = (0..100_000).filter(|&key| table.take("r", &limit, key, at_ms(500)).is_err());
    assert!(refused.count() > 99_000);
    // Keys of other limits have places.
    let other = RateLimit { name: "b".into(), ..limit };
    assert_eq!(table.take("r", &other, 200_000, at_ms(0)), Ok(NOW));
    assert_eq!(table.shared().readings().len(), tracked + 1);
    table.shared().retain(|limit| limit == limit_id("r", &other));
    assert_eq!(table.shared().readings().len(), 1);
}
