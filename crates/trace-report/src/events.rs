//! The frames of one selected connection.

use trace::Frame;
use trace::analysis::Flags;
use trace::decode::bits;

/// Frames that are kept; of a longer connection the first ones.
pub(crate) const EVENTS_MAX: usize = 200_000;

/// A frame of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) time_ns: i64,
    /// Which end sent it.
    pub(crate) from: usize,
    /// TCP's flags.
    pub(crate) tcp: u16,
    /// Relative to the first of its direction that was seen, as far as there was one.
    pub(crate) sequence: u32,
    /// Relative to the other direction's.
    pub(crate) acknowledged: u32,
    pub(crate) length: u32,
    pub(crate) window: u16,
    pub(crate) flags: Flags,
    /// The frame shows a segment that was captured already.
    pub(crate) was_captured: bool,
}

impl Event {
    /// Whether its acknowledgement counts.
    pub(crate) fn has_ack(&self) -> bool {
        self.tcp & bits::ACK != 0
    }

    /// Whether it belongs to the handshake.
    pub(crate) fn is_syn(&self) -> bool {
        self.tcp & bits::SYN != 0
    }
}

/// The events of the chosen connection.
pub struct Events {
    stream: Option<u32>,
    bases: [Option<u32>; 2],
    all: Vec<Event>,
    left_out: u64,
}

impl Events {
    /// Keeps those of `stream`, as numbered in the trace; `None`: no events.
    pub fn new(stream: Option<u32>) -> Events {
        Events { stream, bases: [None; 2], all: Vec::new(), left_out: 0 }
    }

    pub(crate) fn all(&self) -> &[Event] {
        &self.all
    }

    /// Frames beyond [`EVENTS_MAX`].
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Keeps a frame if it is of the chosen connection and there is room.
    pub fn take(&mut self, frame: &Frame, time_ns: i64) {
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
pub(crate) fn tcp_flags(flags: u16) -> String {
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
