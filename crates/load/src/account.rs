//! Computes a run's figures into the [`Run`] that files and tables are made of. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::engine::plan::{Plan, Protocol, Shape};
use crate::engine::{Failure, Interval, Outcome, histogram};
use load_report::Summary;
use load_report::run::{
    self, FORMAT, Latency, Percentiles, Phases, Rate, Run, Second, Source, Target, Totals,
};

/// The seconds of a run as plain figures: what a second's figures are made of, its histograms, is
/// gone with it, so that a long run takes no more memory than its figures.
#[derive(Debug)]
pub struct Series {
    is_open: bool,
    seconds: Vec<Second>,
    /// By source address: connections made and failed in each second.
    sources: Vec<(Vec<u64>, Vec<u64>)>,
}

impl Series {
    /// Without seconds yet.
    pub fn new(plan: &Plan) -> Series {
        let sources = match plan.protocol {
            Protocol::Connect => plan.sources.len().max(1),
            _ => plan.sources.len(),
        };
        Series {
            is_open: plan.shape.is_open(),
            seconds: Vec::new(),
            sources: vec![Default::default(); sources],
        }
    }

    /// Takes the next second.
    pub fn add(&mut self, interval: &Interval) {
        self.seconds.push(second(interval, self.is_open));
        for ((connected, failed), counts) in self.sources.iter_mut().zip(&interval.sources) {
            connected.push(counts.0);
            failed.push(counts.1);
        }
    }

    /// Takes away what stands behind the run: one that ends with a second has nothing to say of the
    /// next.
    fn cut(&mut self) {
        let is_silent = |s: &&Second| {
            let counts = [s.started, s.completed, s.errors, s.dropped, s.bytes_in, s.bytes_out];
            counts.iter().all(|count| *count == 0) && s.connections_opened == 0
        };
        let silent = self.seconds.iter().rev().take_while(is_silent).count();
        let left = self.seconds.len() - silent;
        self.seconds.truncate(left);
        for (connected, failed) in &mut self.sources {
            connected.truncate(left);
            failed.truncate(left);
        }
    }
}

/// The figures of a run, without what the machine did meanwhile and without a judgement.
pub fn run(plan: &Plan, outcome: &Outcome, mut series: Series) -> Run {
    let recorder = &outcome.recorder;
    let is_open = plan.shape.is_open();
    let times = &recorder.times;
    let mut dns = histogram(3);
    for site in &plan.sites {
        dns.saturating_record(site.lookup.as_nanos() as u64);
    }
    series.cut();
    for second in &mut series.seconds {
        let number = second.at_s as u64;
        second.intended = intended(plan, outcome, number);
        let timer = outcome.timer.as_ref().and_then(|timer| timer.p99_9_of_second(number));
        second.timer_lateness_p99_9_ms = timer.map(|ns| ns as f64 / 1e6);
    }
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
        timer_lateness: outcome.timer.as_ref().map(|timer| Summary::of(&timer.all)),
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
        seconds: series.seconds,
        sources: sources(plan, series.sources),
        broken_off: outcome.broken.clone(),
        ..Run::default()
    }
}

