//! The exhausted resource beyond a limit: inferred from the phases that grew, those that stayed
//! flat and the resources that were still free. Pure.

use std::net::SocketAddr;

use load_report::run::{HostSecond, RanOut, Run, Second, Whose};

use crate::verdict::own_syns_repeated;

/// A machine of which less is used has CPU left.
const CPU_FREE_PERCENT: f64 = 90.0;
/// Packets smaller than this, on the mean, make a rate one of packets rather than of bits.
const SMALL_PACKET_BYTES: f64 = 300.0;
/// What a network's queue adds at least, before it is believed to be one, ms.
const QUEUE_MS: f64 = 5.0;
/// Of the connections of a trial, so many with a lost SYN are a full queue.
const SYN_LOSS_SHARE: f64 = 0.002;
/// Of the requests of a trial, so many answered with 500 or more are refusals of what is too much.
const REFUSED_SHARE: f64 = 0.001;

/// What of a trial matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Requests per second that were asked for.
    pub asked_per_s: f64,
    /// Responses per second, in the trial's second half.
    pub responses_per_s: f64,
    /// Medians, ms.
    pub service_ms: f64,
    /// From the first byte sent to the first received, ms.
    pub first_byte_ms: f64,
    /// From the first byte received to the last, ms.
    pub transfer_ms: f64,
    /// TCP's round trip, ms.
    pub round_trip_ms: f64,
    /// The 99th percentile of connecting, ms.
    pub connect_p99_ms: f64,
    /// Bits per second received or sent, whichever is more, by the interface.
    pub bits_per_s: f64,
    /// Packets per second, in the same direction.
    pub packets_per_s: f64,
    /// Bits and packets are no interface's counters, but reckoned from what came and went.
    pub is_reckoned: bool,
    /// CPU of this machine in use, percent.
    pub cpu_percent: f64,
    /// SYNs sent again, for each connection attempt.
    pub syn_loss: f64,
    /// Responses of 500 and more, for each request.
    pub refused: f64,
}

impl Facts {
    /// Of a trial.
    pub fn of(run: &Run) -> Facts {
        let whole = run.shape.duration_s.unwrap_or(0.0).max(1.0) as usize;
        let half = |count: usize| (count.min(whole) / 2)..count.min(whole);
        let seconds = &run.seconds[half(run.seconds.len())];
        let hosts = &run.host_seconds[half(run.host_seconds.len())];
        let completed: u64 = seconds.iter().map(|second| second.completed).sum();
        let mean = |pick: fn(&HostSecond) -> f64| {
            hosts.iter().map(pick).sum::<f64>() / hosts.len().max(1) as f64
        };
        let (rx, tx) = (mean(|s| s.rx_bytes as f64), mean(|s| s.tx_bytes as f64));
        let packets =
            if rx >= tx { mean(|s| s.rx_packets as f64) } else { mean(|s| s.tx_packets as f64) };
        let is_reckoned = packets < 1.0;
        let (bytes, packets) =
            if is_reckoned { reckoned(run, seconds) } else { (rx.max(tx), packets) };
        let syns = own_syns_repeated(run);
        let refused = run.totals.statuses.iter().filter(|(status, _)| status.as_str() >= "500");
        let phases = &run.latency.phases;
        Facts {
            asked_per_s: run.rate.intended_per_s.unwrap_or_default(),
            responses_per_s: completed as f64 / seconds.len().max(1) as f64,
            service_ms: run.latency.service.p50_ms,
            first_byte_ms: phases.first_byte.p50_ms,
            transfer_ms: phases.transfer.p50_ms,
            round_trip_ms: phases.round_trip.p50_ms,
            connect_p99_ms: phases.connect.p99_ms,
            bits_per_s: bytes * 8.0,
            packets_per_s: packets,
            is_reckoned,
            cpu_percent: mean(|s| s.cpu_user_percent + s.cpu_system_percent + s.cpu_steal_percent),
            syn_loss: syns as f64 / run.totals.connections.max(1) as f64,
            refused: refused.map(|(_, count)| *count).sum::<u64>() as f64
                / run.totals.requests.max(1) as f64,
        }
    }

