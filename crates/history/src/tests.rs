//! The whole history, fed with traffic that is known.

use std::sync::Arc;
use std::time::Duration;

use model::Cause;
use model::histogram::{HistogramTotals, bucket_of};

use super::*;

/// A second of the machine's clock from which the tests count.
const START: u64 = 1_000_003;

/// What one series counts.
#[derive(Default)]
struct Counted {
    counts: Vec<u64>,
    levels: Vec<u64>,
    means: Vec<Mean>,
    durations: Vec<HistogramTotals>,
    causes: Vec<u64>,
}

impl Counted {
    fn server() -> Counted {
        Counted {
            counts: vec![0; 2],
            levels: vec![0; 1],
            means: vec![Mean::default(); 2],
            durations: vec![HistogramTotals::default()],
            causes: Vec::new(),
        }
    }

    fn service() -> Counted {
        Counted {
            counts: vec![0; 12],
            levels: vec![0; 4],
            means: vec![Mean::default(); 3],
            durations: vec![HistogramTotals::default(); 2],
            causes: vec![0; Cause::ALL.len()],
        }
    }

    fn answers(&mut self, number: u64, micros: u64) {
        self.counts[0] += number;
        self.durations[0].add([(bucket_of(micros), number)], number * micros, micros);
        self.means[0].count += number;
        self.means[0].sum_us += number * micros / 2;
    }

    fn reading(&self) -> Reading<'_> {
        Reading {
            counts: &self.counts,
            levels: &self.levels,
            means: &self.means,
            durations: &self.durations,
            causes: &self.causes,
            ..Reading::default()
        }
    }
}

fn server(at: u32) -> Key {
    let address = std::net::Ipv4Addr::from(0x0a00_0000 + at);
    Key::Server(Arc::from("catalog"), std::net::SocketAddr::from((address, 8080)).into())
}

/// Returns a column of the last `count` rows.
fn last(history: &History, key: &Key, name: &str, tier: usize, count: usize) -> Vec<Option<u64>> {
    let numbers: Vec<u64> = history.ended(tier, count).map(|(number, _)| number).collect();
    let column = key.kind().columns().iter().find(|column| column.name == name).unwrap();
    let mut rows = history.rows(key, (tier, &numbers), &[*column], false).unwrap();
    rows.columns.swap_remove(0)
}

#[test]
fn every_tier_has_all_requests_and_the_quantiles_of_its_own_interval() {
    let (mut history, mut counted, key) = (History::new(1 << 30), Counted::server(), server(1));
    let mut second = START;
    // A minute with 10 requests a second of 20 ms, in the last 10 s of it one in ten takes 1.5 s.
    let turn = START.next_multiple_of(60) + 60;
    while second < turn + 60 {
        second += 1;
        assert!(history.begin(second, 1_000) && !history.begin(second, 1_000));
        counted.answers(9, 20_000);
        counted.answers(1, if second > turn + 50 { 1_500_000 } else { 20_000 });
        counted.levels[0] = second % 7;
        history.add(key.clone(), &counted.reading());
    }
    assert_eq!(last(&history, &key, "requests", 0, 60), [Some(10); 60]);
    assert_eq!(last(&history, &key, "requests", 1, 6), [Some(100); 6]);
    assert_eq!(last(&history, &key, "requests", 2, 1), [Some(600)]);
    let near = |value: &Option<u64>, us: u64| value.unwrap().abs_diff(us) * 20 <= us;
    for (tier, rows, slow) in [(0, 60, 10), (1, 6, 1), (2, 1, 1)] {
        let p99 = last(&history, &key, "first_byte_p99_us", tier, rows);
        assert!(p99[..rows - slow].iter().all(|p99| near(p99, 20_000)), "{tier}: {p99:?}");
        assert!(p99[rows - slow..].iter().all(|p99| near(p99, 1_500_000)), "{tier}: {p99:?}");
        let p50 = last(&history, &key, "first_byte_p50_us", tier, rows);
        assert!(p50.iter().all(|p50| near(p50, 20_000)), "{tier}: {p50:?}");
    }
    assert_eq!(last(&history, &key, "in_flight", 2, 1), [Some(6)]);
    assert_eq!(last(&history, &key, "round_trip_mean_us", 0, 1), [None]);

    let window = history.window(&key, 10).unwrap();
    assert!((10..15).contains(&window.seconds), "{}", window.seconds);
    assert_eq!(window.count("requests"), window.seconds * 10);
    assert_eq!(window.durations("first_byte_p50_us").unwrap().count(), window.seconds * 10);
    assert!(near(
        &window
            .durations("first_byte_p50_us")
            .unwrap()
            .quantile(0.95)
            .map(|q| q.as_micros() as u64),
        1_500_000
    ));
    assert!(window.mean("connect_mean_us").average().unwrap() > Duration::from_millis(10));
    assert_eq!(history.window(&key, 60).unwrap().count("requests"), 600);
    assert!(history.window(&server(2), 10).is_none());
}

