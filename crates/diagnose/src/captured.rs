//! What rules on captures have in common: which connections a rule is about, and how sure it can be
//! of a capture that has one direction only.

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

impl Flow<'_> {
    /// `10.0.0.1:4000 → 10.0.0.2:80`.
    pub(crate) fn name(&self) -> String {
        format!("{} → {}", self.from, self.to)
    }
}

/// The frames where `flag` was first set in each of `found`, for whoever opens the capture.
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