fn targets(plan: &Plan) -> Vec<Target> {
    let addresses = |site: usize| {
        let site = &plan.sites[site];
        let mut all = site.addresses.clone();
        all.sort_by_key(|address| *address != site.address);
        all.iter().map(ToString::to_string).collect()
    };
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
        errors_by_kind: by_kind.map(|(kind, count)| (kind.as_str().to_owned(), count)).collect(),
        cut_off: recorder.cut_off,
        given_back: recorder.given_back,
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
/// responses over the same time, or until the last of them if that came later. The time before the
/// first start that did not come any more belongs to both: ten requests, one a second, are one a
/// second, though the last began after nine.
fn rate(plan: &Plan, outcome: &Outcome) -> Rate {
    let recorder = &outcome.recorder;
    let counts = &recorder.counts;
    let since = |moment: u64| moment.saturating_sub(outcome.began_ns) as f64 / 1e9;
    let ran = since(recorder.ordered_end_ns.unwrap_or(outcome.ended_ns));
    let starting = match plan.shape.time() {
        // A number of requests may have ended it first.
        Some(time) if plan.shape.is_open() => time.as_secs_f64().min(ran),
        Some(time) => time.as_secs_f64().min(ran).min(outcome.duration_s()),
        None => outcome.duration_s(),
    };
    let starting = starting.max(1e-9);
    let answering = since(recorder.answered_ns).max(starting);
    let intended = (counts.started + counts.dropped) as f64 / starting;
    Rate {
        intended_per_s: plan.shape.is_open().then_some(intended),
        achieved_per_s: counts.started as f64 / starting,
        responses_per_s: counts.responses as f64 / answering,
    }
}

/// Starts that were intended in a second; `None` in the closed model.
fn intended(plan: &Plan, outcome: &Outcome, second: u64) -> Option<u64> {
    let Shape::Open { profile, .. } = &plan.shape else { return None };
    // What an order to end came before was never intended.
    let ended = outcome.recorder.ordered_end_ns.unwrap_or(u64::MAX);
    let ended = Duration::from_nanos(ended.saturating_sub(outcome.began_ns));
    let until = |second: u64| profile.count_until(Duration::from_secs(second).min(ended)).round();
    Some((until(second + 1) - until(second)) as u64)
}

fn second(interval: &Interval, is_open: bool) -> Second {
    let counts = &interval.counts;
    Second {
        at_s: interval.second as f64,
        intended: None,
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
        intended_start: is_open.then(|| percentiles(&interval.intended)).flatten(),
        service: percentiles(&interval.service),
        lateness_p99_9_ms: percentiles(&interval.lateness).map(|late| late.p99_9_ms),
        // The timer's seconds come with the run's end.
        timer_lateness_p99_9_ms: None,
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

fn sources(plan: &Plan, figures: Vec<(Vec<u64>, Vec<u64>)>) -> Vec<Source> {
    let name = |index: usize| plan.sources.get(index).map(ToString::to_string).unwrap_or_default();
    let source = |(index, (connected, failed)): (usize, (Vec<u64>, Vec<u64>))| Source {
        address: name(index),
        connected,
        failed,
    };
    figures.into_iter().enumerate().map(source).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Recorder, TimerLateness};
    use crate::schedule::{Profile, Spacing};

    const SECOND_NS: u64 = 1_000_000_000;

    /// A run that began at 5 s of the process's clock, with so many requests and responses.
    fn ended(counts: [u64; 2], answered_s: f64, ordered_end_s: Option<f64>) -> Outcome {
        let at = |s: f64| 5 * SECOND_NS + (s * 1e9) as u64;
        let mut recorder = Recorder::new(true, 1);
        [recorder.counts.started, recorder.counts.responses] = counts;
        (recorder.last_ns, recorder.answered_ns) = (at(answered_s), at(answered_s));
        recorder.ordered_end_ns = ordered_end_s.map(at);
        Outcome {
            recorder,
            timer: None,
            began_ns: at(0.0),
            ended_ns: at(answered_s.max(10.0)),
            cpu: os::process::CpuTime::default(),
            broken: None,
        }
    }

    #[test]
    fn lateness_of_starts_and_of_the_timer_stand_in_the_same_second() {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let profile = Profile::steady(1.0, Duration::from_secs(10), Duration::ZERO).unwrap();
        let open = Shape::Open { profile: Arc::new(profile), spacing: Spacing::Even };
        let plan = Plan::sample(Protocol::Http1, &[address], open);
        let mut outcome = ended([3, 3], 3.5, None);
        let mut timer = TimerLateness::new();
        let mut series = Series::new(&plan);
        // Second 1 has a start and no wake-up, second 2 the other way round.
        for (second, starts_us, timer_us) in [
            (0, Some(10), Some(20)),
            (1, Some(30), None),
            (2, None, Some(40)),
            (3, Some(50), Some(60)),
        ] {
            let mut interval = Interval::new(second, 1);
            if let Some(late) = starts_us {
                interval.counts.started = 1;
                interval.lateness.record(late * 1_000).unwrap();
            }
            if let Some(late) = timer_us {
                timer.woken(second, late * 1_000);
            }
            series.add(&interval);
        }
        timer.end_second();
        outcome.timer = Some(timer);
        let run = run(&plan, &outcome, series);
        let us = |ms: Option<f64>| ms.map(|ms| (ms * 1e3).round());
        let seconds: Vec<_> = run
            .seconds
            .iter()
            .map(|s| (us(s.lateness_p99_9_ms), us(s.timer_lateness_p99_9_ms)))
            .collect();
        let expected = [(Some(10.0), Some(20.0)), (Some(30.0), None), (None, Some(40.0))];
        assert_eq!(seconds, [&expected[..], &[(Some(50.0), Some(60.0))]].concat());
        assert_eq!(run.latency.timer_lateness.unwrap().count, 3);
    }

    #[test]
    fn rates_are_over_the_time_in_which_there_was_load() {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let profile = Profile::steady(1.0, Duration::from_secs(10), Duration::ZERO).unwrap();
        let open = Shape::Open { profile: Arc::new(profile), spacing: Spacing::Even };
        let closed = |time: Option<u64>, requests| Shape::Closed {
            time: time.map(Duration::from_secs),
            requests,
            ramp: Duration::ZERO,
        };
        for (shape, outcome, achieved, responses) in [
            // One a second, the last answered after 9 s and a bit: not 1.1 a second.
            (open.clone(), ended([10, 10], 9.05, None), 1.0, 1.0),
            // The tail counts where answers come late.
            (open.clone(), ended([10, 10], 12.5, None), 1.0, 0.8),
            // The server died in the middle.
            (open.clone(), ended([10, 5], 4.9, None), 1.0, 0.5),
            // Ended by a signal after 4 s.
            (open, ended([4, 4], 3.1, Some(4.0)), 1.0, 1.0),
            (closed(Some(10), None), ended([500, 500], 10.0, None), 50.0, 50.0),
            // So many requests, and no time: until the last is answered.
            (closed(None, Some(100)), ended([100, 100], 4.0, None), 25.0, 25.0),
            (closed(Some(60), Some(100)), ended([100, 100], 4.0, None), 25.0, 25.0),
        ] {
            let plan = Plan::sample(Protocol::Http1, &[address], shape);
            let rate = rate(&plan, &outcome);
            assert!((rate.achieved_per_s - achieved).abs() < 1e-6, "{rate:?} {:?}", plan.shape);
            assert!((rate.responses_per_s - responses).abs() < 1e-6, "{rate:?} {:?}", plan.shape);
        }
    }

    #[test]
    fn what_stands_behind_the_run_is_cut_and_what_is_in_it_is_kept() {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let plan = Plan::sample(
            Protocol::Connect,
            &[address],
            Shape::Closed { time: None, requests: Some(1), ramp: Duration::ZERO },
        );
        let mut series = Series::new(&plan);
        for second in 0..5 {
            let mut interval = Interval::new(second, 1);
            interval.counts.started = u64::from(second == 0 || second == 2);
            interval.service.record_n(7_000_000, interval.counts.started).unwrap();
            interval.sources[0] = (second, 0);
            series.add(&interval);
        }
        let run = run(&plan, &ended([2, 2], 2.5, None), series);
        assert_eq!(run.seconds.iter().map(|s| s.started).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(run.seconds[1].service, None);
        assert!((run.seconds[2].service.unwrap().p99_ms - 7.0).abs() < 0.1);
        assert_eq!(run.sources[0].connected, [0, 1, 2]);
    }
}
