//! A connection's history from its first frame to its last.

use super::Direction;
use crate::analysis::Flags;
use crate::decode::{Segment, bits};
use crate::flow::Ends;

/// How a connection ended, as far as the capture goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Neither end has closed it.
    Open,
    /// One end has sent FIN: the number of the end.
    HalfClosed(usize),
    /// Both have sent FIN.
    Closed,
    /// An end has sent RST.
    Reset(usize),
}

/// What happened on a connection.
#[derive(Debug)]
pub struct Story {
    /// Its ends, the lower one first.
    pub ends: Ends,
    /// Which of the two opened it: who sent SYN without ACK, or was answered with one.
    pub client: Option<usize>,
    /// What each sent.
    pub directions: [Direction; 2],
    /// When its first frame came, in nanoseconds since 1970.
    pub first_ns: i64,
    /// When its latest did.
    pub last_ns: i64,
    /// The longest time without a frame, in nanoseconds.
    pub idle_max_ns: i64,
    /// The number of its first frame.
    pub first_frame: u64,
    /// From SYN to the acknowledgement that completed the handshake, in nanoseconds.
    pub handshake_ns: Option<i64>,
    /// Who sent RST first.
    reset_by: Option<usize>,
}

impl Story {
    pub(crate) fn new(ends: Ends, first_frame: u64, first_ns: i64) -> Story {
        Story {
            ends,
            client: None,
            directions: [Direction::default(), Direction::default()],
            first_ns,
            last_ns: first_ns,
            idle_max_ns: 0,
            first_frame,
            handshake_ns: None,
            reset_by: None,
        }
    }

    /// A segment from the end `from`. Yields whether this frame shows one captured already.
    pub(crate) fn take(
        &mut self,
        frame: u64,
        from: usize,
        segment: &Segment,
        flags: Flags,
        now_ns: i64,
    ) -> bool {
        self.idle_max_ns = self.idle_max_ns.max(now_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(now_ns);
        if segment.has(bits::SYN) && self.client.is_none() {
            self.client = Some(if segment.has(bits::ACK) { 1 - from } else { from });
        }
        if segment.has(bits::RST) && self.reset_by.is_none() {
            self.reset_by = Some(from);
        }
        let twice = self.directions[from].sent(frame, segment, flags, now_ns);
        if segment.has(bits::ACK) && !twice {
            self.directions[1 - from].acknowledged(segment, now_ns);
            if self.handshake_ns.is_none() && self.client == Some(from) && !segment.has(bits::SYN) {
                let syn_ns = self.directions[from].opening_times_ns().last();
                self.handshake_ns = syn_ns.map(|syn_ns| now_ns.saturating_sub(*syn_ns));
            }
        }
        twice
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        let [one, other] = &self.directions;
        match (self.reset_by, one.has_finished, other.has_finished) {
            (Some(by), _, _) => Ending::Reset(by),
            (None, true, true) => Ending::Closed,
            (None, true, false) => Ending::HalfClosed(0),
            (None, false, true) => Ending::HalfClosed(1),
            (None, false, false) => Ending::Open,
        }
    }

    /// Whether only one of its directions was captured, and enough of it to say so.
    pub fn is_one_sided(&self) -> bool {
        let segments = self.directions.each_ref().map(|direction| direction.counts.segments);
        let acknowledges = self.directions.iter().any(|direction| {
            // An end that only ever repeats its SYN had no answer to acknowledge.
            direction.counts.segments > u64::from(direction.openings)
        });
        segments.contains(&0) && acknowledges
    }

    /// How much went wrong: what connections are sorted by.
    pub fn trouble(&self) -> u64 {
        self.directions.iter().map(|direction| trouble(direction, self.reset_by.is_some())).sum()
    }
}

/// Each frame that something is wrong with counts once; acknowledgements and windows, which are
/// what others show of the same trouble, only break ties.
fn trouble(direction: &Direction, was_reset: bool) -> u64 {
    let of = |flag| direction.counts.of(flag);
    let wrong = of(Flags::RETRANSMISSION)
        + of(Flags::OUT_OF_ORDER)
        + of(Flags::LOST_SEGMENT)
        + of(Flags::ACK_LOST_SEGMENT)
        + of(Flags::ZERO_WINDOW);
    let wrong = wrong.saturating_sub(direction.captured_twice_flagged);
    wrong * 16 + of(Flags::DUPLICATE_ACK).min(15) + u64::from(was_reset)
}