#[test]
fn a_late_reading_makes_a_longer_row_and_none_is_invented() {
    let (mut history, mut counted, key) = (History::new(1 << 30), Counted::server(), server(1));
    for (second, elapsed_ms) in [(20, 1_000), (21, 1_000), (24, 3_100), (25, 900)] {
        assert!(history.begin(second, elapsed_ms));
        counted.answers(u64::from(elapsed_ms) / 100, 5_000);
        history.add(key.clone(), &counted.reading());
    }
    let ended: Vec<_> = history.ended(0, 10).collect();
    assert_eq!(ended, [(20, 1_000), (21, 1_000), (24, 3_100), (25, 900)]);
    assert_eq!(last(&history, &key, "requests", 0, 10), [10, 10, 31, 9].map(Some));
    // A clock that does not move counts nothing twice.
    assert!(!history.begin(25, 0) && !history.begin(3, 0));
    // The first row of the longer tiers has not ended before the first reading.
    assert_eq!(history.ended(1, 10).collect::<Vec<_>>(), [(2, 1_000)]);
    assert_eq!(history.ended(2, 10).count(), 0);
}

#[test]
fn causes_are_kept_for_each_row() {
    let key = Key::Service(Arc::from("catalog"));
    let (mut history, mut counted) = (History::new(1 << 30), Counted::service());
    for second in START..START + 20 {
        history.begin(second, 1_000);
        counted.answers(5, 1_000);
        counted.causes[Cause::Completed as usize] += 5;
        if second == START + 7 {
            counted.causes[Cause::QueueFull as usize] += 3;
        }
        history.add(key.clone(), &counted.reading());
    }
    let numbers: Vec<u64> = (START..START + 20).collect();
    let rows = history.rows(&key, (0, &numbers), &[], true).unwrap();
    let full: Vec<_> = rows
        .causes
        .iter()
        .filter(|(_, one)| one.cause() == Some(Cause::QueueFull))
        .map(|(position, one)| (*position, one.count()))
        .collect();
    assert_eq!(full, [(7, 3)]);
    let all: u64 = rows.causes.iter().map(|(_, one)| one.count()).sum();
    assert_eq!(all, 20 * 5 + 3);
}

#[test]
fn counters_that_begin_again_leave_no_trace_of_the_old_ones() {
    let (mut history, key) = (History::new(1 << 30), server(1));
    let mut second = START;
    let mut run = |history: &mut History, seconds: u64, each_us: u64| {
        let mut counted = Counted::server();
        for _ in 0..seconds {
            second += 1;
            history.begin(second, 1_000);
            counted.answers(10, each_us);
            history.add(server(1), &counted.reading());
        }
    };
    run(&mut history, 100, 200_000);
    // It was removed and is back at once, a thousand times quicker.
    run(&mut history, 12, 200);
    let window = history.window(&key, 60).unwrap();
    assert_eq!((window.seconds, window.count("requests")), (12, 120));
    let p99 = window.durations("first_byte_p50_us").unwrap().quantile(0.99).unwrap();
    assert!(p99 < Duration::from_millis(1), "{p99:?}");
    let p50 = last(&history, &key, "first_byte_p50_us", 0, 12);
    assert!(p50.iter().all(|p50| p50.unwrap() < 1_000), "{p50:?}");
    assert_eq!(last(&history, &key, "requests", 0, 12), [Some(10); 12]);
    let latest = last(&history, &key, "first_byte_p50_us", 1, 1)[0].unwrap();
    assert!(latest < 1_000, "{latest}");
}

#[test]
fn a_server_that_was_away_has_windows_since_it_is_back() {
    let (mut history, mut counted, key) = (History::new(1 << 30), Counted::server(), server(1));
    for second in (START..START + 30).chain(START + 90..START + 95) {
        history.begin(second, 1_000);
        counted.answers(10, 20_000);
        history.add(key.clone(), &counted.reading());
    }
    let window = history.window(&key, 60).unwrap();
    assert_eq!((window.seconds, window.count("requests")), (5, 50));
}

