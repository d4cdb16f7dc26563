//! What is kept of the frames of one chosen connection.

use trace::Frame;
use trace::analysis::Flags;
use trace::decode::bits;

/// Frames that are kept; of a longer connection the first of them are told.
pub(super) const EVENTS_MAX: usize = 200_000;

/// A frame of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) time_ns: i64,
    /// Which end sent it.
    pub(super) from: usize,
    /// TCP's flags.
    pub(super) tcp: u16,
    /// Relative to the first of its direction that was seen, as far as there was one.
    pub(super) sequence: u32,
    /// Relative to the other direction's.
    pub(super) acknowledged: u32,
    pub(super) length: u32,
    pub(super) window: u16,
    pub(super) flags: Flags,
    /// The frame shows a segment that was captured already.
    pub(super) was_captured: bool,
}

impl Event {
    /// Whether its acknowledgement counts.
    pub(super) fn has_ack(&self) -> bool {
        self.tcp & bits::ACK != 0
    }

    /// Whether it belongs to the handshake.
    pub(super) fn is_syn(&self) -> bool {
        self.tcp & bits::SYN != 0
    }
}

/// The events of the chosen connection.
pub(super) struct Events {
    stream: Option<u32>,
    bases: [Option<u32>; 2],
    all: Vec<Event>,
    left_out: u64,
}

impl Events {
    pub(super) fn new(stream: Option<u32>) -> Events {
        Events { stream, bases: [None; 2], all: Vec::new(), left_out: 0 }
    }

    pub(super) fn all(&self) -> &[Event] {
        &self.all
    }

    /// Frames beyond [`EVENTS_MAX`].
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn take(&mut self, frame: &Frame, time_ns: i64) {
        if self.stream.is_none() || frame.stream != self.stream {
            return;
        }
        let Some(segment) = &frame.segment else { return };
        if self.all.len() >= EVENTS_MAX {
            self.left_out += 1;
            return;
        }
        let has_ack = segment.has(bits::ACK);
        let base = *self.bases[frame.from].get_or_insert(segment.sequence);
        let other = if has_ack {
            // The other end's numbers begin with its SYN; without it, with what is acknowledged.
            *self.bases[1 - frame.from].get_or_insert(segment.acknowledged)
        } else {
            segment.acknowledged
        };
        self.all.push(Event {
            number: frame.number,
            time_ns,
            from: frame.from,
            tcp: segment.flags,
            sequence: segment.sequence.wrapping_sub(base),
            acknowledged: segment.acknowledged.wrapping_sub(other),
            length: segment.length,
            window: segment.window,
            flags: frame.flags,
            was_captured: frame.was_captured,
        });
    }
}

/// `SYN`, `ACK`, `PSH ACK`, as people write them.
pub(super) fn tcp_flags(flags: u16) -> String {
    const NAMED: [(u16, &str); 8] = [
        (bits::SYN, "SYN"),
        (bits::FIN, "FIN"),
        (bits::RST, "RST"),
        (bits::PSH, "PSH"),
        (0x20, "URG"),
        (0x40, "ECE"),
        (0x80, "CWR"),
        (bits::ACK, "ACK"),
    ];
    let names: Vec<&str> =
        NAMED.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    names.join(" ")
}
