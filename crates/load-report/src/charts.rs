//! The page's charts: lines over time, and the latency spectrum.

use page::{Axis, Chart, Line, Mark, Unit};

use crate::latency::Summary;
use crate::named::Named;
use crate::run::{HostSecond, Percentiles, Run, Second};

/// Points of a line. A screen has not more columns.
const POINTS_MAX: usize = 1200;

/// Points of a spectrum in each power of ten of 1/(1-quantile).
const SPECTRUM_POINTS_PER_DECADE: i32 = 24;

/// How seconds that share a point are combined.
#[derive(Clone, Copy)]
enum Fold {
    /// The mean, for rates.
    Mean,
    /// The worst, for percentiles, which cannot be merged.
    Worst,
}

/// The charts of one run, or of several side by side; and the titles of those that would show nothing
/// but zero.
pub fn charts(runs: &[Named]) -> (Vec<Chart>, Vec<String>) {
    let all = match runs {
        [] => Vec::new(),
        [one] => single(&one.run),
        many => compared(many),
    };
    let is_measured =
        |chart: &Chart| chart.lines.iter().any(|line| line.values.iter().any(Option::is_some));
    let (flat, drawn): (Vec<Chart>, Vec<Chart>) =
        all.into_iter().filter(is_measured).partition(Chart::is_flat);
    (drawn, flat.into_iter().map(|chart| chart.title).collect())
}

/// How many of the rows, one a second, are whole seconds of a run's load. What follows is the part of a
/// second and the wait for the last responses, whose rates would look like a drop.
fn whole(run: &Run, rows: usize) -> usize {
    match (load_time(run) + 1e-6).floor() as usize {
        0 => rows,
        whole => whole.min(rows),
    }
}

/// How long requests were started, s. With a fixed rate the last start may come, and be answered, before the time is
/// over: at 100 a second, the last of ten seconds' starts comes after 9.99 s.
fn load_time(run: &Run) -> f64 {
    let (asked, ended) = (run.shape.duration_s.unwrap_or(f64::MAX), run.totals.duration_s);
    let achieved = run.rate.achieved_per_s;
    if run.rate.intended_per_s.is_some() && achieved > 0.0 {
        return asked.min(run.totals.requests as f64 / achieved);
    }
    // Without one, a connection starts until the time is over.
    if ended > asked - CLOSED_EARLY_MAX_S { asked } else { ended }
}

/// How long before the end of its time a run without a fixed rate may have its last response.
const CLOSED_EARLY_MAX_S: f64 = 0.1;

/// The whole seconds of a run.
fn seconds(run: &Run) -> &[Second] {
    &run.seconds[..whole(run, run.seconds.len())]
}

/// The same of its host.
fn host_seconds(run: &Run) -> &[HostSecond] {
    &run.host_seconds[..whole(run, run.host_seconds.len())]
}

fn single(run: &Run) -> Vec<Chart> {
    let second = |get: fn(&Second) -> Option<f64>, fold| line_of(seconds(run), get, fold);
    let mut charts = vec![
        time(
            "Rate",
            "Requests per second, in whole seconds of the load.",
            Unit::PerSecond,
            vec![
                ("started", false, second(|s| Some(count(s.started)), Fold::Mean)),
                ("answered", false, second(|s| Some(count(s.completed)), Fold::Mean)),
                ("intended", true, second(|s| s.intended.map(count), Fold::Mean)),
            ],
        ),
        failures(run),
    ];
    charts.extend(latency_over_time(run));
    let intended = run.latency.intended_start.as_ref();
    charts.push(spectrum(&[
        ("from the intended start".to_owned(), intended, false),
        ("service time".to_owned(), Some(&run.latency.service), intended.is_some()),
    ]));
    charts.push(time(
        "Connections",
        "Open and requests in flight at the end of each second; opened during it.",
        Unit::Count,
        vec![
            ("open", false, second(|s| Some(count(s.connections_open)), Fold::Mean)),
            ("in flight", false, second(|s| Some(count(s.in_flight)), Fold::Mean)),
            ("opened", true, second(|s| Some(count(s.connections_opened)), Fold::Mean)),
        ],
    ));
    charts.extend(of_host(run));
    charts.extend(sources(run));
    charts
}

