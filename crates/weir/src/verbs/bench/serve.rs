//! `weir bench serve`: a test server with a known capacity.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use balancer::signals::Signals;
use os::listen::{Bound, ListenError};
use sample::{Payload, Sample, SampleSpec, Stats, serve, serve_beside};

use crate::flags::{Common, Exit, bench::ServeArgs};

use super::output::failed;

pub(crate) fn run(args: &ServeArgs, _common: Common) -> Exit {
    let doors = match open(args) {
        Ok(doors) => doors,
        Err(error) => return failed(&error.to_string()),
    };
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return failed(&format!("cannot catch signals: {error}")),
    };
    let sample = Sample::new(spec(args));
    let begun = os::clock::now();
    if said(&greeting(args, &doors)).is_err() {
        return Exit::Done;
    }
    let serving = async {
        let Doors { front, side } = doors;
        match side {
            None => serve(front.listener, Arc::clone(&sample)).await,
            Some(side) => tokio::select! {
                ended = serve(front.listener, Arc::clone(&sample)) => ended,
                ended = serve_beside(side.listener, Arc::clone(&sample)) => ended,
            },
        }
    };
    match signals.run(serving) {
        Err(_) => {
            let ran = os::clock::now() - begun;
            // The reader may have gone.
            let _ = said(&farewell(&sample.stats(), ran));
            Exit::Done
        }
        Ok(Ok(())) => Exit::Done,
        Ok(Err(error)) => failed(&format!("cannot accept connections any more: {error}")),
    }
}

/// What it listens on.
struct Doors {
    front: Bound,
    side: Option<Bound>,
}

fn open(args: &ServeArgs) -> Result<Doors, ListenError> {
    Ok(Doors {
        front: os::listen::bind(args.listen, args.backlog, false)?,
        side: args
            .status_listen
            .map(|address| os::listen::bind(address, None, false))
            .transpose()?,
    })
}

fn spec(args: &ServeArgs) -> SampleSpec {
    // The bounds of the flags lie far below what a usize holds.
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    SampleSpec {
        name: args.name.clone(),
        zone: None,
        work: args.work,
        cv: args.cv,
        seed: args.seed,
        slots: args.slots.map(count),
        workers_accept: args.prefork,
        requests_per_connection_max: args
            .requests_per_connection
            .or_else(|| args.prefork.then_some(1)),
        silence_max: args.close_after,
        payload: match args.size {
            Some(size) => Payload::Text { size_bytes: count(size) },
            None => Payload::Json,
        },
    }
}

fn said(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Its address and its capacity.
fn greeting(args: &ServeArgs, doors: &Doors) -> String {
    let address = |bound: &Bound, asked: SocketAddr| bound.listener.local_addr().unwrap_or(asked);
    let front = address(&doors.front, args.listen);
    let spread = match args.cv {
        0.0 => String::new(),
        cv => {
            format!(" on the mean (lognormal, coefficient of variation {cv}, seed {})", args.seed)
        }
    };
    let body = args.size.map_or("a short JSON".to_owned(), |size| format!("{size} bytes"));
    let slots = match args.slots.or_else(|| args.prefork.then_some(1)) {
        None => "no limit".to_owned(),
        Some(slots) => {
            let kind = if args.prefork { "workers of one thread" } else { "at once" };
            let per_second = slots as f64 / args.work.as_secs_f64();
            let bound = if args.work.is_zero() {
                String::new()
            } else {
                format!(": at most {per_second:.1} requests/s")
            };
            format!("{slots} {kind}{bound}")
        }
    };
    let Bound { backlog_asked: asked, backlog_granted: granted, .. } = doors.front;
    let less = if granted < asked {
        format!(" ({asked} asked for; net.core.somaxconn is {granted})")
    } else {
        String::new()
    };
    let status = doors.side.as_ref().zip(args.status_listen);
    let status = status.map_or(front, |(side, asked)| address(side, asked));
    format!(
        "Serving on http://{front}/\n\
         \x20 work      {:?}{spread}\n\
         \x20 body      {body}\n\
         \x20 slots     {slots}\n\
         \x20 backlog   {granted} connections{less}\n\
         \x20 counts    http://{status}/status\n\
         Ctrl-C ends it.\n",
        args.work
    )
}

/// What it has seen.
fn farewell(stats: &Stats, ran: Duration) -> String {
    let seconds = ran.as_secs_f64().max(0.001);
    let share = |busy: &Duration| format!("{:.1} %", busy.as_secs_f64() / seconds * 100.0);
    let busy: Vec<String> = stats.busy.iter().take(SLOTS_SHOWN_MAX).map(share).collect();
    let more = stats.busy.len().saturating_sub(SLOTS_SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "\n{} requests in {seconds:.1} s ({:.1}/s), at most {} at once; {} connections, {} bad \
         requests\nBusy, slot by slot: {}{more}\n",
        stats.requests,
        stats.requests as f64 / seconds,
        stats.concurrent_max,
        stats.connections,
        stats.bad_requests,
        busy.join("  ")
    )
}

/// Slots that are listed at the end.
const SLOTS_SHOWN_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farewell_tells_what_each_slot_did() {
        let stats = Stats {
            requests: 30,
            concurrent_max: 9,
            connections: 3,
            busy: vec![Duration::from_secs(5), Duration::from_secs(10)],
            ..Stats::default()
        };
        assert_eq!(
            farewell(&stats, Duration::from_secs(10)),
            "\n30 requests in 10.0 s (3.0/s), at most 9 at once; 3 connections, 0 bad requests\n\
             Busy, slot by slot: 50.0 %  100.0 %\n"
        );
        let many = Stats { busy: vec![Duration::ZERO; 40], ..Stats::default() };
        assert!(farewell(&many, Duration::ZERO).ends_with("0.0 % and 24 more\n"));
    }
}
