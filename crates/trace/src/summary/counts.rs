//! Counts of each flag, and totals.

use crate::analysis::Flags;
use crate::decode::{Segment, bits};

/// Counts of a stretch of time, of a direction, or of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of any kind.
    pub frames: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// The bytes of data that they carried.
    pub payload_bytes: u64,
    /// Clients' SYNs sent again:
    /// `tcp.flags.syn==1 && tcp.flags.ack==0 && tcp.analysis.retransmission`.
    pub syn_retransmissions: u64,
    /// Servers' SYNs with ACK sent again:
    /// `tcp.flags.syn==1 && tcp.flags.ack==1 && tcp.analysis.retransmission`.
    pub syn_ack_retransmissions: u64,
    /// By the flags' numbers.
    flags: [u64; Flags::COUNT],
}

impl Counts {
    /// How often `flag`, one flag, was set.
    pub fn of(&self, flag: Flags) -> u64 {
        flag.numbers().filter_map(|number| self.flags.get(number)).sum()
    }

    /// Each flag's name and count, in the order of [`Flags::NAMED`].
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Flags::NAMED.iter().zip(&self.flags).map(|((_, name), count)| (*name, *count))
    }

    pub(crate) fn frame(&mut self, wire_bytes: u32) {
        self.frames += 1;
        self.bytes += u64::from(wire_bytes);
    }

    pub(crate) fn segment(&mut self, segment: &Segment, flags: Flags) {
        self.segments += 1;
        self.payload_bytes += u64::from(segment.length);
        self.flags(segment, flags);
    }

    pub(crate) fn flags(&mut self, segment: &Segment, flags: Flags) {
        if segment.has(bits::SYN) && flags.has(Flags::RETRANSMISSION) {
            let is_answer = segment.has(bits::ACK);
            self.syn_retransmissions += u64::from(!is_answer);
            self.syn_ack_retransmissions += u64::from(is_answer);
        }
        for number in flags.numbers() {
            self.flags[number] += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.segments += other.segments;
        self.payload_bytes += other.payload_bytes;
        self.syn_retransmissions += other.syn_retransmissions;
        self.syn_ack_retransmissions += other.syn_ack_retransmissions;
        for (sum, more) in self.flags.iter_mut().zip(&other.flags) {
            *sum += more;
        }
    }
}
