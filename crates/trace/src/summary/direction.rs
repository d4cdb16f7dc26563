//! Statistics of one direction of a connection.

use super::Counts;
use super::repeats::Repeats;
use super::stretches::Stretches;
use crate::analysis::{Flags, is_after, is_before};
use crate::decode::{Segment, bits};

/// SYNs, or SYNs with ACK, whose times are kept.
pub const OPENINGS_MAX: usize = 8;
/// Two frames of the same segment within this are one that was captured twice.
const TWICE_WITHIN_NS: i64 = 1_000_000;
/// Segments that a new one is compared with for that.
const RECENT: usize = 4;
/// A sender that waits this long before it sends its last segment again waited for its timer.
const TIMER_MIN_NS: i64 = 150_000_000;

/// What an end said when it opened the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Its options were seen: of a SYN, or of a SYN with ACK.
    pub was_seen: bool,
    /// Maximum segment size, in bytes.
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub has_timestamps: bool,
}

/// Round trips, measured at the capture, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// How many were measured.
    pub samples: u32,
    /// The shortest.
    pub min_ns: i64,
    /// The longest.
    pub max_ns: i64,
    sum_ns: i64,
}

impl Rtt {
    fn take(&mut self, ns: i64) {
        self.min_ns = if self.samples == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.samples = self.samples.saturating_add(1);
    }

    /// The mean.
    pub fn mean_ns(&self) -> Option<i64> {
        (self.samples > 0).then(|| self.sum_ns / i64::from(self.samples))
    }
}

/// Statistics of one direction.
#[derive(Debug, Default)]
pub struct Direction {
    /// Flags, segments and bytes.
    pub counts: Counts,
    /// The frame in which each flag was first set, by the flags' numbers; 0 if never.
    first_frames: [u32; Flags::COUNT],
    /// How it opened the connection.
    pub handshake: Handshake,
    /// When it sent SYN (with ACK or without): the first [`OPENINGS_MAX`] times, in nanoseconds
    /// since 1970.
    openings_ns: [i64; OPENINGS_MAX],
    /// How many times in all.
    pub openings: u32,
    /// Bytes of data, each counted once.
    pub unique_bytes: u64,
    /// Of what was flagged as sent again or out of order: segments whose bytes had all been seen
    /// before. They were sent again, whatever the flag.
    pub repeated_segments: u64,
    /// Of what was flagged as sent again or out of order: segments whose bytes were not seen
    /// before. They were lost, or overtaken, before the place of the capture.
    pub late_segments: u64,
    /// Of [`Direction::late_segments`], those that were sent before the ones that came first: their
    /// IP identification is an older one. They were overtaken, and not lost.
    pub overtaken_segments: u64,
    /// Bytes that the other end acknowledged and that the capture does not have.
    pub unseen_bytes: u64,
    /// Frames that show a segment a second time, as a mirror port does: same IP identification.
    pub captured_twice: u64,
    /// Of [`Direction::captured_twice`], those that tshark calls retransmissions or out of order.
    pub captured_twice_flagged: u64,
    /// Last segments retransmitted by the timer (tail loss).
    pub tail_retransmissions: u64,
    /// Blocks that report duplicate data (D-SACK, RFC 2883).
    pub duplicate_sacks: u64,
    /// Of [`Direction::repeated_segments`], those whose bytes had arrived before, by tshark's
    /// `spurious_retransmission`, by a selective acknowledgement before or a D-SACK after it.
    pub needless_segments: u64,
    /// Segments that carried selective acknowledgements.
    pub sacks: u64,
    /// Round trips from this end's data to its acknowledgement.
    pub rtt: Rtt,
    /// Largest segment, in bytes of data.
    pub segment_max_bytes: u32,
    /// How often the same first byte was sent again in a row, at most.
    pub repeats_max: u32,
    /// The data of that segment, in bytes.
    pub repeated_bytes: u32,
    /// The acknowledgement of this direction's data had not got beyond it when the capture ended.
    pub is_stuck: bool,
    /// When that segment was sent again for the first time, in nanoseconds since 1970.
    pub stuck_since_ns: i64,
    /// When this end last sent anything, in nanoseconds since 1970; 0 if it never did.
    pub last_ns: i64,
    /// Most bytes of this direction acknowledged at once: no longer segment is known to have
    /// arrived.
    pub advance_max_bytes: u32,
    /// How long its window was shut in all, in nanoseconds.
    pub shut_ns: i64,
    /// It has sent FIN.
    pub has_finished: bool,
    /// How many times it has sent RST.
    pub resets: u32,
    stretches: Stretches,
    shut_since_ns: Option<i64>,
    timed: Option<(u32, i64)>,
    /// The first byte of what was sent again last, how often, and since when.
    repeated: (u32, u32, i64),
    repeats: Repeats,
    last_data_ns: i64,
    acknowledged: Option<u32>,
    /// IP identification of the segment with the highest byte so far.
    newest_ip_id: Option<u16>,
    recent: [Print; RECENT],
}

