//! The throttle alone, and compared with the four experiments that it models.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

use super::*;

/// The throttle that the lab's incidents use, whose figures docs/lab.md explains.
const CLOUD: &str = r#"
measure = "1s"
grace = "3s"
trickle_per_s = 1
penalty = "2s"

[[pools]]
below_per_s = 665
rate_per_s = 210
burst = 1200
reopen = "30%"

[[pools]]
rate_per_s = 3300
burst = 1600
sheds = "slowest"
"#;

const SECOND_NS: u64 = 1_000_000_000;

fn throttle(text: &str) -> Throttle {
    let throttle: Throttle = toml::from_str(text).unwrap();
    throttle.check().unwrap();
    throttle
}

fn address(index: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, index as u8 + 1])
}

/// Sources of eight threads each, whose connects block, as the team's were. A SYN that is dropped
/// is sent again after 1, 2 and 4 s.
struct Sources {
    /// Connections per second of each when nothing is dropped.
    speeds_per_s: Vec<f64>,
}

const THREADS: usize = 8;

impl Sources {
    /// Connections per second of each over the last third of `seconds`.
    fn run(&self, throttle: &Throttle, seconds: u64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::with_seed(seed);
        let mut state = ThrottleState::default();
        let mut attempts = BinaryHeap::new();
        for source in 0..self.speeds_per_s.len() {
            for thread in 0..THREADS {
                attempts.push(Reverse((rng.u64(..SECOND_NS / 10), source, thread, 0_u32)));
            }
        }
        let (from_ns, end_ns) = (seconds * SECOND_NS * 2 / 3, seconds * SECOND_NS);
        let mut counts = vec![0_u64; self.speeds_per_s.len()];
        while let Some(Reverse((now_ns, source, thread, tries))) = attempts.pop()
            && now_ns < end_ns
        {
            let (next_ns, tries) = if state.admits(throttle, address(source), now_ns) {
                counts[source] += u64::from(now_ns >= from_ns);
                let pace_ns = THREADS as f64 * 1e9 / self.speeds_per_s[source];
                (now_ns + (pace_ns * (0.8 + 0.4 * rng.f64())) as u64, 0)
            } else {
                (now_ns + (SECOND_NS << tries.min(5)), tries + 1)
            };
            attempts.push(Reverse((next_ns, source, thread, tries)));
        }
        counts.iter().map(|count| *count as f64 * 3.0 / seconds as f64).collect()
    }

    /// Who keeps at least so much of its speed.
    fn left_alone(&self, throttle: &Throttle, seed: u64, share: f64) -> Vec<bool> {
        self.left_alone_for(60, throttle, seed, share)
    }

    fn left_alone_for(
        &self,
        seconds: u64,
        throttle: &Throttle,
        seed: u64,
        share: f64,
    ) -> Vec<bool> {
        let rates = self.run(throttle, seconds, seed);
        println!("seed {seed}: {rates:.0?} of {:.0?}", self.speeds_per_s);
        rates.iter().zip(&self.speeds_per_s).map(|(got, speed)| got / speed >= share).collect()
    }
}

fn count(of: &[bool]) -> usize {
    of.iter().filter(|one| **one).count()
}

#[test]
fn one_source_at_500_among_quiet_nodes_stalls_all_of_them() {
    let cloud = throttle(CLOUD);
    let speeds_per_s = [vec![500.0], vec![33.0; 6]].concat();
    let quiet = Sources { speeds_per_s: vec![33.0; 6] };
    assert_eq!(count(&quiet.left_alone(&cloud, 1, 0.95)), 6);
    assert_eq!(count(&Sources { speeds_per_s }.left_alone(&cloud, 1, 0.6)), 0);
    // And seven quiet ones are too many where six were not.
    let seven = Sources { speeds_per_s: vec![34.0; 7] };
    assert!(count(&seven.left_alone_for(200, &cloud, 1, 0.95)) < 7);
}

#[test]
fn ten_alike_are_throttled_but_for_one_or_so() {
    let cloud = throttle(CLOUD);
    let mut rng = Rng::with_seed(5);
    let mut left_alone = 0;
    for seed in 0..20 {
        let speeds_per_s = (0..10).map(|_| 500.0 + 200.0 * rng.f64()).collect();
        left_alone += count(&Sources { speeds_per_s }.left_alone(&cloud, seed, 0.8));
    }
    assert!((10..=30).contains(&left_alone), "{left_alone} in 20 runs, once each on the mean");
}

#[test]
fn one_that_is_a_third_faster_is_left_alone_every_time() {
    let cloud = throttle(CLOUD);
    for seed in 0..20 {
        let speeds_per_s = [vec![600.0; 9], vec![810.0]].concat();
        let left = Sources { speeds_per_s }.left_alone(&cloud, seed, 0.9);
        assert_eq!((left[9], count(&left)), (true, 1));
    }
}

#[test]
fn of_five_slow_and_five_flat_out_two_fast_ones_go_on() {
    let cloud = throttle(CLOUD);
    for seed in 0..10 {
        let speeds_per_s = [vec![600.0; 5], vec![1_500.0; 5]].concat();
        let left = Sources { speeds_per_s }.left_alone(&cloud, seed, 0.45);
        assert_eq!((count(&left[..5]), count(&left[5..])), (0, 2));
    }
}

#[test]
fn of_ten_flat_out_three_go_on() {
    let cloud = throttle(CLOUD);
    for seed in 0..10 {
        let speeds_per_s = vec![1_000.0; 10];
        let left = Sources { speeds_per_s }.left_alone(&cloud, seed, 0.8);
        assert_eq!(count(&left), 3);
    }
}

#[test]
fn a_plain_bucket_in_all_or_for_each_source() {
    let text = "pools = [{ rate_per_s = 100, burst = 10 }]";
    let (all, each) = (throttle(text), throttle(&format!("each_source = true\n{text}")));
    for (throttle, expected) in [(all, 100), (each, 200)] {
        let mut state = ThrottleState::default();
        let mut admitted = 0;
        for step in 0..10_000 {
            for source in 0..2 {
                let now_ns = step * SECOND_NS / 1_000;
                admitted += u64::from(state.admits(&throttle, address(source), now_ns));
            }
        }
        // Ten seconds, and what the buckets held.
        assert!(admitted.abs_diff(expected * 10) <= 22, "{admitted}");
    }
}

#[test]
fn the_same_packets_make_the_same_decisions() {
    let cloud = throttle(CLOUD);
    let sources = Sources { speeds_per_s: vec![900.0; 10] };
    assert_eq!(sources.run(&cloud, 20, 3), sources.run(&cloud, 20, 3));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for wrong in [
        "pools = []",
        "pools = [{ below_per_s = 5, rate_per_s = 1, burst = 1 }]",
        "pools = [{ rate_per_s = 1, burst = 1 }, { rate_per_s = 1, burst = 1 }]",
        "pools = [{ rate_per_s = 0, burst = 1 }]",
        "measure = \"0s\"\npools = [{ rate_per_s = 1, burst = 1 }]",
    ] {
        assert!(toml::from_str::<Throttle>(wrong).unwrap().check().is_err(), "{wrong}");
    }
}