#[test]
fn nothing_is_counted_twice_after_a_long_pause() {
    // The machine was suspended; or the series was not read while others were.
    for others in [false, true] {
        let (mut history, mut counted, key) = (History::new(1 << 30), Counted::server(), server(1));
        let mut second = START;
        let mut step = |history: &mut History, seconds: u64| {
            second += seconds;
            history.begin(second, seconds as u32 * 1_000);
            history.add(server(2), &Counted::server().reading());
        };
        for _ in 0..100 {
            step(&mut history, 1);
            counted.answers(10, 20_000);
            history.add(key.clone(), &counted.reading());
        }
        for _ in 0..if others { 500 } else { 0 } {
            step(&mut history, 1);
        }
        step(&mut history, if others { 1 } else { 4_000 });
        history.add(key.clone(), &counted.reading());
        step(&mut history, 1);
        counted.answers(10, 20_000);
        history.add(key.clone(), &counted.reading());
        let all: u64 = last(&history, &key, "requests", 1, usize::MAX).iter().flatten().sum();
        assert!(all <= 1_000, "{others}: {all}");
        assert_eq!(last(&history, &key, "requests", 0, 1), [Some(10)], "{others}");
        assert_eq!(history.window(&key, 60).unwrap().count("requests"), 10, "{others}");
    }
}

#[test]
fn counters_that_have_been_running_are_counted_from_the_first_reading() {
    let (mut history, mut counted, key) = (History::new(1 << 30), Counted::server(), server(1));
    counted.answers(1_000_000, 5_000);
    history.begin_with_baseline(START);
    history.add(key.clone(), &counted.reading());
    for second in START + 1..=START + 70 {
        history.begin(second, 1_000);
        counted.answers(10, 20_000);
        history.add(key.clone(), &counted.reading());
    }
    assert_eq!(last(&history, &key, "requests", 0, 70), [Some(10); 70]);
    assert!(last(&history, &key, "requests", 1, 7).iter().all(|n| n.unwrap() <= 100));
    let window = history.window(&key, 60).unwrap();
    assert_eq!(window.count("requests"), window.seconds * 10);
}

#[test]
fn rows_before_a_server_was_there_are_unknown() {
    let mut history = History::new(1 << 30);
    let mut counted = Counted::server();
    for second in START..START + 20 {
        history.begin(second, 1_000);
        if second >= START + 10 {
            history.add(server(1), &counted.reading());
            counted.answers(3, 100);
        }
    }
    let requests = last(&history, &server(1), "requests", 0, 20);
    assert_eq!(requests[..10], [None; 10]);
    assert_eq!((requests[10], requests[11]), (Some(0), Some(3)));
}

#[test]
fn windows_count_probes_of_an_idle_server_without_more_memory() {
    let (key, counted) = (server(1), Counted::server());
    let after = |probes_per_s: u64| {
        let mut history = History::new(1 << 20);
        for second in 1_000..1_100 {
            history.begin(second, 1_000);
            // They were counted before the server was in this service.
            let passed = 5_000 + probes_per_s * (second - 1_000);
            let further_counts = [0, 0, passed, 3];
            history.add(key.clone(), &Reading { further_counts, ..counted.reading() });
        }
        history
    };
    let (probed, quiet) = (after(2), after(0));
    assert_eq!(probed.bytes(), quiet.bytes());
    let window = probed.window(&key, 10).unwrap();
    assert_eq!(window.count("checks_passed"), 2 * window.seconds);
    assert_eq!(window.count("checks_failed"), 0);
    assert_eq!(quiet.window(&key, 60).unwrap().count("checks_passed"), 0);
}

#[test]
fn an_idle_service_takes_no_rows() {
    let (key, mut counted) = (Key::Service(Arc::from("catalog")), Counted::service());
    let mut history = History::new(1 << 30);
    counted.levels = vec![0, 0, 3, 3];
    for second in START..START + 100 {
        history.begin(second, 1_000);
        history.add(key.clone(), &counted.reading());
        if second == START + 50 {
            counted.answers(1, 100);
        }
    }
    let servers = last(&history, &key, "servers", 0, 100);
    assert_eq!(servers.iter().flatten().count(), 1);
    assert_eq!(servers[51], Some(3));
    assert!(history.bytes() < 20_000, "{}", history.bytes());
}

/// Runs `seconds` of traffic to `servers`, each with a different latency.
fn run(history: &mut History, servers: &mut [Counted], from: u64, seconds: u64) {
    for second in from..from + seconds {
        history.begin(second, 1_000);
        for (at, counted) in servers.iter_mut().enumerate() {
            // Wide distributions: 50 buckets.
            for bucket in 0..50 {
                counted.answers(1, (200 << (bucket % 10)) | (second % 13 * at as u64));
            }
            history.add(server(at as u32), &counted.reading());
        }
    }
}