/// Distinguishes a frame captured twice from a segment sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Print {
    ip_id: Option<u16>,
    sequence: u32,
    acknowledged: u32,
    length: u32,
    flags: u16,
    time_ns: i64,
}

impl Direction {
    /// The frame in which `flag`, one flag, was first set.
    pub fn first_frame(&self, flag: Flags) -> Option<u32> {
        let number = flag.numbers().next()?;
        self.first_frames.get(number).copied().filter(|frame| *frame > 0)
    }

    /// When it sent SYN: the first times, in nanoseconds since 1970.
    pub fn opening_times_ns(&self) -> &[i64] {
        &self.openings_ns[..OPENINGS_MAX.min(self.openings as usize)]
    }

    /// A segment that it sent. Yields whether this frame shows one that was captured already.
    pub(super) fn sent(
        &mut self,
        frame: u64,
        segment: &Segment,
        flags: Flags,
        now_ns: i64,
    ) -> bool {
        self.counts.segment(segment, flags);
        for number in flags.numbers() {
            if self.first_frames[number] == 0 {
                self.first_frames[number] = u32::try_from(frame).unwrap_or(u32::MAX);
            }
        }
        self.last_ns = now_ns;
        let was_captured = self.was_captured(segment, now_ns);
        let is_again = flags.has(Flags::RETRANSMISSION) || flags.has(Flags::OUT_OF_ORDER);
        if was_captured {
            self.captured_twice += 1;
            self.captured_twice_flagged += u64::from(is_again);
            return true;
        }
        if segment.has(bits::SYN) {
            self.opened(segment, now_ns);
        }
        self.has_finished |= segment.has(bits::FIN);
        self.resets = self.resets.saturating_add(u32::from(segment.has(bits::RST)));
        self.sacks += u64::from(segment.options.sack_count > 0);
        self.window(segment, now_ns);
        if segment.length > 0 && !flags.has(Flags::KEEP_ALIVE) && !segment.has(bits::RST) {
            self.data(segment, is_again, now_ns);
        }
        false
    }

    fn opened(&mut self, segment: &Segment, now_ns: i64) {
        if let Some(time) = self.openings_ns.get_mut(self.openings as usize) {
            *time = now_ns;
        }
        self.openings = self.openings.saturating_add(1);
        let options = &segment.options;
        self.handshake = Handshake {
            was_seen: !segment.is_cut,
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            has_timestamps: options.has_timestamps,
        };
    }

    fn window(&mut self, segment: &Segment, now_ns: i64) {
        if segment.has(bits::SYN | bits::RST | bits::FIN) {
            return;
        }
        match (segment.window, self.shut_since_ns) {
            (0, None) => self.shut_since_ns = Some(now_ns),
            (1.., Some(since)) => {
                self.shut_ns = self.shut_ns.saturating_add(now_ns.saturating_sub(since).max(0));
                self.shut_since_ns = None;
            }
            _ => {}
        }
    }