    /// Whether this machine had CPU left.
    pub fn has_cpu(&self) -> bool {
        self.cpu_percent < CPU_FREE_PERCENT
    }
}

/// Bytes and packets per second on the wire where no interface tells them: those of requests or of
/// responses, whichever are more, in packets of 1,500 bytes with the headers of Ethernet (14 bytes),
/// IPv4 or IPv6 (20 or 40) and TCP with timestamps (32).
fn reckoned(run: &Run, seconds: &[Second]) -> (f64, f64) {
    let address = run.targets.first().and_then(|target| target.addresses.first());
    let address = address.and_then(|text| text.parse::<SocketAddr>().ok());
    let ip = if address.is_some_and(|address| address.is_ipv6()) { 40.0 } else { 20.0 };
    let sum = |pick: fn(&Second) -> u64| seconds.iter().map(pick).sum::<u64>() as f64;
    let (bytes, messages) = if sum(|s| s.bytes_in) >= sum(|s| s.bytes_out) {
        (sum(|s| s.bytes_in), sum(|s| s.completed))
    } else {
        (sum(|s| s.bytes_out), sum(|s| s.started))
    };
    let payload = 1_500.0 - ip - 32.0;
    let packets = (bytes / messages.max(1.0) / payload).ceil() * messages;
    let each = seconds.len().max(1) as f64;
    ((bytes + packets * (14.0 + ip + 32.0)) / each, packets / each)
}

/// Of a trial that failed while all of the generator's connections were in use (by `run_out`, what
/// ran out in it): that they are the limit, if each request took as long as at a low rate. Else it
/// is the server, or the way to it, that kept them in use.
pub fn connections_ran_out(idle: &Facts, failed: &Facts, run_out: &[RanOut]) -> Option<RanOut> {
    let own =
        |ran_out: &&RanOut| ran_out.whose == Whose::Generator && ran_out.what == "connections";
    let found = run_out.iter().find(own)?;
    let held_up = grew(failed.first_byte_ms, idle.first_byte_ms)
        || grew(failed.transfer_ms, idle.transfer_ms)
        || grew(failed.round_trip_ms, idle.round_trip_ms)
        || failed.syn_loss > SYN_LOSS_SHARE
        || failed.refused > REFUSED_SHARE;
    (!held_up).then(|| RanOut {
        evidence: format!(
            "{}. It is not: the first byte took {:.1} ms ({:.1} ms at a low rate)",
            found.evidence, failed.first_byte_ms, idle.first_byte_ms
        ),
        ..found.clone()
    })
}

/// Whether a time is more than noise above another, ms.
fn grew(now: f64, then: f64) -> bool {
    now - then > QUEUE_MS.max(then)
}

fn say(whose: Whose, what: &str, evidence: String) -> RanOut {
    RanOut { whose, what: what.to_owned(), evidence }
}

/// What ran out: by a trial at a low rate, the best that passed, and one that failed above it.
pub fn what_ran_out(idle: &Facts, best: &Facts, failed: &Facts) -> RanOut {
    let first_byte = grew(failed.first_byte_ms, idle.first_byte_ms);
    let transfer = grew(failed.transfer_ms, idle.transfer_ms);
    let round_trip = grew(failed.round_trip_ms, idle.round_trip_ms);
    let has_cpu = failed.has_cpu();
    let asked =
        format!("asked for {:.0}/s instead of {:.0}/s", failed.asked_per_s, best.asked_per_s);
    if let Some(refused) = refused(failed, transfer, &asked) {
        return refused;
    }
    if (transfer || round_trip) && has_cpu {
        return link(idle, failed, transfer, &asked);
    }
    if !has_cpu {
        return say(
            Whose::Generator,
            "cpu",
            format!(
                "{:.0} % of this machine's CPU was in use when {asked}: what runs here, the server \
                 too if it does, had no more",
                failed.cpu_percent
            ),
        );
    }
    if !first_byte {
        return say(
            Whose::Unknown,
            "unknown",
            format!(
                "{:.1} responses/s when {asked}, and nothing grew that this end can see: first byte \
                 {:.1} ms (idle {:.1} ms), transfers {:.1} ms, round trips {:.1} ms, {:.0} % of this \
                 machine's CPU in use",
                failed.responses_per_s,
                failed.first_byte_ms,
                idle.first_byte_ms,
                failed.transfer_ms,
                failed.round_trip_ms,
                failed.cpu_percent
            ),
        );
    }
    say(
        Whose::Server,
        "concurrency",
        format!(
            "{:.1} responses/s and no more when {asked}: the first byte took {:.0} ms instead of \
             {:.0} ms, while transfers ({:.1} ms) and round trips ({:.1} ms) were as before. Requests \
             wait in the server, which works on about {:.0} at once (rate x time when idle)",
            failed.responses_per_s,
            failed.first_byte_ms,
            idle.first_byte_ms,
            failed.transfer_ms,
            failed.round_trip_ms,
            best.responses_per_s.max(failed.responses_per_s) * idle.service_ms / 1e3
        ),
    )
}