/// What failed, also after the last start: a request may time out then.
fn failures(run: &Run) -> Chart {
    let second = |get: fn(&Second) -> Option<f64>| line_of(&run.seconds, get, Fold::Mean);
    let chart = time(
        "Failures",
        "Per second.",
        Unit::PerSecond,
        vec![
            ("errors", false, second(|s| Some(count(s.errors)))),
            ("status 400 or higher", false, second(|s| Some(count(s.bad_statuses)))),
            ("starts dropped", false, second(|s| Some(count(s.dropped)))),
            ("starts late", true, second(|s| Some(count(s.late)))),
        ],
    );
    Chart { marks: end_of_starts(run, chart.xs.last()), ..chart }
}

/// Marks where starts ended, if a chart shows what came later.
fn end_of_starts(run: &Run, last: Option<&f64>) -> Vec<Mark> {
    let end = whole(run, run.seconds.len()) as f64;
    let is_within = last.is_some_and(|last| *last >= end) && run.seconds.len() as f64 > end;
    let text = "the last whole second of the load ends; late responses follow".to_owned();
    is_within.then_some(Mark { x: end, text, whose: None }).into_iter().collect()
}

/// Latency over time, and with a fixed rate the lateness of starts.
fn latency_over_time(run: &Run) -> Vec<Chart> {
    let second = |get: fn(&Second) -> Option<f64>, fold| line_of(&run.seconds, get, fold);
    let open = run.latency.intended_start.is_some();
    let service = second(|s| Some(s.service?.p99_ms), Fold::Worst);
    let mut charts = vec![if open {
        time(
            "Latency over time",
            "From the intended start, as users experience it; dashed: the \
            service time alone.",
            Unit::Milliseconds,
            vec![
                ("p50", false, second(|s| Some(s.intended_start?.p50_ms), Fold::Worst)),
                ("p90", false, second(|s| Some(s.intended_start?.p90_ms), Fold::Worst)),
                ("p99", false, second(|s| Some(s.intended_start?.p99_ms), Fold::Worst)),
                ("max", false, second(|s| Some(s.intended_start?.max_ms), Fold::Worst)),
                ("service p99", true, service),
            ],
        )
    } else {
        time(
            "Latency over time",
            "From each request's start.",
            Unit::Milliseconds,
            vec![
                ("p50", false, second(|s| Some(s.service?.p50_ms), Fold::Worst)),
                ("p90", false, second(|s| Some(s.service?.p90_ms), Fold::Worst)),
                ("p99", false, service),
                ("max", false, second(|s| Some(s.service?.max_ms), Fold::Worst)),
            ],
        )
    }];
    for chart in &mut charts {
        chart.marks = end_of_starts(run, chart.xs.last());
    }
    if open {
        charts.push(time(
            "Lateness of starts",
            "The 99.9th percentile of each second. If an empty timer loop was late too, this \
            machine was stalled, and starts stay late until they have caught up.",
            Unit::Milliseconds,
            vec![
                ("starts", false, second(|s| s.lateness_p99_9_ms, Fold::Worst)),
                ("an empty timer", true, second(|s| s.timer_lateness_p99_9_ms, Fold::Worst)),
            ],
        ));
    }
    charts
}

/// The resources of the load generator's host.
fn of_host(run: &Run) -> [Chart; 4] {
    let host = |get: fn(&HostSecond) -> f64| {
        line_of(host_seconds(run), |second| Some(get(second)), Fold::Mean)
    };
    [
        time(
            "CPU of this host",
            "Percent of all processors; the load generator's in percent of one.",
            Unit::Percent,
            vec![
                ("user", false, host(|s| s.cpu_user_percent)),
                ("system", false, host(|s| s.cpu_system_percent)),
                ("steal", false, host(|s| s.cpu_steal_percent)),
                ("generator (of one)", true, host(|s| s.own_cpu_percent)),
            ],
        ),
        time(
            "Kernel counters of this host",
            "Increase per second.",
            Unit::PerSecond,
            vec![
                ("segments retransmitted", false, host(|s| count(s.retransmissions))),
                ("SYNs retransmitted", false, host(|s| count(s.syn_retransmissions))),
                ("accept queue overflows", false, host(|s| count(s.listen_overflows))),
                ("SYNs dropped", true, host(|s| count(s.listen_drops))),
            ],
        ),
        time(
            "Bytes on the interface",
            "All traffic of the host on it.",
            Unit::BytesPerSecond,
            vec![
                ("received", false, host(|s| count(s.rx_bytes))),
                ("sent", false, host(|s| count(s.tx_bytes))),
            ],
        ),
        time(
            "Packets on the interface",
            "All traffic of the host on it.",
            Unit::PerSecond,
            vec![
                ("received", false, host(|s| count(s.rx_packets))),
                ("sent", false, host(|s| count(s.tx_packets))),
            ],
        ),
    ]
}