    fn data(&mut self, segment: &Segment, is_again: bool, now_ns: i64) {
        let end = segment.sequence.wrapping_add(segment.length);
        let is_last = self.stretches.end() == Some(end);
        let novelty = self.stretches.take(segment.sequence, segment.length);
        let new_bytes = u64::from(novelty.beyond) + u64::from(novelty.filled);
        self.unique_bytes += new_bytes;
        self.unseen_bytes = self.unseen_bytes.saturating_sub(u64::from(novelty.acknowledged));
        self.segment_max_bytes = self.segment_max_bytes.max(segment.length);
        if novelty.beyond > 0 {
            self.newest_ip_id = segment.ip_id;
        }
        if is_again {
            if novelty.filled > 0 {
                self.late_segments += 1;
                self.overtaken_segments += u64::from(self.is_older(segment));
            }
            if new_bytes == 0 && !novelty.is_unknown {
                self.repeated_segments += 1;
                let had_arrived = self.repeats.sent_again(segment.sequence, segment.length);
                self.needless_segments += u64::from(had_arrived);
            }
            if is_last && now_ns.saturating_sub(self.last_data_ns) > TIMER_MIN_NS {
                self.tail_retransmissions += 1;
            }
            self.timed = None;
        } else if self.timed.is_none() && novelty.beyond > 0 {
            self.timed = Some((end, now_ns));
        }
        if new_bytes == 0 && !novelty.is_unknown {
            let (first, times, since_ns) = self.repeated;
            let is_same = times > 0 && first == segment.sequence;
            let (times, since_ns) =
                if is_same { (times.saturating_add(1), since_ns) } else { (1, now_ns) };
            self.repeated = (segment.sequence, times, since_ns);
            if times >= self.repeats_max {
                self.repeats_max = times;
                self.repeated_bytes = segment.length;
                self.is_stuck = true;
                self.stuck_since_ns = since_ns;
            }
        }
        self.last_data_ns = now_ns;
    }

    /// The other end acknowledges what this one sent.
    pub(super) fn acknowledged(&mut self, segment: &Segment, now_ns: i64) {
        let acknowledged = segment.acknowledged;
        let duplicates = self.repeats.acknowledged(acknowledged, &segment.options);
        self.duplicate_sacks += u64::from(duplicates.is_duplicate_sack);
        self.needless_segments += duplicates.needless;
        let before = self.acknowledged.unwrap_or(acknowledged);
        if is_before(acknowledged, before) {
            return;
        }
        self.acknowledged = Some(acknowledged);
        self.advance_max_bytes = self.advance_max_bytes.max(acknowledged.wrapping_sub(before));
        self.unseen_bytes += u64::from(self.stretches.acknowledge(acknowledged));
        if self.is_stuck && is_after(acknowledged, self.repeated.0) {
            self.is_stuck = false;
        }
        if let Some((end, sent_ns)) = self.timed
            && !is_before(acknowledged, end)
        {
            self.rtt.take(now_ns.saturating_sub(sent_ns).max(0));
            self.timed = None;
        }
    }

    /// Whether the segment was sent before those that came first: hosts count the identification up,
    /// each connection by itself.
    fn is_older(&self, segment: &Segment) -> bool {
        let ids = segment.ip_id.zip(self.newest_ip_id);
        ids.is_some_and(|(id, newest)| id.wrapping_sub(newest).cast_signed() < 0)
    }

    fn was_captured(&mut self, segment: &Segment, now_ns: i64) -> bool {
        let print = Print {
            ip_id: segment.ip_id,
            sequence: segment.sequence,
            acknowledged: segment.acknowledged,
            length: segment.length,
            flags: segment.flags,
            time_ns: now_ns,
        };
        let is_same = |earlier: &Print| {
            let within = now_ns.wrapping_sub(earlier.time_ns).unsigned_abs();
            within < TWICE_WITHIN_NS.unsigned_abs()
                && Print { time_ns: now_ns, ..*earlier } == print
        };
        // Without an identification it may as well have been sent twice: a SYN that is repeated after a
        // second meets the SYN with ACK that the other end repeats after a second.
        let was_captured = print.ip_id.is_some() && self.recent.iter().any(is_same);
        self.recent.rotate_right(1);
        self.recent[0] = print;
        was_captured
    }
}
