//! What a capture of packets shows, connection by connection. Counts are keyed as tshark's
//! (`tcp.analysis.*`) where it has a name for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A capture that was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capture {
    /// The file's name, or the interface's.
    pub name: String,
    /// From the first frame to the last, in milliseconds.
    pub duration_ms: u64,
    /// Connections in all.
    pub connections_in_all: u64,
    /// Of how many only one direction was captured.
    pub one_sided: u64,
    /// Packets that the capturing program reports as dropped; `None`: not said.
    pub dropped: Option<u64>,
    /// Connections with trouble, those with the most first.
    pub connections: Vec<CaptureConnection>,
    /// Packets of any kind.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets without a readable TCP segment, by what they hold, those with the most bytes first.
    pub undecoded: Vec<CaptureUndecoded>,
}

/// Packets of a capture without a readable TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureUndecoded {
    /// What they hold: `UDP port 443 (QUIC)`.
    pub what: String,
    /// How many.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A connection in a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureConnection {
    /// `tcp.stream`.
    pub stream: u32,
    /// Who opened it, as far as that is known: address and port.
    pub client: String,
    /// The other end.
    pub server: String,
    /// Only one direction was captured.
    pub is_one_sided: bool,
    /// An end broke it off.
    pub was_reset: bool,
    /// What the client sent.
    pub from_client: CaptureSide,
    /// What the server sent.
    pub from_server: CaptureSide,
}

/// What one end sent, as the capture shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureSide {
    /// Segments.
    pub segments: u64,
    /// Bytes of data, as often as they were sent.
    pub payload_bytes: u64,
    /// Bytes of data, each once.
    pub unique_bytes: u64,
    /// How often each flag was set, by tshark's names; 0 is left out.
    pub analysis: BTreeMap<String, u64>,
    /// The first frame in which each was set.
    pub frames: BTreeMap<String, u64>,
    /// SYNs that it sent, with ACK or without.
    pub syns: u64,
    /// Between them, in milliseconds: the first few.
    pub syn_gaps_ms: Vec<u64>,
    /// Selective acknowledgements permitted in its SYN; `None`: its SYN was not captured.
    pub sack_permitted: Option<bool>,
    /// Segments flagged as sent again or out of order whose bytes had all been seen before.
    pub repeated_segments: u64,
    /// Segments flagged as sent again or out of order whose bytes had not been seen before.
    pub late_segments: u64,
    /// Of them, those that others overtook, by their IP identification.
    pub overtaken_segments: u64,
    /// Frames that show a segment that was captured already.
    pub captured_twice: u64,
    /// Of them, flagged as sent again or out of order.
    pub captured_twice_flagged: u64,
    /// Bytes that were acknowledged and are not in the capture.
    pub unseen_bytes: u64,
    /// Last segments that waited for the timer to be sent again.
    pub tail_retransmissions: u64,
    /// How often the peer reported that its data had arrived twice (D-SACK).
    pub duplicate_sacks: u64,
    /// Of the segments sent again, those whose bytes had arrived before, by acknowledgements, selective
    /// ones among them, or by a D-SACK.
    pub needless_segments: u64,
    /// When it last sent anything, in milliseconds since the first frame.
    pub last_ms: u64,
    /// How long its window was shut, in milliseconds.
    pub window_shut_ms: u64,
    /// How often one segment was sent again in a row, at most.
    pub repeats_max: u64,
    /// That segment's data, in bytes.
    pub repeated_bytes: u64,
    /// It was not acknowledged before the capture ended.
    pub is_stuck: bool,
    /// When it was first sent again, in milliseconds since the first frame.
    pub stuck_since_ms: u64,
    /// Most bytes of it acknowledged at once: no longer segment is known to have arrived.
    pub advance_max_bytes: u64,
}

impl CaptureSide {
    /// How often a flag was set, by tshark's name.
    pub fn of(&self, flag: &str) -> u64 {
        self.analysis.get(flag).copied().unwrap_or(0)
    }
}
