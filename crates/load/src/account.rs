//! From a run's figures to the [`Run`] that files and tables are made of. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::engine::plan::{Plan, Protocol, Shape};
use crate::engine::{Counts, Failure, Interval, Outcome, histogram};
use crate::report::Summary;
use crate::report::run::{
    self, FORMAT, Latency, Percentiles, Phases, Rate, Run, Second, Source, Target, Totals,
};

/// The figures of a run, without what the machine did meanwhile and without a judgement.
pub fn run(plan: &Plan, outcome: &Outcome, seconds: &[Interval]) -> Run {
    let recorder = &outcome.recorder;
    let is_open = plan.shape.is_open();
    let times = &recorder.times;
    let mut dns = histogram(3);
    for site in &plan.sites {
        dns.saturating_record(site.lookup.as_nanos() as u64);
    }
    // A run that ends with a second has nothing to say of the next.
    let is_silent = |interval: &&Interval| interval.counts == Counts::default();
    let silent = seconds.iter().rev().take_while(is_silent).count();
    let seconds = &seconds[..seconds.len() - silent];
    let service = Summary::of(&times.service);
    let phases = Phases {
        dns: Summary::of(&dns),
        connect: Summary::of(&times.connect),
        tls: Summary::of(&times.tls),
        first_byte: Summary::of(&times.first_byte),
        transfer: Summary::of(&times.transfer),
        total: service.clone(),
        round_trip: Summary::of(&times.round_trip),
    };
    let latency = Latency {
        intended_start: is_open.then(|| Summary::of(&times.intended)),
        service,
        lateness: is_open.then(|| Summary::of(&times.lateness)),
        timer_lateness: outcome.timer.as_ref().map(Summary::of),
        phases,
    };
    Run {
        format: FORMAT,
        kind: if plan.protocol == Protocol::Connect { "connect" } else { "http" }.to_owned(),
        targets: targets(plan),
        shape: shape(plan),
        totals: totals(outcome),
        rate: rate(plan, outcome),
        latency,
        seconds: seconds.iter().map(|interval| second(plan, outcome, interval)).collect(),
        sources: sources(plan, seconds),
        notes: outcome.broken.iter().cloned().collect(),
        ..Run::default()
    }
}

fn targets(plan: &Plan) -> Vec<Target> {
    let addresses =
        |site: usize| plan.sites[site].addresses.iter().map(ToString::to_string).collect();
    if plan.protocol == Protocol::Connect {
        let target = |(site, known): (usize, &crate::engine::plan::Site)| Target {
            url: known.name.clone(),
            method: String::new(),
            weight: 1,
            addresses: addresses(site),
        };
        return plan.sites.iter().enumerate().map(target).collect();
    }
    let target = |target: &crate::engine::plan::Target| Target {
        url: target.url.clone(),
        method: target.method.clone(),
        weight: target.weight,
        addresses: addresses(target.site),
    };
    plan.targets.iter().map(target).collect()
}

fn shape(plan: &Plan) -> run::Shape {
    run::Shape {
        model: if plan.shape.is_open() { "open" } else { "closed" }.to_owned(),
        protocol: match plan.protocol {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::Connect => "",
        }
        .to_owned(),
        duration_s: plan.shape.time().map(|time| time.as_secs_f64()),
        requests: match plan.shape {
            Shape::Closed { requests, .. } => requests,
            Shape::Open { .. } => None,
        },
        connections_max: plan.connections_max as u64,
        keep_alive: plan.keep_alive,
        threads: plan.threads as u32,
    }
}

