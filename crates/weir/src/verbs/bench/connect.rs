//! `weir bench connect`: opens connections and closes them immediately.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use load::engine::Refusal;
use load::engine::plan::{Plan, Protocol, Shape, Target};
use load::engine::prepare::{self, Ways};
use load::schedule::{Profile, Spacing};
use load::syn_steps;
use load_report::run::Run;

use crate::flags::bench::ConnectArgs;
use crate::flags::{Common, Exit};

use super::carry_out::carry_out;
use super::http::raise_descriptors;
use super::table;

pub(crate) fn run(args: &ConnectArgs, common: Common) -> Exit {
    carry_out(plan(args), &args.report, &args.expect, common, |run| {
        let steps = syn_notes(run);
        run.notes.extend(steps);
        sources(run)
    })
}

fn plan(args: &ConnectArgs) -> Result<Plan, Refusal> {
    let ways = Ways {
        protocol: Protocol::Connect,
        keep_alive: false,
        tls: None,
        sources: args.sources.iter().flat_map(|some| some.iter().copied()).collect(),
        connect_timeout: args.connect_timeout,
    };
    let (host, port) = &args.server;
    let site = prepare::site(host, *port, &ways)?;
    let shape = match args.rate {
        None => Shape::Closed { time: Some(args.time), requests: None, ramp: Duration::ZERO },
        Some(rate) => {
            let profile = Profile::steady(rate, args.time, Duration::ZERO)
                .map_err(|error| Refusal::Mistake(error.to_string()))?;
            Shape::Open { profile: Arc::new(profile), spacing: Spacing::Even }
        }
    };
    let target = Target {
        url: site.name.clone(),
        method: String::new(),
        weight: 1,
        site: 0,
        http1: Bytes::new(),
        http2: http::Request::new(()),
        body: Bytes::new(),
        is_head: false,
    };
    let connections_max = args.connections as usize;
    let threads = args.threads.map_or_else(os::cpu::cores, usize::from);
    let plan = Plan {
        targets: vec![target],
        sites: vec![site],
        protocol: Protocol::Connect,
        shape,
        connections_max,
        streams_max: 1,
        keep_alive: false,
        threads: threads.clamp(1, connections_max),
        sources: ways.sources,
        connect_timeout: args.connect_timeout,
        timeout: args.connect_timeout,
        reset: args.reset,
    };
    raise_descriptors(&plan)?;
    Ok(plan)
}

/// What connect times say of lost SYNs.
fn syn_notes(run: &Run) -> Vec<String> {
    let schedule = syn_steps::schedule(&run.host.kernel);
    let Some(times) = run.latency.phases.connect.distribution() else { return Vec::new() };
    let note = |step: &syn_steps::Step| {
        let lost = match step.lost {
            1 => "its first SYN was lost".to_owned(),
            lost => format!("its first {lost} SYNs were lost"),
        };
        format!(
            "{} connection{} came {} s after the first SYN, when this kernel ({}) sends it again: \
             {lost}, by the way or by a full queue of the server",
            step.count,
            if step.count == 1 { "" } else { "s" },
            step.after_s,
            run.host.kernel
        )
    };
    syn_steps::recognise(&times, schedule).iter().map(note).collect()
}

/// Connections of each source over time.
fn sources(run: &Run) -> String {
    let mut text = String::new();
    for source in &run.sources {
        let name = if source.address.is_empty() { "this machine" } else { &source.address };
        let whole: u64 = source.connected.iter().sum();
        let failed: u64 = source.failed.iter().sum();
        let line =
            super::live::chart(&source.connected.iter().map(|n| *n as f64).collect::<Vec<_>>());
        let most = source.connected.iter().max().copied().unwrap_or(0);
        let least = source.connected.iter().rev().skip(1).min().copied().unwrap_or(most);
        let _ = writeln!(
            text,
            "{name:<15} {} connected, {} failed; each second {line} {} to {}",
            table::count(whole),
            table::count(failed),
            table::count(least.min(most)),
            table::count(most)
        );
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
