//! The same load scaled in different ways: by `wanted`, by the rate of 429s, and by utilization. The tables of
//! `docs/scaling.md` are what this test prints with `SEED=1 SEEDS=15` (and `--nocapture`).

use std::collections::VecDeque;

use crate::scalers::{ByRefusals, ByUtilization, ByWanted, Scaler};
use crate::service::{SETTING, Setting, run};
use crate::shape::Shape;
use crate::{moment, seeds, true_need};

/// Sums over the runs of one method.
#[derive(Debug, Default)]
struct Sums {
    requests: u32,
    refused: u32,
    lost: u32,
    seconds_with_refusals: usize,
    servers: f64,
    servers_most: u32,
    changes: usize,
}

/// At 55 % the steady load has about as many servers as with `wanted`.
const METHODS: [&str; 4] = ["wanted", "429 rate", "utilization 70 %", "utilization 55 %"];

fn scaler(method: usize) -> Box<dyn Scaler> {
    let slots = f64::from(SETTING.slots);
    let utilization = |target| ByUtilization { slots, target, recent: VecDeque::new() };
    match method {
        0 => Box::new(ByWanted::new(SETTING.slots, 1)),
        1 => Box::new(ByRefusals { slots, service: SETTING.service, changed_at: 0.0 }),
        2 => Box::new(utilization(0.7)),
        _ => Box::new(utilization(0.55)),
    }
}

fn compare(name: &str, seconds: u32, shape: impl Fn(f64) -> Shape) -> Vec<Sums> {
    let seeds: Vec<u64> = seeds(2).collect();
    let runs = seeds.len() as f64;
    let mut all = Vec::new();
    for (method, title) in METHODS.iter().enumerate() {
        let mut sums = Sums::default();
        for &seed in &seeds {
            let shape = shape(moment(seed));
            let setting = Setting { servers: true_need(&SETTING, shape.rate(0.0)), ..SETTING };
            let log = run(setting, shape, &mut *scaler(method), seed, seconds);
            sums.requests += log.requests;
            sums.refused += log.refused.iter().sum::<u32>();
            sums.lost += log.lost;
            sums.seconds_with_refusals += log.refused.iter().filter(|count| **count > 0).count();
            let servers: u32 = log.replicas.iter().sum();
            sums.servers += f64::from(servers) / log.replicas.len() as f64;
            sums.servers_most = sums.servers_most.max(*log.replicas.iter().max().unwrap());
            sums.changes += log.changes();
        }
        let mean = |sum: f64| (sum / runs).round();
        println!(
            "| {name} | {title} | {} | {} | {} | {:.1} | {} | {:.0} |",
            mean(sums.refused.into()),
            mean(sums.lost.into()),
            mean(sums.seconds_with_refusals as f64),
            sums.servers / runs,
            sums.servers_most,
            mean(sums.changes as f64),
        );
        all.push(sums);
    }
    all
}

#[test]
fn the_methods_compared() {
    let step = |factor, seconds: f64| {
        move |from| Shape::Step { base: 50.0, factor, from, to: from + seconds }
    };
    let ramp = |from| Shape::Ramp { base: 25.0, factor: 4.0, from, to: from + 600.0 };
    let day = |_| Shape::Diurnal { least: 10.0, most: 100.0, period: 3_600.0 };
    let all = [
        compare("steady", 3_600, |_| Shape::Steady(50.0)),
        compare("doubling", 1_800, step(2.0, 2_000.0)),
        compare("tripling", 1_800, step(3.0, 2_000.0)),
        compare("spike", 1_800, step(3.0, 60.0)),
        compare("ramp", 1_800, ramp),
        compare("day", 3_600, day),
    ];
    for sums in &all {
        let (wanted, refusals) = (&sums[0], &sums[1]);
        assert!(wanted.refused <= refusals.refused, "{sums:?}");
    }
}