/// The server refused: by its statuses, or by SYNs that it did not answer.
fn refused(failed: &Facts, transfer: bool, asked: &str) -> Option<RanOut> {
    if failed.refused > REFUSED_SHARE {
        return Some(say(
            Whose::Server,
            "concurrency",
            format!(
                "{:.1} % of the responses had a status of 500 or more when {asked}: the server, or \
                 a balancer before it, refuses what is too much",
                failed.refused * 100.0
            ),
        ));
    }
    if failed.syn_loss > SYN_LOSS_SHARE && !transfer {
        return Some(say(
            Whose::Server,
            "accept_queue",
            format!(
                "{:.1} % of the connection attempts had to repeat their SYN (connect p99 {:.0} ms), \
                 while transfers took {:.1} ms as before: the server accepts too slowly, its \
                 queue is too short, or a limit on new connections drops SYNs",
                failed.syn_loss * 100.0,
                failed.connect_p99_ms,
                failed.transfer_ms
            ),
        ));
    }
    None
}

/// The link ran out: transfers, or else round trips, took longer while there was CPU left.
fn link(idle: &Facts, failed: &Facts, transfer: bool, asked: &str) -> RanOut {
    let grown = if transfer {
        format!("transfers took {:.1} ms instead of {:.1} ms", failed.transfer_ms, idle.transfer_ms)
    } else {
        format!(
            "round trips took {:.1} ms instead of {:.1} ms",
            failed.round_trip_ms, idle.round_trip_ms
        )
    };
    let per_packet = failed.bits_per_s / 8.0 / failed.packets_per_s.max(1.0);
    let is_small = per_packet < SMALL_PACKET_BYTES;
    let (what, flat) = if is_small {
        ("packets", format!("{:.0} packets/s", failed.packets_per_s))
    } else {
        ("bandwidth", format!("{:.1} Mb/s", failed.bits_per_s / 1e6))
    };
    let flat = if failed.is_reckoned {
        format!("about {flat} (reckoned: which interface it is, is not known)")
    } else {
        flat
    };
    let evidence = format!(
        "{flat} and no more when {asked}, with {:.0} % of this machine's CPU in use; {grown}",
        failed.cpu_percent
    );
    say(Whose::Link, what, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_report::run::Target;

    fn idle() -> Facts {
        Facts {
            asked_per_s: 10.0,
            responses_per_s: 10.0,
            service_ms: 301.0,
            first_byte_ms: 300.5,
            transfer_ms: 1.0,
            round_trip_ms: 0.1,
            connect_p99_ms: 0.2,
            bits_per_s: 4e6,
            packets_per_s: 350.0,
            cpu_percent: 5.0,
            ..Facts::default()
        }
    }

    #[test]
    fn without_an_interface_what_is_on_the_wire_is_reckoned_by_the_address_family() {
        let of = |address: &str, bytes: u64| {
            let second = Second { completed: 400, bytes_in: 400 * bytes, ..Second::default() };
            let mut run = Run { seconds: vec![second; 4], ..Run::default() };
            run.shape.duration_s = Some(4.0);
            let addresses = vec![address.to_owned()];
            run.targets = vec![Target { addresses, ..Target::default() }];
            Facts::of(&run)
        };
        // 50,200 bytes are 35 packets of 1,448 bytes over IPv4, 36 of 1,428 over IPv6.
        for (address, wanted) in [("10.0.0.1:80", 35.0 * 66.0), ("[2001:db8::1]:80", 36.0 * 86.0)] {
            let facts = of(address, 50_200);
            assert!(facts.is_reckoned);
            let bits = (50_200.0 + wanted) * 400.0 * 8.0;
            assert!((facts.bits_per_s - bits).abs() < 1.0, "{address}: {facts:?}");
            let failed = Facts { transfer_ms: 90.0, ..facts };
            let ran_out = what_ran_out(&idle(), &idle(), &failed);
            assert_eq!(ran_out.what, "bandwidth", "{address}");
            assert!(ran_out.evidence.contains("reckoned"), "{}", ran_out.evidence);
        }
        let small = Facts { transfer_ms: 90.0, ..of("[2001:db8::1]:80", 100) };
        assert_eq!(what_ran_out(&idle(), &idle(), &small).what, "packets");
    }

    #[test]
    fn each_cause_is_told_by_what_grew() {
        let best = Facts { asked_per_s: 425.0, bits_per_s: 178e6, ..idle() };
        let failed =
            Facts { asked_per_s: 440.0, responses_per_s: 428.0, cpu_percent: 30.0, ..idle() };
        let of = |failed: Facts| {
            let ran_out = what_ran_out(&idle(), &best, &failed);
            (ran_out.whose, ran_out.what, ran_out.evidence)
        };
        let link = Facts {
            transfer_ms: 90.0,
            bits_per_s: 179.6e6,
            packets_per_s: 15_000.0,
            ..failed.clone()
        };
        let (whose, what, evidence) = of(link.clone());
        assert_eq!((whose, what.as_str()), (Whose::Link, "bandwidth"));
        assert!(evidence.starts_with("179.6 Mb/s and no more"), "{evidence}");
        let packets = Facts { bits_per_s: 20e6, packets_per_s: 20_000.0, ..link.clone() };
        assert_eq!(of(packets).1, "packets");
        let full = Facts { cpu_percent: 99.0, ..link };
        assert_eq!((of(full.clone()).0, of(full).1.as_str()), (Whose::Generator, "cpu"));
        let slots = Facts {
            first_byte_ms: 2_000.0,
            service_ms: 2_001.0,
            responses_per_s: 13.3,
            ..failed.clone()
        };
        let few = Facts { responses_per_s: 13.3, ..best.clone() };
        let ran_out = what_ran_out(&idle(), &few, &slots);
        assert_eq!((ran_out.whose, ran_out.what.as_str()), (Whose::Server, "concurrency"));
        assert!(ran_out.evidence.contains("about 4 at once"), "{}", ran_out.evidence);
        let queue = Facts { syn_loss: 0.05, connect_p99_ms: 1_003.0, ..failed.clone() };
        assert_eq!(of(queue).1, "accept_queue");
        // A tail that missed the objective while medians stayed says nothing of whose it is.
        assert_eq!(of(failed.clone()).0, Whose::Unknown);
        let own = [RanOut {
            whose: Whose::Generator,
            what: "connections".to_owned(),
            evidence: "all 4 connections were in use".to_owned(),
        }];
        let limit = connections_ran_out(&idle(), &failed, &own).unwrap();
        assert_eq!((limit.whose, limit.what.as_str()), (Whose::Generator, "connections"));
        assert_eq!(connections_ran_out(&idle(), &slots, &own), None, "the server holds them up");
        assert_eq!(connections_ran_out(&idle(), &failed, &[]), None);
        let refused = Facts { refused: 0.02, ..failed };
        assert!(of(refused).2.contains("2.0 % of the responses"));
    }
}