fn totals(outcome: &Outcome) -> Totals {
    let recorder = &outcome.recorder;
    let counts = &recorder.counts;
    let by_kind = Failure::ALL.iter().zip(recorder.failures).filter(|(_, count)| *count > 0);
    let statuses = recorder.statuses.iter().enumerate();
    Totals {
        requests: counts.started,
        responses: counts.responses,
        errors: counts.errors,
        errors_by_kind: by_kind.map(|(kind, count)| (kind.name().to_owned(), count)).collect(),
        cut_off: recorder.cut_off,
        statuses: statuses
            .filter(|(status, count)| *status > 0 && **count > 0)
            .map(|(status, count)| (status.to_string(), *count))
            .collect(),
        bytes_in: counts.bytes_in,
        body_bytes_in: counts.body_bytes_in,
        bytes_out: counts.bytes_out,
        connections: counts.connections,
        late_starts: counts.late,
        dropped_starts: counts.dropped,
        duration_s: outcome.duration_s(),
        cpu_user_s: outcome.cpu.user.as_secs_f64(),
        cpu_system_s: outcome.cpu.system.as_secs_f64(),
    }
}

/// Starts are counted over the time in which they were intended (it may have been cut short);
/// responses until the last of them.
fn rate(plan: &Plan, outcome: &Outcome) -> Rate {
    let counts = &outcome.recorder.counts;
    let duration = outcome.duration_s().max(1e-9);
    let ended_ns = outcome.recorder.ordered_end_ns.unwrap_or(outcome.ended_ns);
    let ran = ended_ns.saturating_sub(outcome.began_ns) as f64 / 1e9;
    let starting = plan.shape.time().map_or(duration, |time| time.as_secs_f64().min(ran));
    let starting = starting.max(1e-9);
    let intended = (counts.started + counts.dropped) as f64 / starting;
    Rate {
        intended_per_s: plan.shape.is_open().then_some(intended),
        achieved_per_s: counts.started as f64 / starting,
        responses_per_s: counts.responses as f64 / duration,
    }
}

fn second(plan: &Plan, outcome: &Outcome, interval: &Interval) -> Second {
    let counts = &interval.counts;
    let intended = match &plan.shape {
        Shape::Closed { .. } => None,
        Shape::Open { profile, .. } => {
            // What an order to end came before was never intended.
            let ended = outcome.recorder.ordered_end_ns.unwrap_or(u64::MAX);
            let ended = Duration::from_nanos(ended.saturating_sub(outcome.began_ns));
            let until =
                |second: u64| profile.count_until(Duration::from_secs(second).min(ended)).round();
            Some((until(interval.second + 1) - until(interval.second)) as u64)
        }
    };
    Second {
        at_s: interval.second as f64,
        intended,
        started: counts.started,
        completed: counts.responses,
        errors: counts.errors,
        bad_statuses: counts.bad_statuses,
        late: counts.late,
        dropped: counts.dropped,
        bytes_in: counts.bytes_in,
        bytes_out: counts.bytes_out,
        connections_open: interval.connections_open,
        connections_opened: counts.connections,
        in_flight: interval.in_flight,
        busiest_thread_percent: interval.busiest_cpu_ns as f64 / 1e7,
        intended_start: plan.shape.is_open().then(|| percentiles(&interval.intended)).flatten(),
        service: percentiles(&interval.service),
    }
}

/// The figures of one second's times, which are in nanoseconds; `None`: there were none.
pub fn percentiles(times: &Histogram<u64>) -> Option<Percentiles> {
    let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e6;
    (!times.is_empty()).then(|| Percentiles {
        mean_ms: times.mean() / 1e6,
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        p99_9_ms: at(0.999),
        max_ms: times.max() as f64 / 1e6,
    })
}

fn sources(plan: &Plan, seconds: &[Interval]) -> Vec<Source> {
    if plan.protocol != Protocol::Connect && plan.sources.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = if plan.sources.is_empty() {
        vec![String::new()]
    } else {
        plan.sources.iter().map(ToString::to_string).collect()
    };
    let of = |index: usize, pick: fn(&(u64, u64)) -> u64| {
        seconds.iter().map(|interval| interval.sources.get(index).map_or(0, pick)).collect()
    };
    let source = |(index, address): (usize, String)| Source {
        address,
        connected: of(index, |counts| counts.0),
        failed: of(index, |counts| counts.1),
    };
    names.into_iter().enumerate().map(source).collect()
}