/// Connections from each source address.
fn sources(run: &Run) -> Option<Chart> {
    let longest = run.sources.iter().max_by_key(|source| source.connected.len())?;
    let (_, xs) = line_of(&longest.connected, |_| None, Fold::Mean);
    let named = |(index, source): (usize, &crate::run::Source)| Line {
        label: if source.address.is_empty() { "any".to_owned() } else { source.address.clone() },
        colour: index,
        values: fit(line_of(&source.connected, |n| Some(count(*n)), Fold::Mean).0, xs.len()),
        ..Line::default()
    };
    Some(Chart {
        title: "Connections by source address".to_owned(),
        note: "Established per second.".to_owned(),
        unit: Unit::PerSecond,
        lines: run.sources.iter().enumerate().take(LINES_MAX).map(named).collect(),
        xs,
        ..Chart::default()
    })
}

/// Lines of one chart.
const LINES_MAX: usize = 8;

fn compared(runs: &[Named]) -> Vec<Chart> {
    // Latency from the intended start is compared if every run has it, otherwise the service time.
    let open = runs.iter().all(|named| named.run.latency.intended_start.is_some());
    let times = if open {
        |second: &Second| second.intended_start
    } else {
        |second: &Second| second.service
    };
    let note = if open { "From the intended start." } else { "Service time." };
    let each = |title: &str, note: &str, unit, get: &dyn Fn(&Run) -> Drawn| {
        let drawn: Vec<Drawn> = runs.iter().map(|named| get(&named.run)).collect();
        let xs = drawn.iter().map(|(_, xs)| xs).max_by_key(|xs| xs.len()).cloned();
        let xs = xs.unwrap_or_default();
        let lines = runs.iter().zip(drawn).enumerate().map(|(index, (named, (values, _)))| Line {
            label: named.name.clone(),
            colour: index,
            values: fit(values, xs.len()),
            ..Line::default()
        });
        let lines = lines.collect();
        Chart {
            title: title.to_owned(),
            note: note.to_owned(),
            unit,
            xs,
            lines,
            ..Chart::default()
        }
    };
    let longest = runs.iter().map(|n| n.run.seconds.len().max(n.run.host_seconds.len())).max();
    let step = step(longest.unwrap_or(0));
    let percentile = |get: fn(Percentiles) -> f64| {
        move |run: &Run| line_by(&run.seconds, |second| times(second).map(get), Fold::Worst, step)
    };
    let rates = |get: fn(&Second) -> f64| {
        move |run: &Run| line_by(seconds(run), |second| Some(get(second)), Fold::Mean, step)
    };
    let host = |get: fn(&HostSecond) -> f64| {
        move |run: &Run| line_by(host_seconds(run), |second| Some(get(second)), Fold::Mean, step)
    };
    vec![
        each(
            "Answered",
            "Responses per second, in whole seconds of the load.",
            Unit::PerSecond,
            &rates(|s| count(s.completed)),
        ),
        each(
            "Failures",
            "Errors, responses with status 400 or higher, and dropped starts, per second.",
            Unit::PerSecond,
            &|run: &Run| line_by(&run.seconds, |s| Some(failed(s)), Fold::Mean, step),
        ),
        each("p50 over time", note, Unit::Milliseconds, &percentile(|p| p.p50_ms)),
        each("p99 over time", note, Unit::Milliseconds, &percentile(|p| p.p99_ms)),
        spectra(runs, open),
        each(
            "CPU of the generator's host",
            "User and system, percent of all processors.",
            Unit::Percent,
            &host(|s| s.cpu_user_percent + s.cpu_system_percent),
        ),
        each(
            "Segments retransmitted",
            "By the load generator's host, per second.",
            Unit::PerSecond,
            &host(|s| count(s.retransmissions)),
        ),
    ]
}

