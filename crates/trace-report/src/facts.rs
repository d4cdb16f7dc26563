//! The connections of a trace as facts for the rules on captures.

use std::collections::BTreeMap;

use diagnose::facts::{Capture, CaptureConnection, CaptureSide, CaptureUndecoded, Facts};
use diagnose::finding::Report;
use trace::summary::{Direction, Story};

use crate::reading::{Reading, worst};

/// Connections that rules see: those with the most trouble.
pub(crate) const CONNECTIONS_MAX: usize = 10_000;

/// The findings of the rules on captures.
pub(crate) fn findings(reading: &Reading) -> Report {
    diagnose::rules::diagnose_captures(&facts(reading))
}

/// The capture, for the rule book.
fn facts(reading: &Reading) -> Facts {
    let trace = &reading.trace;
    let first_ns = trace.intervals().first_ns().unwrap_or(0);
    let undecoded = trace
        .undecoded()
        .kinds()
        .into_iter()
        .map(|(kind, packets, bytes)| CaptureUndecoded { what: kind.to_string(), packets, bytes });
    let capture = Capture {
        name: reading.name.clone(),
        duration_ms: trace.intervals().duration_ns() / 1_000_000,
        connections_in_all: trace.stories().len() as u64,
        one_sided: trace.stories().filter(|story| story.is_one_sided()).count() as u64,
        dropped: reading.dropped,
        connections: worst(trace, CONNECTIONS_MAX)
            .map(|(stream, story)| connection(stream, story, first_ns))
            .collect(),
        packets: trace.frames(),
        bytes: trace.totals().bytes,
        undecoded: undecoded.collect(),
    };
    Facts { captures: vec![capture], ..Facts::default() }
}

fn connection(stream: u32, story: &Story, first_ns: i64) -> CaptureConnection {
    let client = story.client.unwrap_or(0);
    let end = |end: usize| story.ends.0[end].to_string();
    CaptureConnection {
        stream,
        client: end(client),
        server: end(1 - client),
        is_one_sided: story.is_one_sided(),
        was_reset: story.directions.iter().any(|direction| direction.resets > 0),
        from_client: side(&story.directions[client], first_ns),
        from_server: side(&story.directions[1 - client], first_ns),
    }
}

fn side(direction: &Direction, first_ns: i64) -> CaptureSide {
    let mut analysis = BTreeMap::new();
    let mut frames = BTreeMap::new();
    for ((name, count), (flag, _)) in direction.counts.named().zip(trace::analysis::Flags::NAMED) {
        if count > 0 {
            analysis.insert(name.to_owned(), count);
        }
        if let Some(frame) = direction.first_frame(*flag) {
            frames.insert(name.to_owned(), u64::from(frame));
        }
    }
    let milliseconds = |ns: i64| ns.max(0).cast_unsigned() / 1_000_000;
    let gaps = direction.opening_times_ns().windows(2);
    CaptureSide {
        segments: direction.counts.segments,
        payload_bytes: direction.counts.payload_bytes,
        unique_bytes: direction.unique_bytes,
        analysis,
        frames,
        syns: u64::from(direction.openings),
        syn_gaps_ms: gaps.map(|two| milliseconds(two[1] - two[0])).collect(),
        sack_permitted: direction.handshake.was_seen.then_some(direction.handshake.sack_permitted),
        repeated_segments: direction.repeated_segments,
        late_segments: direction.late_segments,
        overtaken_segments: direction.overtaken_segments,
        captured_twice: direction.captured_twice,
        captured_twice_flagged: direction.captured_twice_flagged,
        unseen_bytes: direction.unseen_bytes,
        tail_retransmissions: direction.tail_retransmissions,
        duplicate_sacks: direction.duplicate_sacks,
        needless_segments: direction.needless_segments,
        last_ms: milliseconds(direction.last_ns.saturating_sub(first_ns)),
        window_shut_ms: milliseconds(direction.shut_ns),
        repeats_max: u64::from(direction.repeats_max),
        repeated_bytes: u64::from(direction.repeated_bytes),
        is_stuck: direction.is_stuck,
        stuck_since_ms: milliseconds(direction.stuck_since_ns.saturating_sub(first_ns)),
        advance_max_bytes: u64::from(direction.advance_max_bytes),
    }
}
