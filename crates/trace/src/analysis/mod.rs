//! TCP segments → tshark 4.0's flags for each, by connection.

mod flags;
mod rules;
mod serial;
mod side;

pub use flags::Flags;
pub(crate) use serial::{is_after, is_before};

use crate::decode::{FastOpen, Segment, bits};
use rules::Arrival;
use side::{Scale, Side};

/// What tshark remembers of a connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    sides: [Side; 2],
    /// When the newest SYN without ACK came.
    syn_ns: Option<i64>,
    /// From it to the first segment that acknowledges without SYN.
    initial_rtt_ns: Option<i64>,
    /// A SYN had data and a Fast Open cookie.
    has_early_data: bool,
}

/// How to treat a segment that may begin a new connection.
pub(crate) enum Opening {
    /// It belongs to this connection.
    Here(Flags),
    /// It begins another one between the same ports.
    Again,
}

impl Connection {
    fn pair(&mut self, from: usize) -> (&mut Side, &mut Side) {
        let [one, other] = &mut self.sides;
        if from == 0 { (one, other) } else { (other, one) }
    }

    /// What the handshake's flags of a segment from direction `from` mean for an existing
    /// connection. It is asked of every segment, before [`Connection::judge`].
    pub(crate) fn open(&mut self, from: usize, segment: &Segment) -> Opening {
        let (forward, _) = self.pair(from);
        let Some(base) = forward.base.filter(|_| segment.has(bits::SYN)) else {
            return Opening::Here(Flags::NONE);
        };
        if segment.has(bits::ACK) {
            if base != segment.sequence {
                forward.base = Some(segment.sequence);
                return Opening::Here(Flags::REUSED_PORTS);
            }
        } else if base == segment.sequence {
            forward.next = forward.contiguous;
        } else {
            return Opening::Again;
        }
        Opening::Here(Flags::NONE)
    }

    /// What the segment is, by all that came before it.
    pub(crate) fn judge(&mut self, from: usize, segment: &Segment, now_ns: i64) -> Flags {
        let is_bare_syn = segment.has(bits::SYN) && !segment.has(bits::ACK);
        let mut flags = rules::judge(self, from, &Arrival { segment, now_ns });
        if is_bare_syn {
            self.syn_ns = Some(now_ns);
        } else if segment.has(bits::ACK) && !segment.has(bits::SYN) && self.initial_rtt_ns.is_none()
        {
            // One of 0 is not known, as in tshark, and the next one is taken.
            let rtt_ns = self.syn_ns.map(|syn_ns| now_ns.wrapping_sub(syn_ns));
            self.initial_rtt_ns = rtt_ns.filter(|rtt_ns| *rtt_ns != 0);
        }
        if segment.has(bits::SYN) {
            flags.add(self.fast_open(from, segment));
        }
        self.scale(from, segment);
        flags
    }

    /// What tshark shows of a header whose segment's length is not known: it then takes the
    /// acknowledged number for a relative one.
    pub(crate) fn mention(&self, segment: &Segment) -> Flags {
        match (segment.has(bits::SYN) && segment.has(bits::ACK), segment.acknowledged) {
            (true, 2..) => Flags::TFO_ACK,
            (true, _) if self.has_early_data => Flags::TFO_IGNORED,
            _ => Flags::NONE,
        }
    }

    /// Window scales count only if both ends offered them.
    fn scale(&mut self, from: usize, segment: &Segment) {
        let (forward, reverse) = self.pair(from);
        if let Some(shift) = segment.options.window_scale {
            forward.scale = Scale::By(shift.min(14));
        }
        // The window of a SYN is never shifted, and neither are those before the next
        // acknowledgement.
        if segment.has(bits::SYN) {
            forward.has_acknowledged = false;
        } else {
            forward.has_acknowledged |= segment.has(bits::ACK);
        }
        if segment.is_cut || !segment.has(bits::SYN) {
            return;
        }
        let is_refused = segment.has(bits::ACK) && reverse.scale == Scale::None;
        if forward.scale == Scale::Unknown || is_refused {
            (forward.scale, reverse.scale) = (Scale::None, Scale::None);
        }
    }

    fn fast_open(&mut self, from: usize, segment: &Segment) -> Flags {
        let has_cookie = segment.options.fast_open == Some(FastOpen::Cookie);
        if !segment.has(bits::ACK) {
            self.has_early_data |= has_cookie && segment.length > 0;
            return if has_cookie { Flags::TFO_SYN } else { Flags::NONE };
        }
        let has_early_data = self.has_early_data;
        let (_, reverse) = self.pair(from);
        // Acknowledged beyond the SYN: data that came with it, with a cookie seen or not.
        let beyond = reverse.base.map_or(0, |base| segment.acknowledged.wrapping_sub(base));
        match beyond {
            2.. => Flags::TFO_ACK,
            _ if has_early_data => Flags::TFO_IGNORED,
            _ => Flags::NONE,
        }
    }
}