#[test]
fn a_services_memory_stays_within_its_promise() {
    let (key, mut counted) = (Key::Service(Arc::from("catalog")), Counted::service());
    let mut history = History::new(1 << 30);
    let mut seconds: Vec<u64> = (START..START + 9_000).collect();
    seconds.extend((START + 9_000..START + 95_000).step_by(60));
    for second in seconds {
        history.begin(second, 1_000);
        for bucket in 0..50 {
            counted.answers(1, (200 << (bucket % 10)) | (second % 13 * bucket));
            counted.durations[1] = counted.durations[0].clone();
        }
        // An incident without an end.
        counted.causes[..20].iter_mut().for_each(|count| *count += 1 + second % 5);
        history.add(key.clone(), &counted.reading());
    }
    println!("{} bytes", history.bytes());
    assert!(history.bytes() <= 400_000, "{}", history.bytes());
}

#[test]
fn memory_stays_within_its_promise() {
    // A full day.
    let mut history = History::new(1 << 30);
    let mut servers: Vec<Counted> = (0..20).map(|_| Counted::server()).collect();
    run(&mut history, &mut servers, START, 9_000);
    let mut second = START + 9_000;
    while second < START + 100_000 {
        second += 60;
        run(&mut history, &mut servers, second, 1);
    }
    let each = history.bytes() / servers.len();
    println!("{each} bytes for each server");
    assert!(each <= 64_000, "{each}");
    assert_eq!(history.ended(2, usize::MAX).count(), TIERS[2].rows as usize);

    // Beyond the bound, the oldest rows of every tier go.
    let bound = history.bytes() / 2;
    history.set_memory_max(bound);
    run(&mut history, &mut servers, second + 1, 130);
    assert!(history.bytes() <= bound, "{} {bound}", history.bytes());
    for (tier, span) in TIERS.iter().enumerate() {
        let requests = last(&history, &server(3), "requests", tier, usize::MAX);
        // What was dropped is not shown as silence.
        let kept = requests.iter().filter(|requests| **requests != Some(0)).count();
        assert_eq!(kept, requests.len(), "{tier}");
        assert!(kept > 0 && kept < span.rows as usize, "{tier}: {kept}");
    }
}

#[test]
fn servers_that_have_gone_are_forgotten_when_their_rows_are() {
    let mut history = History::new(1 << 30);
    run(&mut history, &mut [Counted::server()], START, 30);
    assert_eq!(history.keys().count(), 1);
    let mut second = START + 30;
    for _ in 0..1_600 {
        second += 60;
        history.begin(second, 60_000);
    }
    assert_eq!(history.keys().count(), 0);
}

#[test]
fn the_next_process_goes_on() {
    let mut before = History::new(1 << 30);
    run(&mut before, &mut [Counted::server(), Counted::server()], START, 200);
    let bytes = before.save();
    let mut after = History::new(1 << 30);
    after.restore(&bytes, START + 202).unwrap();
    // Its own counters begin at zero.
    run(&mut after, &mut [Counted::server(), Counted::server()], START + 203, 20);
    for key in [server(0), server(1)] {
        let numbers: Vec<u64> = (START..START + 200).collect();
        let rows = |of: &History| of.rows(&key, (0, &numbers), key.kind().columns(), true);
        assert_eq!(rows(&after), rows(&before));
        assert_eq!(last(&after, &key, "requests", 0, 20), [Some(50); 20]);
        assert_eq!(after.window(&key, 60).unwrap().count("requests"), 20 * 50);
    }
    let gap: Vec<_> = after.ended(0, 21).map(|(number, _)| number - START).collect();
    assert_eq!(gap[..2], [199, 203]);
}

#[test]
fn damaged_bytes_do_no_harm() {
    let mut history = History::new(1 << 30);
    run(&mut history, &mut [Counted::server()], START, 70);
    let (service, mut counted) = (Key::Service(Arc::from("catalog")), Counted::service());
    counted.answers(5, 100);
    counted.causes[3] += 5;
    history.begin(START + 70, 1_000);
    history.add(service.clone(), &counted.reading());
    let bytes = history.save();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..3_000 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..damaged.len());
            damaged[at] = rng.u8(..);
        }
        damaged.truncate(rng.usize(..=bytes.len()));
        let mut after = History::new(1 << 30);
        if after.restore(&damaged, START + 71).is_ok() {
            run(&mut after, &mut [Counted::server()], START + 72, 3);
            last(&after, &server(0), "requests", 0, 80);
            let keys: Vec<Key> = after.keys().cloned().collect();
            for key in keys {
                let numbers: Vec<u64> = (START..START + 80).collect();
                after.rows(&key, (0, &numbers), key.kind().columns(), true);
            }
        }
    }
    assert!(History::new(1 << 20).restore(b"", START).is_err());
}

#[test]
fn columns_have_names_of_their_own() {
    for kind in [Kind::Process, Kind::Listener, Kind::Service, Kind::Server] {
        let names: std::collections::BTreeSet<_> =
            kind.columns().iter().map(|one| one.name).collect();
        assert_eq!(names.len(), kind.columns().len(), "{}", kind.as_str());
    }
}
