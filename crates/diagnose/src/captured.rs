//! What rules on captures have in common: which connections a rule is about, and how sure it can be
//! of a capture that has one direction only.

use std::collections::BTreeMap;

use crate::facts::{Capture, CaptureConnection, CaptureSide};
use crate::finding::{Certainty, Evidence};
use crate::view::Out;
use crate::words;

/// Frames that are named as evidence.
const FRAMES_MAX: usize = 4;

/// A direction of a connection: who sent, and to whom.
#[derive(Clone, Copy)]
pub(crate) struct Flow<'a> {
    pub(crate) connection: &'a CaptureConnection,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) sent: &'a CaptureSide,
    pub(crate) answered: &'a CaptureSide,
}

/// Both directions of every connection.
pub(crate) fn flows(capture: &Capture) -> impl Iterator<Item = Flow<'_>> {
    capture.connections.iter().flat_map(|connection| {
        let CaptureConnection { client, server, from_client, from_server, .. } = connection;
        [
            Flow { connection, from: client, to: server, sent: from_client, answered: from_server },
            Flow { connection, from: server, to: client, sent: from_server, answered: from_client },
        ]
    })
}

/// Those for which `is` holds, the first of them the one with the most of `weight`.
pub(crate) fn found<'a>(
    capture: &'a Capture,
    is: impl Fn(&Flow<'a>) -> bool,
    weight: impl Fn(&Flow<'a>) -> u64,
) -> Option<Vec<Flow<'a>>> {
    let mut found: Vec<Flow<'a>> = flows(capture).filter(is).collect();
    found.sort_by_key(|flow| std::cmp::Reverse(weight(flow)));
    (!found.is_empty()).then_some(found)
}

/// `most`, or one of several explanations where the other direction was not captured.
pub(crate) fn certainty(found: &[Flow<'_>], most: Certainty) -> Certainty {
    if found.iter().all(|flow| flow.connection.is_one_sided) { Certainty::Possible } else { most }
}

/// Notes, once for all rules, that connections have one direction only.
pub(crate) fn needs_both(capture: &Capture, out: &mut Out) {
    if capture.one_sided > 0 {
        let connections = words::plural(capture.one_sided, "connection");
        let reason = format!("of {connections} in {} one direction was captured", capture.name);
        out.could_not("what the other end said", &reason);
    }
}

/// A segment that is sent again so often is not acknowledged at all: the timer has run out twice.
const STUCK_REPEATS_MIN: u64 = 2;
/// Two SYNs, or SYN-ACKs, nearer than this are one that was captured twice: Linux repeats them after a second.
pub(crate) const SYN_GAP_MIN_MS: u64 = 500;

impl Flow<'_> {
    /// Whether its data is sent again and never acknowledged, as far as the capture goes.
    pub(crate) fn is_stuck(&self) -> bool {
        self.sent.is_stuck
            && self.sent.repeats_max >= STUCK_REPEATS_MIN
            && !self.connection.is_one_sided
            // A SYN-ACK sent again: the other end has not taken the connection yet.
            && !self.answered.syn_gaps_ms.iter().any(|gap| *gap >= SYN_GAP_MIN_MS)
    }

    /// Whether the other end has sent nothing on this connection since its data was first sent again.
    /// Facts that were saved without times do not tell.
    pub(crate) fn is_unheard(&self) -> bool {
        self.sent.last_ms > 0 && self.answered.last_ms <= self.sent.stuck_since_ms
    }

    /// `10.0.0.1:4000 → 10.0.0.2:80`.
    pub(crate) fn name(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }
}

/// The frames where `flag` was first set in each of `found`, for readers who open the capture.
pub(crate) fn frames(found: &[Flow<'_>], flag: &str) -> Option<Evidence> {
    let frames: Vec<String> = found
        .iter()
        .filter_map(|flow| Some(flow.sent.frames.get(flag)?.to_string()))
        .take(FRAMES_MAX)
        .collect();
    (!frames.is_empty()).then(|| Evidence::text("frames, the first of each", frames.join(", ")))
}

/// How many connections, and the number of the worst.
pub(crate) fn which(found: &[Flow<'_>]) -> [Evidence; 2] {
    let mut streams: Vec<u32> = found.iter().map(|flow| flow.connection.stream).collect();
    let worst = streams.first().copied().unwrap_or_default();
    streams.sort_unstable();
    streams.dedup();
    [
        Evidence::count("connections", streams.len() as u64, ""),
        Evidence::text("the worst", format!("tcp.stream {worst}")),
    ]
}

/// The sum of a figure over `found`.
pub(crate) fn sum(found: &[Flow<'_>], figure: impl Fn(&CaptureSide) -> u64) -> u64 {
    found.iter().map(|flow| figure(flow.sent)).fold(0, u64::saturating_add)
}

/// The host of an end: its address without the port.
pub(crate) fn host(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(host, _)| host)
}

/// What a capture shows between two hosts, in the direction from one to the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Between {
    /// When the other host last sent anything to the one, on any connection, in milliseconds.
    pub(crate) heard_ms: u64,
    /// Most bytes that the other host acknowledged at once.
    pub(crate) advance_max_bytes: u64,
    /// Connections whose data is sent again and never acknowledged.
    pub(crate) stuck: u64,
    /// Least data of such a segment, in bytes; 0 where there is none.
    pub(crate) stuck_min_bytes: u64,
}

/// Every pair of hosts, by sender and receiver.
pub(crate) fn by_hosts(capture: &Capture) -> BTreeMap<(&str, &str), Between> {
    let mut all: BTreeMap<(&str, &str), Between> = BTreeMap::new();
    for flow in flows(capture) {
        let between = all.entry((host(flow.from), host(flow.to))).or_default();
        if flow.answered.segments > 0 {
            between.heard_ms = between.heard_ms.max(flow.answered.last_ms);
        }
        between.advance_max_bytes = between.advance_max_bytes.max(flow.sent.advance_max_bytes);
        if flow.is_stuck() {
            let bytes = flow.sent.repeated_bytes;
            let is_first = between.stuck == 0;
            between.stuck_min_bytes =
                if is_first { bytes } else { between.stuck_min_bytes.min(bytes) };
            between.stuck += 1;
        }
    }
    all
}