/// What went wrong in a second.
fn failed(second: &Second) -> f64 {
    count(second.errors + second.bad_statuses + second.dropped)
}

/// The spectrum of each run, measured from the intended start or from the start.
fn spectra(runs: &[Named], from_intended: bool) -> Chart {
    let spectra: Vec<_> = runs
        .iter()
        .map(|named| {
            let latency = &named.run.latency;
            let summary = latency.intended_start.as_ref().filter(|_| from_intended);
            (named.name.clone(), Some(summary.unwrap_or(&latency.service)), false)
        })
        .collect();
    spectrum(&spectra)
}

/// Values, and their places on the horizontal axis.
type Drawn = (Vec<Option<f64>>, Vec<f64>);

fn time(
    title: &'static str,
    note: &str,
    unit: Unit,
    lines: Vec<(&'static str, bool, Drawn)>,
) -> Chart {
    let xs = lines.iter().map(|(_, _, (_, xs))| xs).max_by_key(|xs| xs.len()).cloned();
    let xs = xs.unwrap_or_default();
    let lines = lines
        .into_iter()
        .enumerate()
        .map(|(colour, (label, dashed, (values, _)))| Line {
            label: label.to_owned(),
            colour,
            dashed,
            values: fit(values, xs.len()),
            ..Line::default()
        })
        .filter(|line| line.values.iter().any(Option::is_some))
        .collect();
    Chart { title: title.to_owned(), note: note.to_owned(), unit, xs, lines, ..Chart::default() }
}

/// Seconds that share a point.
fn step(seconds: usize) -> usize {
    seconds.div_ceil(POINTS_MAX).max(1)
}

fn line_of<T>(rows: &[T], get: impl Fn(&T) -> Option<f64>, fold: Fold) -> Drawn {
    line_by(rows, get, fold, step(rows.len()))
}

fn line_by<T>(rows: &[T], get: impl Fn(&T) -> Option<f64>, fold: Fold, step: usize) -> Drawn {
    let point = |rows: &[T]| {
        let values: Vec<f64> = rows.iter().filter_map(&get).filter(|v| v.is_finite()).collect();
        match (values.len(), fold) {
            (0, _) => None,
            (n, Fold::Mean) => Some(values.iter().sum::<f64>() / n as f64),
            (_, Fold::Worst) => values.into_iter().reduce(f64::max),
        }
    };
    let values: Vec<_> = rows.chunks(step).map(point).collect();
    let xs = (0..values.len()).map(|index| (index * step) as f64).collect();
    (values, xs)
}

fn fit(mut values: Vec<Option<f64>>, length: usize) -> Vec<Option<f64>> {
    values.resize(length, None);
    values
}

fn count(number: u64) -> f64 {
    number as f64
}

/// Percentiles on a log axis.
fn spectrum(of: &[(String, Option<&Summary>, bool)]) -> Chart {
    let histograms: Vec<_> =
        of.iter().map(|(_, summary, _)| summary.and_then(Summary::distribution)).collect();
    let most = histograms.iter().flatten().map(hdrhistogram::Histogram::len).max().unwrap_or(0);
    let end = (most.max(1) as f64).log10();
    let points = (end * f64::from(SPECTRUM_POINTS_PER_DECADE)).ceil() as i32;
    let xs: Vec<f64> = (0..=points)
        .map(|point| 10_f64.powf(f64::from(point) / f64::from(SPECTRUM_POINTS_PER_DECADE)))
        .collect();
    let mut lines = Vec::new();
    for (index, ((label, _, dashed), histogram)) in of.iter().zip(histograms).enumerate() {
        let Some(histogram) = histogram else { continue };
        // A percentile needs that many measurements.
        let last = histogram.len() as f64 * 1.12;
        let at =
            |&x: &f64| (x <= last).then(|| histogram.value_at_quantile(1.0 - 1.0 / x) as f64 / 1e6);
        let values = xs.iter().map(at).collect();
        let (label, dashed) = (label.clone(), *dashed);
        lines.push(Line { label, colour: index, dashed, values, ..Line::default() });
    }
    let values = || lines.iter().flat_map(|line| line.values.iter().flatten().copied());
    let (least, largest) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    Chart {
        title: "Latency spectrum".to_owned(),
        note: "Latency by percentile, on a scale that magnifies the slowest requests.".to_owned(),
        unit: Unit::Milliseconds,
        x: Axis::Spectrum,
        log: least > 0.0 && largest / least > 30.0,
        xs,
        lines,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    fn run(seconds: usize) -> Run {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for n in 1..=10_000_u64 {
            histogram.record(n * 10_000).unwrap();
        }
        let second = |index| Second {
            at_s: index as f64,
            completed: index as u64,
            service: Some(Percentiles { p99_ms: index as f64, ..Percentiles::default() }),
            ..Second::default()
        };
        let mut run = Run { seconds: (0..seconds).map(second).collect(), ..Run::default() };
        run.totals.duration_s = seconds as f64;
        run.latency.service = Summary::of(&histogram);
        run
    }

    fn chart(charts: &[Chart], title: &str) -> Chart {
        charts.iter().find(|chart| chart.title == title).unwrap().clone()
    }

    #[test]
    fn a_long_run_has_as_many_points_as_can_be_seen_rates_as_means_and_percentiles_as_the_worst() {
        let (charts, flat) = charts(&[Named { name: "a".to_owned(), run: run(3000) }]);
        let rate = chart(&charts, "Rate");
        assert_eq!((rate.xs.len(), rate.xs[1]), (1000, 3.0));
        let answered = rate.lines.iter().find(|line| line.label == "answered").unwrap();
        assert_eq!(answered.values[1], Some(4.0), "of 3, 4, 5");
        let latency = chart(&charts, "Latency over time");
        let p99 = latency.lines.iter().find(|line| line.label == "p99").unwrap();
        assert_eq!(p99.values[1], Some(5.0));
        assert!(charts.iter().all(|c| c.lines.iter().all(|l| l.values.len() == c.xs.len())));
        assert!(charts.iter().all(|c| c.title != "CPU of this host"), "nothing was measured");
        assert_eq!(flat, ["Failures", "Connections"], "nothing but zero");
    }

    #[test]
    fn the_spectrum_ends_where_the_measurements_do() {
        let spectrum =
            chart(&charts(&[Named { name: "a".to_owned(), run: run(1) }]).0, "Latency spectrum");
        assert!(spectrum.log);
        let line = &spectrum.lines[0];
        let at = |x: f64| {
            let index = spectrum.xs.iter().position(|&at| (at / x - 1.0).abs() < 1e-9).unwrap();
            line.values[index].unwrap()
        };
        for (x, wanted) in [(10.0, 90.0), (100.0, 99.0), (1000.0, 99.9)] {
            assert!((at(x) / wanted - 1.0).abs() < 0.002, "{} is not {wanted}", at(x));
        }
        assert!((spectrum.xs.last().unwrap() / 10_000.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn runs_of_different_length_stand_on_one_axis() {
        let named = |name: &str, seconds| Named { name: name.to_owned(), run: run(seconds) };
        let (charts, _) = charts(&[named("a", 5), named("b", 9)]);
        let answered = chart(&charts, "Answered");
        assert_eq!(answered.xs.len(), 9);
        assert_eq!(answered.lines[0].values[5], None);
        assert_eq!(answered.lines[1].values[8], Some(8.0));
    }

    #[test]
    fn rates_end_with_the_last_whole_second_and_latency_with_the_last_response() {
        let mut run = run(7);
        run.shape.duration_s = Some(4.5);
        run.totals.duration_s = 6.2;
        let (charts, _) = charts(&[Named { name: "a".to_owned(), run }]);
        assert_eq!(chart(&charts, "Rate").xs.len(), 4);
        let latency = chart(&charts, "Latency over time");
        assert_eq!(latency.xs.len(), 7);
        assert!((latency.marks[0].x - 4.0).abs() < 1e-9);
    }
}
